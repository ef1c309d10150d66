"""Floors and people's agreement, next to detectors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.lexical.detector import LexicalDetector
from hallulab.detectors.registry import DETECTORS
from hallulab.scenarios.labelled import LabelledReply, Ratings
from hallulab.simulator.bench.baselines import compute_rater_agreement
from hallulab.simulator.bench.results import measure
from hallulab.simulator.bench.rows import Decided, LevelRow
from tests.builders import labelled
from tests.simulator.bench.material import DATA, evaluation, judged, known, reply
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


def rated(group: str, *values: float) -> LabelledReply:
    ratings = Ratings(values=values, clean_from=4)
    return labelled(label=ratings.hallucinated, ratings=ratings, group=group)


def test_raters_who_agree_are_as_good_as_can_be() -> None:
    found = known(
        compute_rater_agreement(
            [rated("a", 1, 1, 1), rated("a", 4, 4, 4), rated("b", 2, 2), rated("b", 4, 4, 4)]
        )
    )
    assert (found.replies, found.ratings, found.alpha) == (4, 11, 1.0)
    for against in (found.label, found.others):
        assert (against.auroc, against.f1, against.balanced_accuracy) == (1.0, 1.0, 1.0)
    # Two groups are too few for an interval.
    assert found.label.auroc_ci95 is None


def test_one_rating_is_held_against_the_label_and_against_the_other_ratings() -> None:
    found = known(compute_rater_agreement([rated("a", 3, 4, 4), rated("b", 1, 2, 4)]))
    # Label: the first reply is clean, the second is not. 3 is flagged wrongly, the second's 4 missed.
    assert found.label.balanced_accuracy == pytest.approx(2 / 3, abs=1e-6)
    # 3 clean and 1, 2 hallucinated are ranked right, as are both 4s of the first but against the 4.
    assert found.label.auroc == pytest.approx((2 * 3 + 0 + 2 * 0.5) / 9, abs=1e-6)
    # Others: of (4, 4) clean; of (3, 4) twice, (2, 4), (1, 4) and (1, 2) hallucinated.
    assert found.others.balanced_accuracy == pytest.approx((2 / 5 + 0) / 2, abs=1e-6)


def test_alpha_is_of_who_calls_a_reply_clean() -> None:
    found = known(
        compute_rater_agreement([rated("a", 3, 1), rated("b", 4, 4), rated("c", 4, 2), rated("d", 4, 4)])
    )
    # Krippendorff, nominal: n = 8, 3 flags and 5 passes, one unit of four in disagreement.
    assert found.alpha == pytest.approx(1 - 7 * 2 / (64 - 9 - 25), abs=1e-6)


def test_single_ratings_say_nothing_of_agreement() -> None:
    assert compute_rater_agreement([rated("a", 4), rated("b", 3)]) is None
