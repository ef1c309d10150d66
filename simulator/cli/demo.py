"""The demo: a recorded run as a page, and the same run on a model that is served here."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from hallulab.agents.concurrency import run_until_stopped, saying_if_stopped
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.cli.console import open_in_browser, print_lines
from hallulab.simulator.cli.shipped import RECORDED_MODEL, locate_shipped
from hallulab.simulator.options.commands import RunOptions
from hallulab.simulator.records.outputs import RUNS, name_folder_after


def demo(
    live: Annotated[
        bool,
        typer.Option("--live", help="Then run the same on a model that is served here, which takes minutes."),
    ] = False,
    model: Annotated[
        str | None, typer.Option(help=f"Model that --live serves; by default {RECORDED_MODEL}.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Run folder; by default runs/demo, with the time if that is there. The live run is beside "
            "it, with -live at the end of its name."
        ),
    ] = None,
) -> None:
    """Replay a recorded run of five chatbots, and open its page: 15 seconds, no model, no network."""
    served = model or RECORDED_MODEL
    if live:
        from hallulab.agents.serving.catalogue import resolve
        from hallulab.scenarios.extras import require_extra

        require_extra("local", "lancedb", "sentence_transformers", use="--live")
        resolve(served)
    elif model is not None:
        raise UsageError(
            f"--model {model}: the recorded run is one of {RECORDED_MODEL}. Give --live, too, or leave out "
            "--model."
        )
    first = RUNS / "demo"
    there = first.exists() or _name_live_folder(first).exists()
    folder = out or (name_folder_after(first) if there else first)
    experiment = locate_shipped("examples") / "demo.yaml"
    recording = locate_shipped("demo.jsonl.gz")
    _show_run(RunOptions(config=experiment, model=RECORDED_MODEL, replay=recording, out=folder))
    about = f"This run was replayed from a recording of {RECORDED_MODEL}: no model was asked."
    if not live:
        print_lines(f"{about} The same with a model: hallulab demo --live")
        return
    from hallulab.agents.serving.command import serve_command

    beside = _name_live_folder(folder)
    print_lines(f"{about} Now the same with {served}, into {beside}.\n")
    again = ["hallulab", "demo", "--live", "--model", served, "--out", str(folder)]
    sentence = f"The live run is not finished. Go on by: {shlex.join(again)}"
    with saying_if_stopped(sentence, partial(print_lines, err=True)):
        serve_command(served, prepare_only=True)
        flags = ("--enforce-eager",)  # a run this short does not repay the minutes of compiling
        _show_run(RunOptions(config=experiment, model=served, out=beside, server_flags=flags))


def _name_live_folder(recorded: Path) -> Path:
    return recorded.parent / f"{recorded.name}-live"


def _show_run(options: RunOptions) -> None:
    """Run an experiment, print its table and the path of its page, and open the page."""
    from hallulab.simulator.cli.report import show_report
    from hallulab.simulator.cli.run import tell_forecast
    from hallulab.simulator.decide.run import run_from_options

    running = run_from_options(options, partial(tell_forecast, options))
    folder, scenario = run_until_stopped(running)
    show_report(folder, False, scenario)
    open_in_browser(folder.page)
