"""People who type given lines, and what they talk with: a scripted model over the tiny pack."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2

from hallulab.testing.scripted import ScriptedModel, last_user

REPLY = "Water boils at 100 degrees. The teapot costs 500 rupees."
"""A reply whose second sentence the tiny pack does not support."""


def answer(request: Mapping[str, Any]) -> str:
    """The scripted model's answer to whatever it is asked."""
    return REPLY


class EndlessModel(ScriptedModel):
    """Answers all but messages with `Endless?`, which it thinks about for ever.

    Args:
        when_asked: is called when it is asked that.
    """

    def __init__(self, when_asked: Callable[[], object] = lambda: None) -> None:
        super().__init__(answer, "endless")
        self._when_asked = when_asked

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """See `ScriptedTransport`."""
        if request.method == "POST" and is_about(json.loads(await request.aread()), "Endless?"):
            self._when_asked()
            await asyncio.Event().wait()
        return await super().handle_async_request(request)


def is_about(request: Mapping[str, Any], words: str) -> bool:
    """Whether a request is about a message with these words, and not about an earlier one."""
    return words in last_user(request)


def typing(*lines: str) -> Callable[[str], str]:
    """What stands for `input`: gives the lines, then the end of the input."""
    left: Iterator[str] = iter(lines)

    def read(prompt: str) -> str:
        print(prompt, end="")
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    return read


def flags(pack: Path, model: str, url: str, detectors: str = "lexical") -> list[str]:
    """Arguments of `chat`, without `--out`."""
    return [
        *("chat", "--scenario", str(pack), "--model", model, "--base-url", url),
        *("--chatbots", "vanilla", "--detectors", detectors, "--quiet"),
    ]
