"""Read a model's answer: its text and tokens, a decision by one token, JSON by a schema.

Servers that call themselves OpenAI-compatible leave fields out or fill them in their own ways.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from hallulab.agents.models.finish_reasons import find_break, find_reason, name_ending
from hallulab.agents.models.log_probabilities import Likely, read_answers_first_token
from hallulab.agents.models.prompt import ChatMessage, load_prompt
from hallulab.agents.models.written_calls import writes_call
from hallulab.scenarios.errors import OperationalError
from hallulab.scenarios.text.thoughts import leave_out_thoughts
from hallulab.scenarios.transcript import Count


class ModelError(OperationalError):
    """A model gave no answer: it was unreachable, refused the request or timed out."""


class RefusedRequest(ModelError):
    """The endpoint answered with an error: its HTTP status is at least 300."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


class ImpossibleAnswer(ModelError):
    """An answer that the asked model cannot have given. It is not recorded."""


class BrokenAnswer(ModelError):
    """An answer that broke off, or came without what it is for. It is not recorded, and asked for again."""


class UnparseableAnswer(ModelError):
    """A model's answer does not have the requested form."""


class UnlikelyOptions(UnparseableAnswer):
    """The first token is probably none of the options.

    Args:
        shares: each option's part of the little probability that they have; None: they have none.
    """

    def __init__(self, reason: str, shares: Mapping[str, float] | None) -> None:
        super().__init__(reason)
        self.shares = shares


ONLY_THOUGHTS = (
    "the model gave nothing but its reasoning. Switch that off on the server, or raise the limit of tokens."
)
WRITTEN_CALL = "the model wrote the call of a tool as text in place of an answer."

UNREADABLE = (
    "the answer's letters are not UTF-8, and its content type names no charset that they are in. Mend that "
    "at the endpoint, or at a proxy before it."
)

USED_UP = (
    "its limit of tokens was used up before it said anything, perhaps by thoughts that are not shown. "
    "Raise the limit, give the model `thoughts`, or switch thinking off on the server"
)
"""Why an answer that was cut at its limit is empty."""

_NUMBER = re.compile(r"\d{1,9}")

_COUNT = TypeAdapter[int](Count)

_FEWEST_TOKENS = 16
"""A limit of fewer tokens is for a word, which a server may well call whole."""

_A_WORD = 4
"""Characters of an answer that may be of no token by a server's guess."""

_THOUGHTS = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "reasoning_text",
    "thinking",
    "thinking_blocks",
    "thoughts",
)
"""Fields of a message that hold thoughts, by various servers."""

_CALLS = frozenset({"tool_use", "tool_call", "function_call", "functionCall"})
"""Kinds of the parts of a message that call a tool."""

_THOUGHT_PARTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""Kinds of the parts of a message that are thoughts."""

_SPOKEN_PARTS = frozenset({"text", "output_text", "refusal"})
"""Kinds of the parts of a message that are said to the user."""


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool that the model asks for."""

    id: str
    """Identifies the tool's result among others."""
    name: str
    arguments: str
    """Its arguments, as the text of a JSON object."""


@dataclass(frozen=True)
class Completion:
    """A model's answer, as we read it."""

    text: str
    """The text for the user, without reasoning."""
    finish_reason: str
    """`stop`, `length`, `function_calls` or `unknown`."""
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
    sources: Mapping[str, Any] = field(default_factory=dict)
    """Possible sources that came with the text, by the keys in `SOURCES`."""


SOURCES = ("search_results", "citations", "context", "annotations", "sources", "reference", "documents")
"""Keys of what services cite, in a completion or its message."""


def is_completion(body: Mapping[str, Any]) -> bool:
    """Return whether a server's answer is a chat completion with a message."""
    choices = body.get("choices")
    return isinstance(choices, list) and all(
        isinstance(choice, dict) and isinstance(choice.get("message"), dict)
        for choice in choices[:1] or [None]
    )


def order_choices(body: Any) -> Any:
    """Return an answer with its choices by their `index`, as far as they have one: the first one is read."""
    choices = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list) or not all(
        isinstance(choice, dict) and _NUMBER.fullmatch(str(choice.get("index"))) for choice in choices
    ):
        return body
    return {**body, "choices": sorted(choices, key=lambda choice: int(choice["index"]))}


