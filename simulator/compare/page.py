"""A comparison of runs as a page: it needs no network, runs no script, and escapes everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hallulab.simulator.compare.chart import TITLE, draw_differences
from hallulab.simulator.compare.runs import RunCompared, RunsCompared
from hallulab.simulator.compare.sentences import describe_run, render_changes
from hallulab.simulator.compare.tables import (
    COSTS,
    COVERAGE,
    DIFFERENCES,
    TURNS,
    build_difference_rows,
    group_by_detector,
    render_change_of_turn,
)
from hallulab.simulator.compare.texts import MOST_OF_A_KIND, choose_shown, list_flagged
from hallulab.simulator.compare.turns import KINDS, ChangedTurn
from hallulab.simulator.show.html import load_asset, mark_safe, render

_PACKAGE = "hallulab.simulator.compare"
_MEANINGS = {
    "new": "hallucinated now; clean or not judged before",
    "gone": "hallucinated before, and not now",
    "worse": "hallucinated in both, and worse now",
    "better": "hallucinated in both, and better now",
}


@dataclass(frozen=True)
class KindView:
    """The changed turns of a kind."""

    kind: str
    meaning: str
    number: int
    shown: Sequence[ChangedTurn]
    """Those that are shown."""


@dataclass(frozen=True)
class RunView:
    """What the page shows of a run."""

    run: RunCompared
    sentences: Sequence[str]
    changes: Sequence[str]
    kinds: Sequence[KindView]
    """Its changed turns; kinds without any are left out."""
    detectors: Sequence[str]
    """Names of the detectors; the place of a name is its colour."""
    chart: str | None
    """The differences as an SVG element; None: there are none."""


def render_page(compared: RunsCompared) -> str:
    """Return the page as HTML."""
    return render(
        _PACKAGE,
        "compare.html",
        load_asset("hallulab.simulator.show", "page.css"),
        **collect_values(compared),
    )


def collect_values(compared: RunsCompared) -> dict[str, Any]:
    """Return what a template needs that shows a comparison by the parts of `compared.html`."""
    return {
        "compared": compared,
        "views": [_build_view(compared, run) for run in compared.runs],
        "chart_title": TITLE,
        "columns": {"differences": DIFFERENCES, "turns": TURNS, "coverage": COVERAGE, "costs": COSTS},
        "rows": build_difference_rows,
        "grouped": group_by_detector,
        "found": render_change_of_turn,
        "flagged": list_flagged,
        "most": MOST_OF_A_KIND,
    }


def _build_view(compared: RunsCompared, run: RunCompared) -> RunView:
    scored = [line for line in run.differences if line.difference is not None]
    return RunView(
        run=run,
        sentences=describe_run(compared, run),
        changes=render_changes(run.changes),
        kinds=[kind for kind in map(_build_kind, KINDS, [run] * len(KINDS)) if kind.number],
        detectors=list(dict.fromkeys(line.detector for line in run.differences)),
        chart=mark_safe(draw_differences(run.differences)) if scored else None,
    )


def _build_kind(kind: str, run: RunCompared) -> KindView:
    own = [turn for turn in run.turns.turns if turn.kind == kind]
    return KindView(kind, _MEANINGS[kind], len(own), choose_shown(own, MOST_OF_A_KIND))
