"""One role's use of the models for one piece of work: texts, JSON and decisions.

A `Session` serves a chatbot's reply or a detector's judgement. It gives requests purposes and seeds and keeps
the ledger of calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic import BaseModel

from hallulab.agents.models.abilities import LackingAbility
from hallulab.agents.models.answers import (
    Completion,
    ModelError,
    UnlikelyOptions,
    UnparseableAnswer,
    ask_for_json,
    describe_schema,
    parse_answer,
)
from hallulab.agents.models.decisions import (
    DECISION,
    SAMPLE_TEMPERATURE,
    WORD_TOKENS,
    share_of_tokens,
    share_of_words,
)
from hallulab.agents.models.prompt import ChatMessage
from hallulab.agents.models.transport import CallRecord, WireMessage
from hallulab.agents.models.watching import calling_for
from hallulab.agents.models.wire_settings import ConversationMark
from hallulab.scenarios.errors import ReplayMiss
from hallulab.scenarios.transcript import Call

if TYPE_CHECKING:
    from hallulab.agents.models.client import ModelClient

Answer = TypeVar("Answer", bound=BaseModel)


class Clients(Protocol):
    """Where a session's models come from: a `ModelPool`."""

    decision_samples: int
    """Printed words per decision without log-probabilities."""

    def get(self, name: str | None = None) -> ModelClient:
        """Return the model of that name; None: the default one."""


@dataclass
class Session:
    """One role's use of the models for one piece of work; keeps the ledger of its calls."""

    pool: Clients
    role: str
    """First part of every call's purpose: `user`, `chatbot`, or the detector's name."""
    seed: int
    """Seed sent with every request; `sample` is added to it."""
    client: ModelClient
    calls: list[Call] = field(default_factory=list)
    """Every call so far, failed ones included; sessions made with `on` share it."""
    mark: ConversationMark | None = None
    """Tells a bot under test which conversation it is; None: it is not told."""

    def on(self, model: str | None) -> Session:
        """Return the same session (role, seed, ledger) on another model of the pool."""
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
        """Ask for a text; return it stripped.

        Args:
            step: second part of the call's purpose.
            temperature: sampling temperature; None: the server's.
            max_tokens: limit of the answer; None: the server's.
            sample: added to the session's seed.

        Raises:
            ModelError: the model gave no answer.
        """
        answer = await self.answer(
            step, messages, temperature=temperature, max_tokens=max_tokens, sample=sample
        )
        return answer.text.strip()

    async def answer(
        self,
        step: str,
        messages: Sequence[ChatMessage],
        *,
        temperature: float | None,
        max_tokens: int | None,
        sample: int = 0,
    ) -> Completion:
        """Ask for a text; return all that came with it. Arguments and errors as of `text`."""
        sampling = {"temperature": temperature, "max_tokens": max_tokens, "seed": self.seed + sample}
        given = {name: value for name, value in sampling.items() if value is not None}
        completion = await self.complete(step, encode_messages(messages), given)
        if not completion.text.strip() and completion.finish_reason == "length":
            raise ModelError(
                f"{step}: the model used up its limit of tokens before it said anything. Give it room for "
                "its thoughts (`thoughts`), or switch them off (`extra`)."
            )
        return completion

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
        """Ask for an instance of `schema`, which the server is made to follow.

        If the server cannot, the schema is added to the prompt, and the JSON object in the answer counts.

        Raises:
            UnparseableAnswer: the answer does not fit (often: cut off at `max_tokens`).
            ModelError: the model gave no answer.
        """
        request: dict[str, Any] = {
            "temperature": temperature,
            "max_tokens": max_tokens,
            "seed": self.seed + sample,
        }
        if self.client.abilities.json_schema:
            with suppress(LackingAbility):
                described = {**request, "response_format": describe_schema(schema)}
                completion = await self.complete(step, encode_messages(messages), described)
                return parse_answer(schema, completion, step, lenient=False)
        completion = await self.complete(step, encode_messages(ask_for_json(messages, schema)), request)
        return parse_answer(schema, completion, step, lenient=True)

    async def choose(
        self, step: str, messages: Sequence[ChatMessage], options: Sequence[str]
    ) -> dict[str, float]:
        """Ask for a decision; return the probability of each option as the first word, over the options.

        One token is generated. A token counts for an option if it spells the same word. If the options have
        less than `LEAST_MASS` of the probability together, or the endpoint gives no log-probabilities, a word
        is asked for: the printed option has probability 1. With several `decision_samples`, an option has
        its share of the answers that print an option.

        Raises:
            UnparseableAnswer: the word is no option.
            ModelError: the model gave no answer.
        """
        sent = encode_messages(messages)
        if not self.client.abilities.log_probabilities:
            return await self._choose_by_word(step, sent, options)
        try:
            completion = await self.complete(step, sent, {**DECISION, "seed": self.seed})
        except LackingAbility:
            return await self._choose_by_word(step, sent, options)
        if completion.first_token is None and completion.text.strip():
            self.client.lose_log_probabilities()
        try:
            return share_of_tokens(step, completion, options)
        except UnparseableAnswer as error:
            unread = error
        try:
            return await self._choose_by_word(step, sent, options)
        except ReplayMiss:
            # Recordings made before the word was asked for decide as they did then.
            if not isinstance(unread, UnlikelyOptions) or unread.shares is None:
                raise unread from None
            return dict(unread.shares)

    async def _choose_by_word(
        self, step: str, sent: Sequence[WireMessage], options: Sequence[str]
    ) -> dict[str, float]:
        """Ask for a printed word, as often as `decision_samples`; see `choose`."""
        samples = self.pool.decision_samples
        temperature = 0.0 if samples == 1 else SAMPLE_TEMPERATURE
        printed = [
            (
                await self.complete(
                    step,
                    sent,
                    {"temperature": temperature, "max_tokens": WORD_TOKENS, "seed": self.seed + sample},
                )
            ).text
            for sample in range(samples)
        ]
        return share_of_words(step, printed, options)

    async def complete(
        self, step: str, messages: Sequence[WireMessage], extra: Mapping[str, Any]
    ) -> Completion:
        """Send a request, record the call in the ledger, and return the model's answer.

        Args:
            step: second part of the call's purpose.

        Raises:
            ModelError: the model gave no answer.
        """
        record = CallRecord()
        try:
            with calling_for(f"{self.role}.{step}"):
                completion = await self.client.create(messages, extra, record, self.mark)
        except ModelError as error:
            self.calls.append(self._call(step, record, None, str(error)))
            raise
        self.calls.append(self._call(step, record, completion, None))
        return completion

    def _call(
        self, step: str, record: CallRecord, completion: Completion | None, failure: str | None
    ) -> Call:
        return Call(
            purpose=f"{self.role}.{step}",
            model=self.client.endpoint.model,
            prompt_tokens=completion.prompt_tokens if completion else None,
            completion_tokens=completion.completion_tokens if completion else None,
            cached_tokens=completion.cached_tokens if completion else None,
            latency_s=record.latency_s,
            replayed=record.replayed,
            finish_reason=completion.finish_reason if completion else None,
            error=failure,
        )


def encode_messages(messages: Sequence[ChatMessage]) -> list[WireMessage]:
    """Convert our messages for the wire. A user message has a name, because recorded requests have it."""
    return [
        {"role": "user", "name": "user", "content": message.text}
        if message.role == "user"
        else {"role": message.role, "content": message.text}
        for message in messages
    ]
