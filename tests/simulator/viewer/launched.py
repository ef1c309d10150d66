"""Runs that a viewer starts on a scripted model, which waits until a file is there."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2
import yaml

from hallulab.simulator.cli.main import main
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.scripted import ScriptedModel
from hallulab.testing.tiny_pack import words_for_vectors
from tests.simulator.chat.talking import answer

MODEL = "patient"
URL = f"scripted://{MODEL}/v1"
COMMAND = (sys.executable, "-m", "tests.simulator.viewer.launched")
"""Stands for the command `hallulab`: a process of its own, in which the model is."""

GATE = "HALLULAB_TEST_GATE"
"""Variable with the file that the model waits for, once a conversation is finished."""


def reply(request: dict[str, Any]) -> str | dict[str, float]:
    """What the model answers: Yes to a question that wants a decision."""
    return {"Yes": 0.9, "No": 0.1} if request.get("logprobs") else answer(request)


class PatientModel(ScriptedModel):
    """Answers at once until the run holds a conversation, and later requests when the gate is open."""

    def __init__(self, run: RunFolder) -> None:
        super().__init__(reply, MODEL)
        self._run = run

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """See `ScriptedTransport`."""
        # Another process opens the gate.
        while self._has_conversation() and not os.access(os.environ[GATE], os.F_OK):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        return await super().handle_async_request(request)

    def _has_conversation(self) -> bool:
        return self._run.has_journal and bool(self._run.read_conversations())


def wait_for(happened: Callable[[], Any], seconds: float = 60) -> Any:
    """What is returned, once it is true."""
    until = time.monotonic() + seconds
    while not (found := happened()):
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)
    return found


def write_text(**values: Any) -> str:
    """An experiment file: one chatbot and one detector on the scripted model."""
    given = {"chatbots": ["vanilla"], "detectors": ["lexical"], "model": MODEL, "base_url": URL, **values}
    return yaml.safe_dump(given)


def fill_in(text: str) -> bytes:
    """The form as the page sends it, with a text."""
    return urlencode([("yaml", text)]).encode()


if __name__ == "__main__":
    with words_for_vectors(), PatientModel(RunFolder(Path(sys.argv[-1]))):
        main()
