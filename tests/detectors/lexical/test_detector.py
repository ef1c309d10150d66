"""The lexical floor."""

from __future__ import annotations

from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.lexical.detector import LexicalDetector
from hallulab.scenarios.transcript import Judgement, Message, Passage
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import scripted_pool

EVIDENCE = "The bakery opens at 6."


async def judged(reply: str, evidence: str = EVIDENCE, **options: object) -> Judgement:
    pool, transport = scripted_pool(lambda _: "unused")
    detector = LexicalDetector("lexical", DetectorContext(models=pool, options=options))
    view = TurnView(
        history=(Message(role="user", text="Is it cheap?"),),
        question="When?",
        passages=(Passage(id="a#0", document="a", text=evidence),) if evidence else (),
        reply=reply,
    )
    judgement = await detector.detect(view)
    assert transport.requests == []
    return judgement


async def test_the_score_is_the_share_of_unknown_words() -> None:
    judgement = await judged("The BAKERY closes at 8.")
    assert (judgement.outcome, judgement.score, judgement.flagged) == ("scored", 0.4, True)


async def test_sentences_at_the_threshold_are_spans() -> None:
    judgement = await judged("The bakery opens at 6. It is cheap.", threshold=0.3)
    assert judgement.spans is not None
    assert [(span.start, span.end, span.score) for span in judgement.spans] == [(23, 35, 1.0)]
    assert judgement.spans[0].reason == "not in the evidence: it, is, cheap"
    assert [unit.score for unit in judgement.units] == [0.0, 1.0]


async def test_below_the_threshold_a_reply_is_clean() -> None:
    judgement = await judged("The bakery opens at 6.")
    assert (judgement.score, judgement.flagged, judgement.spans) == (0.0, False, ())


async def test_the_dialogue_counts_as_evidence_on_request() -> None:
    assert (await judged("It is cheap.", dialogue_is_evidence=True)).score == 0.0


async def test_sentences_that_claim_nothing_do_not_count_on_request() -> None:
    reply = "You are welcome! The bakery opens at 9. Can I do anything else?"
    assert (await judged(reply)).score == 9 / 13
    found = await judged(reply, claims_only=True)
    assert (found.score, [unit.score for unit in found.units]) == (0.2, [None, 0.2, None])
    courteous = await judged("You are welcome!", claims_only=True)
    assert (courteous.outcome, courteous.score, courteous.flagged) == ("scored", 0.0, False)
    assert (await judged("?!", claims_only=True)).error == "the reply has no words"


async def test_words_that_lead_to_claims_do_not_count() -> None:
    reply = "Based on the passages, here are the hours: \n\nThe bakery opens at 9."
    found = await judged(reply)
    assert (found.score, [unit.score for unit in found.units]) == (0.2, [None, 0.2])


async def test_numbered_questions_before_their_answers_do_not_count() -> None:
    found = await judged("1. When does it open?\nThe bakery opens at 6.\n2. Is it cheap?\nYes.")
    assert [unit.score for unit in found.units] == [None, 0.0, None, 1.0]


async def test_without_words_or_evidence_it_abstains() -> None:
    assert (await judged("?!")).outcome == "abstained"
    assert (await judged("Yes.", evidence="")).error == "there is no evidence"
