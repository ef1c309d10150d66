"""Floors: what they say holds whatever the threshold, and no detector may take their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.bench.evaluate import Evaluation
from simulator.bench.results import measure
from tests.simulator.command_line import CommandLine
from tests.simulator.test_bench_levels import judged, reply


@pytest.mark.parametrize("floor", ["flag-all", "majority"])
def test_a_floor_has_no_threshold_to_choose(floor: str) -> None:
    replies = tuple(reply(*spans, group=str(n)) for n, spans in enumerate([[(0, 5)], [], [], [(0, 5)], []]))
    said = Evaluation("d", 0.5, "given", replies, (judged(),) * 5, 1.0)
    rows = [row for row in measure([said], "d").report["rows"] if row["detector"] == floor]
    undefined = dict.fromkeys(("threshold", "precision", "recall", "f1", "balanced_accuracy"))
    for row in rows[:3]:
        assert (row["thresholds"]["tuned"], row["thresholds"]["oracle"]) == (undefined, undefined)
        assert row["thresholds"]["default"]["f1"] == row["f1"]


@pytest.mark.parametrize("name", ["flag-all", "majority"])
def test_a_detector_with_a_floors_name_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    data, config = tmp_path / "data.jsonl", tmp_path / "experiment.yaml"
    data.write_text('{"reply": "A.", "passages": ["A."], "label": false}\n')
    config.write_text(f"detectors: [{{name: {name}, kind: lexical}}]\n")
    ended = CommandLine(monkeypatch, capsys)("bench", data, "-c", config)
    assert (ended.code, ended.err) == (
        2,
        f"error: {name} is the name of a floor that every table has. Give the detector another `name`.\n",
    )
