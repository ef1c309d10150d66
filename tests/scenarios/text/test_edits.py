"""What the rules make of literal sentences."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from hallulab.scenarios.text.edits import (
    Edit,
    SentenceBank,
    build_negation,
    generate_condition_edits,
    generate_date_edits,
    generate_general_edits,
    generate_number_edits,
    generate_reference_edits,
    generate_unit_edits,
    name_edits,
)


def made(sentence: str, found: Iterable[Edit]) -> list[str]:
    return [edit.of(sentence) for edit in found]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("A hearing may be held online.", "A hearing may not be held online."),
        ("Fees cannot be paid in cash.", "Fees can be paid in cash."),
        ("Fees can be paid in cash.", "Fees cannot be paid in cash."),
        ("The bank must not charge for it.", "The bank must charge for it."),
        ("Only here may dogs bathe in the pool.", None),
        ("Dogs that are wet must wait outside.", None),
        ("Dogs wait outside in the rain.", None),
    ],
)
def test_the_main_verb_is_turned_round_or_nothing(sentence: str, expected: str | None) -> None:
    edit = build_negation(sentence)
    assert (edit and edit.of(sentence)) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Entry is free if you are under 14.", ["Entry is free unless you are under 14."]),
        (
            "You pay nothing at the gate if you are a child.",
            ["You pay nothing at the gate unless you are a child.", "You pay nothing at the gate."],
        ),
        (
            "If the gate is shut, you can ring the bell outside.",
            ["Unless the gate is shut, you can ring the bell outside.", "You can ring the bell outside."],
        ),
        ("Bring at least two photos with you.", ["Bring at most two photos with you."]),
        ("Write within 30 days to the office.", ["Write only after 30 days to the office."]),
        ("Complaints go before the commission.", []),
    ],
)
def test_a_condition_is_turned_round_and_dropped(sentence: str, expected: list[str]) -> None:
    assert made(sentence, generate_condition_edits(sentence)) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Some shops close at noon.", ["All shops close at noon."]),
        ("The office usually answers.", ["The office always answers."]),
        ("What most often helps is a letter.", []),
        ("Letters may be sent by mail.", ["Letters must always be sent by mail."]),
        ("You may not park here.", []),
    ],
)
def test_what_holds_of_some_is_said_of_all(sentence: str, expected: list[str]) -> None:
    assert made(sentence, generate_general_edits(sentence)) == expected


def test_another_number_is_written_as_the_right_one_was() -> None:
    sentence = "It costs 1,200 rupees and takes 30 days, or one day."
    [price, period] = made(sentence, generate_number_edits(sentence, random.Random(0)))
    assert price in {
        "It costs 2,400 rupees and takes 30 days, or one day.",
        "It costs 3,600 rupees and takes 30 days, or one day.",
        "It costs 1,800 rupees and takes 30 days, or one day.",
    }
    assert period in {f"It costs 1,200 rupees and takes {n} days, or one day." for n in (60, 90, 45)}


def test_another_unit_takes_the_qualifier_with_it() -> None:
    sentence = "It takes 14 working days and costs two lakh rupees."
    assert made(sentence, generate_unit_edits(sentence, random.Random(0))) == [
        "It takes 14 weeks and costs two lakh rupees.",
        "It takes 14 working days and costs two crore rupees.",
    ]


def test_another_month() -> None:
    sentence = "It begins on 3 May 2024."
    [changed] = made(sentence, generate_date_edits(sentence, random.Random(0)))
    assert changed.startswith("It begins on 3 ")
    assert "May" not in changed


def test_another_name_has_the_same_last_word_where_there_is_one() -> None:
    library = SentenceBank((("a", "Ask the State Bank of it."), ("b", "Ask the Water Office of it.")))
    sentence = "Then the Reserve Bank decides."
    assert made(sentence, name_edits(sentence, library, random.Random(0))) == ["Then the State Bank decides."]


def test_a_section_is_changed_or_made_up() -> None:
    [changed] = made(
        "It rests on section 12 of the Act.",
        generate_reference_edits("It rests on section 12 of the Act.", random.Random(0)),
    )
    assert changed.startswith("It rests on section ")
    assert "section 12 " not in changed
    [cited] = made("It is free.", generate_reference_edits("It is free.", random.Random(0)))
    assert cited.startswith("It is free under section ")


@pytest.mark.parametrize("digits", [301, 5_000])
def test_a_number_too_long_to_be_counted_with_is_left_as_it_is(digits: int) -> None:
    number = "4" * digits
    for sentence in (
        f"The fee is Rs {number} a day.",
        f"It is {number} km.",
        f"It is under section {number}.",
        f"Call http://localhost/{number} now",
        f"It is {number}.5 or 1,{number}",
    ):
        generator = random.Random(0)
        edits = [*generate_number_edits(sentence, generator), *generate_reference_edits(sentence, generator)]
        assert all(edit.start >= sentence.index(number) + digits for edit in edits)
