"""One request over HTTP: sent or replayed, tried again, its reply received within limits.

Read an endpoint's answer and make it harmless before other code sees it.
Its length and depth are bounded, keys are removed, every text can be written and every number is finite. Of
the headers only `Retry-After` is read, of the status line only the number.
"""

from __future__ import annotations

import asyncio
import copy
import json
import math
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import httpx2

from hallulab.agents.models.answers import ImpossibleAnswer, ModelError, is_completion, read_first_token
from hallulab.agents.models.endpoints import Replicas, most_tokens
from hallulab.agents.models.recording import Recording
from hallulab.agents.models.redaction import Redaction, make_redaction
from hallulab.scenarios.errors import ReplayMiss
from hallulab.scenarios.files.data_files import read_json
from hallulab.scenarios.files.json_text import digest

LARGEST = 16 << 20
"""Bytes of an answer at most. 4,096 tokens with twenty probabilities each take 7 million."""

_EXCERPT = 2000
"""Characters kept of an answer that is not JSON."""

_BEGINNING = 16 * _EXCERPT
"""Characters of such an answer that are searched for keys."""


@dataclass(frozen=True)
class HttpReply:
    """An answer of an endpoint."""

    status: int
    """The HTTP status."""
    value: Any
    """The JSON value, or None if it is not JSON."""
    text: str
    """The beginning of the answer."""
    retry_after: float | None
    """Seconds after which the endpoint wants to be asked again, or None if it does not say."""


async def receive(response: httpx2.Response, asked: httpx2.URL, redaction: Redaction) -> HttpReply:
    """Read an answer to its end.

    Args:
        response: the response, its body not yet read.
        asked: its address, for errors.
        redaction: removes the keys.

    Raises:
        ModelError: it has more than `LARGEST` bytes, or cannot be unpacked.
    """
    read = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            read += chunk
            if len(read) > LARGEST:
                raise ModelError(
                    f"{asked} gave an answer of more than {LARGEST >> 20} MiB, which no model gives. "
                    "Correct --base-url."
                )
    except httpx2.DecodingError as error:
        raise ModelError(f"{asked} gave an answer that cannot be unpacked. Correct --base-url.") from error
    finally:
        await response.aclose()
    text = read.decode(json.detect_encoding(read), "replace")
    # Cut after the redaction, because half a key would not be found. The first cut is for speed and may leave
    # half a key, so the characters within its reach are dropped.
    begins = redaction.text(text[:_BEGINNING])
    excerpt = begins[: max(0, len(begins) - redaction.reach) if len(text) > _BEGINNING else None][:_EXCERPT]
    return HttpReply(response.status_code, _value(text, redaction), excerpt, _retry_after(response.headers))


def _value(text: str, redaction: Redaction) -> Any:
    try:
        return redaction.value(read_json(text, redaction.text))
    except ValueError:
        return None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    try:
        seconds = float(headers["Retry-After"])
    except (KeyError, ValueError):
        return None
    return seconds if 0 <= seconds < math.inf else None


RETRYABLE_STATUS = frozenset({408, 409, 425, 429})
"""Client errors worth another try, besides all 5xx."""

LASTING_STATUS = frozenset({400, 413, 422})
"""Errors of the request itself, which are recorded. A wrong key or model name can be corrected, so its error
is not."""


LONGEST_TOKEN = 256
"""Characters of a token at most. Tokenizers have tokens of up to 128 spaces."""

LONGEST_TRY = 1.1
"""Time limits that a try counts for at most: one that took longer did so because this process was stopped."""

_MOST_PROBABLE = 1.5
"""Probabilities of tokens that exclude each other add up to so much at most: servers round, and rescale."""


@dataclass
class CallRecord:
    """Data about a request for the ledger, besides its answer; filled in while the request is under way."""

    latency_s: float = 0.0
    """Seconds from sending to the full answer, or the recorded ones."""
    under_way_s: float = 0.0
    """Seconds of all tries together, without waiting for the gate and pauses between tries."""
    replayed: bool = False
    """Whether the answer was already known."""


@dataclass(frozen=True)
class Answer:
    """An endpoint's answer to a request."""

    status: int
    """The HTTP status."""
    body: dict[str, Any]
    """The JSON object: a chat completion if the status is below 400, else the endpoint's complaint."""
    retry_after: float | None = None
    """Seconds after which the endpoint wants to be asked again, or None if it does not say."""


