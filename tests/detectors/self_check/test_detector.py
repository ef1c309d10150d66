"""SelfCheckGPT on a scripted model."""

from __future__ import annotations

from typing import Any

import pytest

from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.self_check.detector import SelfCheckDetector
from hallulab.scenarios.transcript import Judgement, Message, Passage
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import last_user, scripted_pool

POOL = Passage(id="pool#0", document="pool", text="The pool opens at 6.")
REPLY = "The pool opens at 6. Tickets are free."


def answers(body: dict[str, Any]) -> str | dict[str, float]:
    """Every sample says something else of the tickets: the first one nothing, the second one a price."""
    asked = last_user(body)
    if "Answer Yes or No" not in asked:
        return "It opens\nat 6." if body["seed"] == 7 else "It opens at 6. A ticket is 2 euros."
    sample, sentence = asked.removeprefix("Context:\n").split("\n\nSentence:\n")
    if sentence.startswith("The pool"):
        return {"Yes": 1.0}
    return {"Unclear": 1.0} if sample == "It opens at 6." else {"No": 1.0}


async def judged(
    reply: str = REPLY, question: str = "When?", script: Any = answers, **options: Any
) -> tuple[Judgement, list[dict[str, Any]]]:
    pool, transport = scripted_pool(script)
    context = DetectorContext(models=pool, options={"samples": 2, **options}, seed=7)
    view = TurnView(
        history=(Message(role="user", text="Hello."),), question=question, passages=(POOL,), reply=reply
    )
    return await SelfCheckDetector("check", context).detect(view), transport.requests


async def test_a_sentence_scores_its_mean_inconsistency_and_the_reply_the_mean_of_its_sentences() -> None:
    judgement, _ = await judged()
    scored = [unit for unit in judgement.units if unit.kind == "sentence"]
    assert [(unit.start, unit.end, unit.score) for unit in scored] == [(0, 20, 0.0), (21, 38, 0.75)]
    assert scored[1].details == {"sample 1 P(No)": None, "sample 2 P(No)": 1.0, "unreadable checks": 1.0}
    assert (judgement.score, judgement.flagged) == (0.375, False)
    assert judgement.spans is not None
    assert [span.text for span in judgement.spans] == ["Tickets are free."]


def unsure_of(sentence: str) -> Any:
    """Every check of a sentence that begins so is answered neither Yes nor No, all others Yes."""

    def script(body: dict[str, Any]) -> str | dict[str, float]:
        asked = last_user(body)
        if "Answer Yes or No" not in asked:
            return "It opens at 6."
        return {"Unclear": 1.0} if f"Sentence:\n{sentence}" in asked else {"Yes": 1.0}

    return script


async def test_a_sentence_without_a_readable_check_has_no_score() -> None:
    judgement, _ = await judged(script=unsure_of("Tickets"))
    scored = [unit for unit in judgement.units if unit.kind == "sentence"]
    assert [unit.score for unit in scored] == [0.0, None]
    assert scored[1].details["unreadable checks"] == 2.0
    assert (judgement.score, judgement.flagged, judgement.spans) == (0.25, False, ())


async def test_a_reply_without_a_readable_check_is_a_failure() -> None:
    judgement, _ = await judged(script=unsure_of(""))
    assert (judgement.outcome, judgement.error) == ("failed", "check: none of 4 answers is Yes or No.")
    assert all(call.error is None for call in judgement.calls)


async def test_samples_are_drawn_with_seeds_of_their_own_from_the_question_and_its_evidence() -> None:
    judgement, requests = await judged(temperature=0.8)
    drawn = [body for body in requests if "Answer Yes or No" not in last_user(body)]
    assert [(body["seed"], body["temperature"]) for body in drawn] == [(7, 0.8), (8, 0.8)]
    assert all(text in last_user(drawn[0]) for text in ("When?", "User: Hello.", POOL.text))
    assert [unit.text for unit in judgement.units if unit.kind is None] == [
        "It opens\nat 6.",
        "It opens at 6. A ticket is 2 euros.",
    ]
    assert len(requests) == 2 + 2 * 2 + 1  # an unclear check is asked about again, for a word


async def test_what_answers_no_question_cannot_be_asked_again() -> None:
    judgement, requests = await judged(question=" ")
    assert (judgement.outcome, requests) == ("abstained", [])


async def test_a_reply_without_words_is_not_judged() -> None:
    assert (await judged("?!"))[0].error == "the reply has no words"


def test_the_threshold_is_even_odds() -> None:
    pool, _ = scripted_pool(answers)
    detector = SelfCheckDetector("check", DetectorContext(models=pool))
    assert (detector.threshold, detector.threshold_protocol) == (0.5, "untuned")


@pytest.mark.parametrize("option", [{"samples": 3}, {"temperature": 0.5}, {"threshold": 0.4}])
def test_every_option_counts_for_the_version(option: dict[str, float]) -> None:
    pool, _ = scripted_pool(answers)
    versions = {
        SelfCheckDetector("check", DetectorContext(models=pool, options=options)).version
        for options in ({}, option)
    }
    assert len(versions) == 2
