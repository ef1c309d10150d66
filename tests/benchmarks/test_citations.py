"""Citations by the label of their sentence, and moved ones; docs/studies/blame.md has the numbers."""

from __future__ import annotations

import pytest

from benchmarks.citations import describe_labelled, describe_moved, main
from hallulab.scenarios.labelled import GoldSpan
from hallulab.scenarios.transcript import Passage
from tests.builders import labelled

PASSAGES = (
    Passage(id="films#0", document="films", text="Films are lent for 7 days at the counter."),
    Passage(id="books#0", document="books", text="Books can be renewed twice by telephone."),
)
RIGHT = "Films are lent for 7 days at the counter (Passage 1)."
WRONG = "Films are lent for 9 days at the counter (Passage 1)."


def test_citations_are_counted_by_the_label_of_their_sentence() -> None:
    span = GoldSpan(start=len(RIGHT) + 20, end=len(RIGHT) + 26)
    reply = labelled(f"{RIGHT} {WRONG}", True, spans=(span,), passages=PASSAGES)
    assert describe_labelled([reply]).splitlines()[2:] == [
        "| in clean sentences | 1 | 1 (100%) | 0 (0%) | 0 (0%) |",
        "| in sentences with a hallucination | 1 | 0 (0%) | 1 (100%) | 0 (0%) |",
    ]


def test_moved_citations_are_called_wrong_and_their_twins_right() -> None:
    assert describe_moved([labelled(RIGHT, passages=PASSAGES)]).splitlines()[2:] == [
        "| moved | 1 | 0 (0%) | 1 (100%) | 0 (0%) |",
        "| their twins | 1 | 1 (100%) | 0 (0%) | 0 (0%) |",
    ]


def test_the_command_reads_the_sample_of_the_repository(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "| in clean sentences | " in capsys.readouterr().out
