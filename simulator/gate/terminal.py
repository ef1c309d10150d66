"""A gate's answer on the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hallulab.scenarios.text.wording import (
    shorten_line,
)
from hallulab.simulator.compare.turns import KINDS, ChangedTurn
from hallulab.simulator.gate.markdown import SHOWN, describe_change, format_numbers, format_percent
from hallulab.simulator.gate.result import GateResult
from hallulab.simulator.show.printing import print_line

_HEADINGS = (
    "Chatbot",
    "Detector",
    "Personas",
    "HPT-1\nbefore",
    "now",
    "Difference\n[95% CI]",
    "p",
    "Coverage",
)


def print_gate(result: GateResult, console: Console) -> None:
    """Print the verdict, why, the numbers, and which verdicts changed."""
    print_line(console, result.headline)
    for reason in result.reasons:
        print_line(console, f"  {reason}")
    for warning in result.warnings:
        print_line(console, f"warning: {warning}")
    if result.lines:
        console.print()
        console.print(_build_table(result))
    for turn in [turn for turn in result.severe if not turn.noise][:SHOWN]:
        print_line(console, f"severe: {describe_turn(turn)}")
    _print_changes(result, console)
    if result.setup:
        print_line(console, "changed since the baseline:")
        for change in result.setup:
            print_line(console, f"  {change}")


def _build_table(result: GateResult) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for place, heading in enumerate(_HEADINGS):
        table.add_column(
            Text(heading), justify="left" if place < 2 else "right", no_wrap=place >= 2, overflow="fold"
        )
    for line in result.lines:
        cells = (
            shorten_line(line.chatbot),
            shorten_line(line.detector),
            *format_numbers(line),
            format_percent(line.coverage),
        )
        table.add_row(*map(Text, cells))
    return table


def _print_changes(result: GateResult, console: Console) -> None:
    if not result.changed:
        return
    counts = [(kind, sum(turn.kind == kind for turn in result.changed)) for kind in KINDS]
    listed = ", ".join(f"{count} {kind}" for kind, count in counts if count)
    print_line(console, f"hallucinated turns that changed: {listed}")
    for turn in [turn for turn in result.changed if turn.kind in ("new", "worse")][:SHOWN]:
        print_line(console, f"  {turn.kind}: {describe_turn(turn)}")


def describe_turn(turn: ChangedTurn) -> str:
    """Describe a turn that changed in a line, with a quotation where there is one."""
    seed = f", seed {turn.seed}" if turn.seed else ""
    flagged = () if turn.texts is None else turn.texts.spans_after
    said = f": {shorten_line(flagged[0])}" if flagged else ""
    where = f"{turn.chatbot} by {turn.detector}, {turn.persona}{seed}, turn {turn.turn + 1}"
    return f"{where}, {describe_change(turn)}{said}"
