"""One served model behind an OpenAI-compatible endpoint: retries, shared answers and clear errors."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any

import httpx2
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    wait_random_exponential,
)
from tenacity.wait import wait_base

from hallulab.agents.models.answers import (
    BrokenAnswer,
    Completion,
    ModelError,
    RefusedRequest,
    read_completion,
)
from hallulab.agents.models.endpoints import NO_KEY, Capabilities, Endpoint
from hallulab.agents.models.transport import (
    CallRecord,
    ModelCall,
    ModelTransport,
    WireMessage,
    is_retryable,
    read_object,
    read_retry_after,
    read_value,
)
from hallulab.agents.models.work import waiting_for_model
from hallulab.scenarios.errors import NO_HANDLE
from hallulab.scenarios.files.data_files import repair_value
from hallulab.scenarios.files.json_text import digest

DEADLINE = 3
"""Limit of all tries of a request and the pauses between them, in time limits of one try. Waiting for a free
place among the concurrent requests is not included."""

_LONGEST_ROOT = 4096
"""Characters of a `root` at most."""

_parse_url = lru_cache(maxsize=64)(httpx2.URL)


class ModelClient:
    """One served model, asked through the openai client.

    Args:
        endpoint: where it is served.
        transport: stands beneath the client; shared by all models of a run.
        scope: equal requests of different scopes have different answers.
        attempts: tries for one request, the first included; fewer if the `DEADLINE` would pass.
        backoff: pauses between tries; the default is exponential with jitter.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        transport: ModelTransport,
        scope: Sequence[str] = (),
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
        self._transport = transport
        self._scope = tuple(scope)
        self._attempts = attempts
        self._backoff = _as_told_or(backoff or wait_random_exponential(multiplier=0.5, max=20))
        self._shared: dict[str, asyncio.Future[tuple[Completion, CallRecord]]] = {}
        """Requests under way, by key."""

    async def create(
        self, messages: Sequence[WireMessage], extra: Mapping[str, Any], record: CallRecord
    ) -> Completion:
        """Return one completion. Equal requests are sent once, even while the first is under way.

        vLLM is not deterministic under concurrency; sharing answers keeps paired conversations paired. An
        endpoint that refuses `seed` gets none, but requests with different seeds stay different requests.

        Args:
            messages: the prompt.
            extra: further arguments of the request.
            record: filled with data for the ledger.

        Raises:
            ReplayMiss: the replayed recording has no answer. It ends the run.
            UsageError: the endpoint needs a key, and there is none.
            ModelError: the model gave no answer; says why in one sentence.
        """
        body = {"model": self.endpoint.model, "stream": False, "messages": list(messages), **extra}
        url = self._url("chat/completions")
        key = digest([*self._scope, url.path.rsplit("/v1/", 1)[-1], body])
        while (shared := self._shared.get(key)) is not None:
            try:
                with waiting_for_model():
                    completion, first = await asyncio.shield(shared)
            except asyncio.CancelledError:
                if not shared.cancelled():
                    raise
                continue  # the first request was cancelled, so ask again
            record.latency_s = first.latency_s
            record.replayed = True
            return completion
        future: asyncio.Future[tuple[Completion, CallRecord]] = asyncio.get_running_loop().create_future()
        self._shared[key] = future
        try:
            answer = await self._ask(url, ModelCall(self.endpoint.api_key, key, body, record))
            completion = read_completion(answer, tools_offered="tools" in extra)
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
        future.set_result((completion, record))
        return completion

    async def _ask(self, url: httpx2.URL, call: ModelCall) -> dict[str, Any]:
        """Ask through the client, unless the answer is known, and try again while that makes sense.

        Returns:
            A chat completion.
        """
        known = self._transport.find(call)
        if known is not None and 200 <= known["status"] < 300:
            return dict(known["body"])
        body = call.body
        if self.abilities.seed == "refused":
            body = {name: value for name, value in body.items() if name != "seed"}
        try:
            async for attempt in self._tries(call.record, _is_transient):
                with attempt, call.under_way():
                    # `chat.completions.create` sends the same, but takes a millisecond more for what nobody
                    # reads here: it converts each message and makes pydantic models of the answer.
                    response = await self._openai.post(str(url), body=body, cast_to=httpx2.Response)
                    return read_object(response)
        except APIStatusError as error:
            raise RefusedRequest(
                f"{self._where} refused the request with status {error.status_code}: "
                f"{_in_one_line(_complaint(error.response))}",
                error.status_code,
            ) from error
        except BrokenAnswer as error:
            raise BrokenAnswer(f"{self._where}: {error}") from error
        except APITimeoutError as error:
            raise ModelError(
                f"{self._where} did not answer in time. Raise --timeout or lower --concurrency."
            ) from error
        except APIConnectionError as error:
            if _has_no_handle_left(error):
                raise ModelError(f"{self._where} was not asked: {NO_HANDLE}") from error
            raise ModelError(f"{self._where} cannot be reached. Is the server running?") from error
        raise AssertionError("tenacity either returns or raises")

    @cached_property
    def _openai(self) -> AsyncOpenAI:
        """The client. It knows neither the key nor the address: the server may not be up yet, see `bind`."""
        http = _DirectClient(self._transport)
        return AsyncOpenAI(base_url="/v1", api_key=NO_KEY, max_retries=0, timeout=None, http_client=http)

    def _tries(self, record: CallRecord, again: Callable[[BaseException], bool]) -> AsyncRetrying:
        """Return the tries of one request, which go on while `again` says so of the error."""
        return AsyncRetrying(
            stop=partial(self._was_last_try, record),
            wait=self._backoff,
            retry=retry_if_exception(again),
            reraise=True,
        )

    def _was_last_try(self, record: CallRecord, state: RetryCallState) -> bool:
        """Return whether all tries are used up, or another one could end after the deadline.

        If the server says when to ask again, only the deadline counts. Tries that an adaptive limit let begin
        too early do not count.
        """
        spent = record.under_way_s + state.idle_for + state.upcoming_sleep
        late = spent + self._transport.timeout_s > DEADLINE * self._transport.timeout_s
        told = _told_pause(state) is not None
        tries = state.attempt_number - record.crowded
        return late or (tries >= self._attempts and not told)

    @property
    def _where(self) -> str:
        where = f" at {self.endpoint.base_url}" if self.endpoint.base_url else ""
        return f"model {self.endpoint.model!r}{where}"

    def _url(self, path: str) -> httpx2.URL:
        base = self.endpoint.base_url or "/v1"  # which is what recordings know of an address of ours
        try:
            return _parse_url(f"{base.rstrip('/')}/{path}")
        except httpx2.InvalidURL as error:
            raise ModelError(
                f"{self.endpoint.base_url} is no address ({error}). Correct --base-url."
            ) from error

    def check_key(self) -> None:
        """Check that there is a key if the endpoint needs one. A replay needs none.

        Raises:
            UsageError: the key is missing.
        """
        if not self._transport.replaying:
            self.endpoint.api_key()

    async def check(self) -> None:
        """Check that the endpoint serves this model, and set `root`.

        Raises:
            ModelError: it cannot be reached or does not serve this model.
        """
        try:
            told = await self._list_models()
            if told is None:
                raise ValueError("no JSON")
            roots = {str(entry["id"]): entry.get("root") for entry in told["data"]}
        except (APIConnectionError, APIStatusError, ValueError, KeyError, TypeError, AttributeError) as error:
            if _has_no_handle_left(error):
                raise ModelError(f"{self._where} was not asked: {NO_HANDLE}") from error
            if isinstance(error, APIStatusError):
                reason = f"status {error.status_code}"
            else:
                cause = error.__cause__ if isinstance(error, APIConnectionError) else error
                reason = _in_one_line(str(cause)) or type(cause).__name__
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

    async def _list_models(self) -> Any:
        """Ask for the list of models; again while the endpoint is busy or breaks off.

        Silence until the time limit, or nobody at the address, ends it at once.

        Raises:
            APIConnectionError: there is no answer.
            APIStatusError: the endpoint refuses, or stays busy.
            ModelError: the answer cannot be read.
        """
        call = ModelCall(self.endpoint.api_key)
        url = str(self._url("models"))
        async for attempt in self._tries(call.record, _is_broken_off):
            with attempt, call.under_way():
                return read_value(await self._openai.get(url, cast_to=httpx2.Response))
        raise AssertionError("tenacity either returns or raises")


