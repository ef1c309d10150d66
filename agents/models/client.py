"""One served model behind an OpenAI-compatible endpoint: retries, shared answers and clear errors."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx2
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    wait_random_exponential,
)
from tenacity.wait import wait_base

from hallulab.agents.models.answers import Completion, ModelError, RefusedRequest, read_completion
from hallulab.agents.models.endpoints import Capabilities
from hallulab.agents.models.wire import Answer, CallRecord, HttpReply, Wire, is_retryable
from hallulab.scenarios.errors import NO_HANDLE, UsageError
from hallulab.scenarios.files.data_files import repair_value

WireMessage = Mapping[str, Any]
"""A message in the form of OpenAI-compatible endpoints: `role`, `content` and more."""

DEADLINE = 3
"""Limit of all tries of a request and the pauses between them, in time limits of one try. Waiting for a free
place among the concurrent requests is not included."""

_LONGEST_ROOT = 4096
"""Characters of a `root` at most."""

_NO_KEY = "EMPTY"
"""Sent as the key if none is needed, as other clients do."""


@dataclass(frozen=True)
class Endpoint:
    """Where a model is served."""

    model: str
    """The server's name of the model."""
    base_url: str = ""
    """OpenAI-compatible base URL, ending in `/v1`. Empty: our server is not up yet (`ModelPool.bind`), or a
    replay needs none."""
    api_key_env: str | None = None
    """Environment variable that holds the key. None: OPENAI_API_KEY for a remote host, no key on loopback."""

    def api_key(self) -> str:
        """Read the key from the environment at the moment of use; it is never stored or logged.

        Raises:
            UsageError: the variable is not set, or its value does not fit into a header.
        """
        if self.api_key_env is None and (not self.base_url or is_loopback(self.base_url)):
            return _NO_KEY
        variable = self.api_key_env or "OPENAI_API_KEY"
        key = os.environ.get(variable, "").strip()
        if not key:
            raise UsageError(
                f"{self.base_url or self.model} needs an API key: set the environment variable {variable}."
            )
        if not key.isascii() or not key.isprintable() or " " in key:
            raise UsageError(
                f"the environment variable {variable} holds no API key: there are spaces, letters beyond "
                "ASCII or control characters in it. Set it to the key alone."
            )
        return key


