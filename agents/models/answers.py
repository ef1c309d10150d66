"""Read servers' answers into a `Completion`, and refuse what is no answer, with a reason.

Servers that call themselves OpenAI-compatible leave fields out or fill them in their own ways.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from hallulab.agents.models.errors import ModelError
from hallulab.scenarios.transcript import Count

_THOUGHTS_END = "</think>"
_THOUGHTS_BEGIN = "<think>"
_ONLY_THOUGHTS = (
    "the model gave nothing but its reasoning. Switch that off on the server, or raise the limit of tokens."
)

_COUNT = TypeAdapter[int](Count)

_ROUNDING = 1e-3
"""Servers exceed a probability of 1 by up to so much."""

_FINISHED: Mapping[Any, str] = {
    "stop": "stop",
    "end_turn": "stop",
    "length": "length",
    "content_filter": "content_filter",
    "tool_calls": "function_calls",
    "function_calls": "function_calls",
}
"""Why a model stopped: servers' words → AutoGen's words, which the ledger also uses."""


@dataclass(frozen=True)
class Likely:
    """A possible token at one place of the answer."""

    text: str
    """Its text."""
    logprob: float
    """Its log-probability, at most 0 except for rounding."""


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool that the model asks for."""

    id: str
    """Identifies the tool's result among others."""
    name: str
    """The tool's name."""
    arguments: str
    """Its arguments, as the text of a JSON object."""


@dataclass(frozen=True)
class Completion:
    """A model's answer, as we read it."""

    text: str
    """The text for the user, without reasoning."""
    finish_reason: str
    """`stop`, `length`, `content_filter`, `function_calls` or `unknown`."""
    first_token: tuple[Likely, ...] | None = None
    """The likeliest first tokens; None if the server gives no log-probabilities."""
    prompt_tokens: int | None = None
    """Tokens read; None if the server does not say."""
    completion_tokens: int | None = None
    """Tokens written; None likewise."""
    cached_tokens: int | None = None
    """Prompt tokens that the server took from its prefix cache; None likewise."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Tools to call, if tools were offered."""


def is_completion(body: Mapping[str, Any]) -> bool:
    """Return whether a server's answer is a chat completion with a message."""
    choices = body.get("choices")
    return isinstance(choices, list) and all(
        isinstance(choice, dict) and isinstance(choice.get("message"), dict)
        for choice in choices[:1] or [None]
    )


def read_completion(body: Mapping[str, Any], *, tools_offered: bool = False) -> Completion:
    """Read the first choice of a chat completion.

    Invalid numbers of tokens and log-probabilities in another form count as not given. A refusal counts as
    the answer's text. Reasoning between `<think>` and `</think>` is left out.

    Args:
        body: an answer for which `is_completion` is True.
        tools_offered: whether the model may call tools instead of answering.

    Raises:
        ModelError: it holds no text for the user: it calls a tool that was not offered, was filtered, or is
            only reasoning. Also if it has another form.
    """
    choice = body["choices"][0]
    usage = _object(body.get("usage"))
    told = [_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
    prompt, completion = told if None not in told else (None, None)
    tool_calls = _tool_calls(choice["message"]) if tools_offered else ()
    return Completion(
        text="" if tool_calls else _said(choice),
        finish_reason=_finish_reason(choice),
        first_token=read_first_token(choice.get("logprobs")),
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=_count(_object(usage.get("prompt_tokens_details")).get("cached_tokens")),
        tool_calls=tool_calls,
    )


def _count(found: Any) -> int | None:
    """Return a number of tokens, or None if it is not valid."""
    try:
        return _COUNT.validate_python(found, strict=True)
    except ValidationError:
        return None


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _said(choice: Mapping[str, Any]) -> str:
    message = choice["message"]
    content = message.get("content") or message.get("refusal") or ""
    if not isinstance(content, str):
        raise ModelError(f"the model's answer is a {type(content).__name__} and no text.")
    if message.get("tool_calls") or message.get("function_call"):
        raise ModelError("the model called a tool in place of an answer, although none was offered.")
    before, end, text = content.rpartition(_THOUGHTS_END)
    if not end and text.lstrip().startswith(_THOUGHTS_BEGIN):
        raise ModelError(_ONLY_THOUGHTS)
    if text.strip():
        return text.lstrip() if end else text
    if before or message.get("reasoning_content") or message.get("reasoning"):
        raise ModelError(_ONLY_THOUGHTS)
    if choice.get("finish_reason") == "content_filter":
        raise ModelError("the server's content filter withheld the answer.")
    return text


def _finish_reason(choice: Mapping[str, Any]) -> str:
    told = choice.get("finish_reason")
    if told is not None and not isinstance(told, str):
        raise ModelError("the model's answer is no chat completion: its `finish_reason` is no text.")
    return _FINISHED.get(told and told.lower(), "unknown")


def _tool_calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """Return the tools that a message calls.

    Raises:
        ModelError: a call has another form.
    """
    try:
        return tuple(
            ToolCall(str(call["id"]), str(call["function"]["name"]), str(call["function"]["arguments"]))
            for call in message.get("tool_calls") or ()
        )
    except (KeyError, TypeError) as error:
        raise ModelError("the model called a tool in a form that cannot be read.") from error


def read_first_token(logprobs: Any) -> tuple[Likely, ...] | None:
    """Return the likeliest first tokens, or None if they come in no form that we know."""
    try:
        first = logprobs["content"][0]
        _likely(first)
        return tuple(_likely(one) for one in first.get("top_logprobs") or ())
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError):
        return None


def _likely(found: Mapping[str, Any]) -> Likely:
    """Read one token, by its bytes if they are given: its text may be half a character.

    Raises:
        ValueError: its log-probability is not valid.
    """
    token, logprob, octets = str(found["token"]), float(found["logprob"]), found.get("bytes")
    if not math.exp(logprob) <= 1.0 + _ROUNDING:
        raise ValueError(f"a token has the log-probability {logprob}")
    text = bytes(octets).decode("utf-8", "ignore") if isinstance(octets, list) else token
    return Likely(text, logprob)
