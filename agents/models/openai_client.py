"""The openai client above a transport of ours: it writes requests, and reads failures as its errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpx2
from openai import AsyncOpenAI

from hallulab.agents.models.endpoints import NO_KEY
from hallulab.agents.models.transport import ModelCall, ModelTransport

_call: ContextVar[ModelCall] = ContextVar("call")


@contextmanager
def making(call: ModelCall) -> Iterator[None]:
    """Make the client's request of the block part of this call: the client hands down nothing but HTTP."""
    token = _call.set(call)
    try:
        yield
    finally:
        _call.reset(token)


def make_openai_client(transport: ModelTransport) -> AsyncOpenAI:
    """Return a client that neither knows the key nor the address, for the server may not be up yet."""
    http = _CallClient(transport)
    return AsyncOpenAI(base_url="/v1", api_key=NO_KEY, max_retries=0, timeout=None, http_client=http)


class _CallClient(httpx2.AsyncClient):
    """Takes requests to the transport as they are.

    The additions of a client are not sent (headers, time limits) or must not happen (redirects, cookies).

    Args:
        transport: answers.
    """

    def __init__(self, transport: ModelTransport) -> None:
        super().__init__(trust_env=False)
        self._calls = transport

    def build_request(
        self, method: str, url: httpx2.URL | str, *, content: Any = None, **_: Any
    ) -> httpx2.Request:
        """See `httpx2.AsyncClient`."""
        return httpx2.Request(method, url, content=content)

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """See `httpx2.AsyncClient`."""
        response = await self._calls.ask(request, _call.get())
        response.request = request
        return response
