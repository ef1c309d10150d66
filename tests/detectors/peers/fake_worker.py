"""A peer that needs no package: what it does is in the reply. Runs in the workers' frame."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any


def _last_word(request: dict[str, Any]) -> str:
    """Of a reply that ends with it: a file's path."""
    word: str = request["reply"]["text"].split()[-1]
    return word


class Worker:
    """Configuration: `weights`: `no/model` cannot be loaded, `slow/model` takes a while."""

    def __init__(self, configuration: dict[str, Any], ask: Callable[..., list[str]]) -> None:
        if configuration["weights"] == "no/model":
            raise OSError("no/model is\nnowhere")
        if configuration["weights"] == "slow/model":
            time.sleep(0.3)
        self._ask = ask

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply's first word is an order."""
        order = re.split(r"\W", request["reply"]["text"])[0].lower()
        answer: dict[str, Any] = getattr(self, f"_{order}")(request)
        return answer

    def _fine(self, request: dict[str, Any]) -> dict[str, Any]:
        print("a package prints this")
        start, end = request["reply"]["sentences"][-1]
        last = {"start": start, "end": end, "score": 0.75}
        return {"score": 0.75, "spans": [last], "units": [{"kind": "sentence", **last}]}

    def _nap(self, request: dict[str, Any]) -> dict[str, Any]:
        while not os.path.exists(_last_word(request)):
            time.sleep(0.01)
        return self._fine(request)

    def _beyond(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"score": 0.5, "spans": [{"start": 0, "end": 1000, "score": 0.5}], "units": []}

    def _nonsense(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"score": 2.0, "spans": [], "units": []}

    def _raise(self, request: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("too\nlong")

    def _crash(self, request: dict[str, Any]) -> dict[str, Any]:
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(3)

    def _sleep(self, request: dict[str, Any]) -> dict[str, Any]:
        if os.path.isabs(begun := _last_word(request)):
            open(begun, "x").close()
        time.sleep(600)
        return {}

    def _abstain(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"abstained": "nothing is claimed"}

    def _ask_model(self, request: dict[str, Any]) -> dict[str, Any]:
        answers = self._ask([{"step": "extract", "prompt": word, "max_tokens": 9} for word in ("a", "b")])
        unit = {"kind": "claim", "text": " ".join(answers), "score": 1.0}
        return {"score": 1.0, "spans": [{"text": unit["text"], "score": 1.0}], "units": [unit]}
