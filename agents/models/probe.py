"""Find out what an endpoint can do, with five or six tiny requests before a run, at most twelve.

An endpoint that seems to lack something gets them a second time: one odd answer must not decide how a whole
run is read. They are recorded like all others. Older recordings lack them; their endpoints are assumed to
have had all abilities.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import BaseModel, ValidationError

from hallulab.agents.models.abilities import Capabilities, LackingAbility, SeedUse
from hallulab.agents.models.answers import (
    Completion,
    ImpossibleAnswer,
    ModelError,
    RefusedRequest,
    describe_schema,
)
from hallulab.agents.models.complaints import BUSY_STATUS
from hallulab.agents.models.decisions import DECISION
from hallulab.agents.models.prompt import load_prompt
from hallulab.agents.models.transport import CallRecord, WireMessage, asking_before_the_run
from hallulab.scenarios.errors import OperationalError, ReplayMiss

if TYPE_CHECKING:
    from hallulab.agents.models.client import ModelClient

_REFUSALS = frozenset({400, 404, 422, 501})
"""Statuses of endpoints that do not know an argument; routers to many models answer 404."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 15.0
"""Seconds between two tries to ask such an endpoint; each is twice as long as the one before."""

_SEEDS = (20240521, 20240522)
"""Seeds of the requests, and of those that ask a second time."""
_SEED_USE: tuple[SeedUse, ...] = get_args(SeedUse)
_HANDOFF_TOKENS = 64
"""Limit of a hand-over: a function's name takes about 20 tokens with its markup."""
_COLLEAGUES = {
    "transfer_to_cashier": ("Sells tickets and knows prices.", "How much is a ticket for a child of six?"),
    "transfer_to_porter": ("Keeps lost things and coats.", "I left my umbrella here. Where can I find it?"),
}
"""Function → what its description says, and the message that belongs there."""
_SAMPLED = "Write random words, each beginning with another letter."
_SEED_TOKENS = 12
"""Limit of a sampled answer: so few tokens that rounding seldom changes one."""


class _Cold(BaseModel):
    """What the JSON schema asks for. The question does not: who answers so followed the schema."""

    ice_is: Literal["cold", "hot"]


async def abilities_of(client: ModelClient) -> Capabilities:
    """Find out what the model's endpoint can do.

    It lacks only what it lacked twice. An endpoint that answers no request, or fails at one, is assumed to
    have all abilities: the run will show what is wrong with it.

    Raises:
        UsageError: it needs a key, and there is none.
    """
    with asking_before_the_run():
        found = await _found(client, _SEEDS[0])
        if not found.asked:
            return found
        lacks = found != Capabilities(asked=True)
        if lacks and (second := await _found(client, _SEEDS[1])).asked:
            found = Capabilities(
                log_probabilities=found.log_probabilities or second.log_probabilities,
                seed=min(found.seed, second.seed, key=_SEED_USE.index),
                json_schema=found.json_schema or second.json_schema,
                asked=True,
            )
        return found.model_copy(update={"function_calls": await _hands_over(client, found.seed)})


async def _found(client: ModelClient, seed: int) -> Capabilities:
    """Find out what the endpoint seems to be able to do by one answer to each question."""
    try:
        log_probabilities, takes_seed = await _decides(client, seed)
        use: SeedUse = "refused"
        if takes_seed and client.abilities.seed != "refused":
            # The requests have different limits, because equal requests are sent only once.
            sampled = [
                {"temperature": 1.0, "max_tokens": limit, "seed": seed}
                for limit in (_SEED_TOKENS, _SEED_TOKENS + 1)
            ]
            texts = [(await _ask(client, _SAMPLED, extra)).text.strip() for extra in sampled]
            use = "kept" if texts[1].startswith(texts[0]) else "ignored"
        schema = await _follows_schema(client, seed if takes_seed else None)
    except (ModelError, ReplayMiss):
        return Capabilities()
    return Capabilities(log_probabilities=log_probabilities, seed=use, json_schema=schema, asked=True)