def read_completion(
    body: Mapping[str, Any], *, tools_offered: bool = False, limit: int | None = None
) -> Completion:
    """Read the first choice of a chat completion.

    Invalid numbers of tokens and log-probabilities in another form count as not given, and so do zeros where
    there is a text. A refusal counts as the answer's text. Thoughts are left out
    (`hallulab.agents.models.thoughts`).

    Args:
        body: an answer for which `is_completion` is True.
        tools_offered: whether the model may call tools instead of answering.
        limit: tokens that the answer might have; None: as many as it likes. Some servers call an answer whole
            that used all of them.

    Raises:
        BrokenAnswer: it broke off.
        ModelError: it holds no text for the user: it calls a tool that was not offered, or as text, or is
            only reasoning. Also if it has another form.
    """
    check_ending(body)
    choice = body["choices"][0]
    usage = _object(body.get("usage"))
    tool_calls = _tool_calls(choice["message"]) if tools_offered else ()
    text = "" if tool_calls else _said(choice, tools_offered)
    told = [_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
    # Some servers tell zeros for what they do not count; those that guess round a word down to none.
    known = None not in told and bool(told[0]) and bool(told[1] or len(text) <= _A_WORD)
    prompt, completion = told if known else (None, None)
    # Anthropic's count the others alone as prompt, so that more are cached than there are.
    cached = _count(_object(usage.get("prompt_tokens_details")).get("cached_tokens"))
    ending = name_ending(find_reason(choice))
    is_used_up = completion is not None and limit is not None and completion >= limit >= _FEWEST_TOKENS
    if ending in ("stop", "unknown") and is_used_up and text.rstrip()[-1:].isalnum():
        ending = "length"  # in the middle of a sentence
    return Completion(
        text=text,
        finish_reason=ending,
        first_token=read_answers_first_token(choice.get("logprobs"), text),
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=None if cached is None or cached > (prompt or cached) else cached,
        tool_calls=tool_calls,
        sources={
            key: holder[key] for holder in (body, choice["message"]) for key in SOURCES if holder.get(key)
        },
    )


def _count(found: Any) -> int | None:
    """Return a number of tokens, or None if it is not valid."""
    try:
        return _COUNT.validate_python(found, strict=True)
    except ValidationError:
        return None


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _said(choice: Mapping[str, Any], tools_offered: bool) -> str:
    message = choice["message"]
    spoken_aloud = _object(message.get("audio")).get("transcript")
    content = message.get("content") or message.get("refusal") or spoken_aloud or ""
    if isinstance(content, dict):
        content = content["parts"] if isinstance(content.get("parts"), list) else [content]
    calls = message.get("tool_calls") or message.get("function_call")
    if isinstance(content, list) and all(isinstance(part, dict | str) for part in content):
        calls = calls or any(_name_kind(part) in _CALLS for part in content)
        content = join_parts(content)
    if not isinstance(content, str):
        raise ModelError(f"the model's answer is a {type(content).__name__} and no text.")
    if calls:
        raise ModelError("the model called a tool in place of an answer, although none was offered.")
    spoken = leave_out_thoughts(content.removeprefix("\ufeff"))
    if not tools_offered and (spoken.called or writes_call(spoken.text)):
        raise ModelError(WRITTEN_CALL)
    parts, own = message.get("content"), _object(message.get("provider_specific_fields"))
    in_parts = isinstance(parts, list) and any(_name_kind(part) in _THOUGHT_PARTS for part in parts)
    thought = (
        spoken.thought or in_parts or any(held.get(name) for held in (message, own) for name in _THOUGHTS)
    )
    if thought and not spoken.text.strip():
        raise ModelError(ONLY_THOUGHTS)
    return spoken.text


def join_parts(parts: Sequence[Mapping[str, Any] | str]) -> str:
    """Return the texts of an answer's parts; other parts, such as thoughts, are left out."""
    return "".join(part if isinstance(part, str) else _read_part(part) for part in parts)


def _name_kind(part: Any) -> str:
    return str(_object(part).get("type", "text"))


def _read_part(part: Mapping[str, Any]) -> str:
    """Return the text of a part, or its refusal; nothing if it is something else, or a thought."""
    kind = _name_kind(part).lower()
    if part.get("thought") is True or kind not in _SPOKEN_PARTS:
        return ""
    text = next((part[name] for name in ("text", "content", "refusal") if part.get(name)), "")
    text = text.get("value") if isinstance(text, dict) else text
    return text if isinstance(text, str) else ""


def check_ending(body: Mapping[str, Any]) -> None:
    """Check that an answer did not break off.

    Args:
        body: an answer for which `is_completion` is True.

    Raises:
        BrokenAnswer: it did; says why.
        ModelError: its `finish_reason` is no text.
    """
    told = body["choices"][0].get("finish_reason")
    if told is not None and not isinstance(told, str):
        raise ModelError("the model's answer is no chat completion: its `finish_reason` is no text.")
    broken = find_break(body)
    if broken is not None:
        raise BrokenAnswer(broken)


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


LIMITS = ("max_tokens", "max_completion_tokens")
"""Arguments that limit an answer's tokens."""


def read_limit(body: Mapping[str, Any]) -> int | None:
    """Return the limit of an answer's tokens; None if a request has none."""
    return next((body[name] for name in LIMITS if isinstance(body.get(name), int)), None)


Answer = TypeVar("Answer", bound=BaseModel)


def describe_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """Return the `response_format` that makes a server follow a pydantic model."""
    return {
        "type": "json_schema",
        "json_schema": {"name": schema.__name__, "schema": schema.model_json_schema(), "strict": True},
    }


def ask_for_json(messages: Sequence[ChatMessage], schema: type[BaseModel]) -> list[ChatMessage]:
    """Return the request with a closing question for an instance of a pydantic model."""
    asked, before = "", list(messages)
    if before and before[-1].role == "user":
        asked = before.pop().text
    described = json.dumps(schema.model_json_schema(), ensure_ascii=False)
    (message,) = load_prompt("hallulab.agents", "json_answer").fill(request=asked, schema=described)
    return [*before, ChatMessage("user", message.text.lstrip())]


def parse_answer(schema: type[Answer], completion: Completion, step: str, *, lenient: bool) -> Answer:
    """Validate a JSON answer.

    Args:
        lenient: whether text around the JSON object, such as a Markdown fence, is skipped.

    Raises:
        UnparseableAnswer: it is not an instance of `schema`.
    """
    content = completion.text
    begin, end = content.find("{"), content.rfind("}")
    inner = content[begin : end + 1] if lenient and 0 <= begin < end else content
    try:
        return schema.model_validate_json(inner)
    except ValidationError as error:
        cut = " (cut off at the token limit)" if completion.finish_reason == "length" else ""
        raise UnparseableAnswer(
            f"{step}: the model's answer is no {schema.__name__}{cut}: {content[:120]!r}"
        ) from error
