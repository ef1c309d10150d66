"""The training of HalluDetect's mixture, on replies made up here and a scripted model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.train_mixture import MeasuredReply, describe, fit, judge_all, learn, measured
from hallulab.scenarios.labelled import GoldSpan, LabelledReply
from hallulab.scenarios.transcript import Passage
from hallulab.testing.scripted import last_user, scripted_pool
from tests.builders import labelled

EVIDENCE = Passage(id="pool#0", document="pool", text="The pool opens at 6 in the morning.")
TRUE, FALSE = "The pool opens at 6.", "The pool closes at 9 in winter."


def reply(number: int, wrong: bool, spans: bool = True) -> LabelledReply:
    text = f"{TRUE} {FALSE}" if wrong else TRUE
    place = GoldSpan(start=len(TRUE) + 1, end=len(text)) if wrong else None
    return labelled(
        text,
        wrong,
        id=str(number),
        passages=(EVIDENCE,),
        spans=((place,) if place else ()) if spans else None,
        group=str(number),
    )


def stated(body: dict[str, Any]) -> dict[str, float]:
    yes = 0.9 if "opens" in last_user(body).split("Statement:")[1] else 0.3
    return {"Yes": yes, "No": 1 - yes}


async def made(count: int, spans: bool = True) -> list[MeasuredReply]:
    replies = [reply(number, number % 2 == 0, spans) for number in range(count)]
    pool, _ = scripted_pool(stated)
    judgements = await judge_all(replies, pool)
    return [measured(one, found) for one, found in zip(replies, judgements, strict=True)]


async def test_what_is_learnt_tells_wrong_sentences_and_replies() -> None:
    data = {"gold": await made(8), "begin": await made(6, spans=False)}
    mixture = learn(data)
    assert mixture.sentence.weights["unsupported"] > 0
    assert mixture.reply.weights["any"] > 0
    line = describe("gold", data["gold"], mixture)
    assert line.startswith("gold      sentences 1.000 (answer alone 1.000) replies 1.000")
    assert "F1 1.000 flagged 0.50 of 8" in line


async def test_labels_are_those_of_spans_or_of_a_reply_of_one_sentence() -> None:
    [wrong, right] = await made(2)
    assert (wrong.labels, right.labels) == ((False, True), (False,))
    [wrong, right] = await made(2, spans=False)
    assert (wrong.labels, right.labels) == ((None, None), (False,))


def test_data_sets_share_slopes_and_keep_intercepts_of_their_own() -> None:
    rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    found = fit(
        {"a": rows, "b": rows + 10}, {"a": np.array([0.0, 0, 1, 1]), "b": np.array([0.0, 0, 1, 1])}, {}
    )
    assert found.weights.shape == (1,)
    assert found.weights[0] > 0
    # Data set b lies ten higher, so that its even odds do, too.
    even = {name: -found.intercepts[name] / found.weights[0] for name in "ab"}
    assert even["b"] - even["a"] == pytest.approx(10, abs=0.5)
