"""The main loop of every worker. Needs the standard library only; runs as a script on Python 3.9 and later.

    python worker_loop.py WORKER.py

`WORKER.py` defines a class `Worker`. It is made with the configuration (the first line of standard input) and
`ask`; its `answer(request)` returns the answer without `id`. docs/studies/peers.md and
`chatbots/bot_worker.py` describe the messages. Output of the worker's packages goes to standard error, and
they read nothing from standard input. The worker ends when its standard input ends. While it computes, its
supervisor ends it (`worker_process.py`).
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

Prompts = list[dict[str, Any]]
Ask = Callable[[Prompts], list[str]]
"""Asks the served model; each prompt has `step`, `prompt` and `max_tokens`."""

_WORKER = "hallulab_worker"
"""Name of the worker's module."""

LONGEST_REASON = 10_000
"""Characters of a reason. Whoever shows it first removes keys and then shortens it."""


class Answering(Protocol):
    """The `Worker` of a worker's file."""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request, without `id`."""
        ...


class Line:
    """The connection to our process. It takes over standard input and output."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._in = os.fdopen(os.dup(0), encoding="utf-8")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)

    def hear(self) -> dict[str, Any] | None:
        """Wait for the next message and return it; None at the end."""
        line = self._in.readline()
        if not line:
            return None
        message: dict[str, Any] = json.loads(line)
        return message

    def say(self, **message: Any) -> None:
        """Send a message; NaN and infinities are an error."""
        self._out.write(json.dumps(message, allow_nan=False) + "\n")
        self._out.flush()


def main(worker: str) -> None:
    """Make the worker and let it answer request after request."""
    line = Line()
    current = ""
    # The user's code gets the import path it would have by itself, so this folder is removed.
    sys.path[:] = [folder for folder in sys.path if folder != os.path.dirname(os.path.abspath(__file__))]
    del sys.argv[1:]

    def ask(prompts: Prompts) -> list[str]:
        line.say(id=current, ask=prompts)
        answer = line.hear() or {"refused": "nobody is there"}
        if answer.get("answers") is None:
            raise RuntimeError(f"the served model gave no answer: {answer.get('refused')}")
        return list(answer["answers"])

    try:
        configuration = line.hear() or {}
        module = sys.modules.get(_WORKER) or _load(worker)  # a fork has it already
        answering: Answering = module.Worker(configuration, ask)
    except BaseException as error:  # noqa: BLE001 - our process must learn of any error
        line.say(fatal=getattr(error, "sentence", None) or reason_of(error))
        _print_trace()
        return
    line.say(ready=True)
    while (request := line.hear()) is not None:
        current = request["id"]
        try:
            line.say(**{**answering.answer(request), "id": current})
        except BaseException as error:  # noqa: BLE001 - the next request may be answered
            line.say(id=current, error=reason_of(error))
            _print_trace()


def _load(worker: str) -> Any:
    spec = importlib.util.spec_from_file_location(_WORKER, worker)
    if spec is None or spec.loader is None:
        raise ImportError(f"{worker} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_WORKER] = module
    spec.loader.exec_module(module)
    return module


def _print_trace() -> None:
    with suppress(Exception):  # standard error may be anything by now
        traceback.print_exc()


def reason_of(error: BaseException) -> str:
    """Return an exception as one line, without a full stop."""
    try:
        message = " ".join(str(error)[:LONGEST_REASON].split()).rstrip(".")
    except BaseException as unsayable:  # noqa: BLE001 - its message is the worker's code, too
        message = f"its message raised {type(unsayable).__name__}"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


if __name__ == "__main__":
    main(sys.argv[1])
