"""What the report says of intervals and p-values where a run goes on until it is decided."""

from __future__ import annotations

import pytest

from hallulab.simulator.decide.course import Ending
from hallulab.simulator.decide.decision import Decider
from hallulab.simulator.metrics.decision import DecisionMetric, DecisionReport
from tests.simulator.counted import build_report


@pytest.mark.parametrize(
    ("ending", "begins"),
    [
        ("decided", "The run ended by what it found. "),
        ("budget", "The run could have ended by what it found. "),
        ("personas", "The run could have ended by what it found. "),
        (None, "The run may end by what it finds. "),
    ],
)
def test_the_end_is_told_as_it_was(ending: Ending | None, begins: str) -> None:
    found = Decider(["a", "b"], 0.2, False).state()
    decision = DecisionReport(
        detector="d", budget=None, keep_all=False, of=4, ending=ending, sentence="Open.", found=found
    )
    report = build_report([], [], chatbots=[], detectors=[], flaws={})
    assert DecisionMetric.notes(report.model_copy(update={"decision": decision})) == [
        f"{begins}A decision holds at such an end; intervals and p-values of other sections are those of a "
        "number of personas that was fixed before."
    ]
