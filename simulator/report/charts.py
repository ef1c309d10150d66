"""The charts of a run's page, each a function in `CHARTS` that draws the rows of a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hallulab.simulator.metrics.hallucinations import Row
from hallulab.simulator.metrics.results import mark
from hallulab.simulator.show.charts import (
    APART,
    WIDTH,
    Dot,
    DotPoint,
    choose_axis_steps,
    describe_interval,
    draw_dots,
    list_ends,
)
from hallulab.simulator.show.columns import is_lacking
from hallulab.simulator.show.document import Figures
from hallulab.simulator.show.html import Tick, render_part, shorten_name

Chart = Callable[[Sequence[Row]], tuple[str, str] | None]
"""Returns a title and an SVG element, in which texts are escaped; None: there is nothing to draw."""


def draw_charts(rows: Sequence[Row], legend: str) -> Figures:
    """Draw all charts, with a legend below."""
    drawn = (draw(rows) for draw in CHARTS)
    return Figures([chart for chart in drawn if chart is not None], legend=[legend])


def draw_first_chart(rows: Sequence[Row], detectors: Sequence[str], line: str) -> list[Figures]:
    """Draw HPT-1 by the first detector that scored a turn, against answered replies where chatbots differ.

    Args:
        detectors: their names, in the order of their colours.
        line: words on the intervals in the legend; empty: there are none.
    """
    name = next((row.detector for row in rows if row.hpt_1 is not None), None)
    own = [row for row in rows if row.detector == name]
    if not own:
        return []
    title, svg = draw_answered(own, detectors) or draw_hallucinations(own, detectors)
    return [Figures([(f"{title}. By {name}{line}", svg)])]


def draw_hallucinations(rows: Sequence[Row], detectors: Sequence[str] = ()) -> tuple[str, str]:
    """Draw HPT-1.

    Args:
        detectors: their names in the order of their colours; empty: that of the rows.
    """
    title = "Hallucinations per turn (HPT-1), lower is better"
    points = [_build_point(row, "hpt_1") for row in rows]
    steps = choose_axis_steps(list_ends(points), None)
    return title, draw_dots(title, points, steps, "{:g}".format, detectors)


def draw_accuracy(rows: Sequence[Row]) -> tuple[str, str]:
    """Draw TokAcc-1, from 100% down."""
    title = "Token accuracy (TokAcc-1), higher is better"
    points = [_build_point(row, "tokacc_1", 100, "%") for row in rows]
    return title, draw_dots(title, points, choose_axis_steps(list_ends(points), 100), "{:g}%".format)


def draw_coverage(rows: Sequence[Row]) -> tuple[str, str] | None:
    """Draw the share of scored turns, from 100% down; None where every turn is scored.

    The numbers of a detector that leaves turns out are of the others alone, so they compare only where it
    scored about the same share.
    """
    if not any(map(is_lacking, (row.coverage for row in rows if row.turns))):
        return None
    title = "Coverage: turns that the detector scored, higher is better"
    points = [
        DotPoint(
            chatbot=row.chatbot,
            detector=row.detector,
            value=None if row.coverage is None else 100 * row.coverage,
            ci95=None,
            title=f"{row.chatbot}, {row.detector}: {row.scored_turns} of {row.turns} turns scored",
        )
        for row in rows
    ]
    return title, draw_dots(title, points, choose_axis_steps(list_ends(points), 100), "{:g}%".format)


def _build_point(row: Row, field: Literal["hpt_1", "tokacc_1"], scale: float = 1, unit: str = "") -> DotPoint:
    value, ci95 = getattr(row, field), getattr(row, f"{field}_ci95")
    words = "not scored" if value is None else f"{value * scale:.2f}{unit}"
    if value is not None and not ci95 and row.no_interval:
        words += f" ({row.no_interval})"
    return DotPoint(
        chatbot=row.chatbot,
        detector=row.detector,
        value=None if value is None else value * scale,
        ci95=(ci95[0] * scale, ci95[1] * scale) if ci95 else None,
        title=f"{row.chatbot}{mark(row)}, {row.detector}: {words}{describe_interval(ci95, scale)}",
    )


LEFT, RIGHT, BOTTOM, HEIGHT = 44.0, 24.0, 40.0, 200.0
"""Margins of the plot in the SVG's units, and the height of the plot itself."""
_LINE, _LETTER = 17.0, 7.4
"""Height of a line of names, and about the width of a letter."""
_LONGEST = 24


@dataclass(frozen=True)
class PlacedName:
    """The name of a chatbot, above its dots."""

    text: str
    at: float
    x: float
    """Its middle; names at the edges are moved inwards."""
    y: float


@dataclass(frozen=True)
class TwoAxesPlot:
    """A chart of HPT-1 against another number, ready to be drawn."""

    height: float
    """Its height in the SVG's units."""
    top: float
    """Where the plot begins, below the names."""
    floor: float
    across: str
    """Name of the axis below."""
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    names: tuple[PlacedName, ...]
    dots: tuple[Dot, ...]


class LowerAxis(NamedTuple):
    """The number of the axis below."""

    field: Literal["tokens_per_reply", "calls_per_reply", "answered"]
    label: str
    digits: int
    """Decimals of a number of it."""
    scale: float = 1
    """It is multiplied by this."""
    most: float | None = None
    """The axis goes down from this; None: up from 0."""


