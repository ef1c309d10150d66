"""What servers answer, made so that AutoGen and we can read it; what is no answer is refused with a reason.

Servers that call themselves OpenAI-compatible leave fields out, or fill them in their own ways.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agents.models.errors import ModelError
from scenarios.transcript import Count

_THOUGHTS_END = "</think>"
_THOUGHTS_BEGIN = "<think>"
_ONLY_THOUGHTS = (
    "the model gave nothing but its reasoning. Switch that off on the server, or raise the limit of tokens."
)

_COUNT = TypeAdapter[int](Count)

_ROUNDING = 1e-3
"""By so much servers exceed a probability of 1."""


def is_completion(body: Mapping[str, Any]) -> bool:
    """Whether a server's answer is a chat completion with a message."""
    choices = body.get("choices")
    return isinstance(choices, list) and all(
        isinstance(choice, dict) and isinstance(choice.get("message"), dict)
        for choice in choices[:1] or [None]
    )


def readable(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same completion without what cannot be read or is not said to the user.

    Numbers of tokens that are none and log-probabilities of another form are left out, bytes of tokens filled
    in. A refusal counts as the text that it is, reasoning between `<think>` and `</think>` does not.

    Args:
        body: a chat completion.

    Raises:
        ModelError: it says nothing to the user: it calls a tool, was filtered, or holds only reasoning.
    """
    first, *others = body["choices"]
    choice = {**first, "message": {**first["message"], "content": _said(first)}}
    if "logprobs" in first:
        choice["logprobs"] = _log_probabilities(first["logprobs"])
    found = {**body, "choices": [choice, *others]}
    if not tells_tokens(body):
        found.pop("usage", None)
    return found


def tells_tokens(body: Mapping[str, Any]) -> bool:
    """Whether an answer says how many tokens were read and written; a negative number says nothing."""
    usage = _object(body.get("usage"))
    return all(_count(usage.get(name)) is not None for name in ("prompt_tokens", "completion_tokens"))


def cached_tokens(body: Mapping[str, Any]) -> int | None:
    """How many tokens of the prompt came from the server's cache, or None where the answer does not say."""
    return _count(_object(_object(body.get("usage")).get("prompt_tokens_details")).get("cached_tokens"))


def _count(found: Any) -> int | None:
    """The number of tokens, or None where that is none."""
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


def _log_probabilities(found: Any) -> dict[str, Any] | None:
    """Those of the tokens, or None when they have another form."""
    try:
        return {"content": [_token(one) for one in found["content"]]}
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
        return None


def _token(found: Mapping[str, Any]) -> dict[str, Any]:
    return {**_likely(found), "top_logprobs": [_likely(one) for one in found.get("top_logprobs") or ()]}


def _likely(found: Mapping[str, Any]) -> dict[str, Any]:
    """One token; AutoGen keeps only its bytes, which servers may leave out.

    Raises:
        ValueError: it has no probability.
    """
    token, logprob, octets = str(found["token"]), float(found["logprob"]), found.get("bytes")
    if not math.exp(logprob) <= 1.0 + _ROUNDING:
        raise ValueError(f"a token has the log-probability {logprob}")
    read = bytes(octets) if isinstance(octets, list) else token.encode()
    return {"token": token, "logprob": logprob, "bytes": list(read)}
