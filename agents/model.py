"""The one model client: AutoGen's `ChatCompletionClient` over an OpenAI-compatible endpoint.

`ModelPool` holds the served models of a run. A `Session` is one role's use of them (a chatbot's reply, a
detector's judgement): it stamps purposes and seeds on requests and keeps the ledger of calls.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient
from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError
from pydantic import BaseModel, ValidationError
from tenacity import (
    AsyncRetrying,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)
from tenacity.wait import wait_base

from agents.bridge import MODEL_INFO, SessionClient, json_schema, to_autogen
from agents.errors import ModelError, UnparseableAnswer
from agents.prompt import ChatMessage
from agents.wire import EXCHANGE, Exchange, Wire, is_retryable
from scenarios.errors import UsageError
from scenarios.recording import Recording, digest
from scenarios.transcript import Call

Answer = TypeVar("Answer", bound=BaseModel)

DEFAULT_MODEL = "default"
"""Name of the pool's main model."""

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
            UsageError: the variable is not set.
        """
        if self.api_key_env is None and _is_loopback(self.base_url):
            return _NO_KEY
        variable = self.api_key_env or "OPENAI_API_KEY"
        key = os.environ.get(variable)
        if not key:
            raise UsageError(f"{self.base_url} needs an API key: set the environment variable {variable}.")
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
        attempts: tries for one request, the first included.
        backoff: pauses between tries; the default is exponential with jitter.
    """

    def __init__(
        self, endpoint: Endpoint, wire: Wire, *, attempts: int = 4, backoff: wait_base | None = None
    ) -> None:
        self.endpoint = endpoint
        self._attempts = attempts
        self._backoff = backoff or wait_random_exponential(multiplier=0.5, max=20)
        self._replaying = wire.replaying
        self._http = httpx2.AsyncClient(transport=wire, timeout=None)
        self._autogen: OpenAIChatCompletionClient | None = None
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
            ReplayMiss: a recording is replayed and has no answer.
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
        token = EXCHANGE.set(exchange)
        try:
            async for attempt in AsyncRetrying(
                stop=stop_after_attempt(self._attempts),
                wait=self._backoff,
                retry=retry_if_exception(_is_transient),
                reraise=True,
            ):
                with attempt:
                    return await self._inner().create(messages, extra_create_args=extra)
        except (APIError, IndexError, ValueError) as error:
            raise self._explain(error) from error
        finally:
            EXCHANGE.reset(token)
        raise AssertionError("tenacity either returns or raises")

    def _inner(self) -> OpenAIChatCompletionClient:
        if self._autogen is None:
            # AutoGen hands `http_client` on to openai's client; its own type does not list it.
            transport: dict[str, Any] = {"http_client": self._http}
            self._autogen = OpenAIChatCompletionClient(
                model=self.endpoint.model,
                base_url=self.endpoint.base_url,
                api_key=_NO_KEY if self._replaying else self.endpoint.api_key(),
                max_retries=0,
                model_info=MODEL_INFO,
                **transport,
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
            reason = " ".join(str(error.message).split()).removeprefix(f"Error code: {error.status_code} - ")
            reason = reason[:300]
            return ModelError(f"{where} refused the request with status {error.status_code}: {reason}")
        return ModelError(f"{where} gave an answer that is no chat completion ({type(error).__name__}).")

    async def check(self) -> None:
        """Ask the endpoint for its models.

        Raises:
            ModelError: it cannot be reached or does not serve this model.
        """
        url = self.endpoint.base_url.rstrip("/") + "/models"
        try:
            response = await self._http.get(
                url, headers={"Authorization": f"Bearer {self.endpoint.api_key()}"}
            )
            response.raise_for_status()
            names = [entry["id"] for entry in response.json()["data"]]
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, KeyError, TypeError) as error:
            raise ModelError(
                f"no OpenAI-compatible endpoint answers at {self.endpoint.base_url} ({error}). "
                "Start a server (hallulab serve MODEL) or correct --base-url."
            ) from error
        if self.endpoint.model not in names:
            raise ModelError(
                f"{self.endpoint.base_url} does not serve model {self.endpoint.model!r}; it serves: "
                f"{', '.join(map(str, names)) or 'nothing'}. Correct --model."
            )

    async def close(self) -> None:
        """Close the connections."""
        if self._autogen is not None:
            await self._autogen.close()
        await self._http.aclose()


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, APIStatusError):
        return is_retryable(error.status_code)
    return isinstance(error, APIConnectionError) and not isinstance(error.__cause__, ModelError)


