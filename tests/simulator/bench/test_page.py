"""The benchmark's page: self-contained, without a script, every text escaped; curves by hand."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.labelled import GoldSpan
from hallulab.scenarios.transcript import Judgement
from hallulab.simulator.bench.curves import POINTS, Priced, plot_frontier, plot_precision_recall
from hallulab.simulator.bench.document import build_document
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.bench.results import BenchData, measure
from hallulab.simulator.bench.sweep import Sweep, SweepReport, build_sweep_report
from hallulab.simulator.metrics.spending import find_pareto_front
from hallulab.simulator.show.html import get_style_classes, render_page
from hallulab.simulator.show.plot import BOX
from hallulab.simulator.statistics.detection import Sample
from tests.builders import labelled
from tests.simulator.bench.material import evaluation, judged, known

HOSTILE = "<script>alert(1)</script>"


REPLIES = tuple(
    labelled(
        label=number % 2 == 0,
        id=str(number),
        task=HOSTILE,
        spans=(GoldSpan(start=0, end=1, label=HOSTILE),) if number % 2 == 0 else (),
        group=str(number),
    )
    for number in range(4)
)
JUDGED = judged((0, 1), text="A reply.", score=0.9)
LOST = Judgement(outcome="failed", error=HOSTILE)
TIMES = (None, 0.1, 0.1, 0.1)
EVALUATION = evaluation(REPLIES, JUDGED, JUDGED, LOST, JUDGED, name="d0", latencies_s=TIMES)
DATA = BenchData(
    dataset=HOSTILE,
    left_out={HOSTILE: 7},
    replies=4,
    tested_on=4,
    split="all replies",
    not_trained={"d0": HOSTILE},
)


def page(evaluations: Sequence[Evaluation] = (EVALUATION,), sweep: SweepReport | None = None) -> str:
    results = measure(evaluations, DATA, sweep)
    return render_page(build_document(results.report, results.samples))


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.loaded += [name for name, _ in attrs if name in ("src", "style", "onclick")]


def test_the_page_says_what_was_left_out_of_the_data() -> None:
    assert "Left out of the data, and in no number: &lt;script&gt;" in page()


def test_the_page_runs_nothing_and_loads_nothing() -> None:
    tags = Tags()
    tags.feed(page())
    assert "script" not in tags.seen
    assert "link" not in tags.seen
    assert tags.loaded == []


def test_the_policy_allows_this_style_sheet_and_nothing_else() -> None:
    made = page()
    style = re.search(r"<style>(.*?)</style>", made, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'; base-uri" in made.replace("&#39;", "'")


def test_what_limits_the_numbers_is_told() -> None:
    assert "d0: in no number but coverage: 1 failure." in page()


def test_why_judgements_are_missing_is_told_and_escaped() -> None:
    assert '<td>failed</td><td class="long">&lt;script&gt;alert(1)&lt;/script&gt;</td>' in page()


def test_a_sweep_has_its_means_and_fronts() -> None:
    wrong, clean = (judged(score=float(flag), flagged=flag, spans=None) for flag in (True, False))
    said = [wrong if one.label else clean for one in REPLIES]
    right = evaluation(REPLIES, *said, name="d-1", latencies_s=TIMES)
    half = replace(right, judgements=(wrong, clean, clean, clean))
    sweep = Sweep(detector="d", grid={"model": [HOSTILE]}, repeats=2)
    made = page([right], build_sweep_report(sweep, [[right], [half]]))
    assert "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>" in made
    assert '<td class="n">0.833 <span class="ci">± 0.236</span></td><td class="n">28.28</td>' in made
    assert '<td class="long">tokens, time, P/R</td>' in made
    assert "TLP" not in made
    assert "F1 of replies over milliseconds" in made
    assert "Precision and recall of the configurations" in made
    assert "d-1: recall 0.75, precision 1.00" in made
    assert "AUROC of replies over milliseconds" not in made


def test_three_detectors_are_tested_for_differing_at_all() -> None:
    made = page([replace(EVALUATION, detector=name) for name in ("d0", "d1", "d2")])
    assert "Friedman test over 3 sources" in made
    assert "Friedman" not in page()


def test_means_over_conversations_say_what_they_count_and_whether_detectors_differ() -> None:
    replies = tuple(one.model_copy(update={"meta": {"conversation": one.id}}) for one in REPLIES)
    said = replace(EVALUATION, replies=replies, judgements=(JUDGED,) * 4)
    made = page([replace(said, detector=name) for name in ("d0", "d1", "d2")])
    assert '<p class="hint">Counted are hallucinations: flagged spans that meet annotated ones.</p>' in made
    assert (
        "<p>Friedman test of precision over 4 chats: p = –. Mean ranks (1: highest): "
        "d0 2.00, d1 2.00, d2 2.00.</p>"
    ) in made
    assert "Means over conversations" not in page()


def test_a_page_without_a_sweep_does_not_speak_of_one() -> None:
    assert "Sweep" not in page()


def test_a_second_round_of_colours_is_hollow() -> None:
    found = [get_style_classes(number) for number in (0, 5, 6, 11, 12)]
    assert found == ["d0", "d5", "d0 hollow", "d5 hollow", "d0"]


def test_a_curve_goes_through_every_threshold() -> None:
    labels = np.array([True, False])
    sample = Sample(labels, np.array([0.9, 0.1]), labels, np.array([0, 1]))
    plot = plot_precision_recall("word", {"a": sample}, ["a"])
    right = BOX.width - BOX.right
    half = round(BOX.height - BOX.bottom - 0.5 * (BOX.height - 10 - BOX.bottom), 2)
    assert plot.lines[0].path == f"{right:g},10 {right:g},{half:g}"
    assert (plot.marks[0].x, plot.marks[0].y) == (right, 10.0)


def test_a_long_curve_is_thinned() -> None:
    labels = np.arange(5000) % 3 == 0
    sample = Sample(labels, np.linspace(0, 1, 5000), labels, np.zeros(5000, dtype=np.int64))
    path = plot_precision_recall("word", {"a": sample}, ["a"]).lines[0].path
    assert len(path.split()) == POINTS


def test_the_frontier_leaves_out_who_is_dearer_and_worse() -> None:
    rows = [
        Priced("a", 0.7, 1.0, 1.0),
        Priced("b", 0.6, 10.0, 1.0),
        Priced("c", 0.9, 100.0, 1.0),
        Priced("d", None, 1.0, 1.0),
    ]
    plot = known(plot_frontier(rows, "ms", ["a", "b", "c", "d"]))
    assert [mark.optimal for mark in plot.marks] == [True, False, True]
    assert [tick.label for tick in plot.x_ticks] == ["1", "10", "100"]
    assert plot.lines[0].path.startswith(f"{BOX.left:g},")


def test_nobody_with_that_cost_has_no_frontier() -> None:
    assert plot_frontier([Priced("a", 0.7, 0.0, 1.0), Priced("b", 0.7, None, 1.0)], "ms", ["a", "b"]) is None


def test_what_costs_nothing_stands_left_of_the_logarithmic_axis_and_beats_the_dearer() -> None:
    rows = [Priced("a", 0.9, 0.0, 1.0), Priced("b", 0.8, 10.0, 1.0), Priced("c", 0.95, 100.0, 1.0)]
    plot = known(plot_frontier(rows, "ms", ["a", "b", "c"]))
    assert [tick.label for tick in plot.x_ticks] == ["0", "10", "100"]
    assert [mark.x for mark in plot.marks] == [tick.at for tick in plot.x_ticks]
    assert [mark.optimal for mark in plot.marks] == [True, False, True]
    assert plot.marks[0].title == "a: AUROC 0.900, ms 0"


def test_who_scored_fewer_replies_beats_nobody_who_scored_more() -> None:
    rows = [Priced("a", 1.0, 1.0, 0.02), Priced("b", 0.9, 10.0, 1.0)]
    plot = known(plot_frontier(rows, "ms", ["a", "b"]))
    assert [mark.optimal for mark in plot.marks] == [True, True]
    assert plot.marks[0].title == "a: AUROC 1.000, ms 1, coverage 2.0%"


def test_equal_choices_are_both_optimal_and_a_dearer_equal_is_not() -> None:
    choices = [(0.5, -1.0), (0.5, -1.0), (0.5, -2.0), (None, -0.1)]
    assert find_pareto_front(choices) == [True, True, False, False]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1))
def test_each_choice_is_optimal_or_beaten_by_one_that_is(points: list[tuple[int, int]]) -> None:
    optimal = find_pareto_front(points)
    front = [point for point, best in zip(points, optimal, strict=True) if best]
    assert all(
        best or any(q >= point[0] and c >= point[1] and (q, c) != point for q, c in front)
        for point, best in zip(points, optimal, strict=True)
    )
