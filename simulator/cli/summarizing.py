"""`hallulab summarize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hallulab.agents.machine.stopping import run_until_stopped
from hallulab.scenarios.text.wording import one_line
from hallulab.simulator.cli.options import ModelOptions, RecordingOptions, grouped
from hallulab.simulator.cli.running import flags_of, settings
from hallulab.simulator.cli.saying import say


@grouped
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
    from hallulab.simulator.experiment.config import load_experiment
    from hallulab.simulator.experiment.summarizing import summary_of

    messages = read_chat(chat)
    experiment = load_experiment(models.config, {**flags_of(models), "scenario": scenario})
    summary = run_until_stopped(summary_of(messages, experiment, settings(context, recording)))
    say(one_line(summary.text))
    if summary.cut:
        say(f"the summary was cut off at {MAX_TOKENS} tokens: complete its end by hand", err=True)
