"""`hallulab annotate`: which turns of a run to label next, and what annotators filled in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.cli.console import print_lines
from hallulab.simulator.cli.options import RunArgument

if TYPE_CHECKING:
    from hallulab.simulator.annotate.sheet import DrawnSheet


def annotate(
    folder: RunArgument,
    number: Annotated[
        int | None,
        typer.Option("--next", min=1, help="Draw so many turns, and write a sheet of them to be filled in."),
    ] = None,
    add: Annotated[
        Path | None,
        typer.Option(help="Add what is filled in of a sheet at the end of the run's annotations.jsonl."),
    ] = None,
    detector: Annotated[
        str | None,
        typer.Option(help="Draw by the scores of this detector; by default, the first one of the run."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw.")] = 0,
    annotator: Annotated[
        str, typer.Option(help="Who labels: `person`, `person:` and a name, or `model:` and its name.")
    ] = "person",
    guideline: Annotated[
        Path | None,
        typer.Option(help="File with the text that says what to label; the run folder keeps it."),
    ] = None,
) -> None:
    """Draw the turns of a run whose labels narrow its corrected numbers most, or add labels of a sheet."""
    from hallulab.simulator.annotate.sheet import DrawOptions, add_sheet, draw_turns
    from hallulab.simulator.metrics.failures import find_failures
    from hallulab.simulator.records.folder import RunFolder

    run = RunFolder(folder)
    run.require()
    if (number is None) == (add is None):
        raise UsageError("annotate: give either --next NUMBER or --add FILE.")
    if number is not None:
        for warning in find_failures(run).warnings:
            print_lines(f"warning: {warning}", err=True)
        _tell_draw(draw_turns(run, DrawOptions(number, detector, seed, annotator, guideline)), folder)
        return
    assert add is not None
    done = add_sheet(run, add)
    print_lines(
        f"{done.added} added to {run.annotations}, {done.known} there already, {done.empty} not filled in"
    )


def _tell_draw(made: DrawnSheet, folder: Path) -> None:
    from hallulab.scenarios.text.wording import format_count
    from hallulab.simulator.annotate.sheet import name_command

    for name, (turns, annotated, drawn) in made.turns.items():
        print_lines(f"{name}: {drawn} drawn; {annotated} of {format_count(turns, 'turn')} annotated before")
    plan = made.plan
    if plan.width is not None:
        beside = "" if plan.random_width is None else f", and {plan.random_width:.2f} drawn evenly at random"
        guess = (
            "" if any(annotated for _, annotated, _ in made.turns.values()) else " (a guess before any label)"
        )
        print_lines(
            f"expected width of the 95% interval of this run's HPT-1 by {made.detector}, all chatbots: "
            f"{plan.width:.2f} with these labels{beside}{guess}"
        )
    print_lines(f"sheet: {made.path}\nfill in `spans`, then: {name_command(folder, made.path)}")


COMMANDS = {"annotate": annotate}
