"""The transport beneath the openai client: replay, or send within limits, without keys, and record.

Answers are made harmless before other code, the client included, sees them
(`hallulab.agents.models.receiving`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import httpx2

from hallulab.agents.models.adaptive import AdaptiveTransport
from hallulab.agents.models.answers import (
    BrokenAnswer,
    ImpossibleAnswer,
    ModelError,
    check_ending,
    is_completion,
    read_limit,
)
from hallulab.agents.models.complaints import describe_no_completion, is_broken, is_retryable
from hallulab.agents.models.endpoints import SCRIPTED, Credentials
from hallulab.agents.models.pauses import read_pause
from hallulab.agents.models.receiving import (
    JSON,
    LARGEST,
    build_response,
    find_answer_flaw,
    read_object,
    read_value,
    receive,
)
from hallulab.agents.models.recording import Recording
from hallulab.agents.models.redaction import make_redaction
from hallulab.agents.models.replicas import Replicas, most_tokens
from hallulab.agents.models.streaming import StreamingSender
from hallulab.agents.models.token_watch import StalledServer, TokenWatch, read_counts
from hallulab.agents.models.wire_settings import ConversationMark
from hallulab.scenarios.errors import ReplayMiss

LASTING_STATUS = frozenset({400, 413, 422})
"""Errors of the request itself, which are recorded. A wrong key or model name can be corrected, so its error
is not."""

LONGEST_TRY = 1.1
"""Time limits that a try takes at most: one that took longer did so because this process was stopped. Nobody
knows how long the endpoint had then, so such a try counts for half of its limit."""

IN_PROCESS: dict[str, httpx2.AsyncBaseTransport] = {}
"""Host of a `scripted://` address → what answers there."""

WireMessage = Mapping[str, Any]
"""A message in the form of OpenAI-compatible endpoints: `role`, `content` and more."""


@dataclass
class CallRecord:
    """Data about a call for the ledger, besides its answer; filled in while the call is under way."""

    latency_s: float = 0.0
    """Seconds from sending to the full answer, or the recorded ones."""
    under_way_s: float = 0.0
    """Seconds of all tries together, without waiting for the gate and pauses between tries. Seconds in
    which a server of ours worked on them do not count."""
    paused_s: float = 0.0
    """Seconds of the pauses between them."""
    crowded: int = 0
    """Tries that an adaptive limit let begin too early: the endpoint refused them and answered others."""
    replayed: bool = False
    """True if the answer was already known."""

    @property
    def spent_s(self) -> float:
        """Seconds of the total that are spent."""
        return self.under_way_s + self.paused_s


@dataclass(frozen=True)
class ModelCall:
    """Facts of a request besides HTTP."""

    credentials: Callable[[], Credentials]
    """Reads what goes along at the moment of sending, so that the client never has it."""
    key: str | None = None
    """Key of the answer in recordings; None: a question about the server, which is not recorded."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """The request's body, as it is sent."""
    record: CallRecord = field(default_factory=CallRecord)
    """Filled in by the transport."""
    keeps_refusal: bool = True
    """True if a refusal is kept at once; else whoever asks finds out first what it means (`keep_refusal`)."""
    is_trial: bool = False
    """True if it is only sent to see if the endpoint takes it: its answer is neither known nor kept."""

    routes: bool = False
    """True if several models may answer under one name."""
    mark: ConversationMark | None = None
    """Tells which conversation it belongs to; None: the bot is not told."""


_before_the_run: ContextVar[bool] = ContextVar("before_the_run", default=False)


@contextmanager
def asking_before_the_run() -> Iterator[None]:
    """Try the requests of the block a few times only, unless the endpoint is busy or loads its model.

    Some endpoints refuse what they do not know with status 500, and who mistyped an address wants to know.
    """
    token = _before_the_run.set(True)
    try:
        yield
    finally:
        _before_the_run.reset(token)


def is_before_the_run() -> bool:
    """Return whether the request under way is in such a block."""
    return _before_the_run.get()


class PatientTransport(httpx2.AsyncBaseTransport):
    """A transport with a time limit of its own, in place of `ModelTransport`'s."""

    timeout_s: float
    """Limit of all tries of a request and the pauses between them, in seconds."""


