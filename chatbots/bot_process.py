"""A user's bot in its own process: start it, ask it and end it. See `hallulab.chatbots.bot_worker`."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from hallulab.agents.machine.forked_workers import CAN_FORK, PreparedWorker
from hallulab.agents.machine.worker_process import (
    LOADING_SECONDS,
    LOOP,
    Worker,
    WorkerError,
    WorkerProcess,
    WorkerSilent,
)
from hallulab.agents.models.redaction import make_redaction
from hallulab.chatbots.protocol import ChatbotError
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import read_json

_log = logging.getLogger(__name__)

Dialogue = Sequence[dict[str, str]]
"""Messages as `{"role": "user" | "assistant", "content": str}`."""

WORKER = Path(__file__).with_name("bot_worker.py")


@dataclass(frozen=True)
class Bot:
    """A user's bot and where it runs."""

    kind: str
    target: str
    python: str
    here: str

    @property
    def configuration(self) -> dict[str, Any]:
        """The first message to its process."""
        return {"kind": self.kind, "target": self.target, "here": self.here}


class PreparedBot:
    """A bot that is known to start, and what gives each conversation a process of its own.

    It is a fork of a process that has imported the bot. Where a fork would share something that the import
    has made, such as a thread or a connection, it is a new process, which imports the bot again.

    Raises:
        UsageError: it cannot be imported, or is no bot.
    """

    def __init__(self, bot: Bot) -> None:
        self.bot = bot
        self._forks: PreparedWorker | None = None
        self._asks = self._has_learnt = False
        try:
            if CAN_FORK:
                self._forks = _prepare(bot)
            if bot.kind != "callable" or not CAN_FORK:
                process = BotProcess(self)
                try:
                    process.start()
                finally:
                    process.stop()
        except ChatbotError as error:
            raise UsageError(str(error)) from error
        self._asks = self._forks is not None

    def start(self) -> Worker:
        """Return a fresh process.

        Raises:
            WorkerError: it does not start.
        """
        if self._forks is not None:
            with suppress(OSError):  # somebody has killed the prepared process
                return self._forks.fork()
        return WorkerProcess([self.bot.python, str(LOOP), str(WORKER)], os.environ)

    def configure(self) -> dict[str, Any]:
        """Return the first message to a process. The first conversation's is asked for what it imports."""
        asks, self._asks = self._asks, False
        return {**self.bot.configuration, "tells_imports": asks}

    def learn(self, imports: object) -> None:
        """Have a library's modules imported before the next forks that the first reply has imported."""
        if self._forks is not None and isinstance(imports, list) and not self._has_learnt:
            self._has_learnt = True
            if names := [name for name in imports if isinstance(name, str)]:
                self._forks.teach(names)


def _prepare(bot: Bot) -> PreparedWorker | None:
    """Import a bot in a process that can be forked; None: a fork would share something.

    Raises:
        ChatbotError: it cannot be imported, or is no bot.
    """
    try:
        prepared = PreparedWorker(bot.python, WORKER, os.environ)
        try:
            message = _read_message(prepared.prepare(bot.configuration))
        except BaseException:
            prepared.stop()
            raise
    except WorkerError as error:
        raise ChatbotError(f"{bot.target}: {error}.") from error
    if message.get("ready") is True and not message.get("shares"):
        return prepared
    prepared.stop()
    if message.get("ready") is not True:
        raise ChatbotError(str(message.get("fatal")))
    _log.info(
        "%s: each conversation imports it again, because the import leaves %s that only one may have.",
        bot.target,
        ", ".join(map(str, message["shares"])),
    )
    return None


_prepared: WeakKeyDictionary[object, dict[Bot, PreparedBot]] = WeakKeyDictionary()
_preparing = threading.Lock()


def prepare_bot(bot: Bot, run: object) -> PreparedBot:
    """Return the prepared bot of a run, made once.

    Args:
        run: what lives as long as the run does. A later run finds the bot as its files are then.

    Raises:
        UsageError: it cannot be imported, or is no bot.
    """
    with _preparing:
        known = _prepared.setdefault(run, {})
        if bot not in known:
            known[bot] = PreparedBot(bot)
        return known[bot]


class BotProcess:
    """A bot's worker process: starts at the first question, ends when nothing refers to it any more."""

    def __init__(self, prepared: PreparedBot) -> None:
        self._prepared, self._bot = prepared, prepared.bot
        self._process: Worker | None = None
        self._unwanted = False
        self._handover = threading.Lock()
        self._numbers = count()

    def start(self) -> Worker:
        """Start the process with the bot; return the process. Blocks.

        Raises:
            ChatbotError: it does not start, or `stop` was called.
        """
        if self._process is not None:
            return self._process
        bot = self._bot
        try:
            process = self._prepared.start()
            with self._handover:
                self._process = process
                if self._unwanted:
                    process.stop()
            message = _exchange(process, self._prepared.configure(), LOADING_SECONDS)
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
        self._prepared.learn(message.get("imported"))
        if "answer" not in message:
            raise ChatbotError(f"{self._bot.target} raised {message.get('error')}")
        return message["answer"]

    def stop(self) -> None:
        """End the process at once, if there is one. Blocks for a moment."""
        with self._handover:
            self._unwanted = True
        if self._process is not None:
            self._process.stop()


def _exchange(process: Worker, told: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    """Send a message; return the answer without keys."""
    process.send(told, timeout_s)
    try:
        return _read_message(process.receive(timeout_s))
    except WorkerError:
        process.stop()
        raise


def _read_message(line: bytes) -> dict[str, Any]:
    """Return a message of a worker, without keys.

    Raises:
        WorkerError: it is none.
    """
    redact = make_redaction().text
    try:
        message = read_json(line, redact)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        said = redact(line.decode(errors="replace"))[:120]
        raise WorkerError(f"its worker said {said!r}, which is no answer")
    return message
