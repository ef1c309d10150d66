"""Talk to a chatbot in the terminal: what is typed, what is answered, and what the detectors find in it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from hallulab.scenarios.errors import ReplayMiss
from hallulab.scenarios.text.wording import format_count, render_one_line
from hallulab.scenarios.transcript import Turn, Verdict
from hallulab.simulator.chat.command import load_terminal_experiment
from hallulab.simulator.chat.draft_lines import drawing_draft
from hallulab.simulator.chat.live import LiveChat, ReplyFailed, begin_chat, open_live_models, open_live_run
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.options.commands import ChatOptions
from hallulab.simulator.options.groups import to_path
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.outputs import name_folder_by_time
from hallulab.simulator.report.reader import cut_segments

COMMAND = "hallulab chat"
"""What experiment.json says of where the conversation was held."""

CONTEXT = 60
"""Characters shown before and behind a flagged place; a whole reply stands above it already."""

_ENDS = ("", "/quit")

Print = Callable[[str], None]
Result = TypeVar("Result")


async def chat_from_options(options: ChatOptions, show: Print) -> Path | None:
    """Talk until an empty line, `/quit`, the end of the input, or Ctrl-C where nothing is under way.

    Args:
        options: those of the command.
        show: prints lines that a terminal cannot obey.

    Returns:
        The run folder; None if nothing was said.

    Raises:
        UsageError: the experiment or the folder is at fault.
        OperationalError: a server, an endpoint or the disk failed.
    """
    experiment = load_terminal_experiment(options)
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
            await _Terminal(chat, show, Console(stderr=True, quiet=options.quiet)).talk()
            return folder if chat.is_saved else None


class _Terminal:
    """A conversation in the terminal.

    Args:
        chat: the conversation.
        show: see `chat_from_options`.
        console: shows replies while they are made, if it is a terminal.
    """

    def __init__(self, chat: LiveChat, show: Print, console: Console) -> None:
        self._chat = chat
        self._show = show
        self._console = console
        self._loop = asyncio.get_running_loop()
        self._under_way: asyncio.Task[Any] | None = None

    async def talk(self) -> None:
        """Hold the conversation."""
        unanswered = ""
        self._loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            while self._chat.over is None:
                message = self._ask(unanswered)
                if message is None or message.strip() in _ENDS:
                    return
                unanswered = "" if await self._exchange(message.strip()) else message.strip()
            self._show(self._chat.over)
        finally:
            self._loop.remove_signal_handler(signal.SIGINT)

    def _ask(self, begun: str) -> str | None:
        """Return the next line; None: there is none, or Ctrl-C.

        Args:
            begun: stands in the line already: what was not answered.
        """
        # While a line is read, Ctrl-C raises, as it does in any other program.
        self._loop.remove_signal_handler(signal.SIGINT)
        try:
            with _editing(begun):
                return input("\nyou: ")
        except (EOFError, KeyboardInterrupt):
            self._show("")
            return None
        finally:
            self._loop.add_signal_handler(signal.SIGINT, self._interrupt)

    async def _exchange(self, message: str) -> bool:
        """Have a message answered and the reply judged; return whether there is a reply."""
        try:
            with drawing_draft(self._console) as draw:
                turn = await self._wait(self._chat.say(message, draw))
        except ReplyFailed as error:
            self._show(f"no reply: {render_one_line(str(error))}")
            return False
        if turn is None:
            self._show("stopped: this message has no reply and is not kept. What was said before is.")
            return False
        self._show(render_reply(self._chat.key.chatbot, turn))
        try:
            judged = await self._wait(self._judge(turn))
        except ReplayMiss as error:
            self._show(f"  not judged: {render_one_line(str(error))}")
            return True
        if judged is None:
            self._show(f"judging stopped: `hallulab detect {self._chat.folder.path}` goes on with it.")
        return True

    async def _judge(self, turn: Turn) -> bool:
        async for verdict in self._chat.judge(turn):
            self._show(render_verdict(turn, verdict))
        return True

    async def _wait(self, work: Coroutine[Any, Any, Result]) -> Result | None:
        """Return what the work returns; None: Ctrl-C stopped it."""
        task = self._under_way = asyncio.create_task(work)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:  # the whole command is stopped
            task.cancel()
            await asyncio.wait([task])
            raise
        finally:
            self._under_way = None
        return None if task.cancelled() else task.result()

    def _interrupt(self) -> None:
        if self._under_way is not None:
            self._under_way.cancel()


@contextlib.contextmanager
def _editing(begun: str) -> Iterator[None]:
    """Let a line be edited, with some text in it already, if somebody types at a terminal."""
    if not sys.stdin.isatty():
        yield
        return
    import readline

    readline.set_startup_hook(lambda: readline.insert_text(begun) if begun else None)
    try:
        yield
    finally:
        readline.set_startup_hook(None)


def render_reply(chatbot: str, turn: Turn) -> str:
    """Return a reply as lines that nothing of ours looks like: each begins with a bar."""
    return "\n".join([f"{chatbot}:", *(f"| {line}" for line in turn.reply.splitlines() or [""])])


def render_verdict(turn: Turn, verdict: Verdict) -> str:
    """Return what a detector found in a reply, with flagged words in brackets and numbered reasons."""
    name = verdict.detector
    if verdict.outcome != "scored":
        return f"  {name} {verdict.outcome}: {render_one_line(verdict.error or '')}"
    score = f"score {verdict.score:.2g}"
    spans = verdict.spans or ()
    if not spans:
        found = "flags the reply, but says no place" if verdict.flagged else "flags nothing"
        return f"  {name} {found} ({score})"
    lines = [f"  {name} flags {format_count(len(spans), 'place')} ({score}):"]
    if any(span.start is not None for span in spans):
        lines.append(f"    {_mark(turn.reply, verdict)}")
    for number, span in enumerate(spans, start=1):
        severity = "" if span.severity is None else f"severity {span.severity:.3g} of 5"
        likely = "" if span.probability is None else f"unsupported with probability {span.probability:.2g}"
        unlocated = f"“{render_one_line(span.text)}”" if span.start is None else ""
        about = ", ".join(filter(None, [unlocated, severity, likely])) or "flagged"
        reason = render_one_line(span.reason)
        lines.append(f"    {number}. {about}{f': {reason}' if reason else ''}")
    return "\n".join(lines)


def _mark(reply: str, verdict: Verdict) -> str:
    """Return the reply with flagged pieces as `[1: text]`, and what is far from them left out."""
    pieces = cut_segments(reply, verdict.spans or ())
    shown = []
    for place, (text, covering) in enumerate(pieces):
        if covering:
            shown.append(f"[{','.join(str(one + 1) for one in covering)}: {text}]")
            continue
        before = "" if place == 0 else text[:CONTEXT]
        behind = "" if place == len(pieces) - 1 else text[-CONTEXT:]
        whole = len(text) <= len(before) + len(behind)
        shown.append(text if whole else f"{before}…{behind}")
    return render_one_line("".join(shown))
