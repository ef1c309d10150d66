"""An endpoint that works, behind no network."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import httpx2

from hallulab.testing.endpoint import instance
from hallulab.testing.scripted import ScriptedTransport


def emptied(folder: Path) -> Path:
    """A folder for the next example: a new one for each of thousands would take most of the time."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


class Honest(httpx2.AsyncBaseTransport):
    """Plays the user, the chatbot and the judges of `hallulab.testing.tiny_pack`."""

    def __init__(self) -> None:
        self._script = ScriptedTransport(self._answer, "m")
        self.asked = 0
        """How many completions it was asked for."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST":
            self.asked += 1
        return await self._script.handle_async_request(request)

    def _answer(self, body: dict[str, Any]) -> str | dict[str, float]:
        return honest_words(body, self.asked)


def honest_words(body: dict[str, Any], asked: int) -> str | dict[str, float]:
    """What an honest model says to the request with this number."""
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema is not None:
        return json.dumps(instance(schema, schema.get("$defs", {})))
    if body.get("logprobs"):
        return {"Yes": 0.4, "No": 0.6}
    return "How long does a kettle take to boil?" if asked % 2 else "It takes three minutes."
