"""Which sentence a judgement is about, and how a judged reply is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.transcript import Passage, Span
from hallulab.simulator.report.scores import read_lane_scores
from hallulab.simulator.viewer.conversation_page import ShownPassage, cut_sentences, find_citation, show_turns
from tests.builders import conversation, scored, unscored

FEES = "The fee is Rs 200. Nothing is due below five lakh rupees."
LIMITS = "A complaint is filed within two years. The commission may allow a later one."


def shown(*texts: str) -> list[ShownPassage]:
    return [
        ShownPassage(Passage(id=f"p#{number}", document="p", text=text), cut_sentences(text))
        for number, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    ("span", "place"),
    [
        (Span(start=0, end=1, text="a fee of Rs 500"), (0, 0)),
        (Span(start=0, end=1, text="within two weeks"), (1, 0)),
        (Span(start=0, end=1, text="the commission", evidence="p#1"), (1, 1)),
        (Span(start=0, end=1, text="a fee", evidence="p#1"), (1, 0)),
        (Span(start=0, end=1, text="zebra", evidence="p#1"), (1, None)),
        (Span(start=0, end=1, text="a fee", evidence="p#10: The fee is Rs 500."), (None, None)),
        (Span(start=0, end=1, text="zebra", evidence=LIMITS), (1, None)),
        (Span(start=0, end=1, text="zebra"), (None, None)),
        (Span(start=0, end=1, text="a fee", reason='It has "is due below five lakh".'), (0, 1)),
    ],
)
def test_a_judgement_is_about(span: Span, place: tuple[int | None, int | None]) -> None:
    assert find_citation(span, shown(FEES, LIMITS)) == place


def test_without_passages_there_is_nothing_to_cite() -> None:
    assert find_citation(Span(start=0, end=1, text="a fee", evidence="p#1"), []) == (None, None)


@given(st.text(max_size=60))
def test_sentences_join_to_the_text(text: str) -> None:
    assert "".join(cut_sentences(text)) == text


def test_each_detector_has_a_lane_of_its_own() -> None:
    chat = conversation("a", ["abcd"])
    verdicts = [scored("a", 0, [(1, 3)]), unscored("a", 0, detector="failing")]
    [turn] = show_turns(chat, verdicts, read_lane_scores([], ["d", "failing", "absent"]))
    assert [lane.state for lane in turn.lanes] == ["flagged", "failed", "missing"]
    assert [(piece.text, piece.findings) for piece in turn.lanes[0].pieces] == [
        ("a", ()),
        ("bc", (0,)),
        ("d", ()),
    ]
    assert [piece.text for piece in turn.lanes[1].pieces] == ["abcd"]
    assert turn.flagged


def test_what_was_not_judged_is_never_clean() -> None:
    chat = conversation("a", ["x"] * 4)
    verdicts = [scored("a", 0), scored("a", 1, None), unscored("a", 2, "abstained")]
    turns = show_turns(chat, verdicts, read_lane_scores([], ["d"]))
    assert [turn.lanes[0].state for turn in turns] == ["clean", "not_localised", "abstained", "missing"]
    assert not any(turn.flagged for turn in turns)


def test_evidence_leads_to_the_turn_that_has_it_with_its_sentence() -> None:
    passages = (Passage(id="fees#0", document="fees", text="Title: Fees\nThe fee is Rs 200. It is due."),)
    chat = conversation("a", ["x", "x"])
    first, second = chat.turns
    chat = chat.model_copy(update={"turns": (first.model_copy(update={"passages": passages}), second)})
    verdict = scored("a", 1, [(0, 1)])
    [span] = verdict.spans or ()
    cited = span.model_copy(update={"text": "the fee", "evidence": f"fees#0: {passages[0].text}"})
    turns = show_turns(chat, [verdict.model_copy(update={"spans": (cited,)})], read_lane_scores([], ["d"]))
    [finding] = turns[1].lanes[0].findings
    assert (finding.address, finding.quoted) == ("passage-0-0-0", "The fee is Rs 200.")
    assert finding.evidence is not None
    assert finding.evidence.origin == "passage 1 of 1 of turn 1, not of this one"


def test_evidence_is_shown_once_a_reply() -> None:
    passages = (Passage(id="fees#0", document="fees", text="The fee is Rs 200."),)
    verdict = scored("a", 0, [(0, 1), (1, 2), (2, 3)])
    spans = [
        span.model_copy(update={"text": "the fee", "evidence": evidence})
        for span, evidence in zip(verdict.spans or (), ("fees#0", "fees#0", "a law"), strict=True)
    ]
    chat = conversation("a", ["xyz"])
    [turn] = chat.turns
    chat = chat.model_copy(update={"turns": (turn.model_copy(update={"passages": passages}),)})
    [shown_turn] = show_turns(
        chat, [verdict.model_copy(update={"spans": tuple(spans)})], read_lane_scores([], ["d"])
    )
    assert [finding.again for finding in shown_turn.lanes[0].findings] == [False, True, False]
