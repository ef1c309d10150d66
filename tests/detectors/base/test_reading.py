"""What a detector reads of a turn, and the places that it gives."""

from __future__ import annotations

import pytest

from hallulab.detectors.base.protocol import Detector, DetectorContext, Traits, run_detector
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.transcript import Judgement, Passage, Span, Unit
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import last_user, scripted_pool


def view(reply: str, *passages: str, question: str = "") -> TurnView:
    given = tuple(Passage(id=f"p#{at}", document="p", text=text) for at, text in enumerate(passages))
    return TurnView(question=question, passages=given, reply=reply)


class Marker(Detector):
    """Marks the last word, and keeps what it was given."""

    name, version = "marker", "1"
    traits = Traits(needs_model=False)

    def __init__(self, languages: tuple[str, ...] | None = None) -> None:
        self.languages = languages
        self.seen: list[TurnView] = []

    async def detect(self, view: TurnView) -> Judgement:
        self.seen.append(view)
        words = view.reply.split()
        start = len(view.reply) - len(words[-1])
        place = {"start": start, "end": len(view.reply), "text": words[-1]}
        return Judgement(
            outcome="scored",
            score=1.0,
            flagged=True,
            spans=(Span.model_validate(place),),
            units=(Unit.model_validate(place),),
            word_scores=tuple(float(number) for number in range(len(words))),
        )


async def test_a_detector_reads_one_form_and_its_places_are_in_the_reply_as_it_was() -> None:
    marker, reply = Marker(), "The o\ufb03ce has no infor-\nmation"
    [judgement] = await run_detector(marker, [view(reply, "The of\ufb01ce.")])
    assert (marker.seen[0].reply, marker.seen[0].passages[0].text) == (
        "The office has no information",
        "The office.",
    )
    assert judgement.spans is not None
    [span] = judgement.spans
    assert (span.start, span.end, span.text) == (16, 29, "infor-\nmation")
    assert judgement.units[0].text == "infor-\nmation"
    assert judgement.word_scores == (0.0, 1.0, 2.0, 3.0, 4.0, 4.0)


async def test_a_detector_is_not_given_what_it_cannot_read() -> None:
    marker = Marker(("hi", "ta"))
    judged = await run_detector(marker, [view("कार्ड मुफ़्त है"), view("The card is free"), view("अच्छा")])
    assert [one.outcome for one in judged] == ["scored", "abstained", "scored"]
    assert judged[1].error == "the reply is in English, and marker reads Hindi and Tamil only"
    assert [seen.reply for seen in marker.seen] == ["कार्ड मुफ़्त है", "अच्छा"]


async def test_evidence_in_another_language_cannot_be_read_either() -> None:
    [judgement] = await run_detector(Marker(("en",)), [view("The card is free", "कार्ड मुफ़्त है", "借书证免费")])
    assert judgement.error == "the evidence is in Chinese and Hindi, and marker reads English only"


async def test_one_passage_that_can_be_read_is_enough() -> None:
    views = [view("The card is free", "कार्ड मुफ़्त है", "The card is free")]
    assert [one.outcome for one in await run_detector(Marker(("en",)), views)] == ["scored"]


async def test_a_reply_too_short_to_tell_is_in_the_language_of_the_evidence() -> None:
    evidence, question = "Die Karte kostet für Gäste 20 Euro im Jahr.", "Was kostet das für einen Gast?"
    views = [view("20 Euro.", evidence), view("20 Euro.", question=question), view("20 Euro.")]
    judged = await run_detector(Marker(("en",)), views)
    assert [one.outcome for one in judged] == ["abstained", "abstained", "scored"]
    assert judged[0].error == judged[1].error == "the reply is in German, and marker reads English only"


async def judge(reply: str, *passages: str) -> Judgement:
    pool, _ = scripted_pool(lambda _: "unused")
    detector = make_detector("lexical", "lexical", DetectorContext(models=pool))
    return (await run_detector(detector, [view(reply, *passages)]))[0]