class ModelPool:
    """The models of a run by name, behind one wire: one bound on concurrency, one recording.

    Args:
        endpoints: by name; `default` must be among them.
        recording: where answers are kept or come from.
        concurrency: requests under way at once, over all models.
        timeout_s: limit of one request.
        attempts: tries for one request.
        backoff: pauses between tries.
        transport: what sends, for tests; the network by default.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        *,
        recording: Recording | None = None,
        concurrency: int = 16,
        timeout_s: float = 300.0,
        attempts: int = 4,
        backoff: wait_base | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        if DEFAULT_MODEL not in endpoints:
            raise ValueError(f"a pool needs a model named {DEFAULT_MODEL!r}")
        self.recording = Recording() if recording is None else recording
        self._wire = Wire(self.recording, asyncio.Semaphore(concurrency), timeout_s, transport)
        self._connect = partial(ModelClient, attempts=attempts, backoff=backoff)
        self._clients = {name: self._connect(endpoint, self._wire) for name, endpoint in endpoints.items()}
        self._others: dict[Endpoint, ModelClient] = {}

    def get(self, name: str | None = None) -> ModelClient:
        """The model of that name, or the default one.

        Raises:
            UsageError: there is no such model.
        """
        client = self._clients.get(name or DEFAULT_MODEL)
        if client is None:
            known = ", ".join(sorted(self._clients))
            raise UsageError(f"no model named {name!r} under `models`; there are: {known}.")
        return client

    def at(self, endpoint: Endpoint) -> ModelClient:
        """A model that has no name in the pool, such as a bot under test; made once.

        Its requests count as requests to that address: two servers never answer for each other, even if
        both call their model the same.
        """
        if endpoint not in self._others:
            self._others[endpoint] = self._connect(endpoint, self._wire.scoped(endpoint.base_url))
        return self._others[endpoint]

    def session(self, role: str, seed: int = 0, model: str | None = None) -> Session:
        """A fresh ledger for one piece of work of `role`."""
        return Session(self, role, seed, self.get(model), [])

    async def check(self) -> None:
        """See `ModelClient.check`, for every model; nothing is asked when a recording is replayed."""
        if not self.recording.replaying:
            for client in self._clients.values():
                await client.check()

    async def close(self) -> None:
        """Close every model's connections."""
        for client in (*self._clients.values(), *self._others.values()):
            await client.close()


