"""Where the evidence of a judgement comes from."""

from __future__ import annotations

import pytest

from hallulab.scenarios.transcript import Passage, Span, Unit
from hallulab.simulator.report.cited import CitedEvidence, EvidenceFinder
from tests.builders import conversation, scored

FEES = Passage(id="fees#1", document="fees", text="The fee is Rs 200.")
LIMITS = Passage(id="limits", document="limits", text="Two years.")


def find(evidence: str, turn: int = 1, query: str | None = None) -> CitedEvidence | None:
    chat = conversation("a", ["x", "x"])
    given = [(FEES,), (LIMITS, FEES.model_copy(update={"id": "fees#2"}))]
    turns = [one.model_copy(update={"passages": shown}) for one, shown in zip(chat.turns, given, strict=True)]
    steps = [Unit(text=query, details={"step": "reformulated query"})] if query else []
    verdict = scored("a", turn).model_copy(update={"units": tuple(steps)})
    found = EvidenceFinder(chat.model_copy(update={"turns": tuple(turns)}))
    return found.find(Span(start=0, end=1, text="x", evidence=evidence), verdict)


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        ("", None),
        ("limits: Two years.", CitedEvidence("limits", "Two years.", 1, 0, "passage 1 of 2 of this turn")),
        ("fees#2", CitedEvidence("fees#2", FEES.text, 1, 1, "passage 2 of 2 of this turn")),
        (
            "fees#1: The fee is Rs 200.",
            CitedEvidence("fees#1", FEES.text, 0, 0, "passage 1 of 1 of turn 1, not of this one"),
        ),
        ("Nobody pays.", CitedEvidence("", "Nobody pays.", None, 0, "as d quotes it")),
    ],
)
def test_evidence_comes_from(evidence: str, expected: CitedEvidence | None) -> None:
    assert find(evidence) == expected


def test_a_passage_of_a_later_turn_is_none_that_the_turn_had() -> None:
    found = find("fees#2: The fee is Rs 200.", turn=0)
    assert found is not None
    assert (found.turn, found.text) == (None, "The fee is Rs 200.")


@pytest.mark.parametrize(("query", "end"), [(None, ""), ("What is due?", ", for “What is due?”")])
def test_a_passage_of_no_turn_was_found_by_the_detector(query: str | None, end: str) -> None:
    told = "not among the passages of this conversation; d found it by a search of its own"
    expected = CitedEvidence("other#12", "It says: so.\nYes.", None, 0, f"{told}{end}")
    assert find("other#12: It says: so.\nYes.", query=query) == expected