class Wire:
    """Sends, records and replays requests, and limits how many are under way.

    Args:
        recording: where answers are kept.
        gate: admits the requests that may be under way at once.
        timeout_s: limit of one request in seconds, without waiting for the gate.
        inner: the transport that sends.
        replicas: shares out the requests among several endpoints; None: there is one for each address.
        timed: whether answers are kept with their seconds; else these are 0.
    """

    def __init__(
        self,
        recording: Recording,
        gate: asyncio.Semaphore,
        timeout_s: float,
        inner: httpx2.AsyncBaseTransport | None = None,
        replicas: Replicas | None = None,
        timed: bool = True,
    ) -> None:
        self._recording = recording
        self._gate = gate
        self.timeout_s = timeout_s
        """Limit of one try, in seconds."""
        self._inner = inner or httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_connections=None))
        self._replicas = replicas
        self._keeps_seconds = timed
        self._scope: tuple[str, ...] = ()
        self._told_models: dict[tuple[str, str], str] = {}

    @property
    def replaying(self) -> bool:
        """Whether a recording is replayed, so nothing is sent."""
        return self._recording.replaying

    def scoped(self, scope: str) -> Wire:
        """Return the same wire with a scope: equal requests of different scopes have different keys."""
        wire = copy.copy(self)
        wire._scope = (scope,)
        return wire

    def key(self, url: httpx2.URL, body: Mapping[str, Any]) -> str:
        """Return the key of a request's answer in recordings."""
        return digest([*self._scope, url.path.rsplit("/v1/", 1)[-1], body])

    def known(self, key: str, exchange: CallRecord) -> Answer | None:
        """Return the recorded answer of this key; None if there is none.

        Args:
            exchange: filled in if there is an answer.

        Raises:
            ReplayMiss: the replayed recording has no answer, or one that no endpoint can have given.
        """
        known = self._recording.get("model", key)
        if known is None:
            if self.replaying:
                raise ReplayMiss(
                    f"the recording {self._recording.source} has no answer to this request: the model, "
                    "prompts, options or documents have changed since, or it failed when it was recorded. "
                    "Run it as then, or record again with --record."
                )
            return None
        if known["status"] < 400 and not is_completion(known["body"]):
            raise ReplayMiss(
                f"the recording {self._recording.source} holds an answer to this request that is no chat "
                "completion: it was changed. Restore it, or record again with --record."
            )
        exchange.replayed = True
        return _answer(known, exchange)

    async def ask(
        self, key: str, url: httpx2.URL, body: Mapping[str, Any], api_key: str, exchange: CallRecord
    ) -> Answer:
        """Send a request and record its answer.

        Args:
            key: the key to record the answer under.
            url: where to send it.
            body: the request.
            api_key: the endpoint's key; it is removed from everything that comes back.
            exchange: filled in.

        Raises:
            ModelError: the answer is no chat completion.
            ImpossibleAnswer: it is one that no model can have given.
            httpx2.RequestError: there is no answer.
        """
        request = httpx2.Request("POST", url, json=body, headers=_headers(api_key))
        async with self._gate:
            tokens = most_tokens(request.read(), int(body.get("max_tokens") or 0))
            received, url, latency = await self._shared_out(request, tokens, exchange)
        status = received.status
        found = received.value if isinstance(received.value, dict) else {"error": {"message": received.text}}
        if status < 400 and (not 200 <= status < 300 or not is_completion(found)):
            raise ModelError(
                f"{url} gave an answer that is no chat completion: {received.text[:120]!r}. "
                "Does --base-url end where an OpenAI-compatible API begins (usually /v1)?"
            )
        flaw = _flaw(body, found) or self._other_model(url, body, found) if status < 400 else None
        if flaw is not None:
            raise ImpossibleAnswer(f"{url} gave an answer that no model can have given: {flaw}.")
        kept = {
            "status": status,
            "latency_s": round(latency, 4) if self._keeps_seconds else 0.0,
            "body": _without_nulls(found),
        }
        if is_retryable(status) and received.retry_after is not None:
            kept["retry_after"] = received.retry_after
        if status < 400 or status in LASTING_STATUS:
            kept = self._recording.put("model", key, kept)
        return _answer(kept, exchange)

    def _other_model(self, url: httpx2.URL, body: Mapping[str, Any], found: Mapping[str, Any]) -> str | None:
        """Return what is wrong if another model answers than did before; None if nothing is.

        Many endpoints answer by another name than they are asked by, but always by the same one.
        """
        asked, told = str(body.get("model")), found.get("model")
        if not isinstance(told, str):
            return None
        before = self._told_models.setdefault((str(url), asked), told)
        if told in (before, asked):
            return None
        return f"it is from the model {told[:80]!r}, earlier ones from {before[:80]!r}"

    async def get(self, url: httpx2.URL, api_key: str) -> HttpReply:
        """Ask the server about itself; the answer is not recorded.

        Raises:
            ModelError: the answer cannot be read.
            httpx2.RequestError: there is no answer.
        """
        return await self._send(httpx2.Request("GET", url, headers=_headers(api_key)))

    async def _shared_out(
        self, request: httpx2.Request, tokens: int, exchange: CallRecord
    ) -> tuple[HttpReply, httpx2.URL, float]:
        """Send a request of so many tokens to one of several endpoints, as soon as that may be asked.

        Returns:
            the answer, where it is from, and its seconds.
        """
        with self._replicas.asking(request) if self._replicas else nullcontext() as asking:
            if asking is None:
                received, latency = await self._timed(request, exchange)
                return received, request.url, latency
            async with asking.replica.allowance.spending(tokens):
                received, latency = await self._timed(asking.request, exchange)
            asking.status, asking.retry_after = received.status, received.retry_after
        if received.retry_after is not None and self._replicas and self._replicas.others_are_awake():
            received = replace(received, retry_after=None)
        return received, asking.request.url, latency

    async def _timed(self, request: httpx2.Request, exchange: CallRecord) -> tuple[HttpReply, float]:
        """Send a request; return its answer and its seconds, which count even if there is no answer."""
        started = time.perf_counter()
        try:
            received = await self._send(request)
        finally:
            latency = time.perf_counter() - started
            exchange.under_way_s += min(latency, LONGEST_TRY * self.timeout_s)
        return received, latency

    async def _send(self, request: httpx2.Request) -> HttpReply:
        redacting = _redaction_for(request)
        try:
            async with asyncio.timeout(self.timeout_s):
                response = await self._inner.handle_async_request(request)
                return await receive(response, request.url, redacting)
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no answer within {self.timeout_s:g} s", request=request) from error
        except OSError as error:
            # Libraries import parts of themselves at the first request, which may lack a file handle.
            raise httpx2.ConnectError(redacting.text(str(error)), request=request) from error
        except httpx2.RequestError as error:
            # The error quotes the text that breaks the protocol.
            raise type(error)(redacting.text(str(error)), request=request) from None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def is_retryable(status: int) -> bool:
    """Return whether a request that ended with this HTTP status is worth another try."""
    return status in RETRYABLE_STATUS or status >= 500


