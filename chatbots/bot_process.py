"""A user's bot in its own process: start it, ask it and end it. See `hallulab.chatbots.bot_worker`."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from hallulab.agents.machine.worker_process import (
    LOADING_SECONDS,
    LOOP,
    WorkerError,
    WorkerProcess,
    WorkerSilent,
)
from hallulab.agents.models.redaction import make_redaction
from hallulab.chatbots.protocol import ChatbotError
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import read_json

Dialogue = Sequence[dict[str, str]]
"""Messages as `{"role": "user" | "assistant", "content": str}`."""

WORKER = Path(__file__).with_name("bot_worker.py")
"""The worker's file."""


@dataclass(frozen=True)
class Bot:
    """A user's bot and where it runs."""

    kind: str
    """`callable` or `autogen`."""
    target: str
    """`module:attribute`."""
    python: str
    """The interpreter."""
    here: str
    """The working directory."""


@cache
def require_bot(bot: Bot) -> None:
    """Check that the bot starts. Each conversation starts it again.

    Raises:
        UsageError: it cannot be imported, or is no bot.
    """
    process = BotProcess(bot)
    try:
        process.start()
    except ChatbotError as error:
        raise UsageError(str(error)) from error
    finally:
        process.stop()


class BotProcess:
    """A bot's worker process: starts at the first question, ends when nothing refers to it any more."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot
        self._process: WorkerProcess | None = None
        self._unwanted = False
        self._handover = threading.Lock()
        self._numbers = count()

    def start(self) -> WorkerProcess:
        """Start the process and import the bot; return the process. Blocks.

        Raises:
            ChatbotError: it does not start, or `stop` was called.
        """
        if self._process is not None:
            return self._process
        bot = self._bot
        told = {"kind": bot.kind, "target": bot.target, "here": bot.here}
        try:
            process = WorkerProcess([bot.python, str(LOOP), str(WORKER)], os.environ)
            with self._handover:
                self._process = process
                if self._unwanted:
                    process.stop()
            message = _exchange(process, told, LOADING_SECONDS)
        except WorkerError as error:
            raise ChatbotError(f"{bot.target}: {error}.") from error
        if message.get("ready") is not True:
            raise ChatbotError(str(message.get("fatal")))
        return process

    def ask(self, dialogue: Dialogue, timeout_s: float) -> object:
        """Return the bot's answer as a JSON value. Blocks.

        Args:
            dialogue: the dialogue, ending with the user's message.
            timeout_s: the process is ended after so many seconds, without the import.

        Raises:
            ChatbotError: it gave no answer, with the reason. The process cannot be used again.
        """
        process = self.start()
        request = {"id": str(next(self._numbers)), "dialogue": list(dialogue)}
        try:
            message = _exchange(process, request, timeout_s)
        except WorkerSilent as error:
            reason = f"{self._bot.target} gave no reply within {timeout_s:g} s (--timeout)."
            raise ChatbotError(reason) from error
        except WorkerError as error:
            raise ChatbotError(f"{self._bot.target}: {error}.") from error
        if message.get("id") != request["id"]:
            raise ChatbotError(f"{self._bot.target}: its worker answered out of turn.")
        if "answer" not in message:
            raise ChatbotError(f"{self._bot.target} raised {message.get('error')}")
        return message["answer"]

    def stop(self) -> None:
        """End the process at once, if there is one. Blocks for a moment."""
        with self._handover:
            self._unwanted = True
        if self._process is not None:
            self._process.stop()


def _exchange(process: WorkerProcess, told: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    """Send a message; return the answer without keys."""
    process.send(told, timeout_s)
    line, redact = process.receive(timeout_s), make_redaction().text
    try:
        message = read_json(line, redact)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        process.stop()
        said = redact(line.decode(errors="replace"))[:120]
        raise WorkerError(f"its worker said {said!r}, which is no answer")
    return message