def is_loopback(base_url: str) -> bool:
    """Return whether an address is on this machine, where no key is needed."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class ModelClient:
    """One served model.

    Args:
        endpoint: where it is served.
        wire: sends the requests; shared by all models of a run.
        attempts: tries for one request, the first included; fewer if the `DEADLINE` would pass.
        backoff: pauses between tries; the default is exponential with jitter.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        wire: Wire,
        *,
        attempts: int = 4,
        backoff: wait_base | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.root: str | None = None
        """The endpoint's `root` of this model (vLLM: a folder or a hub name). None: it gives none, or was not
        asked yet. See `hallulab.agents.served_model`."""
        self.abilities = Capabilities()
        """What the endpoint can do; until it is asked, everything is assumed."""
        self._wire = wire
        self._attempts = attempts
        self._backoff = _as_told_or(backoff or wait_random_exponential(multiplier=0.5, max=20))
        self._shared: dict[str, asyncio.Future[tuple[Completion, CallRecord]]] = {}
        """Requests under way, by key."""

    async def create(
        self, messages: Sequence[WireMessage], extra: Mapping[str, Any], exchange: CallRecord
    ) -> Completion:
        """Return one completion. Equal requests are sent once, even while the first is under way.

        vLLM is not deterministic under concurrency; sharing answers keeps paired conversations paired. An
        endpoint that refuses `seed` gets none, but requests with different seeds stay different requests.

        Args:
            messages: the prompt.
            extra: further arguments of the request.
            exchange: filled with data for the ledger.

        Raises:
            ReplayMiss: the replayed recording has no answer. It ends the run.
            UsageError: the endpoint needs a key, and there is none.
            ModelError: the model gave no answer; says why in one sentence.
        """
        body = {"model": self.endpoint.model, "stream": False, "messages": list(messages), **extra}
        url = self._url("chat/completions")
        key = self._wire.key(url, body)
        while (shared := self._shared.get(key)) is not None:
            try:
                completion, first = await asyncio.shield(shared)
            except asyncio.CancelledError:
                if not shared.cancelled():
                    raise
                continue  # the first request was cancelled, so ask again
            exchange.latency_s = first.latency_s
            exchange.replayed = True
            return completion
        future: asyncio.Future[tuple[Completion, CallRecord]] = asyncio.get_running_loop().create_future()
        self._shared[key] = future
        try:
            answer = self._wire.known(key, exchange) or await self._ask(key, url, body, exchange)
            completion = self._read(answer, tools_offered="tools" in extra)
        except BaseException as error:
            if isinstance(error, Exception):
                future.set_exception(error)
                future.exception()  # marks it as retrieved: perhaps nobody waits
            else:
                future.cancel()
            raise
        finally:
            # From here on the recording has the answer.
            del self._shared[key]
        future.set_result((completion, exchange))
        return completion

    async def _ask(self, key: str, url: httpx2.URL, body: dict[str, Any], exchange: CallRecord) -> Answer:
        """Ask the server, and try again while that makes sense.

        Returns:
            The last answer, whatever its status.
        """
        if self.abilities.seed == "refused":
            body = {name: value for name, value in body.items() if name != "seed"}
        api_key = self.endpoint.api_key()
        try:
            async for attempt in AsyncRetrying(
                stop=partial(self._was_last_try, exchange),
                wait=self._backoff,
                retry=retry_if_exception(_is_transient),
                reraise=True,
            ):
                with attempt:
                    answer = await self._wire.ask(key, url, body, api_key, exchange)
                    if is_retryable(answer.status):
                        raise _Busy(answer)
                    return answer
        except _Busy as busy:
            return busy.answer
        except httpx2.TimeoutException as error:
            raise ModelError(
                f"{self._where} did not answer in time. Raise --timeout or lower --concurrency."
            ) from error
        except httpx2.RequestError as error:
            if _has_no_handle_left(error):
                raise ModelError(f"{self._where} was not asked: {NO_HANDLE}") from error
            raise ModelError(f"{self._where} cannot be reached. Is the server running?") from error
        raise AssertionError("tenacity either returns or raises")

    def _read(self, answer: Answer, *, tools_offered: bool) -> Completion:
        if answer.status >= 400:
            complaint = _in_one_line(_complaint(answer))
            raise RefusedRequest(
                f"{self._where} refused the request with status {answer.status}: {complaint}", answer.status
            )
        return read_completion(answer.body, tools_offered=tools_offered)

    def _was_last_try(self, exchange: CallRecord, state: RetryCallState) -> bool:
        """Return whether all tries are used up, or another one could end after the deadline.

        If the server says when to ask again, only the deadline counts.
        """
        spent = exchange.under_way_s + state.idle_for + state.upcoming_sleep
        late = spent + self._wire.timeout_s > DEADLINE * self._wire.timeout_s
        told = _told_pause(state) is not None
        return late or (state.attempt_number >= self._attempts and not told)

    @property
    def _where(self) -> str:
        where = f" at {self.endpoint.base_url}" if self.endpoint.base_url else ""
        return f"model {self.endpoint.model!r}{where}"

    def _url(self, path: str) -> httpx2.URL:
        base = self.endpoint.base_url or "/v1"  # which is what recordings know of an address of ours
        try:
            return httpx2.URL(f"{base.rstrip('/')}/{path}")
        except httpx2.InvalidURL as error:
            raise ModelError(
                f"{self.endpoint.base_url} is no address ({error}). Correct --base-url."
            ) from error

    def check_key(self) -> None:
        """Check that there is a key if the endpoint needs one. A replay needs none.

        Raises:
            UsageError: the key is missing.
        """
        if not self._wire.replaying:
            self.endpoint.api_key()

    async def check(self) -> None:
        """Check that the endpoint serves this model, and set `root`.

        Raises:
            ModelError: it cannot be reached or does not serve this model.
        """
        try:
            told = await self._list_models()
            if not 200 <= told.status < 300:
                raise ValueError(f"status {told.status}")
            if told.value is None:
                raise ValueError("no JSON")
            roots = {str(entry["id"]): entry.get("root") for entry in told.value["data"]}
        except (httpx2.RequestError, ValueError, KeyError, TypeError, AttributeError) as error:
            if _has_no_handle_left(error):
                raise ModelError(f"{self._where} was not asked: {NO_HANDLE}") from error
            reason = _in_one_line(str(error)) or type(error).__name__
            raise ModelError(
                f"no OpenAI-compatible endpoint answers at {self.endpoint.base_url} ({reason}). "
                "Start a server (hallulab serve MODEL) or correct --base-url."
            ) from error
        if self.endpoint.model not in roots:
            raise ModelError(
                f"{self.endpoint.base_url} does not serve model {self.endpoint.model!r}; it serves: "
                f"{_in_one_line(', '.join(roots)) or 'nothing'}. Correct --model."
            )
        self.root = _told_root(roots[self.endpoint.model])

    async def _list_models(self) -> HttpReply:
        """Ask for the list of models; again while the endpoint is busy or breaks off.

        Silence until the time limit, or nobody at the address, ends it at once.

        Raises:
            httpx2.RequestError: there is no answer.
            ModelError: the answer cannot be read.
            ValueError: the endpoint stays busy.
        """
        url, api_key = self._url("models"), self.endpoint.api_key()
        try:
            async for attempt in AsyncRetrying(
                stop=partial(self._was_last_try, CallRecord()),
                wait=self._backoff,
                retry=retry_if_exception(_is_broken_off),
                reraise=True,
            ):
                with attempt:
                    told = await self._wire.get(url, api_key)
                    if is_retryable(told.status):
                        raise _Busy(Answer(told.status, {}, told.retry_after))
                    return told
        except _Busy as busy:
            raise ValueError(f"status {busy.answer.status}") from busy
        raise AssertionError("tenacity either returns or raises")