_TOKENS = LowerAxis("tokens_per_reply", "tokens a reply", 0)
_CALLS = LowerAxis("calls_per_reply", "model calls a reply", 2)
_ANSWERED = LowerAxis("answered", "% of replies answered", 1, scale=100, most=100)


def draw_answered(rows: Sequence[Row], detectors: Sequence[str] = ()) -> tuple[str, str] | None:
    """Draw the share of answered replies against HPT-1; None where all answer as much, or one's is unknown.

    A chatbot that declines everything has no hallucination, so the number of these alone says little.

    Args:
        detectors: their names in the order of their colours; empty: that of the rows.
    """
    shares = {row.answered for row in rows if row.hpt_1 is not None}
    is_apart = len(shares) > 1 and None not in shares
    plot = lay_out_two_axes(rows, _ANSWERED, detectors) if is_apart else None
    title = "Hallucinations (HPT-1) against answered replies; right and low is better"
    return None if plot is None else (title, _render(title, plot))


def draw_costs(rows: Sequence[Row]) -> tuple[str, str] | None:
    """Draw tokens a reply against HPT-1; model calls where servers did not report all tokens."""
    measure = choose_cost_measure(rows)
    costs = [getattr(row, measure.field) for row in rows if row.hpt_1 is not None]
    plot = lay_out_two_axes(rows, measure) if any(costs) else None
    if plot is None:
        return None
    title = f"Cost against quality: {measure.label}, and HPT-1; left and low is better"
    silent = dict.fromkeys(
        row.chatbot for row in rows if row.hpt_1 is not None and row.tokens_per_reply is None
    )
    if measure is not _TOKENS and silent:
        title += f". The server did not report all tokens of {', '.join(silent)}."
    return title, _render(title, plot)


def _render(title: str, plot: TwoAxesPlot) -> str:
    box = {"width": WIDTH, "left": LEFT, "right": RIGHT}
    return render_part("hallulab.simulator.report", "two_axes.html", title=title, plot=plot, box=box)


def choose_cost_measure(rows: Sequence[Row]) -> LowerAxis:
    """Return tokens if they are known of all chatbots with a number of hallucinations, else calls."""
    costs = [row.tokens_per_reply for row in rows if row.hpt_1 is not None]
    return _TOKENS if any(costs) and None not in costs else _CALLS


def lay_out_two_axes(
    rows: Sequence[Row], measure: LowerAxis, names: Sequence[str] = ()
) -> TwoAxesPlot | None:
    """Lay out HPT-1 against a measure; None: no chatbot has both.

    Args:
        names: detectors in the order of their colours; empty: that of the rows.
    """
    detectors = list(dict.fromkeys(row.detector for row in rows))
    shown = [(row, getattr(row, measure.field), row.hpt_1) for row in rows]
    known = [(row, x * measure.scale, hpt) for row, x, hpt in shown if x is not None and hpt is not None]
    if not known:
        return None
    across = choose_axis_steps([value for _, value, _ in known], measure.most)
    up = choose_axis_steps([end for row, _, hpt in known for end in (hpt, *(row.hpt_1_ci95 or ()))], None)

    def place_x(value: float) -> float:
        share = (value - across[0]) / (across[-1] - across[0])
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 2)

    placed = _place_names({row.chatbot: place_x(value) for row, value, _ in known})
    top = max(name.y for name in placed) + 8
    floor = top + HEIGHT

    def place_y(value: float) -> float:
        return round(floor - value / up[-1] * HEIGHT, 2)

    dots = []
    for row, value, hpt in known:
        number, ci95 = detectors.index(row.detector), row.hpt_1_ci95
        dots.append(
            Dot(
                x=round(place_x(value) + (number - (len(detectors) - 1) / 2) * APART, 2),
                y=place_y(hpt),
                low=None if ci95 is None else place_y(ci95[0]),
                high=None if ci95 is None else place_y(ci95[1]),
                detector=(names or detectors).index(row.detector),
                title=(
                    f"{row.chatbot}{mark(row)}, {row.detector}: {value:,.{measure.digits}f} {measure.label}, "
                    f"{hpt:.2f}{describe_interval(ci95)}"
                ),
            )
        )
    return TwoAxesPlot(
        height=floor + BOTTOM,
        top=top,
        floor=floor,
        across=measure.label,
        x_ticks=tuple(Tick(place_x(step), f"{step:,.10g}") for step in across),
        y_ticks=tuple(Tick(place_y(step), f"{step:g}") for step in up),
        names=tuple(placed),
        dots=tuple(dots),
    )


def _place_names(at: dict[str, float]) -> list[PlacedName]:
    """Place names above their dots, in as many lines as it takes for none to touch another."""
    ends: list[float] = []
    placed = []
    for name, x in sorted(at.items(), key=lambda item: item[1]):
        text = shorten_name(name, _LONGEST)
        half = len(text) * _LETTER / 2
        middle = min(max(x, half), WIDTH - half)
        line = next((line for line, end in enumerate(ends) if end + _LETTER <= middle - half), len(ends))
        if line == len(ends):
            ends.append(0.0)
        ends[line] = middle + half
        placed.append(PlacedName(text, x, round(middle, 2), (line + 1) * _LINE))
    return placed


CHARTS: Sequence[Chart] = (draw_answered, draw_hallucinations, draw_accuracy, draw_coverage, draw_costs)
"""From left to right, as the page has them."""
