"""Finding out what an endpoint can do, by four or five tiny requests before a run.

They are recorded like all others. A recording that is replayed and lacks them is older than they are; then
the endpoint is assumed to have been able to do all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from agents.models.abilities import Abilities
from agents.models.answers import Completion
from agents.models.client import ModelClient
from agents.models.decisions import DECISION
from agents.models.errors import ModelError, RefusedRequest
from agents.models.json_answers import json_schema
from agents.models.wire import Exchange
from scenarios.errors import ReplayMiss

_REFUSALS = frozenset({400, 404, 422, 501})
"""Statuses of endpoints that know no such argument; routers to many models say 404."""

_SEED = 20240521
_SEED_TOKENS = 12
"""Of a sampled answer: few enough that rounding seldom turns one of the tokens."""


class _Cold(BaseModel):
    """What the JSON schema asks for. The question does not: who answers so followed the schema."""

    ice_is: Literal["cold", "hot"]


async def abilities_of(client: ModelClient) -> Abilities:
    """What the model's endpoint can do.

    An endpoint that answers none of the requests, or fails at one, is assumed to be able to do all: the run
    will show what is wrong with it.

    Raises:
        UsageError: it needs a key, and there is none.
    """
    try:
        log_probabilities, takes_seed = await _decides(client)
        seed: Literal["kept", "ignored", "refused"] = "refused"
        if takes_seed:
            seed = "kept" if await _keeps_seed(client) else "ignored"
        schema = await _follows_schema(client, takes_seed)
    except (ModelError, ReplayMiss):
        return Abilities()
    return Abilities(log_probabilities=log_probabilities, seed=seed, json_schema=schema, asked=True)


async def _decides(client: ModelClient) -> tuple[bool, bool]:
    """Whether it tells log-probabilities, and whether it takes a seed.

    Raises:
        ModelError: it answers neither with them nor without.
    """
    plain = {"temperature": 0.0, "max_tokens": 1}
    seeded = {"seed": _SEED}
    for log_probabilities, takes_seed in ((True, True), (False, True), (True, False)):
        extra = {**(DECISION if log_probabilities else plain), **(seeded if takes_seed else {})}
        answer = await _unless_refused(client, "Is ice cold? Answer Yes or No.", extra)
        if answer is not None:
            return bool(answer.first_token), takes_seed
    await _ask(client, "Is ice cold? Answer Yes or No.", plain)
    return False, False


async def _keeps_seed(client: ModelClient) -> bool:
    """Whether two sampled answers begin alike. The requests differ in their limits, as equal ones are asked
    only once."""
    texts = [
        (
            await _ask(
                client,
                "Write random words, each beginning with another letter.",
                {"temperature": 1.0, "max_tokens": limit, "seed": _SEED},
            )
        ).text.strip()
        for limit in (_SEED_TOKENS, _SEED_TOKENS + 1)
    ]
    return texts[1].startswith(texts[0])


async def _follows_schema(client: ModelClient, takes_seed: bool) -> bool:
    extra = {"temperature": 0.0, "max_tokens": 64, "response_format": json_schema(_Cold)}
    try:
        answer = await _ask(client, "Is ice cold?", {**extra, **({"seed": _SEED} if takes_seed else {})})
        _Cold.model_validate_json(answer.text)
    except (ModelError, ReplayMiss, ValidationError):
        # A failure of any kind counts: whether it is recorded or not, a replay comes to the same end.
        return False
    return True


async def _unless_refused(client: ModelClient, question: str, extra: Mapping[str, Any]) -> Completion | None:
    """The answer, or None where the request is refused. A recording that is replayed may lack it: only some
    refusals are recorded."""
    try:
        return await _ask(client, question, extra)
    except ReplayMiss:
        return None
    except RefusedRequest as error:
        if error.status in _REFUSALS:
            return None
        raise


async def _ask(client: ModelClient, question: str, extra: Mapping[str, Any]) -> Completion:
    return await client.create([{"role": "user", "content": question}], extra, Exchange())