class ModelTransport:
    """Sends, records and replays requests, and limits how many are under way.

    Args:
        recording: where answers are kept.
        timeout_s: limit of all tries of a request and the pauses between them in seconds, without waiting for
            the gate.
        inner: the transport that sends; an `AdaptiveTransport` has a limit for each endpoint, too.
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
        self.recording = recording
        self._gate = gate
        self.timeout_s = inner.timeout_s if isinstance(inner, PatientTransport) else timeout_s
        """Limit of all tries of a request and the pauses between them, in seconds."""
        self.is_patient = isinstance(inner, PatientTransport)
        """True if an answer may take hours, so that nothing is asked to find something out."""
        self.inner = inner or make_network()
        self._watches: dict[str, TokenWatch] = {}
        """Addresses that this process, or the one that it works for, serves models at."""
        self._sender = StreamingSender(LARGEST)
        self._adaptive = inner.limits if isinstance(inner, AdaptiveTransport) else None
        self._replicas = replicas
        self._keeps_seconds = timed
        self._told_models: dict[tuple[str, str], str] = {}

    def watch(self, base_url: str) -> None:
        """Wait for answers of this address, which is served by us, while its server works."""
        if not isinstance(self.inner, PatientTransport):
            self._watches[base_url.rstrip("/")] = TokenWatch(partial(read_counts, self.inner, base_url))

    @property
    def replaying(self) -> bool:
        """True if a recording is replayed, so nothing is sent."""
        return self.recording.replaying

    async def ask(self, request: httpx2.Request, call: ModelCall) -> httpx2.Response:
        """Answer a request, by the recording or its endpoint.

        Raises:
            ReplayMiss: the replayed recording has no answer, or one that no endpoint can have given.
            ModelError: the answer is no chat completion, or cannot be read.
            BrokenAnswer: it broke off.
            ImpossibleAnswer: it is one that no model can have given.
            UsageError: the endpoint needs a key, and there is none.
            httpx2.RequestError: there is no answer.
        """
        if call.key is None:
            return (await self._timed(_complete_request(request, call), call))[0]
        kept = None if call.is_trial else self.find(call)
        if kept is None and self.replaying:
            raise ReplayMiss(
                f"the recording {self.recording.source} has no answer to this request: the model, "
                "prompts, options or documents have changed since, or it failed when it was recorded. "
                "Run it as then, or record again with --record."
            )
        if kept is None:
            kept = await self._ask(_complete_request(request, call), call.key, call)
            call.record.latency_s = float(kept["latency_s"])
        headers = {"Retry-After": str(kept["retry_after"])} if "retry_after" in kept else None
        return build_response(kept["status"], kept["body"], headers)

    def find(self, call: ModelCall) -> Mapping[str, Any] | None:
        """Return the known answer to a request, as recordings keep it; None: an endpoint must be asked.

        A bot that is told of conversations must hear each message of a new one, though its answer is known.

        Raises:
            ReplayMiss: it is one that no endpoint can have given.
        """
        if call.key is None or (call.mark is not None and not self.replaying):
            return None
        kept: Mapping[str, Any] | None = self.recording.get("model", call.key)
        if kept is None:
            return None
        if kept["status"] < 400 and not is_completion(kept["body"]):
            raise ReplayMiss(
                f"the recording {self.recording.source} holds an answer to this request that is no chat "
                "completion: it was changed. Restore it, or record again with --record."
            )
        call.record.replayed = True
        call.record.latency_s = float(kept["latency_s"])
        return kept

    async def _ask(self, request: httpx2.Request, key: str, call: ModelCall) -> dict[str, Any]:
        """Ask an endpoint, check its answer, and return it as recordings keep it."""
        async with self._gate:
            tokens = most_tokens(request.read(), read_limit(call.body) or 0)
            response, url, latency = await self._shared_out(request, tokens, call)
        status = response.status_code
        found = read_object(response)
        if status < 400 and (not 200 <= status < 300 or not is_completion(found)):
            kind = BrokenAnswer if is_broken(status, read_value(response), response.text) else ModelError
            raise kind(f"{url} {describe_no_completion(status, found, response.text)}")
        flaw = (
            find_answer_flaw(call.body, found) or self._other_model(url, call, found)
            if status < 400
            else None
        )
        if status < 400:
            try:
                check_ending(found)
            except BrokenAnswer as error:
                raise BrokenAnswer(f"{url}: {error}") from error
        if flaw is not None:
            raise ImpossibleAnswer(f"{url} gave an answer that no model can have given: {flaw}.")
        kept = {
            "status": status,
            "latency_s": round(latency, 4) if self._keeps_seconds else 0.0,
            "body": _without_nulls(found),
        }
        if is_retryable(status) and (pause := read_pause(response.headers)) is not None:
            kept["retry_after"] = pause
        lasts = status < 400 or (status in LASTING_STATUS and call.keeps_refusal)
        if lasts and not call.is_trial:
            kept = self.recording.put("model", key, kept)
        return kept

    def keep_refusal(self, call: ModelCall, refusal: httpx2.Response) -> None:
        """Keep a refusal that nothing changes, if it is about the request itself."""
        if call.key is not None and refusal.status_code in LASTING_STATUS and not self.replaying:
            latency = round(call.record.latency_s, 4) if self._keeps_seconds else 0.0
            kept = {"status": refusal.status_code, "latency_s": latency, "body": read_object(refusal)}
            self.recording.put("model", call.key, kept)

    def _other_model(self, url: httpx2.URL, call: ModelCall, found: Mapping[str, Any]) -> str | None:
        """Return what is wrong if another model answers than did before; None if nothing is.

        Many endpoints answer by another name than they are asked by, but always by the same one.
        """
        asked, told = str(call.body.get("model")), found.get("model")
        if call.routes or not isinstance(told, str) or not told:
            return None
        before = self._told_models.setdefault((str(url), asked), told)
        if told in (before, asked):
            return None
        return f"it is from the model {told[:80]!r}, earlier ones from {before[:80]!r}"

    async def _shared_out(
        self, request: httpx2.Request, tokens: int, call: ModelCall
    ) -> tuple[httpx2.Response, httpx2.URL, float]:
        """Send a request of so many tokens to one of several endpoints, as soon as that may be asked.

        Returns:
            the answer, where it is from, and its seconds.
        """
        with self._replicas.request_to(request) if self._replicas else nullcontext() as asking:
            if asking is None:
                response, latency = await self._admitted(request, call, nullcontext())
                return response, request.url, latency
            allowance = asking.replica.allowance.spending(tokens)
            response, latency = await self._admitted(asking.request, call, allowance)
            asking.status, asking.retry_after = response.status_code, read_pause(response.headers)
        if self._replicas and self._replicas.has_available_replica():
            response.headers.pop("Retry-After", None)
        return response, asking.request.url, latency

    async def _admitted(
        self, request: httpx2.Request, call: ModelCall, allowance: AbstractAsyncContextManager[None]
    ) -> tuple[httpx2.Response, float]:
        """Send a request as soon as the limits of its endpoint allow; return its answer and its seconds."""
        if self._adaptive is None:
            async with allowance:
                return await self._timed(request, call)
        limit, body = self._adaptive.get(str(request.url.copy_with(query=None))), call.body
        # Equal for requests whose answers take about as long.
        kind = (body.get("model"), read_limit(body), "logprobs" in body, "response_format" in body)
        answer, crowded = await limit.ask(kind, allowance, partial(self._timed, request, call))
        call.record.crowded += crowded
        return answer

    async def _timed(self, request: httpx2.Request, call: ModelCall) -> tuple[httpx2.Response, float]:
        """Send a request; return its answer and its seconds, which count even if there is no answer."""
        started, left = time.perf_counter(), self.timeout_s - call.record.spent_s
        watch = next(
            (one for url, one in self._watches.items() if str(request.url).startswith(f"{url}/")), None
        )
        limit = asyncio.timeout(left) if watch is None else watch.while_working(left)
        counts = 0.0 if watch else None
        try:
            response = await self._send(request, call, limit)
        except StalledServer:
            counts = left
            raise
        finally:
            latency = time.perf_counter() - started
            if counts is None:
                counts = latency if latency <= LONGEST_TRY * left else left / 2
            call.record.under_way_s += counts
        return response, latency

    async def _send(
        self, request: httpx2.Request, call: ModelCall, limit: AbstractAsyncContextManager[object]
    ) -> httpx2.Response:
        redaction = make_redaction(*call.credentials().secrets)
        inner = self.inner
        if request.url.scheme == SCRIPTED:
            if request.url.host not in IN_PROCESS:
                raise httpx2.ConnectError(f"no scripted model {request.url.host!r} answers", request=request)
            inner = IN_PROCESS[request.url.host]
        try:
            async with limit:
                response = await self._sender.send(inner, request, redaction)
                return await receive(response, request.url, redaction)
        except TimeoutError as error:
            raise httpx2.ReadTimeout("no answer in time", request=request) from error
        except (OSError, anyio.EndOfStream) as error:
            # Libraries import parts of themselves at the first request, which may lack a file handle.
            raise httpx2.ConnectError(redaction.text(str(error)), request=request) from error
        except httpx2.RequestError as error:
            # The error quotes the text that breaks the protocol.
            raise type(error)(redaction.text(str(error)), request=request) from None

    async def aclose(self) -> None:
        """Close the connections."""
        await self.inner.aclose()


def make_network() -> httpx2.AsyncBaseTransport:
    """Make what sends over the network, with as many connections as are asked for."""
    from hallulab.agents.models.network import Network  # httpcore2 comes with it, which takes half a second

    return Network()


def _complete_request(request: httpx2.Request, call: ModelCall) -> httpx2.Request:
    """Return a request with what goes along, and without what its headers tell of this machine.

    The openai client's name the system and Python, and organizations that are set for another endpoint.
    """
    content = request.read()
    headers = httpx2.Headers({"Accept": JSON, "User-Agent": "hallulab"})
    headers["Accept-Encoding"] = "gzip, deflate"  # without it, any packing may come
    if content:
        headers["Content-Type"] = JSON
    headers.update(call.credentials().headers)
    if call.mark is not None:
        headers.update(call.mark.headers)
    return httpx2.Request(request.method, request.url, content=content or None, headers=headers)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
