"""Commands for a build that shall fail on a regression: `hallulab baseline` and `hallulab gate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hallulab.simulator.cli.console import print_json, print_warnings
from hallulab.simulator.cli.options import RunArgument, expand_options
from hallulab.simulator.options.commands import GateOptions


def baseline(
    folder: RunArgument,
    out: Annotated[
        Path | None, typer.Option(help="Write it into this file, in one step, and not to standard output.")
    ] = None,
) -> None:
    """Print what a run is compared by, as a small file to commit: numbers and hashes, no texts."""
    from hallulab.scenarios.files.atomic import write_atomically
    from hallulab.simulator.compare.summary import summarize_run
    from hallulab.simulator.metrics.failures import require_success
    from hallulab.simulator.records.folder import RunFolder
    from hallulab.simulator.records.outputs import check_outputs

    run = RunFolder(folder)
    check_outputs({"--out": out}, inputs=run.files)
    made = summarize_run(run)
    print_warnings(made.failures)
    if out is None:
        print_json(made.text())
    else:
        write_atomically(out, made.text())
    require_success(made.failures)


@expand_options
def gate(options: GateOptions) -> None:
    """Hold a run against a baseline, and fail if it is worse.

    Exit code 0: it may pass. 1: a chatbot is worse beyond the noise, has a new severe hallucination, or
    misses a limit. 3: it cannot be compared.
    """
    from hallulab.simulator.compare.gate_command import gate_from_options
    from hallulab.simulator.compare.gate_document import build_document
    from hallulab.simulator.show.terminal import print_document

    result = gate_from_options(options)
    print_document(build_document(result))
    raise typer.Exit(result.exit_code)


COMMANDS = {"baseline": baseline, "gate": gate}
