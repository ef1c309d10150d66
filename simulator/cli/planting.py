"""`hallulab plant`: known errors in replies that are right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simulator.cli.options import names, whole_numbers
from simulator.cli.saying import say


def plant(
    source: Annotated[
        str,
        typer.Argument(
            help="Where clean replies come from: a run folder, a labelled JSON-lines file, or a scenario "
            "pack whose documents replies are made of."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write planted.jsonl into.")],
    count: Annotated[int, typer.Option(min=1, help="Errors to plant; each has a clean twin.")] = 400,
    kinds: Annotated[
        str | None, typer.Option(help="Kinds of errors, with commas between; default: all.")
    ] = None,
    turns: Annotated[str, typer.Option(help="Turns before a reply made of documents, in turn.")] = "0,2,4",
    contexts: Annotated[
        str, typer.Option(help="Passages in the evidence of a reply made of documents, in turn.")
    ] = "1,4,8",
    seed: Annotated[int, typer.Option(help="Seed of all choices.")] = 0,
) -> None:
    """Plant errors of known kinds into clean replies, for `hallulab bench` to measure detectors on.

    Rules plant them, so no model is asked. The file holds every error and its clean twin, with the exact
    place and the kind.
    """
    from scenarios.text.wording import counted
    from simulator.bench.planted import FILE
    from simulator.stress.command import PlantSettings, plant_command

    settings = PlantSettings(
        source,
        out,
        count,
        names(kinds) or (),
        whole_numbers("--turns", turns, 0),
        whole_numbers("--contexts", contexts, 1),
        seed,
    )
    done = plant_command(settings)
    say(f"{counted(len(done.replies) // 2, 'error')} with clean twins written to {out / FILE}")
    for kind, lacking in done.lacking.items():
        say(f"{kind}: {lacking} fewer, as no place for them was found", err=True)
