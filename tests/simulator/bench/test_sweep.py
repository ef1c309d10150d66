"""Sweeps: the grid, means over repeats, and the errors of a wrong file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Judgement
from hallulab.simulator.bench.document import build_sweep_section
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.bench.sweep import (
    Sweep,
    SweepReport,
    SweepRow,
    build_sweep_report,
    list_configurations,
    load_sweep,
)
from hallulab.simulator.show.document import ShownDocument
from hallulab.simulator.show.terminal import print_document
from tests.builders import call, labelled
from tests.simulator.bench.material import evaluation, judged

LABELS = (True, True, False, False)
REPLIES = tuple(
    labelled(label=label, id=str(number), group=str(number)) for number, label in enumerate(LABELS)
)


def said(flags: Sequence[bool], calls: int) -> Evaluation:
    spent = (call("detector.ask"),) * calls
    judgements = (judged(score=float(flag), flagged=flag, spans=None, calls=spent) for flag in flags)
    return evaluation(REPLIES, *judgements, latencies_s=(None, 0.2, 0.2, 0.2))


def rows_of(*runs: Sequence[Evaluation]) -> Sequence[SweepRow]:
    """The rows of a sweep: for each repeat, what each configuration says."""
    sweep = Sweep(detector="d", grid={"a": [*range(len(runs[0]))]}, repeats=len(runs))
    return build_sweep_report(sweep, runs).rows


def printed(report: SweepReport) -> list[str]:
    console = Console(width=80, no_color=True)
    with console.capture() as capture:
        print_document(ShownDocument("", "", sections=[build_sweep_section(report, [])]), console)
    return capture.get().splitlines()


def test_a_grid_has_every_combination() -> None:
    sweep = Sweep(
        detector="metarag", grid={"mutations": [2, 5], "tau": [0.3, 0.5]}, options={"reading": "word"}
    )
    found = list_configurations(sweep)
    assert [(item.name, item.options["mutations"], item.options["tau"]) for item in found] == [
        ("metarag-1", 2, 0.3),
        ("metarag-2", 2, 0.5),
        ("metarag-3", 5, 0.3),
        ("metarag-4", 5, 0.5),
    ]
    assert {item.options["reading"] for item in found} == {"word"}


def test_configurations_can_be_listed_one_by_one() -> None:
    listed = [{"mutations": 2, "tau": 0.3}, {"tau": 0.5, "mutations": 5}]
    sweep = Sweep(detector="metarag", configurations=listed, options={"reading": "word"})
    assert [(item.name, item.options) for item in list_configurations(sweep)] == [
        ("metarag-1", {"reading": "word", "mutations": 2, "tau": 0.3}),
        ("metarag-2", {"reading": "word", "mutations": 5, "tau": 0.5}),
    ]
    rows = build_sweep_report(sweep, [[said(LABELS, 1), said(LABELS, 1)]]).rows
    assert [list(row.config.items()) for row in rows] == [
        [("mutations", 2), ("tau", 0.3)],
        [("mutations", 5), ("tau", 0.5)],
    ]


def test_listed_configurations_come_after_the_grid() -> None:
    sweep = Sweep(detector="d", grid={"a": [1, 2]}, configurations=[{"a": 9}])
    assert [(item.name, item.options["a"]) for item in list_configurations(sweep)] == [
        ("d-1", 1),
        ("d-2", 2),
        ("d-3", 9),
    ]


def test_the_table_names_the_options_of_listed_configurations() -> None:
    sweep = Sweep(detector="d", configurations=[{"a": 1, "b": "x"}])
    lines = printed(build_sweep_report(sweep, [[said(LABELS, 1)]]))
    assert lines[0] == "Sweep of d, 1 seeds each. Config: a / b"
    assert any(line.split()[:2] == ["1", "1/x"] for line in lines)


def test_means_deviations_and_fronts_by_hand() -> None:
    sweep = Sweep(detector="metarag", grid={"mutations": [2, 5]}, repeats=2)
    right, half = said(LABELS, 2), said([True, False, False, False], 2)
    dear = said(LABELS, 9)
    report = build_sweep_report(sweep, [[right, dear], [half, dear]])
    cheap, other = report.rows
    assert (cheap.config, cheap.repeats) == ({"mutations": 2}, 2)
    assert (cheap.f1, cheap.f1_sd) == (0.833333, 0.235702)
    assert cheap.f1_cv == pytest.approx(0.235702 / 0.833333, abs=1e-6)
    assert (cheap.tokens_per_reply, other.tokens_per_reply) == (24.0, 108.0)
    assert (cheap.accuracy, other.accuracy) == (0.875, 1.0)
    assert (cheap.pareto, other.pareto) == (("tokens", "latency"), ("tokens", "latency", "precision_recall"))


def remembered(evaluation: Evaluation) -> Evaluation:
    """The same, had its requests been asked before: the answers take no time, and tell what they took."""
    judgements = tuple(
        one.model_copy(update={"calls": tuple(c.model_copy(update={"replayed": True}) for c in one.calls)})
        for one in evaluation.judgements
    )
    return replace(evaluation, judgements=judgements, latencies_s=(None, 0.001, 0.001, 0.001))


def test_times_do_not_depend_on_the_order_of_configurations() -> None:
    rows = rows_of([said(LABELS, 2), remembered(said(LABELS, 2))])
    assert [row.p50_ms for row in rows] == [1000.0, 1000.0]
    assert ["latency" in row.pareto for row in rows] == [True, True]


@pytest.mark.parametrize(
    ("clock", "p50"), [((None, 0.2, 0.2, 0.2), 200.0), ((0.1, 0.1, 0.1, 0.9), 100.0)], ids=["clock", "median"]
)
def test_without_requests_the_time_is_the_median_by_the_clock(
    clock: tuple[float | None, ...], p50: float
) -> None:
    [row] = rows_of([replace(said(LABELS, 0), latencies_s=clock)])
    assert row.p50_ms == p50


def test_times_in_a_sweep_are_of_scored_replies_alone() -> None:
    one = said(LABELS, 1)
    failed = Judgement(outcome="failed", error="no answer", calls=(call("detector.ask", seconds=60.0),))
    none = replace(one, judgements=(failed,) * 4)
    some = replace(one, judgements=(*one.judgements[:1], *(failed,) * 3))
    assert [row.p50_ms for row in rows_of([some, none])] == [500.0, None]


def test_a_cheaper_configuration_that_scored_fewer_replies_beats_nobody_who_scored_more() -> None:
    one = said(LABELS, 1)
    some = replace(one, judgements=(Judgement(outcome="abstained", error="too long"), *one.judgements[1:]))
    assert [row.pareto for row in rows_of([some, said(LABELS, 2)])] == [
        ("tokens", "latency"),
        ("tokens", "latency", "precision_recall"),
    ]


def test_one_repeat_has_no_deviation() -> None:
    [row] = rows_of([said(LABELS, 1)])
    assert (row.f1, row.f1_sd, row.f1_cv) == (1.0, None, None)


def test_a_repeat_without_a_value_leaves_neither_mean_nor_deviation_of_the_others() -> None:
    [row] = rows_of([said(LABELS, 1)], [said(LABELS, 1)], [said([False] * 4, 1)])
    assert (row.precision, row.precision_sd, row.recall) == (None, None, 0.666667)


def test_the_more_precise_and_the_more_complete_configuration_are_both_worth_it() -> None:
    rows = rows_of([said([True, False, False, False], 1), said([True] * 4, 1)])
    assert [(row.precision, row.recall) for row in rows] == [(1.0, 0.5), (0.5, 1.0)]
    assert ["precision_recall" in row.pareto for row in rows] == [True, True]


def test_each_of_three_numbers_has_its_four_leaders() -> None:
    runs = [said([True] * hits + [False] * (4 - hits), 1) for hits in (1, 2, 3, 4)]
    sweep = Sweep(detector="d", grid={"a": [*range(5)]})
    found = build_sweep_report(sweep, [[*runs, said([False, False, True, True], 1)]]).leaders
    assert {name: [row.config["a"] for row in rows] for name, rows in found.items()} == {
        "F1": [1, 2, 0, 3],
        "precision": [0, 1, 2, 3],
        "recall": [1, 2, 3, 0],
    }


def test_few_configurations_have_no_leaders() -> None:
    sweep = Sweep(detector="d", grid={"a": [0]})
    assert build_sweep_report(sweep, [[said([True] * 4, 1)]]).leaders == {}


def test_the_table_fits_eighty_columns_and_has_the_best_first() -> None:
    sweep = Sweep(detector="d", grid={"verifiers": [["small", "large"], []], "temperature": [0.7]}, repeats=2)
    runs = [[said([True, False, False, False], 1), said(LABELS, 1)]] * 2
    lines = printed(build_sweep_report(sweep, runs))
    assert max(map(len, lines)) <= 80
    rows = [line.split()[:2] for line in lines if line[:1].isdigit()]
    assert rows == [["2", "own/0.7"], ["1", "small+large/0.7"]]


MANY = [*range(100)]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("detector: my det\ngrid: {a: [1]}", "line 1: detector: may hold only letters (A to Z)"),
        ("detector: ''\ngrid: {a: [1]}", "line 1: detector: may hold only letters (A to Z)"),
        ("detector: <script>\ngrid: {a: [1]}", "line 1: detector: may hold only letters (A to Z)"),
        ("grid: {}", "line 2: grid: is empty; give at least 1."),
        ("grid: {a: []}", "line 2: grid.a: is empty; give at least 1."),
        ("repeats: 2", "line 1: configurations: give `grid`, `configurations`, or both"),
        ("configurations: [{}]", "line 2: configurations.0: is empty; give at least 1."),
        (
            "configurations:\n- {a: 1, b: 2}\n- {b: 3}",
            "line 2: configurations: number 2 sets b; all, and the grid, must set the same options",
        ),
        (
            "grid: {a: [1]}\nconfigurations: [{a: 1, b: 2}]",
            "line 3: configurations: number 1 sets a, b; all, and the grid, must set the same options",
        ),
        (
            "grid: {a: [1], b: [2]}\noptions: {b: 3}",
            "line 3: options: b is varied, too; leave it out here or there. ",
        ),
        (
            "configurations: [{a: 1, b: 2}]\noptions: {b: 3}",
            "line 3: options: b is varied, too; leave it out here or there. ",
        ),
        (
            f"grid: {{a: {MANY}, b: {MANY}, c: {MANY}, d: {MANY}}}",
            "line 1: these are 100,000,000 runs, and one sweep has at most 10,000. ",
        ),
        (
            "configurations: [{threshold: 0.5}]\nrepeats: 1000000000",
            "line 1: these are 1,000,000,000 runs, and one sweep has at most 10,000. ",
        ),
    ],
    ids=lambda value: value[:30],
)
def test_a_wrong_file_is_one_sentence(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(text if text.startswith("detector") else f"detector: metarag\n{text}\n")
    with pytest.raises(UsageError) as raised:
        load_sweep(path)
    assert str(raised.value).startswith(f"{path}, {complaint}")
    assert str(raised.value).endswith("Correct it; see docs/bench.md.")
