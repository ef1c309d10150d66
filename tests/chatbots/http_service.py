"""A service behind an HTTP interface, for tests of the bot that asks it."""

from __future__ import annotations

import json
from typing import Any

import httpx2

from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.chatbots.http_bot import HttpBot
from hallulab.chatbots.protocol import ChatbotContext, Reply
from hallulab.chatbots.registry import make_chatbot
from tests.chatbots.stage import LATER, SCENARIO, Shelf

URL = "http://127.0.0.1:9000/chat"
MESSAGE = {"message": "{{ message }}"}
FORM = "application/x-www-form-urlencoded"
OPENS = {"answer": {"text": "It opens at 7."}}


class Service(httpx2.AsyncBaseTransport):
    """Gives answers, the last one again and again, and keeps what it was sent."""

    def __init__(self, *answers: httpx2.Response | Exception | dict[str, Any]) -> None:
        self.answers = list(answers) or [OPENS]
        self.requests: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx2.Response(200, json=answer) if isinstance(answer, dict) else answer

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests]


def make(service: Service, recording: Recording | None = None, seed: int = 0, **options: Any) -> HttpBot:
    pool = ModelPool(
        {"default": Endpoint("m", "http://127.0.0.1:9/v1")}, transport=service, recording=recording
    )
    given = {"url": URL, "reply": "answer.text", **options}
    if given.get("method") != "GET":
        given.setdefault("body", MESSAGE)
    context = ChatbotContext(models=pool, knowledge=Shelf(), scenario=SCENARIO, options=given, seed=seed)
    made = make_chatbot("http", context)
    assert isinstance(made, HttpBot)
    return made


async def ask(service: Service, **options: Any) -> Reply:
    return await make(service, **options).reply(LATER)


def stream(*lines: str) -> httpx2.Response:
    headers = {"Content-Type": "text/event-stream; charset=utf-8"}
    return httpx2.Response(200, content="\n".join(lines).encode(), headers=headers)


def accepted(value: Any = None, **headers: str) -> httpx2.Response:
    return httpx2.Response(202, json=value or {"status": "queued"}, headers={"Retry-After": "0", **headers})


def say(*data: str) -> httpx2.Response:
    return stream(*(f"data: {one}\n" for one in data))
