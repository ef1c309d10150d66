"""Errors that a model writes: asked twice at most, checked, counted, and the same again from a recording."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from hallulab.scenarios.errors import OperationalError
from hallulab.simulator.planting.fluent import (
    RewriteExecutor,
    RewriteTask,
    SentenceRewritten,
    find_difference,
    find_flaw,
    plant_fluently,
)
from hallulab.simulator.planting.material import Clean, generate_clean_replies
from hallulab.testing.scripted import last_user, scripted_pool
from tests.builders import EVIDENCE, labelled

FEE = "A complaint costs 200 rupees if you file it at the desk."
HOURS = "The office is open from Monday to Friday until noon."
REPLIES = [
    labelled(text, False, id=str(number), passages=(EVIDENCE.model_copy(update={"text": f"{FEE} {HOURS}"}),))
    for number, text in enumerate((FEE, HOURS))
]


def script(body: dict[str, Any]) -> str:
    """The right error for the fee at the second try, none ever for the hours."""
    if HOURS in last_user(body):
        return HOURS
    return FEE.replace("if you", "unless you") if body["temperature"] else "I cannot do that"


async def test_an_answer_that_fails_the_checks_is_asked_for_once_more_and_then_dropped() -> None:
    pool, transport = scripted_pool(script)
    done = await plant_fluently(
        [generate_clean_replies(REPLIES, 0)], ("condition",), 3, 0, RewriteExecutor(pool, 0)
    )
    [wrong, twin] = done.replies
    assert wrong.reply == "A complaint costs 200 rupees unless you file it at the desk."
    assert [wrong.reply[span.start : span.end] for span in wrong.spans or ()] == ["unless"]
    assert (twin.reply, twin.label, wrong.meta["by"]) == (FEE, False, "model")
    assert done.dropped == {("condition", "no error of its kind"): 1}
    assert done.lacking == {"condition": 1}
    assert len(transport.requests) == 4
    assert {request["seed"] for request in transport.requests} == {0, 1}


async def test_a_contradiction_needs_a_turn_before() -> None:
    pool, transport = scripted_pool(script)
    done = await plant_fluently(
        [generate_clean_replies(REPLIES, 0)], ("contradiction",), 1, 0, RewriteExecutor(pool, 0)
    )
    assert (done.replies, done.lacking, transport.requests) == ([], {"contradiction": 1}, [])


async def test_a_model_without_answers_is_told() -> None:
    pool, _ = scripted_pool(lambda body: httpx2.Response(400, json={"error": "no"}))
    with pytest.raises(OperationalError, match="the model rewrote no sentence"):
        await plant_fluently(
            [generate_clean_replies(REPLIES, 0)], ("condition",), 2, 0, RewriteExecutor(pool, 0)
        )


class DyingWorkers:
    """Perform no task: each dies of it."""

    async def perform(self, task: RewriteTask, emit: Callable[[SentenceRewritten], None]) -> None:
        for event in task.fail("the worker process ended"):
            emit(event)


async def test_a_sentence_that_kills_workers_is_dropped() -> None:
    done = await plant_fluently([generate_clean_replies(REPLIES, 0)], ("condition",), 1, 0, DyingWorkers())
    assert done.dropped == {("condition", "the worker process ended"): 1}


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
