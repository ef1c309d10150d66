"""`hallulab realism`: how like people's the messages of simulated users are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hallulab.simulator.cli.options import AsJson, RunArgument
from hallulab.simulator.cli.saying import print_json, print_lines


def realism(
    folder: RunArgument,
    reference: Annotated[
        Path | None,
        typer.Option(
            help="Messages of people: JSON lines with `user_turns`, or a file that `hallulab import` reads; "
            "by default a file of ours (docs/realism.md)."
        ),
    ] = None,
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option(help="HTML file to write, with the distributions.")] = None,
) -> None:
    """Hold the messages of a run's simulated users against people's, with a noise floor."""
    from hallulab.agents.retrieval.embedding import SentenceEmbedder
    from hallulab.simulator.experiment.config import Experiment
    from hallulab.simulator.report.realism import measure_realism, print_realism, render_page
    from hallulab.simulator.runs.folder import RunFolder, write_atomically
    from hallulab.simulator.runs.outputs import check_outputs

    run = RunFolder(folder)
    check_outputs({"--out": out}, inputs=[reference, *run.files])
    found = measure_realism(run, reference, SentenceEmbedder(Experiment().embedding_model))
    if out is not None:
        write_atomically(out, render_page(found))
    if as_json:
        print_json(found.model_dump_json(indent=2) + "\n")
    else:
        print_realism(found)
        if out is not None:
            print_lines(f"\npage: {out}")
