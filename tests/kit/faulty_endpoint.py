"""An endpoint on loopback, in a thread, that fails a share of its requests, in every way that servers fail.

What happens to a request depends on the request, on how often it came before, and on a seed. So a healthy
answer is the same whenever and wherever it is given. All that is said in a failure repeats the key.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import socket
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hallulab.testing.endpoint import (
    StubProtocol,
    completion,
    http_response,
    reply,
    run_loop_in_thread,
    stop_listening,
)

CLOSED_S = 0.1
"""Seconds for which connections are refused."""

_TEN_MB = 10_000_000


class FaultyEndpoint:
    """What it does, and what it did.

    Args:
        share: share of the requests that fail; may be changed while it serves.
        faults: names of the ways in which they fail (`FAULTS`).
        seed: decides which requests fail, and how.
    """

    def __init__(self, share: float, faults: Sequence[str], seed: int) -> None:
        self.share = share
        self.most: int | None = None
        """How many requests fail at most; None: there is no limit."""
        self.pause_s = 0.0
        """Seconds before each healthy answer."""
        self.given: Counter[str] = Counter()
        """How many requests failed in each way; and how many did not, as `healthy`."""
        self.port = 0
        self._faults = list(faults)
        self._seed = seed
        self._came: Counter[bytes] = Counter()
        self._server: asyncio.Server | None = None
        self.connections: set[asyncio.Transport] = set()
        """Those that are open."""
        self._closed: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    def fault_of(self, body: bytes) -> str | None:
        """Return how this request fails now; None if it does not."""
        self._came[body] += 1
        chance = random.Random(f"{self._seed} {self._came[body]} {body!r}")
        name = chance.choice(self._faults) if chance.random() < self.share else None
        if self.most is not None and self.given.total() - self.given["healthy"] >= self.most:
            name = None
        self.given[name or "healthy"] += 1
        return name

    async def open(self) -> None:
        """Listen, on the same port as before."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Faulty(self), "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def refuse(self) -> None:
        """Listen no more for a while."""
        if self._closed is None or self._closed.done():
            self._closed = asyncio.ensure_future(self._reopened())

    async def _reopened(self) -> None:
        assert self._server is not None
        await stop_listening(self._server)
        await asyncio.sleep(CLOSED_S)
        await self.open()

    async def close(self) -> None:
        """End all that is under way."""
        if self._closed is not None:
            await self._closed
        assert self._server is not None
        await stop_listening(self._server)
        for connection in [*self.connections]:
            connection.abort()
        await asyncio.sleep(0)  # `connection_lost` is called in the next turn


class _Faulty(StubProtocol):
    def __init__(self, endpoint: FaultyEndpoint) -> None:
        self.endpoint = endpoint

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.endpoint.connections.add(self._transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.endpoint.connections.discard(self._transport)

    def respond(self, head: bytes, body: bytes) -> None:
        """See `StubProtocol.respond`. The list of models never fails."""
        if head.startswith(b"get"):
            return super().respond(head, body)
        fault = self.endpoint.fault_of(body)
        if fault is None:
            later = asyncio.get_running_loop().call_later
            later(self.endpoint.pause_s, self.say, healthy(json.loads(body)))
            return None
        return FAULTS[fault](self, json.loads(body), self.key_of(head))

    def key_of(self, head: bytes) -> str:
        """The key as it was sent; the head is in lower case, as keys in tests are."""
        return head.partition(b"authorization: bearer ")[2].partition(b"\r\n")[0].decode()

    def say(self, answer: Any, status: int = 200, headers: bytes = b"") -> None:
        self.write(http_response(json.dumps(answer).encode(), status, headers))

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def reset(self) -> None:
        """End the connection by RST, as a server that crashed."""
        connection = self._transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def cut(self, data: bytes) -> None:
        """End the connection after this data."""
        self.write(data)
        self._transport.close()


def healthy(request: dict[str, Any]) -> dict[str, Any]:
    """The stub's answer, which depends on the request alone, also where it is a decision."""
    answer = completion(request)
    asked = request["messages"][-1]["content"]
    if "response_format" not in request and "\n1. " in asked:  # sentences to be split into facts
        answer["choices"][0]["message"]["content"] = f"1: {reply(request)}"
    if request.get("logprobs"):
        likely = 0.1 + 0.8 * (zlib.crc32(json.dumps(request["messages"]).encode()) % 100) / 100
        share = {"Yes": likely, "No": 1 - likely}
        for one in answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]:
            if one["token"] in share:
                one["logprob"] = math.log(0.7 * share[one["token"]])
    return answer


def _refused(server: _Faulty, request: dict[str, Any], key: str) -> None:
    server.reset()
    server.endpoint.refuse()


def _complaint(key: str) -> dict[str, Any]:
    return {"error": {"message": f"not now, {key}", "type": "trouble", "code": key}}


def _cut(server: _Faulty, request: dict[str, Any], key: str) -> None:
    whole = http_response(json.dumps({**healthy(request), "id": key}).encode())
    server.cut(whole[: len(whole) * 2 // 3])


def _changed(change: Callable[[dict[str, Any]], Any]) -> Callable[[_Faulty, dict[str, Any], str], None]:
    """A fault that changes the healthy answer in place."""

    def fault(server: _Faulty, request: dict[str, Any], key: str) -> None:
        answer = {**healthy(request), "id": key}
        change(answer)
        server.say(answer)

    return fault


def _absurd(answer: dict[str, Any]) -> None:
    """The probability of a token is more than 1."""
    top = [{"token": word, "logprob": 700.0} for word in ("Yes", "No", "A", "B")]
    answer["choices"][0]["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}


FAULTS: dict[str, Callable[[_Faulty, dict[str, Any], str], None]] = {
    "refused": _refused,
    "reset": lambda server, request, key: server.reset(),
    "429": lambda server, request, key: server.say(_complaint(key), 429),
    "429 with Retry-After": lambda server, request, key: server.say(
        _complaint(key), 429, b"Retry-After: 0.2\r\n"
    ),
    "500": lambda server, request, key: server.say(_complaint(key), 500),
    "hang": lambda server, request, key: None,
    "cut in the body": _cut,
    "invalid JSON": lambda server, request, key: server.write(
        http_response(f'{{"choices": [{{"message": {{"content": "{key}'.encode())
    ),
    "no such model": lambda server, request, key: server.say(_complaint(key), 404),
    "wrong model": _changed(
        lambda answer: answer.update(
            model="another", choices=[{"message": {"role": "assistant", "content": "I am another."}}]
        )
    ),
    "empty choices": _changed(lambda answer: answer.update(choices=[])),
    "no usage": _changed(lambda answer: answer.pop("usage")),
    "absurd log-probabilities": _changed(_absurd),
    "10 MB": _changed(
        lambda answer: answer["choices"][0]["message"].update(content="The fee. " * (_TEN_MB // 9))
    ),
}
"""Name of a fault → what it does to a request with a key."""


@contextmanager
def faulty_endpoint(
    share: float = 0.3, faults: Sequence[str] = tuple(FAULTS), seed: int = 0
) -> Iterator[FaultyEndpoint]:
    """Serve a model called `stub`; see `FaultyEndpoint`."""
    endpoint = FaultyEndpoint(share, faults, seed)
    with run_loop_in_thread() as wait_for:
        wait_for(endpoint.open())
        try:
            yield endpoint
        finally:
            wait_for(endpoint.close())
