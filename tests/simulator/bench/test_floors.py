"""Floors: what they say holds whatever the threshold, and no detector may take their names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.lexical.detector import LexicalDetector
from hallulab.detectors.registry import DETECTORS
from hallulab.simulator.bench.results import measure
from hallulab.simulator.bench.rows import Decided, LevelRow
from tests.simulator.bench.material import DATA, evaluation, judged, reply
from tests.simulator.command_line import CommandLine


@pytest.mark.parametrize("floor", ["flag-all", "majority"])
def test_a_floor_has_no_threshold_to_choose(floor: str) -> None:
    replies = [reply(*spans, group=str(n)) for n, spans in enumerate([[(0, 5)], [], [], [(0, 5)], []])]
    report = measure([evaluation(replies, *[judged()] * 5)], DATA).report
    for row in [row for row in report.rows if row.detector == floor][:3]:
        assert isinstance(row, LevelRow)
        assert (row.thresholds.tuned, row.thresholds.oracle) == (Decided(), Decided())
        assert row.thresholds.default.f1 == row.f1


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text('{"reply": "A.", "passages": ["A."], "label": false}\n')
    return path


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(monkeypatch, capsys)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("flag-all", "lexical"), ("majority", "lexical"), ("lexical", "evidence-chain-lexical")],
)
def test_a_detector_with_a_floors_name_is_refused(
    bench: CommandLine, data: Path, tmp_path: Path, name: str, kind: str
) -> None:
    config = tmp_path / "experiment.yaml"
    config.write_text(f"detectors: [{{name: {name}, kind: {kind}}}]\n")
    ended = bench("bench", data, "-c", config)
    assert (ended.code, ended.err) == (2, f"error: {name} {TAKEN}")


TAKEN = "is the name of a floor that every table has. Give the detector another `name`.\n"


def test_the_lexical_floor_takes_options(bench: CommandLine, data: Path, tmp_path: Path) -> None:
    config, out = tmp_path / "experiment.yaml", tmp_path / "out.json"
    config.write_text("detectors: [{name: lexical, options: {threshold: 0.9}}]\n")
    assert bench("bench", data, "-c", config, "--json", out).code == 0
    rows = json.loads(out.read_text())["rows"]
    assert [(row["detector"], row["threshold"]) for row in rows[2:3]] == [("lexical", 0.9)]


@pytest.mark.parametrize(
    ("own", "complaint"),
    [
        (
            "lexical",
            "detector 'theirs': it reports as 'lexical', and so does another. Leave one out, or have it "
            "report under the name that it is given.\n",
        ),
        ("majority", f"majority {TAKEN}"),
    ],
)
def test_a_detector_that_calls_itself_like_another_is_refused(
    bench: CommandLine, data: Path, monkeypatch: pytest.MonkeyPatch, own: str, complaint: str
) -> None:
    class Named(LexicalDetector):
        def __init__(self, name: str, context: DetectorContext) -> None:
            super().__init__(own, context)

    monkeypatch.setitem(DETECTORS, "theirs", Named)
    ended = bench("bench", data, "--detectors", "theirs")
    assert (ended.code, ended.err) == (2, f"error: {complaint}")


def test_a_reply_without_words_costs_no_warning(
    bench: CommandLine, data: Path, recwarn: pytest.WarningsRecorder
) -> None:
    data.write_text('{"reply": "…", "passages": ["A."], "label": false, "spans": []}\n')
    ended = bench("bench", data)
    assert (ended.code, ended.err) == (0, "")
    assert [str(one.message) for one in recwarn if issubclass(one.category, RuntimeWarning)] == []
