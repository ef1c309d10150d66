"""What rules accept of the errors that a model writes, and where they find them."""

from __future__ import annotations

import pytest

from hallulab.simulator.planting.fluent import find_difference, find_flaw
from hallulab.simulator.planting.material import Clean
from tests.builders import EVIDENCE

SENTENCE = "A complaint can be filed within two years if the fee is paid."
OTHER = (
    "The appeal against an order costs 500 rupees at the desk. "
    "A complaint about rent can not be filed within two years, if the fee is paid or not."
)
PASSAGE = EVIDENCE.model_copy(update={"text": f"{SENTENCE} {OTHER}"})
CLEAN = Clean("x", "How long?", (), (PASSAGE,), SENTENCE, "g")


@pytest.mark.parametrize(
    ("kind", "rewritten"),
    [
        ("condition", "A complaint can be filed within two years even if the fee is not paid."),
        ("condition", "A complaint can be filed within two years."),
        ("contradiction", "A complaint cannot be filed within two years if the fee is paid."),
        ("generality", "Every complaint can always be filed if the fee is paid."),
        ("step", "A complaint can be filed within two years after the notary stamped Form 12."),
        ("case-fact", "Your complaint about the broken freezer can be filed within two years."),
        ("other-rule", "A complaint can be filed within nine months if the fee is paid."),
    ],
)
def test_an_error_of_its_kind_passes(kind: str, rewritten: str) -> None:
    assert find_flaw(kind, SENTENCE, rewritten, CLEAN) is None


@pytest.mark.parametrize(
    ("kind", "rewritten", "why"),
    [
        ("condition", SENTENCE, "no error of its kind"),
        (
            "condition",
            "A complaint may be lodged within two years if the fee is paid.",
            "no error of its kind",
        ),
        (
            "contradiction",
            "A complaint can be filed in two years if the fee is paid.",
            "no error of its kind",
        ),
        ("condition", "Sure! A complaint can be filed unless the fee is paid.", "not one whole sentence"),
        ("condition", "A complaint can be filed unless the fee is paid", "not one whole sentence"),
        ("condition", "Unless paid, no complaint is free.", "much shorter or longer"),
        (
            "condition",
            "A complaint can be filed unless the fee is paid, unless the fee is paid.",
            "says something twice",
        ),
        ("condition", "The train to Oslo is late unless it snows in the north.", "about something else"),
        (
            "other-rule",
            "A complaint costs 500 rupees at the desk if the fee is paid.",
            "no error of its kind",
        ),
        ("other-rule", "The fee is paid within two years if a complaint is filed.", "no error of its kind"),
        ("contradiction", "A complaint can not be filed within two years if the fee is paid.", "supported"),
    ],
)
def test_what_is_no_error_is_told_why(kind: str, rewritten: str, why: str) -> None:
    assert find_flaw(kind, SENTENCE, rewritten, CLEAN) == why


@pytest.mark.parametrize(
    ("rewritten", "wrong"),
    [
        ("A complaint can be filed within nine months if the fee is paid.", "nine months"),
        ("A complaint can be filed within two years if the fee is paid at once.", "at once"),
        ("No complaint can be filed within two years if the fee is paid.", "No"),
        (
            "A complaint cannot be filed within two years even if the fee is paid.",
            "cannot be filed within two years even",
        ),
        ("A complaint can be filed within two years.", "A complaint can be filed within two years."),
    ],
)
def test_the_wrong_words_are_those_that_differ(rewritten: str, wrong: str) -> None:
    assert find_difference(SENTENCE, rewritten).of(rewritten) == wrong