@dataclass
class Session:
    """One role's use of the models while it does one piece of work; keeps the ledger of its calls."""

    pool: ModelPool
    """Where models come from."""
    role: str
    """First part of every call's purpose: `user`, `chatbot`, or the detector's name."""
    seed: int
    """Seed sent with every request; `sample` is added to it."""
    client: ModelClient
    """The model that answers."""
    calls: list[Call] = field(default_factory=list)
    """Every call so far, failed ones included; shared by all sessions made with `on`."""

    def on(self, model: str | None) -> Session:
        """The same session (role, seed, ledger) on another model of the pool."""
        return Session(self.pool, self.role, self.seed, self.pool.get(model), self.calls)

    async def text(
        self,
        step: str,
        messages: Sequence[ChatMessage],
        *,
        temperature: float = 0.0,
        max_tokens: int = 512,
        sample: int = 0,
    ) -> str:
        """The model's answer as text, stripped.

        Raises:
            ModelError: no answer.
        """
        result = await self._create(
            step,
            to_autogen(messages),
            {"temperature": temperature, "max_tokens": max_tokens, "seed": self.seed + sample},
        )
        return str(result.content).strip()

    async def structured(
        self,
        step: str,
        messages: Sequence[ChatMessage],
        schema: type[Answer],
        *,
        temperature: float = 0.0,
        max_tokens: int = 512,
        sample: int = 0,
    ) -> Answer:
        """The model's answer as an instance of `schema`, which the server is made to follow.

        Raises:
            UnparseableAnswer: it did not (often: cut off at `max_tokens`).
            ModelError: no answer.
        """
        result = await self._create(
            step,
            to_autogen(messages),
            {
                "temperature": temperature,
                "max_tokens": max_tokens,
                "seed": self.seed + sample,
                "response_format": json_schema(schema),
            },
        )
        return parse_answer(schema, str(result.content), step, self.calls[-1].finish_reason)

    async def choose(
        self, step: str, messages: Sequence[ChatMessage], options: Sequence[str]
    ) -> dict[str, float]:
        """Probability of each option as the first word of the answer, over the options alone.

        One token is generated. Tokens count for an option when, stripped and in lower case, they equal it.

        Raises:
            UnparseableAnswer: none of the options is among the 20 likeliest tokens.
            ModelError: no answer.
        """
        result = await self._create(
            step,
            to_autogen(messages),
            {"temperature": 0.0, "max_tokens": 1, "seed": self.seed, "logprobs": True, "top_logprobs": 20},
        )
        mass = dict.fromkeys(options, 0.0)
        by_word = {option.lower(): option for option in options}
        for token in result.logprobs[0].top_logprobs or [] if result.logprobs else []:
            word = bytes(token.bytes or []).decode("utf-8", "ignore").strip().lower()
            if word in by_word:
                mass[by_word[word]] += math.exp(token.logprob)
        total = sum(mass.values())
        if not result.logprobs:
            raise UnparseableAnswer(f"{step}: the endpoint gives no log-probabilities of tokens.")
        if total <= 0.0:
            raise UnparseableAnswer(f"{step}: the model answered with none of {', '.join(options)}.")
        return {option: value / total for option, value in mass.items()}

    def autogen(
        self, step: str, *, temperature: float = 0.0, max_tokens: int = 512, sample: int = 0
    ) -> ChatCompletionClient:
        """This session as a model client for AutoGen agents; their calls land in the same ledger."""
        sampling = {"temperature": temperature, "max_tokens": max_tokens, "seed": self.seed + sample}
        return SessionClient(partial(self._create, step), sampling, self.calls)

    async def _create(
        self, step: str, messages: Sequence[LLMMessage], extra: Mapping[str, Any]
    ) -> CreateResult:
        purpose = f"{self.role}.{step}"
        exchange = Exchange()
        try:
            result = await self.client.create(messages, extra, exchange)
        except ModelError as error:
            self.calls.append(
                Call(
                    purpose=purpose,
                    model=self.client.endpoint.model,
                    prompt_tokens=None,
                    completion_tokens=None,
                    latency_s=exchange.latency_s,
                    replayed=exchange.replayed,
                    error=str(error),
                )
            )
            raise
        self.calls.append(
            Call(
                purpose=purpose,
                model=self.client.endpoint.model,
                prompt_tokens=result.usage.prompt_tokens,
                completion_tokens=result.usage.completion_tokens,
                cached_tokens=exchange.cached_tokens,
                latency_s=exchange.latency_s,
                replayed=exchange.replayed,
                finish_reason=result.finish_reason,
            )
        )
        return result


def parse_answer(schema: type[Answer], content: str, step: str, finish_reason: str | None) -> Answer:
    """Validate a JSON answer.

    Raises:
        UnparseableAnswer: it is not an instance of `schema`.
    """
    try:
        return schema.model_validate_json(content)
    except ValidationError as error:
        cut = " (cut off at the token limit)" if finish_reason == "length" else ""
        raise UnparseableAnswer(
            f"{step}: the model's answer is no {schema.__name__}{cut}: {content[:120]!r}"
        ) from error
