"""What an endpoint needs of requests: found out from its refusals, for further requests and replays."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from typing import Any, NoReturn

import httpx2
import pytest
from pydantic import BaseModel

from hallulab.agents.models.answers import ModelError
from hallulab.testing.scripted import Script, completion, last_user, scripted_pool
from tests.agents.models.endpoints import QUESTION, refusal
from tests.agents.models.test_probe import able

Request = dict[str, Any]
Rule = Callable[[Request], str | None]
"""Returns why a request is refused; None: it is not."""

YES = {"Yes": 0.75, "No": 0.25}


class Told(BaseModel):
    """An answer by a schema."""

    ice: str


def says(rule: Rule, status: int = 400) -> Script:
    """An endpoint with a rule: it names what it refuses; decisions are Yes, with three quarters."""

    def answer(body: Request) -> Any:
        reason = rule(body)
        if reason is not None:
            return refusal(status, reason)
        if "ice" not in str(last_user(body)):
            return YES if "logprobs" in body else "Yes, it is."
        return able(body)

    return answer


def reset() -> NoReturn:
    raise httpx2.ReadError("reset")


def refuse_where(condition: Callable[[Request], bool], reason: str) -> Rule:
    return lambda body: reason if condition(body) else None


RULES: list[tuple[Rule, str]] = [
    (
        refuse_where(
            lambda body: "max_tokens" in body,
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.",
        ),
        "max_completion_tokens in place of max_tokens",
    ),
    (
        refuse_where(
            lambda body: body.get("temperature", 1) != 1,
            "'temperature' does not support 0.0. Only the default (1) value is supported.",
        ),
        "no temperature",
    ),
    *(
        (
            refuse_where(lambda body: body.get("temperature") == 0, reason),
            "the temperature 0.01 in place of 0",
        )
        for reason in ("`temperature` must be strictly positive", "temperature must be in (0, 1]")
    ),
    (
        refuse_where(
            lambda body: any("name" in message for message in body["messages"]),
            "messages.0.user.name Extra inputs are not permitted",
        ),
        "no names of messages",
    ),
    (
        refuse_where(lambda body: body.get("seed") == 0, "seed must be greater than 0"),
        "the seed 1000003 in place of 0",
    ),
    (
        refuse_where(lambda body: body["messages"][0]["role"] == "system", "System role not supported"),
        "the system's text in the user's message",
    ),
    *(
        (
            refuse_where(lambda body: body["messages"][0]["role"] == "system", reason),
            "the system's text in the user's message",
        )
        for reason in (
            "Only user and assistant roles are supported!",
            "messages.0.role: Input should be 'user' or 'assistant'",
            "A conversation must start with a user message.",
        )
    ),
    (
        refuse_where(lambda body: body.get("temperature") == 0, "temperature must satisfy 0 < temperature"),
        "the temperature 0.01 in place of 0",
    ),
    (
        refuse_where(
            lambda body: isinstance(body["messages"][-1]["content"], str), "content must be a list of parts"
        ),
        "content as parts",
    ),
    (
        refuse_where(
            lambda body: int(body.get("max_tokens") or body["max_completion_tokens"]) < 16,
            "max_output_tokens: below minimum value, expected >= 16",
        ),
        "limits of at least 16 tokens",
    ),
    (
        refuse_where(lambda body: not body["stream"], "this model only answers with stream=true"),
        "requests for streams",
    ),
]


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(("rule", "told"), RULES, ids=[told for _, told in RULES])
async def test_a_judge_decides_rightly_at_an_endpoint_that_refuses_an_argument(
    rule: Rule, told: str, status: int
) -> None:
    pool, transport = scripted_pool(says(rule, status))
    await pool.check()
    decided = await pool.session("judge").choose("decide", QUESTION, ("Yes", "No"))
    assert decided == pytest.approx(YES)
    [how] = pool.read_how
    assert (how.log_probabilities, how.json_schema, how.asked_with) == (True, True, (told,))
    assert len(transport.requests) <= 16


@pytest.mark.parametrize(("rule", "told"), RULES, ids=[told for _, told in RULES])
async def test_one_refusal_is_enough_for_a_bot_and_its_answer_is_recorded(rule: Rule, told: str) -> None:
    pool, transport = scripted_pool(says(rule))
    session = pool.session("chatbot")
    for sample in range(3):
        assert await session.text("reply", QUESTION, max_tokens=8, sample=-sample) == "Yes, it is."
    assert pool.get().fitting.tell_needs(seed=True) == (told,)
    refused = [body for body in transport.requests if rule(body) is not None]
    assert len(refused) <= 2
    assert [
        answer["status"] for (kind, _), answer in pool.recording.known().answers.items() if kind == "model"
    ] == [200] * 3


async def test_the_text_of_the_system_comes_before_the_users() -> None:
    pool, transport = scripted_pool(says(RULES[6][0]))
    await pool.session("chatbot").text("reply", QUESTION)
    said = {"role": "user", "name": "user", "content": "Be brief.\n\nWhy?"}
    assert transport.requests[-1]["messages"] == [said]


async def test_a_reasoning_models_endpoint_needs_several_things_at_once() -> None:
    """As OpenAI's: each refusal names one of them."""
    first, second = RULES[0][0], RULES[1][0]
    pool, _ = scripted_pool(says(lambda body: first(body) or second(body)))
    await pool.check()
    assert await pool.session("judge").choose("decide", QUESTION, ("Yes", "No")) == pytest.approx(YES)
    assert pool.read_how[0].asked_with == (RULES[0][1], RULES[1][1])


