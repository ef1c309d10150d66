"""Which detectors may gate where calibration is required."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hallulab.detectors.base.thresholds import Fitted, GroupCounts, UnitCounts, locate_fitted_file
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.gate.result import GateCheck
from tests.simulator.gate.runs import checks_of, judge, run_of

pytestmark = pytest.mark.usefixtures("own_cache")


def checks(planted: Path | None = None) -> list[GateCheck]:
    """What is said of the detector of a run."""
    return checks_of(judge(run_of(0), run_of(0), require_calibrated=True, planted=planted), "calibrated")


def fit(clean_flagged: int, wrong_flagged: int, version: str = "1") -> None:
    """Keep a calibration of ten clean and ten wrong replies."""
    counts = UnitCounts(clean=10, clean_flagged=clean_flagged, wrong=10, wrong_flagged=wrong_flagged)
    group = GroupCounts(replies=counts, sentences=counts)
    fitted = Fitted(
        detector="d", scoring="s", version=version, threshold=0.5, measured_on="m", groups=(group,)
    )
    path, text = locate_fitted_file(fitted)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def planted_file(folder: Path, version: str) -> Path:
    """The JSON of a benchmark on ten planted errors."""
    group = {"pairs": 10, "errors_flagged": 9, "twins_flagged": 2, "error_spans": 9, "twin_spans": 2}
    path = folder / "bench.json"
    measured = {"detector": "d", "version": version, "all_pairs": 10, "groups": [group]}
    path.write_text(json.dumps({"planted_counts": [measured]}))
    return path


def test_an_unknown_detector_is_refused() -> None:
    result = judge(run_of(0), run_of(0), require_calibrated=True)
    assert result.exit_code == 3
    assert [(check.subject, check.message) for check in result.blocking] == [
        (
            "by d",
            "its sensitivity and specificity on this model are unknown: fit it with `hallulab calibrate`, or "
            "measure it on planted errors and give --planted (docs/gate.md)",
        )
    ]


def test_it_may_gate_where_it_is_not_asked_for() -> None:
    assert judge(run_of(0), run_of(0)).verdict == "passed"


def test_a_calibrated_one_may_gate() -> None:
    fit(clean_flagged=2, wrong_flagged=8)
    assert [(one.outcome, one.message) for one in checks()] == [
        ("passed", "sensitivity 80%, specificity 80%, by calibration")
    ]


def test_a_calibration_of_another_version_does_not_count() -> None:
    fit(clean_flagged=2, wrong_flagged=8, version="2")
    assert [one.outcome for one in checks()] == ["not comparable"]


def test_one_whose_flags_tell_nothing_is_refused() -> None:
    fit(clean_flagged=5, wrong_flagged=5)
    assert [(one.outcome, one.message) for one in checks()] == [
        (
            "not comparable",
            "its flags do not tell wrong replies from clean ones (sensitivity 50%, specificity 50%, by "
            "calibration)",
        )
    ]


def test_planted_errors_tell_it_too(tmp_path: Path) -> None:
    assert [(one.outcome, one.message) for one in checks(planted_file(tmp_path, "1"))] == [
        ("passed", "sensitivity 90%, specificity 80%, by planted errors")
    ]


def test_planted_errors_of_another_version_are_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--planted: it measures version 2 of d, and version 1 judged"):
        checks(planted_file(tmp_path, "2"))


def test_planted_errors_are_for_required_calibration(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--planted goes with --require-calibrated"):
        judge(run_of(0), run_of(0), planted=tmp_path)
