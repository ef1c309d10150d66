"""One served model: AutoGen's OpenAI client on our wire, with retries, shared answers and plain errors."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx2
from autogen_core.models import CreateResult, LLMMessage
from autogen_ext.models.openai import BaseOpenAIChatCompletionClient
from openai import APIConnectionError, APIStatusError, APITimeoutError
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    wait_random_exponential,
)
from tenacity.wait import wait_base

from agents.models.bridge import MODEL_INFO
from agents.models.errors import ModelError
from agents.models.known_answers import known_answer
from agents.models.openai_client import QuickOpenAI
from agents.models.recording import Recording
from agents.models.wire import EXCHANGE, Exchange, Wire, is_retryable
from scenarios.errors import HallulabError, UsageError
from scenarios.files.digest import digest
from scenarios.files.json_values import writable

DEADLINE = 3
"""All tries of a request and the pauses between them take at most so many times the time limit of one try.
Only waiting for a free place among the concurrent requests comes on top."""

_LONGEST_ROOT = 4096
"""Characters of a path."""

_NO_KEY = "EMPTY"
"""What is sent as a key where none is needed; openai's client wants some text."""


@dataclass(frozen=True)
class Endpoint:
    """Where a model is served."""

    model: str
    """The name the server knows it by."""
    base_url: str
    """OpenAI-compatible base URL, ending in `/v1`."""
    api_key_env: str | None = None
    """Environment variable that holds the key. None: OPENAI_API_KEY for a remote host, no key on loopback."""

    def api_key(self) -> str:
        """The key, read from the environment at the moment of use; it is never stored or logged.

        Raises:
            UsageError: the variable is not set, or holds what no header can.
        """
        if self.api_key_env is None and _is_loopback(self.base_url):
            return _NO_KEY
        variable = self.api_key_env or "OPENAI_API_KEY"
        key = os.environ.get(variable, "").strip()
        if not key:
            raise UsageError(f"{self.base_url} needs an API key: set the environment variable {variable}.")
        if not key.isascii() or not key.isprintable() or " " in key:
            raise UsageError(
                f"the environment variable {variable} holds no API key: there are spaces, letters beyond "
                "ASCII or control characters in it. Set it to the key alone."
            )
        return key


