"""Commands that write files to start from: init, schema."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated, Literal

import typer

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.cli.console import print_json, print_lines
from hallulab.simulator.cli.options import add_command
from hallulab.simulator.cli.prepare import init_scenario

Schema = Literal["experiment", "scenario", "personas", "policy", "sweep", "rag-trust"]
Purpose = Literal["endpoint", "own-bot", "prompts", "gate"]

SCHEMA_FILE = "experiment.schema.json"
"""The schema that an experiment file of `init` names, beside it."""


def schema(
    name: Annotated[Schema, typer.Argument(help="Kind of files.")] = "experiment",
    out: Annotated[Path | None, typer.Option(help="File to write, in place of printing.")] = None,
) -> None:
    """Print the JSON Schema of experiment files, or of other files, for editors.

    A YAML file names it in its first line: `# yaml-language-server: $schema=PATH`.
    """
    from hallulab.scenarios.files.atomic import write_atomically
    from hallulab.simulator.cli.schemas import render_schema
    from hallulab.simulator.records.outputs import check_outputs

    if out is None:
        print_json(render_schema(name))
        return
    check_outputs({"--out": out})
    write_atomically(out, render_schema(name))
    print_lines(out)


init = typer.Typer(
    help="Write a commented experiment file to start from, or with `pack` a scenario pack.",
    invoke_without_command=True,
)

_FOR = Annotated[
    Purpose,
    typer.Option(
        "--for", help="A model behind an endpoint, a bot of yours, two prompts, or a gate for pull requests."
    ),
]
_OUT = Annotated[Path, typer.Option(help="File to write; it must be new.")]


@init.callback()
def init_any(context: typer.Context, purpose: _FOR = "endpoint", out: _OUT = Path("experiment.yaml")) -> None:
    """Write a commented experiment file to start from, or with `pack` a scenario pack."""
    if context.invoked_subcommand is None:
        init_experiment(purpose, out)
        return
    for name in ("purpose", "out"):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            flag = "--for" if name == "purpose" else "--out"
            raise UsageError(f"{flag} stands before `{context.invoked_subcommand}`. Write it behind.")


def init_experiment(purpose: _FOR = "endpoint", out: _OUT = Path("experiment.yaml")) -> None:
    """Write a commented experiment file, and its schema for editors beside it."""
    from hallulab.scenarios.files.atomic import write_together
    from hallulab.scenarios.files.data_files import is_there
    from hallulab.simulator.authoring.templates import read_template
    from hallulab.simulator.cli.schemas import render_schema
    from hallulab.simulator.records.outputs import check_outputs

    if is_there(out):
        raise UsageError(f"{out} is there already. Name a new file with --out.")
    check_outputs({"--out": out})
    described = out.parent / SCHEMA_FILE
    texts = {out: read_template(purpose)}
    if not is_there(described):
        texts[described] = render_schema("experiment")
    write_together(texts)
    print_lines(f"{out}: read and edit it, then `hallulab run -c {quote(str(out))}`")


add_command(init, "experiment", init_experiment)
add_command(init, "pack", init_scenario)
