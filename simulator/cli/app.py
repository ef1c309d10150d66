"""The commands of `hallulab`, one module each."""

from __future__ import annotations

import typer

from hallulab.simulator.cli import (
    auditing,
    bench,
    branching,
    building,
    calibrating,
    exporting,
    folders,
    importing,
    listing,
    planting,
    realism,
    running,
    serving,
    starting_packs,
    stressing,
    summarizing,
)
from hallulab.simulator.cli.extra_args import PassingOn

app = typer.Typer(
    name="hallulab",
    help="Simulated users talk to RAG chatbots, detectors judge every reply, and the run says which chatbot "
    "hallucinates least and which detector can be trusted to say so.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

app.command("serve", cls=PassingOn)(serving.serve)
app.command("run", cls=PassingOn)(running.run)
app.command("simulate", cls=PassingOn)(running.simulate)
app.command("detect", cls=PassingOn)(running.detect)
app.command("branch", cls=PassingOn)(branching.branch)
app.command("report")(folders.report)
app.command("view")(folders.view)
app.command("import")(importing.import_)
app.command("export")(exporting.export)
app.command("audit")(auditing.audit)
app.command("realism")(realism.realism)
app.command("bench", cls=PassingOn)(bench.bench)
app.command("plant", cls=PassingOn)(planting.plant)
app.command("calibrate", cls=PassingOn)(calibrating.calibrate)
app.command("stress", cls=PassingOn)(stressing.stress)
build = typer.Typer(help="Make labelled data that `bench` reads.", no_args_is_help=True)
build.command("hotpotqa-derived", cls=PassingOn)(building.hotpotqa_derived)
build.command("audit-corpus")(building.audit_corpus)
app.add_typer(build, name="build")
app.command("list")(listing.list_things)
app.command("summarize", cls=PassingOn)(summarizing.summarize)
app.command("init-scenario", cls=PassingOn)(starting_packs.init_scenario)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version as installed

        typer.echo(f"hallulab {installed('hallulab')}")
        raise typer.Exit


@app.callback()
def _main(
    version: bool = typer.Option(
        False, "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
    ),
) -> None:
    pass