@pytest.mark.parametrize("names", [("seed",), ("temperature",), ("seed", "temperature")])
async def test_a_refusal_that_names_nothing_is_looked_into_once(names: tuple[str, ...]) -> None:
    pool, transport = scripted_pool(says(lambda body: "Bad Request" if set(names) & body.keys() else None))
    session = pool.session("chatbot")
    assert await session.text("reply", QUESTION) == "Yes, it is."
    spent = len(transport.requests)
    assert spent <= 10
    assert await session.text("reply", QUESTION, sample=1) == "Yes, it is."
    assert len(transport.requests) == spent + 1
    assert transport.requests[-1].keys() >= {"model", "messages", "max_tokens"} | (
        {"seed", "temperature"} - {*names}
    )


@pytest.mark.parametrize(
    "reason",
    [
        "max_tokens is too large: 512. This model supports at most 256 completion tokens.",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 256]",
        "max_tokens: 512 > 256, which is the maximum allowed number of output tokens",
        "'max_tokens' is too large: 512. This model's maximum context length is 1000 tokens and your request "
        "has 600 input tokens (512 > 1000 - 600).",
    ],
)
async def test_a_limit_that_is_too_high_keeps_its_name(reason: str) -> None:
    """Endpoints that do not know the other name would answer without any limit."""
    pool, transport = scripted_pool(says(lambda body: reason if body.get("max_tokens", 0) > 256 else None))
    with pytest.raises(ModelError, match=re.escape(reason)):
        await pool.session("chatbot").text("reply", QUESTION)
    assert len(transport.requests) == 1


async def test_what_nothing_explains_is_not_looked_into_again() -> None:
    pool, transport = scripted_pool(lambda _: refusal(400, "Bad Request 17"))
    for sample in range(5):
        with pytest.raises(ModelError, match="status 400: Bad Request 17"):
            await pool.session("chatbot").text("reply", QUESTION, sample=sample)
    assert len(transport.requests) <= 12


async def test_a_filter_that_another_sample_passes_takes_no_seed_away() -> None:
    reason = "Output data may contain inappropriate content."
    pool, _ = scripted_pool(lambda body: refusal(400, reason) if "seed" in body else "It costs 3 €.")
    with pytest.raises(ModelError, match=reason):
        await pool.session("chatbot").text("reply", QUESTION)
    assert pool.get().fitting.tell_needs(seed=True) == ()


async def test_an_answer_that_broke_its_schema_takes_no_schemas_away() -> None:
    told = {"message": "Generated JSON does not match the expected schema.", "failed_generation": "{"}
    refused = httpx2.Response(400, json={"error": told})
    pool, _ = scripted_pool(lambda body: refused if "response_format" in body else '{"ice": "cold"}')
    with pytest.raises(ModelError, match="does not match the expected schema"):
        await pool.session("detector").structured("split", QUESTION, Told)
    assert pool.get().abilities.json_schema


async def test_refusals_that_differ_each_time_are_not_looked_into_for_ever() -> None:
    ids = count()
    pool, transport = scripted_pool(lambda _: refusal(500, f"seed {hex(next(ids) + 160)} failed"), attempts=2)
    for sample in range(20):
        with pytest.raises(ModelError, match="status 500: seed 0x"):
            await pool.session("chatbot").text("reply", QUESTION, sample=sample)
    assert len(transport.requests) < 20 * 2 + 40


@pytest.mark.parametrize(
    "reason",
    [
        *("Prompt too long", "blocked by our content policy", "quota exceeded"),
        *("rejected as a result of our safety system", "out of stream capacity", "no such model: seed-oss"),
        "billing is stopped. Your name is unknown to our system",
        *("Output data may contain inappropriate content", "it was considered high risk"),
        *("Request blocked by guardrail", "内容可能包含不安全或敏感内容"),
    ],
)
async def test_a_refusal_of_something_else_is_taken_as_it_is(reason: str) -> None:
    pool, transport = scripted_pool(lambda _: refusal(400, reason))
    with pytest.raises(ModelError, match=reason):
        await pool.session("chatbot").text("reply", QUESTION)
    assert len(transport.requests) == 1


@pytest.mark.parametrize("status", [400, 403, 404, 422, 500, 501, 502])
@pytest.mark.parametrize(
    "reason", ["You are not allowed to request logprobs from this model", "no", "refused, id 4f{}-a1"]
)
async def test_log_probabilities_may_be_refused_with_any_status(status: int, reason: str) -> None:
    ids = count()
    rule = says(lambda body: reason.format(next(ids)) if "logprobs" in body else None, status)
    pool, _ = scripted_pool(rule)
    await pool.check()
    assert await pool.session("judge").choose("decide", QUESTION, ("Yes", "No")) == {"Yes": 1.0, "No": 0.0}
    assert not pool.read_how[0].log_probabilities


async def test_tokens_that_are_numbers_are_no_log_probabilities() -> None:
    def numbers(body: Request) -> Any:
        answer = completion(able(body))
        if "logprobs" in body:
            token = {"token": "token_id:9642", "logprob": -0.1}
            answer["choices"][0]["logprobs"] = {"content": [{**token, "top_logprobs": [token]}]}
        return httpx2.Response(200, json=answer)

    pool, _ = scripted_pool(numbers)
    await pool.check()
    assert not pool.get().abilities.log_probabilities
