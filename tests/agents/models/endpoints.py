"""What tests ask a model, and endpoints that answer in some way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import httpx2
import pytest
from tenacity import wait_none

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.prompt import ChatMessage

QUESTION = [ChatMessage("system", "Be brief."), ChatMessage("user", "Why?")]
LOCAL = "http://127.0.0.1:9/v1"


HASTY_POOL = partial(ModelPool, attempts=4, backoff=wait_none())
"""Stands for `ModelPool` where an endpoint fails on and on: four tries of a request, no pauses."""


def refusal(status: int, message: str = "no") -> httpx2.Response:
    """An answer with an error's status."""
    return httpx2.Response(status, json={"error": {"message": message}})


def in_turn(*answers: Any) -> Callable[[Any], Any]:
    """A script that gives these answers, one a request."""
    left = list(answers)
    return lambda _: left.pop(0)


def pool_at(transport: httpx2.AsyncBaseTransport, url: str = LOCAL, **options: Any) -> ModelPool:
    """A pool whose default model `m` is behind this transport, without pauses between tries."""
    given = {"backoff": wait_none(), "attempts": 4, **options}
    return ModelPool({"default": Endpoint("m", url)}, transport=transport, **given)


async def failure(asked: Awaitable[object]) -> str:
    """Return the message of the ModelError with which a question ends."""
    with pytest.raises(ModelError) as caught:
        await asked
    return str(caught.value)


class Dead(httpx2.AsyncBaseTransport):
    """Nobody listens."""

    def __init__(self) -> None:
        self.tries = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.tries += 1
        raise httpx2.ConnectError("All connection attempts failed", request=request)
