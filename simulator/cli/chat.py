"""The command that lets a person talk to a chatbot: `hallulab chat`."""

from __future__ import annotations

from hallulab.agents.concurrency import run_until_stopped
from hallulab.simulator.cli.console import print_lines
from hallulab.simulator.cli.options import expand_options
from hallulab.simulator.options.commands import ChatOptions


@expand_options
def chat(options: ChatOptions) -> None:
    """Talk to a chatbot of an experiment yourself; detectors judge each reply.

    The conversation is a run folder like any other. What stands after `--` is passed on to the model server.
    """
    from hallulab.simulator.chat.terminal import chat_from_options

    folder = run_until_stopped(chat_from_options(options, print_lines))
    if folder is None:
        print_lines("nothing was said, so nothing is saved.")
    else:
        print_lines(f"saved: {folder}")


COMMANDS = {"chat": chat}