def _is_loopback(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class ModelClient:
    """One served model.

    Args:
        endpoint: where it is served.
        wire: the transport, shared by all models of a run.
        attempts: tries for one request, the first included; fewer where the `DEADLINE` would pass.
        backoff: pauses between tries; the default is exponential with jitter.
        known: the wire's recording, where that has answers of no scope; see `agents.models.known_answers`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        wire: Wire,
        *,
        attempts: int = 4,
        backoff: wait_base | None = None,
        known: Recording | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.root: str | None = None
        """What the endpoint says that it serves under this name (vLLM: a folder or a name on the hub); None
        where it does not say, or was not asked yet. See `agents.served_model`."""
        self._known = known
        self._attempts = attempts
        self._timeout_s = wire.timeout_s
        self._backoff = _as_told_or(backoff or wait_random_exponential(multiplier=0.5, max=20))
        self._replaying = wire.replaying
        self._http = httpx2.AsyncClient(transport=wire, timeout=None)
        self._autogen: BaseOpenAIChatCompletionClient | None = None
        self._shared: dict[str, asyncio.Future[tuple[CreateResult, Exchange]]] = {}

    async def create(
        self, messages: Sequence[LLMMessage], extra: Mapping[str, Any], exchange: Exchange
    ) -> CreateResult:
        """One completion. Equal requests are asked once, even while the first is under way.

        vLLM is not deterministic under concurrency: sharing answers keeps paired conversations paired.

        Args:
            messages: the prompt.
            extra: further arguments of the request.
            exchange: filled with what the ledger wants to know.

        Raises:
            ReplayMiss: a recording is replayed and has no answer. It ends the run.
            ModelError: no answer, with the reason in one sentence.
        """
        key = digest([[[type(message).__name__, message.content] for message in messages], dict(extra)])
        while (shared := self._shared.get(key)) is not None:
            try:
                result, first = await asyncio.shield(shared)
            except asyncio.CancelledError:
                if not shared.cancelled():
                    raise
                continue  # who asked first was cancelled, so ask anew
            exchange.latency_s, exchange.cached_tokens = first.latency_s, first.cached_tokens
            exchange.tells_tokens = first.tells_tokens
            exchange.replayed = True
            return result
        future: asyncio.Future[tuple[CreateResult, Exchange]] = asyncio.get_running_loop().create_future()
        self._shared[key] = future
        try:
            result = await self._ask(messages, extra, exchange)
        except BaseException as error:
            del self._shared[key]
            if isinstance(error, Exception):
                future.set_exception(error)
                future.exception()  # nobody need be waiting
            else:
                future.cancel()
            raise
        future.set_result((result, exchange))
        return result

    async def _ask(
        self, messages: Sequence[LLMMessage], extra: Mapping[str, Any], exchange: Exchange
    ) -> CreateResult:
        """Ask the server, and again while that makes sense."""
        if self._known is not None:
            known = known_answer(self._known, self.endpoint.model, messages, extra, exchange)
            if known is not None:
                return known
        token = EXCHANGE.set(exchange)
        try:
            async for attempt in AsyncRetrying(
                stop=partial(self._was_last_try, exchange),
                wait=self._backoff,
                retry=retry_if_exception(_is_transient),
                reraise=True,
            ):
                with attempt:
                    return await self._inner().create(messages, extra_create_args=extra)
        except HallulabError:
            raise
        except Exception as error:
            # AutoGen and openai's client raise anything at an answer that they did not foresee.
            raise self._explain(error) from error
        finally:
            EXCHANGE.reset(token)
        raise AssertionError("tenacity either returns or raises")

    def _was_last_try(self, exchange: Exchange, state: RetryCallState) -> bool:
        """Whether all tries are used up, or another one could end after the deadline. A server that says when
        to come again is asked until then, however often."""
        spent = exchange.under_way_s + state.idle_for + state.upcoming_sleep
        late = spent + self._timeout_s > DEADLINE * self._timeout_s
        told = _told_pause(state) is not None
        return late or (state.attempt_number >= self._attempts and not told)

    def _inner(self) -> BaseOpenAIChatCompletionClient:
        if self._autogen is None:
            # Endpoints may answer under another of the model's names. AutoGen warns that its estimates of
            # costs may be wrong then; we use none.
            warnings.filterwarnings("ignore", message="Resolved model mismatch", category=UserWarning)
            # AutoGen writes answers into its log; where an unread field is of another type, pydantic warns.
            warnings.filterwarnings("ignore", message="Pydantic serializer warnings", category=UserWarning)
            self._autogen = BaseOpenAIChatCompletionClient(
                QuickOpenAI(
                    base_url=self.endpoint.base_url,
                    api_key=_NO_KEY if self._replaying else self.endpoint.api_key(),
                    max_retries=0,
                    http_client=self._http,
                ),
                create_args={"model": self.endpoint.model},
                model_info=MODEL_INFO,
            )
        return self._autogen

    def _explain(self, error: Exception) -> ModelError:
        where = f"model {self.endpoint.model!r} at {self.endpoint.base_url}"
        if isinstance(error.__cause__, ModelError):
            return error.__cause__
        if isinstance(error, APITimeoutError):
            return ModelError(f"{where} did not answer in time. Raise --timeout or lower --concurrency.")
        if isinstance(error, APIConnectionError):
            return ModelError(f"{where} cannot be reached. Is the server running?")
        if isinstance(error, APIStatusError):
            reason = _in_one_line(str(error.message).removeprefix(f"Error code: {error.status_code} - "))
            return ModelError(f"{where} refused the request with status {error.status_code}: {reason}")
        return ModelError(f"{where} gave an answer that is no chat completion ({type(error).__name__}).")

    def check_key(self) -> None:
        """Look whether there is a key, if the endpoint needs one; a replay sends nothing and needs none.

        Raises:
            UsageError: it is missing.
        """
        if not self._replaying:
            self.endpoint.api_key()

    async def check(self) -> None:
        """Ask the endpoint for its models, and which one `root` is.

        Raises:
            ModelError: it cannot be reached or does not serve this model.
        """
        url = self.endpoint.base_url.rstrip("/") + "/models"
        try:
            response = await self._http.get(
                url, headers={"Authorization": f"Bearer {self.endpoint.api_key()}"}
            )
            if not response.is_success:
                raise ValueError(f"status {response.status_code}")
            roots = {str(entry["id"]): entry.get("root") for entry in response.json()["data"]}
        except (
            httpx2.HTTPError,
            httpx2.InvalidURL,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
        ) as error:
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

    async def close(self) -> None:
        """Close the connections."""
        if self._autogen is not None:
            await self._autogen.close()
        await self._http.aclose()


def _in_one_line(text: str) -> str:
    """What an endpoint says, in brief."""
    return " ".join(text.split())[:300]


def _told_root(told: Any) -> str | None:
    """What an endpoint says that it serves, as text that can be kept; None where it is none, or too long."""
    if not isinstance(told, str) or len(told) > _LONGEST_ROOT:
        return None
    return " ".join(str(writable(told)).split()) or None


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, APIStatusError):
        return is_retryable(error.status_code)
    return isinstance(error, APIConnectionError) and not isinstance(error.__cause__, ModelError)


def _told_pause(state: RetryCallState) -> float | None:
    """Seconds after which a server wants to be asked again (Retry-After), or None where it does not say."""
    error = state.outcome.exception() if state.outcome is not None else None
    if not isinstance(error, APIStatusError) or not is_retryable(error.status_code):
        return None
    try:
        seconds = float(error.response.headers["Retry-After"])
    except (KeyError, ValueError):
        return None
    return seconds if 0 <= seconds < math.inf else None


def _as_told_or(backoff: wait_base) -> Callable[[RetryCallState], float]:
    """Pauses as long as the server asks for, and by `backoff` longer: not all shall come back at once."""

    def pause(state: RetryCallState) -> float:
        return backoff(state) + (_told_pause(state) or 0.0)

    return pause
