"""The direct judge on a scripted model."""

from __future__ import annotations

from typing import Any

import pytest

from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.direct_judge.detector import DirectJudgeDetector
from hallulab.scenarios.transcript import Judgement, Passage
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import last_user, scripted_pool

POOL = Passage(id="pool#0", document="pool", text="The pool opens at 6.")
REPLY = "The pool opens at 6. Tickets are free."


def doubts_tickets(body: dict[str, Any]) -> dict[str, float]:
    """Sentences about tickets are unsupported, and so, less surely, is the reply."""
    asked = last_user(body)
    if "One sentence" in asked:
        sentence = asked.split("One sentence of the response:\n")[1]
        return {"Yes": 0.1, "No": 0.9} if sentence.startswith("Tickets") else {"Yes": 0.8, "No": 0.2}
    return {"Yes": 0.25, "No": 0.5, "Maybe": 0.25}


async def judged(
    reply: str = REPLY, passages: tuple[Passage, ...] = (POOL,), **options: Any
) -> tuple[Judgement, list[dict[str, Any]]]:
    pool, transport = scripted_pool(doubts_tickets)
    detector = DirectJudgeDetector("judge", DetectorContext(models=pool, options=options))
    view = TurnView(question="When?", passages=passages, reply=reply)
    return await detector.detect(view), transport.requests


async def test_the_score_is_the_probability_of_no_among_yes_and_no() -> None:
    judgement, requests = await judged()
    assert judgement.score == pytest.approx(2 / 3)
    assert (judgement.flagged, judgement.spans, judgement.units) == (True, None, ())
    assert [call.purpose for call in judgement.calls] == ["judge.reply"]
    assert requests[0]["max_tokens"] == 1


async def test_sentences_are_asked_about_on_request_and_leave_the_score_alone() -> None:
    judgement, requests = await judged(sentences=True)
    assert judgement.score == pytest.approx(2 / 3)
    assert [(u.kind, u.start, u.end) for u in judgement.units] == [("sentence", 0, 20), ("sentence", 21, 38)]
    assert [unit.score for unit in judgement.units] == [pytest.approx(0.2), pytest.approx(0.9)]
    assert judgement.spans is not None
    assert [span.text for span in judgement.spans] == ["Tickets are free."]
    assert len(requests) == 3


async def test_a_sentence_without_words_is_not_asked_about() -> None:
    judgement, _ = await judged("The pool opens at 6.\n\n---\n\nTickets are free.", sentences=True)
    assert [unit.text for unit in judgement.units] == ["The pool opens at 6.", "Tickets are free."]


async def test_the_threshold_is_even_odds_unless_given() -> None:
    pool, _ = scripted_pool(doubts_tickets)
    detector = DirectJudgeDetector("judge", DetectorContext(models=pool))
    assert (detector.threshold, detector.threshold_protocol) == (0.5, "untuned")
    given = DirectJudgeDetector("judge", DetectorContext(models=pool, options={"threshold": 0.7}))
    assert (given.threshold, given.threshold_protocol) == (0.7, "given")
    assert (await judged(threshold=0.7))[0].flagged is False


async def test_cut_evidence_that_shows_nothing_is_not_clean() -> None:
    long = Passage(id="pool#0", document="pool", text="The pool opens at 6. " * 10)
    judgement, _ = await judged(passages=(long,), max_evidence_characters=100, threshold=0.7)
    assert (judgement.outcome, judgement.truncated) == ("abstained", True)


BLANK = Passage(id="pool#9", document="pool", text=" ")


@pytest.mark.parametrize(("reply", "passages"), [("?!", (POOL,)), (REPLY, ()), (REPLY, (BLANK,))])
async def test_without_words_or_evidence_it_abstains(reply: str, passages: tuple[Passage, ...]) -> None:
    judgement, requests = await judged(reply, passages)
    assert (judgement.outcome, requests) == ("abstained", [])
