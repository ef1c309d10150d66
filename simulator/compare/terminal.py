"""A comparison of runs on the terminal: what is found, changed turns first, then the tables."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from hallulab.scenarios.text.wording import format_count, render_one_line
from hallulab.simulator.compare.runs import RunCompared, RunsCompared
from hallulab.simulator.compare.sentences import describe_changes, describe_run
from hallulab.simulator.compare.tables import (
    COSTS,
    COVERAGE,
    DIFFERENCES,
    TURNS,
    build_difference_rows,
    group_by_detector,
    has_gaps,
    render_change_of_turn,
)
from hallulab.simulator.compare.texts import choose_shown, list_flagged
from hallulab.simulator.compare.turns import KINDS, ChangedTurn
from hallulab.simulator.show.document import GroupedTable
from hallulab.simulator.show.printing import print_line, print_table
from hallulab.simulator.show.terminal import NARROW, build_console, build_table

MOST_OF_A_KIND = 5
"""Changed turns of each kind that are listed."""
MOST_SPANS = 1
"""Flagged texts of a turn in one run."""


def print_comparison(compared: RunsCompared, console: Console | None = None) -> None:
    """Print what was found of each run."""
    console = console or build_console()
    for number, run in enumerate(compared.runs):
        if number:
            console.print()
        print_line(console, f"{run.run} beside {compared.reference}, the reference:")
        if run.not_comparable:
            for warning in run.warnings:
                print_line(console, warning)
            print_line(console, "They cannot be compared.")
            if run.changes:
                print_line(console, describe_changes(run))
            continue
        for sentence in describe_run(compared, run):
            print_line(console, sentence)
        _print_turns(run, console)
        _print_tables(run, console)


def _print_turns(run: RunCompared, console: Console) -> None:
    turns = run.turns.turns
    for kind in KINDS:
        own = [turn for turn in turns if turn.kind == kind]
        if not own:
            continue
        console.print()
        print_line(console, f"{kind} ({len(own)}):")
        for turn in choose_shown(own, MOST_OF_A_KIND):
            _print_turn(turn, console)
        if len(own) > MOST_OF_A_KIND:
            print_line(console, f"… and {len(own) - MOST_OF_A_KIND} more; --json and --html have them.")


def _print_turn(turn: ChangedTurn, console: Console) -> None:
    noise = "; the reply is the same: the detector's noise" if turn.noise else ""
    print_line(
        console,
        f"- {turn.chatbot}, {turn.persona}, seed {turn.seed}, turn {turn.turn + 1}, by {turn.detector}: "
        f"{render_change_of_turn(turn)}{noise}",
    )
    texts = turn.texts
    if texts is None:
        return
    for label, text in list_flagged(texts, MOST_SPANS):
        _print_text(label, text, console)


def _print_text(label: str, text: str, console: Console) -> None:
    console.print(Padding(Text(f"{label}: {render_one_line(text)}"), (0, 0, 0, 4)))


def _print_tables(run: RunCompared, console: Console) -> None:
    narrow = console.width < NARROW
    console.print()
    rows = group_by_detector(build_difference_rows(run))
    console.print(build_table(GroupedTable(DIFFERENCES, rows, by="detector"), narrow=narrow))
    if run.turns.conversations:
        console.print()
        print_line(
            console, f"turns of {format_count(run.turns.conversations, 'conversation')} that both runs have"
        )
        console.print(
            build_table(
                GroupedTable(TURNS, group_by_detector(run.turns.counts), by="detector"), narrow=narrow
            )
        )
    if has_gaps(run):
        console.print()
        print_line(console, "coverage")
        console.print(
            build_table(GroupedTable(COVERAGE, group_by_detector(run.coverage), by="detector"), narrow=narrow)
        )
    console.print()
    costs = [[one for one in run.costs if one.role == role] for role in ("chatbot", "detector")]
    print_table(console, "cost of a conversation", COSTS, costs)
