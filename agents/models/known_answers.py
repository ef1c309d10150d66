"""Answers that a recording holds, without the way through AutoGen and openai's client.

That way takes two milliseconds of processor time a request, which is nothing beside a model and nearly all of
a replay. It stays the measure: the request is made as it would leave the process, so a recording made that
way is found, and what is found here is what it would give. Whatever is not plain text in, text out, goes
that way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from autogen_core.models import (
    AssistantMessage,
    ChatCompletionTokenLogprob,
    CreateResult,
    LLMMessage,
    RequestUsage,
    SystemMessage,
    TopLogprob,
    UserMessage,
)

from agents.models.answers import cached_tokens, readable, tells_tokens
from agents.models.errors import ModelError
from agents.models.recording import Recording
from agents.models.wire import Exchange
from scenarios.files.digest import digest

_FINISHED: Mapping[str, Literal["stop", "length"]] = {"stop": "stop", "length": "length"}
"""Reasons to stop that AutoGen leaves as they are."""


def known_answer(
    recording: Recording,
    model: str,
    messages: Sequence[LLMMessage],
    extra: Mapping[str, Any],
    exchange: Exchange,
) -> CreateResult | None:
    """What the recording holds of a request; None where it has to go the long way.

    Args:
        recording: with the answers to requests of no scope, see `Wire.scoped`.
        model: the name that the request calls the model by.
        messages: the prompt.
        extra: further arguments of the request.
        exchange: filled with what the ledger wants to know, where there is an answer.
    """
    sent = _sent(messages)
    if sent is None:
        return None
    body = {"model": model, "stream": False, "messages": sent, **extra}
    known = recording.get("model", digest(["chat/completions", body]))
    if known is None or known["status"] >= 400:
        return None
    try:
        found = _result(readable(known["body"]), known["body"])
    except ModelError:
        return None
    if found is not None:
        exchange.latency_s = float(known["latency_s"])
        exchange.replayed = True
        exchange.tells_tokens = tells_tokens(known["body"])
        exchange.cached_tokens = cached_tokens(known["body"])
    return found


def _sent(messages: Sequence[LLMMessage]) -> list[dict[str, Any]] | None:
    """The messages as AutoGen sends them; None where it would change them."""
    sent: list[dict[str, Any]] = []
    for place, message in enumerate(messages):
        if isinstance(message, SystemMessage) and place == 0:
            sent.append({"role": "system", "content": message.content})
        elif isinstance(message, UserMessage) and isinstance(message.content, str):
            sent.append({"role": "user", "name": message.source, "content": message.content})
        elif isinstance(message, AssistantMessage) and isinstance(message.content, str):
            sent.append({"role": "assistant", "content": message.content})
        else:
            return None
    return sent


def _result(body: Mapping[str, Any], told: Mapping[str, Any]) -> CreateResult | None:
    """The answer as AutoGen gives it; None where it is more than a text.

    Args:
        body: the completion, made readable.
        told: the completion as the server told it.
    """
    choice = body["choices"][0]
    message = choice["message"]
    finished = _FINISHED.get(choice.get("finish_reason"))
    if finished is None or message.get("reasoning_content") is not None:
        return None
    usage = body.get("usage") if tells_tokens(told) else None
    logprobs = (choice.get("logprobs") or {}).get("content")
    return CreateResult(
        finish_reason=finished,
        content=message["content"],
        usage=RequestUsage(
            prompt_tokens=usage["prompt_tokens"] if usage else 0,
            completion_tokens=usage["completion_tokens"] if usage else 0,
        ),
        cached=False,
        logprobs=[_token(token) for token in logprobs] if logprobs else None,
    )


def _token(token: Mapping[str, Any]) -> ChatCompletionTokenLogprob:
    return ChatCompletionTokenLogprob(
        token=token["token"],
        logprob=token["logprob"],
        top_logprobs=[
            TopLogprob(logprob=one["logprob"], bytes=one["bytes"]) for one in token["top_logprobs"]
        ],
        bytes=token["bytes"],
    )