def _flaw(body: Mapping[str, Any], found: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a chat completion that no model can have given; None if nothing is.

    Args:
        body: the request.
        found: the answer.
    """
    choice, limit = found["choices"][0], body.get("max_tokens")
    text = choice["message"].get("content")
    if isinstance(limit, int) and isinstance(text, str) and len(text) > LONGEST_TOKEN * limit:
        return f"{len(text):,} characters where {limit:,} tokens were asked for"
    logprobs = choice.get("logprobs")
    if not body.get("logprobs") or logprobs is None:
        return None
    first = read_first_token(logprobs)
    if first is None:
        return "no log-probabilities of tokens, but something else"
    total = math.fsum(math.exp(likely.logprob) for likely in first)
    return f"probabilities of a token that add up to {total:.2f}" if total > _MOST_PROBABLE else None


def _headers(api_key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {api_key}", "Accept": "application/json", "User-Agent": "hallulab"}


def _redaction_for(request: httpx2.Request) -> Redaction:
    return make_redaction(request.headers.get("Authorization", "").removeprefix("Bearer "))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _answer(kept: Mapping[str, Any], exchange: CallRecord) -> Answer:
    exchange.latency_s = float(kept["latency_s"])
    return Answer(kept["status"], kept["body"], kept.get("retry_after"))