class _DirectClient(httpx2.AsyncClient):
    """Takes requests to a transport as they are, which makes its own of them anyway.

    What a client adds is not sent (headers, time limits) or must not happen (redirects, cookies).

    Args:
        transport: answers.
    """

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        super().__init__(transport=transport, trust_env=False)
        self._direct = transport

    def build_request(
        self, method: str, url: httpx2.URL | str, *, content: Any = None, **_: Any
    ) -> httpx2.Request:
        """See `httpx2.AsyncClient`."""
        return httpx2.Request(method, url, content=content)

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """See `httpx2.AsyncClient`."""
        response = await self._direct.handle_async_request(request)
        response.request = request
        return response


def _complaint(response: httpx2.Response) -> str:
    """Return the endpoint's message in an answer that refuses the request."""
    body = read_object(response)
    error = body.get("error", body)
    message = error.get("message") if isinstance(error, dict) else None
    return message if isinstance(message, str) and message else f"Error code: {response.status_code}"


def _in_one_line(text: str) -> str:
    """Return an endpoint's text on one line, shortened."""
    return " ".join(text.split())[:300]


def _told_root(told: Any) -> str | None:
    """Return an endpoint's `root` as text that can be stored; None if it is no text or too long."""
    if not isinstance(told, str) or len(told) > _LONGEST_ROOT:
        return None
    return " ".join(str(repair_value(told)).split()) or None


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, APIStatusError) and is_retryable(error.status_code)


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, APIConnectionError | BrokenAnswer) or _is_busy(error)


def _is_broken_off(error: BaseException) -> bool:
    broken = (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError)
    return isinstance(error.__cause__, broken) or _is_busy(error)


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
    return read_retry_after(error.response) if isinstance(error, APIStatusError) else None


def _as_told_or(backoff: wait_base) -> Callable[[RetryCallState], float]:
    """Make a pause of the server's wish plus `backoff`, so that not all requests come back at once."""

    def pause(state: RetryCallState) -> float:
        return backoff(state) + (_told_pause(state) or 0.0)

    return pause
