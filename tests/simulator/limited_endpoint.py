"""An endpoint that works, but lacks something that ours have, and plays everybody in a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from hallulab.testing import endpoint as stub_endpoint
from tests.simulator.echoing_server import endpoint, http

Request = dict[str, Any]
Limit = Callable[[Request], str | Request]
"""From a request to the complaint about it, or to the request as the endpoint understands it."""


def refusing(*names: str) -> Limit:
    """Complains about arguments of these names."""

    def limit(request: Request) -> str | Request:
        wrong = [name for name in names if name in request]
        return f"unknown argument: {wrong[0]}" if wrong else request

    return limit


def ignoring(*names: str) -> Limit:
    """Takes arguments of these names and does nothing with them."""
    return lambda request: {name: value for name, value in request.items() if name not in names}


def thinking() -> Limit:
    """Takes what OpenAI's reasoning models take."""

    def limit(request: Request) -> str | Request:
        if "max_tokens" in request:
            return "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
        if request.get("temperature", 1) != 1:
            return "Unsupported value: 'temperature' does not support 0.0. Only the default (1) is supported."
        if "logprobs" in request:
            return "You are not allowed to request logprobs from this model"
        return {**request, "max_tokens": request["max_completion_tokens"], "temperature": 0.0}

    return limit


def plain(*others: str) -> Limit:
    """Takes no roles but those of the two speakers, no names, no log-probabilities and none of the others."""

    def limit(request: Request) -> str | Request:
        roles = [message["role"] for message in request["messages"]]
        if not {*roles} <= {"user", "assistant", "tool"}:
            return "System role not supported"
        if any("name" in message for message in request["messages"]):
            return "messages.0.name: Extra inputs are not permitted"
        return refusing("logprobs", *others)(request)

    return limit


@contextmanager
def limited_endpoint(limit: Limit, word: Callable[[str], str] | None = None) -> Iterator[str]:
    """Serve a model called `stub`; gives the base URL.

    Args:
        limit: what the endpoint lacks.
        word: what the model prints where it is asked for a decision, by the last message.
    """
    numbers = count()

    def answer(request: Request | None) -> bytes:
        if request is None:
            return http(json.dumps(stub_endpoint.models()))
        understood = limit(request)
        if isinstance(understood, str):
            return http(json.dumps({"error": {"message": understood}}), 400)
        return http(json.dumps(_completion(understood, word or printed_word, next(numbers))))

    with endpoint(answer) as url:
        yield url


def printed_word(question: str) -> str:
    """A decision, as a model without log-probabilities prints it."""
    if question.endswith("Letter:"):
        return "A."
    return "Fact." if "Fact" in question else "No, it is not."


def _completion(request: Request, word: Callable[[str], str], number: int) -> Request:
    body = stub_endpoint.completion(request)
    question = request["messages"][-1]["content"]
    message = body["choices"][0]["message"]
    schema = question.rpartition("and with nothing else:\n")[2]
    if "response_format" in request or request.get("logprobs"):
        return body
    if schema != question:
        described = json.loads(schema)
        made = stub_endpoint.instance(described, described.get("$defs", {}))
        message["content"] = f"Here it is:\n```json\n{json.dumps(made)}\n```"
    elif request["max_tokens"] <= 8:
        message["content"] = word(question)
    elif "\n1. " in question:
        message["content"] = "1: The fee is 200 rupees."
    elif "seed" not in request and request["temperature"] > 0:
        message["content"] = f"Number {number}: {message['content']} Is that so?"
    return body
