"""The wire: where requests leave the process, are bounded, recorded and replayed.

Answers come back with what the ledger wants to know of them in an `Exchange`.
"""

from __future__ import annotations

import asyncio
import copy
import json
import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx2

from agents.models.answers import cached_tokens, is_completion, readable, tells_tokens
from agents.models.errors import ModelError
from agents.models.received import Received, receive
from agents.models.recording import Recording
from agents.models.redaction import Redaction, redaction
from scenarios.errors import ReplayMiss
from scenarios.files.digest import digest

RETRYABLE_STATUS = frozenset({408, 409, 425, 429})
"""Client errors worth another try; all 5xx are, too."""

LASTING_STATUS = frozenset({400, 413, 422})
"""Errors that lie in the request itself, so they are recorded; a wrong key or model name may be mended."""


@dataclass
class Exchange:
    """What the wire learns about one request; filled in while the request is under way."""

    latency_s: float = 0.0
    """Seconds from sending to the full answer, or the recorded ones."""
    under_way_s: float = 0.0
    """Seconds of all tries together; waiting for the gate and pauses between tries are not in it."""
    replayed: bool = False
    """Whether the answer was already known."""
    cached_tokens: int | None = None
    """Prompt tokens that the server took from its prefix cache, where it says."""
    tells_tokens: bool = True
    """Whether the server says how many tokens it read and wrote."""


EXCHANGE: ContextVar[Exchange | None] = ContextVar("hallulab_exchange", default=None)
"""The exchange of the request under way: AutoGen offers no other way to hand it down to the transport."""


class Wire(httpx2.AsyncBaseTransport):
    """An HTTP transport that records, replays and bounds requests.

    Args:
        recording: where answers are kept.
        gate: at most this many requests are under way at once.
        timeout_s: limit of one request, waiting for the gate not included.
        inner: the transport that does the sending.
    """

    def __init__(
        self,
        recording: Recording,
        gate: asyncio.Semaphore,
        timeout_s: float,
        inner: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._recording = recording
        self._gate = gate
        self.timeout_s = timeout_s
        """Limit of one try, in seconds."""
        self._inner = inner or httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_connections=None))
        self._scope: tuple[str, ...] = ()

    @property
    def replaying(self) -> bool:
        """Whether nothing is ever sent."""
        return self._recording.replaying

    def scoped(self, scope: str) -> Wire:
        """The same wire, on which equal requests are others than those of the other scopes."""
        wire = copy.copy(self)
        wire._scope = (scope,)
        return wire

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer from the recording or from the server."""
        body = json.loads(await request.aread() or b"null")
        if request.method != "POST":
            return (await self._send(request)).response(request)
        key = digest([*self._scope, request.url.path.rsplit("/v1/", 1)[-1], body])
        known = self._recording.get("model", key)
        if known is not None:
            return _response(self._repeatable(known), request, replayed=True)
        if self._recording.replaying:
            raise ReplayMiss(
                f"the recording {self._recording.source} has no answer to this request: the model, prompts, "
                "options or documents have changed since, or it failed when it was recorded. Give what was "
                "given then, or record again with --record."
            )
        return _response(await self._ask(key, request), request, replayed=False)

    async def _ask(self, key: str, request: httpx2.Request) -> dict[str, Any]:
        async with self._gate:
            started = time.perf_counter()
            try:
                received = await self._send(request)
            finally:
                latency = time.perf_counter() - started
                if (exchange := EXCHANGE.get()) is not None:
                    exchange.under_way_s += latency
        status = received.status
        body = received.value if isinstance(received.value, dict) else {"error": {"message": received.text}}
        if status < 400 and (not 200 <= status < 300 or not is_completion(body)):
            raise ModelError(
                f"{request.url} gave an answer that is no chat completion: {received.text[:120]!r}. "
                "Does --base-url end where an OpenAI-compatible API begins (usually /v1)?"
            )
        answer = {"status": status, "latency_s": round(latency, 4), "body": _without_nulls(body)}
        if is_retryable(status) and received.retry_after is not None:
            answer["retry_after"] = received.retry_after
        if status < 400 or status in LASTING_STATUS:
            answer = self._recording.put("model", key, answer)
        return answer

    async def _send(self, request: httpx2.Request) -> Received:
        redacting = _redaction_for(request)
        try:
            async with asyncio.timeout(self.timeout_s):
                response = await self._inner.handle_async_request(request)
                return await receive(response, request.url, redacting)
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no answer within {self.timeout_s:g} s", request=request) from error
        except httpx2.RequestError as error:
            # What breaks the protocol is quoted in the error.
            raise type(error)(redacting.text(str(error)), request=request) from None

    def _repeatable(self, known: dict[str, Any]) -> dict[str, Any]:
        """A known answer; what no endpoint's answer would have been recorded as ends the run."""
        if known["status"] < 400 and not is_completion(known["body"]):
            raise ReplayMiss(
                f"the recording {self._recording.source} holds an answer to this request that is no chat "
                "completion: it was changed. Restore it, or record again with --record."
            )
        return known

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def is_retryable(status: int) -> bool:
    """Whether a request that ended with this HTTP status is worth another try."""
    return status in RETRYABLE_STATUS or status >= 500


def _redaction_for(request: httpx2.Request) -> Redaction:
    return redaction(request.headers.get("Authorization", "").removeprefix("Bearer "))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _response(answer: dict[str, Any], request: httpx2.Request, replayed: bool) -> httpx2.Response:
    body = answer["body"]
    exchange = EXCHANGE.get()
    if exchange is not None:
        exchange.latency_s = float(answer["latency_s"])
        exchange.replayed = replayed
        exchange.tells_tokens = tells_tokens(body)
        exchange.cached_tokens = cached_tokens(body)
    if answer["status"] < 400:
        body = readable(body)
    headers = {"Retry-After": str(answer["retry_after"])} if "retry_after" in answer else None
    return httpx2.Response(answer["status"], json=body, headers=headers, request=request)