class _Busy(Exception):
    """An answer that is worth another try.

    Args:
        answer: the server's answer.
    """

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self.answer = answer


def _complaint(answer: Answer) -> str:
    """Return the endpoint's message in an answer that refuses the request."""
    error = answer.body.get("error", answer.body)
    message = error.get("message") if isinstance(error, dict) else None
    return message if isinstance(message, str) and message else f"Error code: {answer.status}"


def _in_one_line(text: str) -> str:
    """Return an endpoint's text on one line, shortened."""
    return " ".join(text.split())[:300]


def _told_root(told: Any) -> str | None:
    """Return an endpoint's `root` as text that can be stored; None if it is no text or too long."""
    if not isinstance(told, str) or len(told) > _LONGEST_ROOT:
        return None
    return " ".join(str(repair_value(told)).split()) or None


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, (_Busy, httpx2.RequestError))


def _is_broken_off(error: BaseException) -> bool:
    broken = (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError)
    return isinstance(error, (_Busy, *broken))


def _has_no_handle_left(error: BaseException | None) -> bool:
    """Return whether a connection failed because this process or system has no file handle left."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            return True
        error = error.__cause__ or error.__context__
    return False


def _told_pause(state: RetryCallState) -> float | None:
    """Return the seconds after which the server wants to be asked again (Retry-After), or None."""
    error = state.outcome.exception() if state.outcome is not None else None
    return error.answer.retry_after if isinstance(error, _Busy) else None


def _as_told_or(backoff: wait_base) -> Callable[[RetryCallState], float]:
    """Make a pause of the server's wish plus `backoff`, so that not all requests come back at once."""

    def pause(state: RetryCallState) -> float:
        return backoff(state) + (_told_pause(state) or 0.0)

    return pause
