"""The frame of every worker. Standard library only, run as a script with the peer's own Python.

    python -I loop.py WORKER.py

`WORKER.py` defines a class `Peer`, made of the configuration (the first line of standard input) and `ask`;
its `judge(request)` gives the answer without `id`. Messages are described in docs/peers.md. Whatever the
peer's packages print goes to standard error. The worker ends when its standard input does, even while it
computes: so it never outlives the process that started it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, Protocol

Prompts = list[dict[str, Any]]
Ask = Callable[[Prompts], list[str]]
"""Has prompts (`step`, `prompt`, `max_tokens`) answered by the served model."""


class Peer(Protocol):
    """What a worker defines."""

    def judge(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request: `score`, `spans`, `units` and perhaps `truncated`; or `abstained`."""
        ...


class Line:
    """The line to our process."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._inbox: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            self._inbox.put(line)
        os._exit(0)

    def hear(self) -> dict[str, Any]:
        """The next message."""
        message: dict[str, Any] = json.loads(self._inbox.get())
        return message

    def say(self, **message: Any) -> None:
        """Send a message; what JSON has no number for is an error."""
        self._out.write(json.dumps(message, allow_nan=False) + "\n")
        self._out.flush()


def main(worker: str) -> None:
    """Load the peer and judge request after request."""
    line = Line()
    current = ""

    def ask(prompts: Prompts) -> list[str]:
        line.say(id=current, ask=prompts)
        answer = line.hear()
        if answer.get("answers") is None:
            raise RuntimeError(f"the served model gave no answer: {answer.get('refused')}")
        return list(answer["answers"])

    try:
        peer = _peer(worker, line.hear(), ask)
    except Exception as error:  # noqa: BLE001 - whatever it is, our process must learn of it
        traceback.print_exc()
        line.say(fatal=_one_line(error))
        return
    line.say(ready=True)
    while True:
        request = line.hear()
        current = request["id"]
        try:
            line.say(**{**peer.judge(request), "id": current})
        except Exception as error:  # noqa: BLE001 - the next reply may be judged
            traceback.print_exc()
            line.say(id=current, error=_one_line(error))


def _peer(worker: str, configuration: dict[str, Any], ask: Ask) -> Peer:
    spec = importlib.util.spec_from_file_location("hallulab_worker", worker)
    if spec is None or spec.loader is None:
        raise ImportError(f"{worker} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    peer: Peer = module.Peer(configuration, ask)
    return peer


def _one_line(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 300 else text[:299] + "…"


if __name__ == "__main__":
    main(sys.argv[1])
