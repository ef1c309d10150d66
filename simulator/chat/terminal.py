"""Talk to a chatbot in the terminal: a line is said, its reply is printed, and what detectors find follows.

Replies that grow, flags that are marked in their sentence and lines that are edited are the page's work
(`hallulab view`).
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

from hallulab.scenarios.errors import ReplayMiss, UsageError
from hallulab.scenarios.text.wording import format_count, render_one_line
from hallulab.scenarios.transcript import Turn, Verdict
from hallulab.simulator.chat.live import LiveChat, ReplyFailed, begin_chat, open_live_models, open_live_run
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.options.commands import ChatOptions
from hallulab.simulator.options.groups import to_path
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.outputs import name_folder_by_time

COMMAND = "hallulab chat"
"""Where the person talked, in experiment.json."""

_ENDS = ("", "/quit")

Print = Callable[[str], None]
Result = TypeVar("Result")


async def chat_from_options(options: ChatOptions, show: Print) -> Path | None:
    """Talk until an empty line, `/quit`, the end of input or Ctrl-C; return the run folder, if any was made.

    Raises:
        UsageError: the experiment or the folder is at fault.
        OperationalError: a server, an endpoint or the disk failed.
    """
    experiment = _load_experiment(options)
    folder = to_path(options.out) or name_folder_by_time()
    settings = RunSettings.from_options(options)
    RunFolder(folder).refuse_recording(settings.record)
    async with (
        open_live_models(experiment, settings) as models,
        open_live_run(models, experiment.scenario) as run,
    ):
        names = [one.name for one in run.participants.detectors]
        with begin_chat(run, experiment.chatbots[0].name, names, folder, COMMAND) as chat:
            judged = f"judged by {', '.join(names)}" if names else "not judged"
            show(
                f"Talk to {chat.key.chatbot} about {run.scenario.title}, {judged}.\n"
                "Ctrl-C stops a reply. An empty line or /quit ends the conversation."
            )
            while chat.over is None and (message := _ask(show)) not in _ENDS:
                await _exchange(chat, message, show)
            if chat.over is not None:
                show(chat.over)
            return folder if chat.is_saved else None


def _load_experiment(options: ChatOptions) -> Experiment:
    """Return the experiment of the file and the flags, with the one chatbot that is talked to.

    A chatbot or detector is found by the name that the file gives it, else by its kind.

    Raises:
        UsageError: the file or a flag is at fault, or several chatbots are named.
    """
    if options.chatbots is not None and len(options.chatbots) != 1:
        raise UsageError("--chatbots: you talk to one at a time. Give one name.")
    flags = {**options.collect_model_fields(), "scenario": options.scenario}
    file = load_experiment(options.config_path, flags)
    chosen = {}
    for field, names in (("chatbots", options.chatbots), ("detectors", options.detectors)):
        if names is not None:
            by_name = {one.name: one.model_dump() for one in getattr(file, field)}
            given = [by_name.get(name, name) if isinstance(name, str) else name for name in names]
            chosen[field] = getattr(load_experiment(None, {field: given}), field)
    experiment = file.model_copy(update=chosen)
    return experiment.model_copy(update={"chatbots": experiment.chatbots[:1]}).with_places_of(file)


def _ask(show: Print) -> str:
    """Return the next line; empty at the end of the input and at Ctrl-C."""
    try:
        return input("\nyou: ").strip()
    except (EOFError, KeyboardInterrupt):
        show("")
        return ""


async def _exchange(chat: LiveChat, message: str, show: Print) -> None:
    """Have a message answered and the reply judged."""
    try:
        turn = await _wait(chat.say(message, lambda draft: None))
        if turn is None:
            show("stopped: this message has no reply and is not kept. Earlier messages are.")
            return
        show(render_reply(chat.key.chatbot, turn))

        async def show_verdicts() -> bool:
            async for verdict in chat.judge(turn):
                show(render_verdict(verdict))
            return True

        if await _wait(show_verdicts()) is None:
            show(f"judging stopped: `hallulab detect {quote(str(chat.folder.path))}` goes on with it.")
    except ReplyFailed as error:
        show(f"no reply: {render_one_line(str(error))}")
    except ReplayMiss as error:
        show(f"  not judged: {render_one_line(str(error))}")


async def _wait(work: Coroutine[Any, Any, Result]) -> Result | None:
    """Return what the work returns; None: Ctrl-C stopped it."""
    loop, task = asyncio.get_running_loop(), asyncio.create_task(work)
    loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:  # the whole command is stopped
        task.cancel()
        await asyncio.wait([task])
        raise
    finally:
        loop.remove_signal_handler(signal.SIGINT)  # while a line is read, Ctrl-C raises KeyboardInterrupt
    return None if task.cancelled() else task.result()


def render_reply(chatbot: str, turn: Turn) -> str:
    """Return a reply as lines that nothing of ours looks like: each begins with a bar."""
    return "\n".join([f"{chatbot}:", *(f"| {line}" for line in turn.reply.splitlines() or [""])])


def render_verdict(verdict: Verdict) -> str:
    """Return what a detector found in a reply: a line for each flagged place, with the reason."""
    name = verdict.detector
    if verdict.outcome != "scored":
        return f"  {name} {verdict.outcome}: {render_one_line(verdict.error or '')}"
    score = f"score {verdict.score:.2g}"
    spans = verdict.spans or ()
    if not spans:
        found = "flags the reply, but says no place" if verdict.flagged else "flags nothing"
        return f"  {name} {found} ({score})"
    lines = [f"  {name} flags {format_count(len(spans), 'place')} ({score}):"]
    for span in spans:
        severity = "" if span.severity is None else f", severity {span.severity:.3g} of 5"
        likely = "" if span.probability is None else f", unsupported with probability {span.probability:.2g}"
        reason = render_one_line(span.reason)
        lines.append(f"    “{render_one_line(span.text)}”{severity}{likely}{f': {reason}' if reason else ''}")
    return "\n".join(lines)
