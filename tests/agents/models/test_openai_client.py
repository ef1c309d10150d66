from __future__ import annotations

import json
from typing import Any

import httpx2
from openai import AsyncOpenAI

from agents.models.openai_client import QuickOpenAI

REQUEST: dict[str, Any] = {
    "model": "toy",
    "messages": [
        {"role": "system", "content": "You are brief."},
        {"role": "user", "content": [{"type": "text", "text": "When?"}], "name": "user"},
        {"role": "assistant", "content": "In 2019."},
    ],
    "seed": 3,
    "temperature": 0.5,
    "response_format": {"type": "json_schema", "json_schema": {"name": "N", "schema": {"type": "object"}}},
    "extra_body": {"cache_salt": "a"},
}


async def sent(client: type[AsyncOpenAI]) -> Any:
    """The body that `client` sends."""
    bodies: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        return httpx2.Response(200, json={"choices": [{"message": {"role": "assistant", "content": "Yes."}}]})

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    asked = client(base_url="http://127.0.0.1:9/v1", api_key="none", http_client=http)
    assert (await asked.chat.completions.create(**REQUEST)).choices[0].message.content == "Yes."
    return bodies


async def test_what_is_sent_is_what_openais_client_sends() -> None:
    assert await sent(QuickOpenAI) == await sent(AsyncOpenAI)
    assert (await sent(QuickOpenAI))[0]["messages"] == REQUEST["messages"]
