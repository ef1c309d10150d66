"""Errors that a model writes: asked twice at most, checked, counted, and the same again from a recording."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from hallulab.scenarios.errors import OperationalError
from hallulab.simulator.planting.fluent import RewriteExecutor, RewriteTask, SentenceRewritten, plant_fluently
from hallulab.simulator.planting.material import clean_replies
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
    done = await plant_fluently([clean_replies(REPLIES, 0)], ("condition",), 3, 0, RewriteExecutor(pool, 0))
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
        [clean_replies(REPLIES, 0)], ("contradiction",), 1, 0, RewriteExecutor(pool, 0)
    )
    assert (done.replies, done.lacking, transport.requests) == ([], {"contradiction": 1}, [])


async def test_a_model_without_answers_is_told() -> None:
    pool, _ = scripted_pool(lambda body: httpx2.Response(400, json={"error": "no"}))
    with pytest.raises(OperationalError, match="the model rewrote no sentence"):
        await plant_fluently([clean_replies(REPLIES, 0)], ("condition",), 2, 0, RewriteExecutor(pool, 0))


class DyingWorkers:
    """Perform no task: each dies of it."""

    async def perform(self, task: RewriteTask, emit: Callable[[SentenceRewritten], None]) -> None:
        for event in task.fail("the worker process ended"):
            emit(event)


async def test_a_sentence_that_kills_workers_is_dropped() -> None:
    done = await plant_fluently([clean_replies(REPLIES, 0)], ("condition",), 1, 0, DyingWorkers())
    assert done.dropped == {("condition", "the worker process ended"): 1}