async def test_lexical_compares_no_words_of_two_languages() -> None:
    judgement = await judge("कार्ड मुफ़्त है", "The card is free for the residents.")
    assert judgement.error == (
        "the reply is in Hindi and the evidence in English: their words cannot be compared"
    )


async def test_lexical_cannot_tell_the_words_of_khmer_apart() -> None:
    judgement = await judge("កាតឥតគិតថ្លៃ", "កាតឥតគិតថ្លៃ")
    assert judgement.error == "the reply is in Khmer, whose words lexical cannot tell apart"


async def test_a_right_reply_with_ligatures_and_hyphens_is_not_flagged() -> None:
    judgement = await judge("The of\ufb01ce gives infor-\nmation.", "The office gives in\u00adformation.")
    assert (judgement.score, judgement.flagged) == (0.0, False)


async def test_a_word_broken_over_joined_lines_is_the_word_of_the_reply() -> None:
    passage = "The replace- ment fee is 5 euros for a well- known book."
    judgement = await judge("The replacement fee is 5 euros for a well-known book.", passage)
    assert (judgement.score, judgement.flagged) == (0.0, False)


async def test_a_decimal_comma_is_no_thousands_mark() -> None:
    evidence = "Die Gebühr beträgt 3,5 Prozent des Preises von 1.250,50 Euro."
    right, wrong = "Die Gebühr beträgt 3.5 Prozent.", "Die Gebühr beträgt 35 Prozent."
    assert [(await judge(reply, evidence)).score for reply in (right, wrong)] == [0.0, 0.2]


@pytest.mark.parametrize(
    "reply", ["I cannot find that. Please contact the help desk.", "Ich kann das leider nicht sagen."]
)
async def test_a_reply_that_declines_is_clean_and_no_detector_is_asked(reply: str) -> None:
    marker = Marker()
    [judgement] = await run_detector(marker, [view(reply)])
    assert judgement == Judgement(outcome="scored", score=0.0, flagged=False, spans=())
    assert marker.seen == []


async def test_a_reply_that_declines_in_a_language_that_is_not_read_is_judged() -> None:
    marker = Marker()
    [judgement] = await run_detector(marker, [view("Mi dispiace, questo non è nei documenti.")])
    assert judgement.flagged


async def test_a_detector_does_not_read_a_sentence_that_declines() -> None:
    marker = Marker()
    reply = "The o\ufb03ce is open. I do not know its address. It is free."
    [judgement] = await run_detector(marker, [view(reply)])
    assert marker.seen[0].reply == "The office is open.  It is free."
    assert judgement.spans is not None
    [span] = judgement.spans
    assert reply[span.start : span.end] == span.text == "free."
    assert judgement.word_scores == (0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0, 5.0, 6.0)


async def test_a_detector_reads_a_claim_without_its_source() -> None:
    marker = Marker()
    await run_detector(marker, [view("Passage 1 says that it is free (Passage 1).")])
    assert marker.seen[0].reply == "it is free ."


async def test_a_detector_that_asks_a_model_reads_the_same() -> None:
    marker = Marker()
    marker.traits = Traits()
    reply = "I do not know why. Passage 1 says that the o\ufb03ce is free."
    [judgement] = await run_detector(marker, [view(reply)])
    assert marker.seen[0].reply == " the office is free."
    assert judgement.spans is not None
    assert judgement.spans[0].text == "free."


async def test_a_model_is_asked_about_claims_and_not_about_what_frames_them() -> None:
    pool, transport = scripted_pool(lambda _: {"Yes": 0.9, "No": 0.1})
    judge = make_detector("direct-judge", "direct-judge", DetectorContext(models=pool))
    reply = "It is free (Passage 1). The documents do not say why."
    await run_detector(judge, [view(reply, "It is free.")])
    assert last_user(transport.requests[0]) == (
        "Evidence:\nDocument 1: It is free.\n\nResponse:\nIt is free . \n\n"
        "Is every piece of information in the response supported by the evidence? Answer Yes or No."
    )
