"""`hallulab summarize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hallulab.agents.machine.stopping import run_until_stopped
from hallulab.scenarios.text.wording import render_one_line
from hallulab.simulator.cli.options import ModelOptions, RecordingOptions, expand_option_groups
from hallulab.simulator.cli.running import build_settings, collect_flags
from hallulab.simulator.cli.saying import print_lines


@expand_option_groups
def summarize(
    context: typer.Context,
    chat: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A chat: text with lines `User: …` and `Assistant: …`, or messages as .json or .jsonl.",
        ),
    ],
    models: ModelOptions,
    recording: RecordingOptions,
    scenario: Annotated[
        str | None, typer.Option(help="The pack that the chat belongs to: a name, or a path.")
    ] = None,
) -> None:
    """Print the `summary` of a persona that is in the situation of a chat's user.

    What stands after `--` is passed on to the model server.
    """
    from hallulab.agents.users.summarizer import MAX_TOKENS, read_chat
    from hallulab.simulator.authoring.chats import summarize_chat
    from hallulab.simulator.experiment.config import load_experiment

    messages = read_chat(chat)
    experiment = load_experiment(models.config, {**collect_flags(models), "scenario": scenario})
    summary = run_until_stopped(summarize_chat(messages, experiment, build_settings(context, recording)))
    print_lines(render_one_line(summary.text))
    if summary.cut:
        print_lines(f"the summary was cut off at {MAX_TOKENS} tokens: complete its end by hand", err=True)