async def _decides(client: ModelClient, seed: int) -> tuple[bool, bool]:
    """Find out whether the endpoint gives log-probabilities and whether it takes a seed.

    Raises:
        ModelError: it answers neither with them nor without.
    """
    plain = {"temperature": 0.0, "max_tokens": 1}
    seeded = {"seed": seed}
    for log_probabilities, takes_seed in ((True, True), (False, True), (True, False)):
        extra = {**(DECISION if log_probabilities else plain), **(seeded if takes_seed else {})}
        try:
            answer = await _ask(client, "Is ice cold? Answer Yes or No.", extra)
        except (ReplayMiss, ImpossibleAnswer, LackingAbility):
            # Only some refusals are recorded; impossible are log-probabilities that are none.
            continue
        except RefusedRequest as error:
            if error.status not in _REFUSALS:
                raise
            continue
        return bool(answer.first_token), takes_seed
    await _ask(client, "Is ice cold? Answer Yes or No.", plain)
    return False, False


async def _follows_schema(client: ModelClient, seed: int | None) -> bool:
    extra = {"temperature": 0.0, "max_tokens": 64, "response_format": describe_schema(_Cold)}
    try:
        answer = await _ask(client, "Is ice cold?", {**extra, **({} if seed is None else {"seed": seed})})
        _Cold.model_validate_json(answer.text)
    except (ModelError, ReplayMiss, ValidationError):
        # Any failure counts, so that a replay ends the same way whether the failure was recorded or not.
        return False
    return True


async def _hands_over(client: ModelClient, seed: SeedUse) -> bool:
    """Return whether the model hands each of two messages over to the right one of two colleagues.

    The functions take no arguments. A model that gives some does not read what a function takes: the 1.5B
    copies the schema, and then often runs into the limit.
    """
    system = load_prompt("hallulab.agents", "hand_over").fill(domain="visitors of a museum")[0].text
    nothing = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    extra = {
        "temperature": 0.0,
        "max_tokens": _HANDOFF_TOKENS,
        "tools": [
            {
                "type": "function",
                "function": {"name": name, "description": duty, "parameters": nothing, "strict": False},
            }
            for name, (duty, _) in _COLLEAGUES.items()
        ],
        "tool_choice": "required",
        **({} if seed == "refused" else {"seed": _SEEDS[0]}),
    }
    for name, (_, message) in _COLLEAGUES.items():
        task = f"Conversation so far:\n(nothing yet)\n\nMessage: {message}"
        asked: list[WireMessage] = [
            {"role": "system", "content": system},
            {"role": "user", "name": "user", "content": task},
        ]
        try:
            answer = await _ask_when_ready(client, asked, extra)
        except (ModelError, ReplayMiss):
            return False
        if [(call.name, call.arguments.strip() or "{}") for call in answer.tool_calls] != [(name, "{}")]:
            return False
    return True


async def _ask(client: ModelClient, question: str, extra: Mapping[str, Any]) -> Completion:
    return await _ask_when_ready(client, [{"role": "user", "content": question}], extra)


async def _ask_when_ready(
    client: ModelClient, messages: Sequence[WireMessage], extra: Mapping[str, Any]
) -> Completion:
    """Ask; an endpoint that is busy, or loads its model, is waited for within the time limit of a try.

    Raises:
        OperationalError: it stays busy.
        ModelError: it gives no answer.
    """
    until, pause = time.perf_counter() + client.timeout_s, _FIRST_PAUSE_S
    while True:
        try:
            return await client.create(messages, extra, CallRecord())
        except RefusedRequest as error:
            if error.status not in BUSY_STATUS and "loading" not in str(error).lower():
                raise
            # Where the status says so, the client has waited, unless no waiting helps.
            if error.status in BUSY_STATUS or time.perf_counter() + pause > until:
                raise OperationalError(
                    f"{str(error).removesuffix('.')}. It stays busy, or its quota is used up: ask again "
                    "later, or raise --timeout."
                ) from error
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)
