"""What is said of each way in which an endpoint fails."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tenacity import wait_fixed

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from tests.agents.models.endpoints import QUESTION
from tests.kit.faulty_endpoint import CLOSED_S, FAULTS, FaultyEndpoint, faulty_endpoint

TOLD = {
    "refused": "cannot be reached",
    "reset": "cannot be reached: the connection broke off before the answer was whole",
    "429": "refused the request with status 429: not now, empty",
    "429 with Retry-After": "refused the request with status 429: not now, empty",
    "500": "refused the request with status 500: not now, empty",
    "hang": "did not answer in time",
    "cut in the body": "completions: the connection broke off before the answer was whole",
    "invalid JSON": "gave an answer that is no chat completion",
    "no such model": "refused the request with status 404: not now, empty",
    "wrong model": "it is from the model 'another', earlier ones from 'stub'",
    "empty choices": "gave a chat completion without choices",
    "no usage": "",
    "absurd log-probabilities": "no log-probabilities of tokens, but something else",
    "10 MB": "characters where 1 tokens were asked for",
}
"""Fault → what the error says; nothing where the answer is good all the same."""

PASSING = ("refused", "reset", "429", "429 with Retry-After", "500", "cut in the body")
"""Faults after which a request is sent again. Silence is not one: a try may take all the time."""

WAITED_OUT = ("hang", "429 with Retry-After")
"""Faults that are told only when a limit of time is over."""


@pytest.fixture
def endpoint(fault: str) -> Iterator[FaultyEndpoint]:
    with faulty_endpoint(0.0, [fault]) as endpoint:
        yield endpoint


def pool_of(endpoint: FaultyEndpoint, attempts: int) -> ModelPool:
    """A pool that waits long enough for a busy machine."""
    endpoints = {"default": Endpoint("stub", endpoint.url)}
    return ModelPool(endpoints, attempts=attempts, timeout_s=120.0, backoff=wait_fixed(CLOSED_S))


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_that_stays_is_told(endpoint: FaultyEndpoint, fault: str) -> None:
    pool = pool_of(endpoint, attempts=2)
    session = pool.session("d")
    await session.choose("first", QUESTION, ("Yes", "No"))
    endpoint.share = 1.0
    if fault in WAITED_OUT:
        pool._transport.timeout_s = 0.8
    try:
        await pool.session("d", 1).choose("second", QUESTION, ("Yes", "No"))
        told = ""
    except ModelError as error:
        told = str(error)
    await pool.close()
    assert TOLD[fault] in told
    assert bool(told) == bool(TOLD[fault])


@pytest.mark.parametrize("fault", PASSING)
async def test_a_fault_that_passes_gives_the_answer_that_would_have_come(
    endpoint: FaultyEndpoint, fault: str
) -> None:
    pool = pool_of(endpoint, attempts=20)
    healthy = await pool.session("d").text("first", QUESTION)
    endpoint.share = 1.0
    endpoint.most = 1
    asked = asyncio.create_task(pool.session("d", 1).text("second", QUESTION))
    while not endpoint.given[fault]:  # noqa: ASYNC110 # it answers in another thread
        await asyncio.sleep(0.01)
    assert await asked == healthy
    await pool.close()
    assert endpoint.given == {"healthy": 2, fault: 1}
