"""Answers in JSON: by a schema that the server enforces, or by the prompt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from hallulab.agents.models.answers import Completion
from hallulab.agents.models.errors import UnparseableAnswer
from hallulab.agents.models.prompt import ChatMessage, load_prompt

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
    try:
        return schema.model_validate_json(_find_outermost_object(content) if lenient else content)
    except ValidationError as error:
        cut = " (cut off at the token limit)" if completion.finish_reason == "length" else ""
        raise UnparseableAnswer(
            f"{step}: the model's answer is no {schema.__name__}{cut}: {content[:120]!r}"
        ) from error


def _find_outermost_object(text: str) -> str:
    """Return the text from the first brace to the last one; all of it if there are none."""
    begin, end = text.find("{"), text.rfind("}")
    return text[begin : end + 1] if 0 <= begin < end else text
