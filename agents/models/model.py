"""The one model client: AutoGen's `ChatCompletionClient` over an OpenAI-compatible endpoint.

`ModelPool` holds the served models of a run. A `Session` is one role's use of them (a chatbot's reply, a
detector's judgement): it stamps purposes and seeds on requests and keeps the ledger of calls.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import httpx2
from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage
from pydantic import BaseModel, ValidationError
from tenacity.wait import wait_base

from agents.models.bridge import SessionClient, json_schema, to_autogen
from agents.models.client import Endpoint, ModelClient
from agents.models.errors import ModelError, UnparseableAnswer
from agents.models.prompt import ChatMessage
from agents.models.recording import Recording
from agents.models.wire import Exchange, Wire
from scenarios.errors import UsageError
from scenarios.transcript import Call

Answer = TypeVar("Answer", bound=BaseModel)

DEFAULT_MODEL = "default"
"""Name of the pool's main model."""

ROOT = "root"
"""Kind of what recordings keep of `ModelClient.root`, by the model's served name."""


class ModelPool:
    """The models of a run by name, behind one wire: one bound on concurrency, one recording.

    Args:
        endpoints: by name; `default` must be among them.
        recording: where answers are kept or come from.
        concurrency: requests under way at once, over all models.
        timeout_s: limit of one try.
        attempts: tries for one request; see `agents.models.client.DEADLINE`.
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
        self.timeout_s = timeout_s
        """Limit of one try, in seconds."""
        self._wire = Wire(self.recording, asyncio.Semaphore(concurrency), timeout_s, transport)
        self._connect = partial(ModelClient, attempts=attempts, backoff=backoff)
        self._clients = {
            name: self._connect(endpoint, self._wire, known=self.recording)
            for name, endpoint in endpoints.items()
        }
        self._others: dict[Endpoint, ModelClient] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its models."""
        return tuple(self._clients)

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

    def check_keys(self) -> None:
        """See `ModelClient.check_key`, for every model."""
        for client in self._clients.values():
            client.check_key()

    async def check(self) -> None:
        """See `ModelClient.check`, for every model; a replay asks the recording alone what was served."""
        for client in self._clients.values():
            served = client.endpoint.model
            if not self.recording.replaying:
                await client.check()
                if client.root is not None:
                    client.root = self.recording.put(ROOT, served, client.root)
            else:
                client.root = self.recording.get(ROOT, served)

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
        temperature: float | None = 0.0,
        max_tokens: int | None = 512,
        sample: int = 0,
    ) -> str:
        """The model's answer as text, stripped.

        Args:
            step: second part of the call's purpose.
            messages: the prompt.
            temperature: of sampling; None: the server's.
            max_tokens: limit of the answer; None: the server's.
            sample: added to the session's seed.

        Raises:
            ModelError: no answer.
        """
        sampling = {"temperature": temperature, "max_tokens": max_tokens, "seed": self.seed + sample}
        given = {name: value for name, value in sampling.items() if value is not None}
        result = await self._create(step, to_autogen(messages), given)
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
                prompt_tokens=result.usage.prompt_tokens if exchange.tells_tokens else None,
                completion_tokens=result.usage.completion_tokens if exchange.tells_tokens else None,
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
