"""Floors: what they say holds whatever the threshold, and no detector may take their names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.lexical.detector import LexicalDetector
from hallulab.detectors.registry import DETECTORS
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.bench.results import measure
from hallulab.simulator.bench.rows import LevelRow
from hallulab.simulator.bench.thresholds import Decided
from tests.simulator.bench.test_levels import judged, reply
from tests.simulator.bench_data import DATA
from tests.simulator.command_line import CommandLine


@pytest.mark.parametrize("floor", ["flag-all", "majority"])
def test_a_floor_has_no_threshold_to_choose(floor: str) -> None:
    replies = tuple(reply(*spans, group=str(n)) for n, spans in enumerate([[(0, 5)], [], [], [(0, 5)], []]))
    said = Evaluation("d", 0.5, "given", replies, (judged(),) * 5, 1.0)
    rows = [row for row in measure([said], DATA).report.rows if row.detector == floor]
    for row in rows[:3]:
        assert isinstance(row, LevelRow)
        assert (row.thresholds.tuned, row.thresholds.oracle) == (Decided(), Decided())
        assert row.thresholds.default.f1 == row.f1


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


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text('{"reply": "A.", "passages": ["A."], "label": false}\n')
    return path


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(monkeypatch, capsys)


def test_only_the_lexical_floor_itself_is_called_lexical(
    bench: CommandLine, data: Path, tmp_path: Path
) -> None:
    config = tmp_path / "experiment.yaml"
    config.write_text("detectors: [{name: lexical, kind: evidence-chain-lexical}]\n")
    ended = bench("bench", data, "-c", config)
    assert (ended.code, ended.err) == (
        2,
        "error: lexical is the name of a floor that every table has. Give the detector another `name`.\n",
    )


def test_the_lexical_floor_takes_options(bench: CommandLine, data: Path, tmp_path: Path) -> None:
    config, out = tmp_path / "experiment.yaml", tmp_path / "out.json"
    config.write_text("detectors: [{name: lexical, options: {threshold: 0.9}}]\n")
    assert bench("bench", data, "-c", config, "--json", out).code == 0
    rows = json.loads(out.read_text())["rows"]
    assert [(row["detector"], row["threshold"]) for row in rows[2:3]] == [("lexical", 0.9)]


class Named(LexicalDetector):
    """Reports under a name of its own, whatever name it is given."""

    own = "lexical"

    def __init__(self, name: str, context: DetectorContext) -> None:
        super().__init__(self.own, context)


def test_a_detector_that_calls_itself_like_another_is_refused(
    bench: CommandLine, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DETECTORS, "theirs", Named)
    ended = bench("bench", data, "--detectors", "theirs")
    assert (ended.code, ended.err) == (
        2,
        "error: detector 'theirs': it reports as 'lexical', and so does another. Leave one out, or have it "
        "report under the name that it is given.\n",
    )


def test_a_detector_that_calls_itself_like_a_floor_is_refused(
    bench: CommandLine, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Named, "own", "majority")
    monkeypatch.setitem(DETECTORS, "theirs", Named)
    ended = bench("bench", data, "--detectors", "theirs")
    assert (ended.code, ended.err) == (
        2,
        "error: majority is the name of a floor that every table has. Give the detector another `name`.\n",
    )


def test_a_reply_without_words_costs_no_warning(
    bench: CommandLine, data: Path, recwarn: pytest.WarningsRecorder
) -> None:
    data.write_text('{"reply": "   ", "passages": ["A."], "label": false, "spans": []}\n')
    ended = bench("bench", data)
    assert (ended.code, ended.err) == (0, "")
    assert [str(one.message) for one in recwarn if issubclass(one.category, RuntimeWarning)] == []
