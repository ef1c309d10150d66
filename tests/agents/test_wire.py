from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agents.errors import ReplayMiss
from agents.wire import EXCHANGE, Exchange, Wire, is_retryable
from scenarios.recording import Recording
from tests.scripted import completion

URL = "http://127.0.0.1:9/v1/chat/completions"


class Server(httpx2.AsyncBaseTransport):
    """Answers each request after a few turns of the event loop, and counts how many are under way."""

    def __init__(self, answer: Callable[[Any], httpx2.Response] | None = None) -> None:
        self.answer = answer or (lambda body: httpx2.Response(200, json=completion(str(body))))
        self.now = 0
        self.most = 0
        self.total = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.total += 1
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            for _ in range(5):
                await asyncio.sleep(0)
            return self.answer(json.loads(await request.aread() or b"null"))
        finally:
            self.now -= 1


def _wire(server: Server, recording: Recording | None = None, concurrency: int = 16) -> Wire:
    recording = Recording() if recording is None else recording
    return Wire(recording, asyncio.Semaphore(concurrency), 5.0, server)


async def _post(wire: Wire, body: Mapping[str, Any], **headers: str) -> tuple[httpx2.Response, Exchange]:
    exchange = Exchange()
    token = EXCHANGE.set(exchange)
    try:
        request = httpx2.Request("POST", URL, json=body, headers=headers)
        return await wire.handle_async_request(request), exchange
    finally:
        EXCHANGE.reset(token)


@pytest.mark.parametrize("bound", [1, 3])
async def test_no_more_requests_than_the_gate_allows_are_under_way(bound: int) -> None:
    server = Server()
    wire = _wire(server, concurrency=bound)
    await asyncio.gather(*(_post(wire, {"n": n}) for n in range(10)))
    assert (server.most, server.total) == (bound, 10)


async def test_an_equal_request_later_is_not_sent_again() -> None:
    server = Server()
    wire = _wire(server)
    first, _ = await _post(wire, {"n": 1, "m": 2})
    second, exchange = await _post(wire, {"m": 2, "n": 1})
    assert server.total == 1
    assert first.json() == second.json()
    assert exchange.replayed


@pytest.mark.parametrize(
    "other", [{"seed": 2, "text": "a"}, {"seed": 1, "text": "a "}, {"seed": 1, "text": "a", "top": None}]
)
async def test_requests_that_differ_at_all_are_different(other: dict[str, Any]) -> None:
    server = Server()
    wire = _wire(server)
    await _post(wire, {"seed": 1, "text": "a"})
    await _post(wire, other)
    assert server.total == 2


@pytest.mark.parametrize("status", [429, 500, 503, 401, 403, 404])
async def test_an_answer_that_may_change_is_not_recorded(status: int, tmp_path: Path) -> None:
    server = Server(lambda _: httpx2.Response(status, json={"error": {"message": "no"}}))
    recording = Recording.record(tmp_path / "r.jsonl")
    wire = _wire(server, recording)
    assert (await _post(wire, {"n": 1}))[0].status_code == status
    recording.close()
    assert (tmp_path / "r.jsonl").read_text() == ""
    assert len(recording) == 0


@pytest.mark.parametrize("status", [200, 400, 422])
async def test_an_answer_that_will_not_change_is_recorded(status: int) -> None:
    recording = Recording()
    wire = _wire(Server(lambda _: httpx2.Response(status, json=completion("no"))), recording)
    await _post(wire, {"n": 1})
    assert len(recording) == 1


async def test_a_replayed_answer_keeps_the_recorded_latency(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recording = Recording.record(path)
    first, live = await _post(_wire(Server(), recording), {"n": 1})
    recording.close()
    server = Server()
    second, replayed = await _post(_wire(server, Recording.replay(path)), {"n": 1})
    assert server.total == 0
    assert second.json() == first.json()
    assert (replayed.replayed, replayed.latency_s) == (True, round(live.latency_s, 4))


async def test_a_replay_without_the_answer_says_how_to_get_it(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"kind":"model","key":"another","answer":1}\n')
    with pytest.raises(
        ReplayMiss, match=r"r\.jsonl has no answer to this request: .* or record again with --record\."
    ):
        await _post(_wire(Server(), Recording.replay(path)), {"n": 1})


async def test_the_key_is_in_no_recording_even_when_the_server_repeats_it(tmp_path: Path) -> None:
    def repeats(_: Any) -> httpx2.Response:
        return httpx2.Response(400, json={"error": {"message": "bad key sk-secret-1 given"}})

    path = tmp_path / "r.jsonl"
    recording = Recording.record(path)
    response, _ = await _post(_wire(Server(repeats), recording), {"n": 1}, Authorization="Bearer sk-secret-1")
    recording.close()
    assert "sk-secret-1" not in path.read_text()
    assert "sk-secret-1" not in response.text
    assert response.json()["error"]["message"] == "bad key [key] given"


async def test_an_answer_that_is_no_json_becomes_an_error_body() -> None:
    wire = _wire(Server(lambda _: httpx2.Response(400, text="<html>Bad gateway</html>")))
    response, _ = await _post(wire, {"n": 1})
    assert response.json() == {"error": {"message": "<html>Bad gateway</html>"}}


@pytest.mark.parametrize("body", ["null", "[]", '"text"', "7"])
async def test_json_that_is_no_object_becomes_an_error_body(body: str) -> None:
    wire = _wire(Server(lambda _: httpx2.Response(400, text=body)))
    response, _ = await _post(wire, {"n": 1})
    assert response.json() == {"error": {"message": body}}


async def test_tokens_from_the_prefix_cache_are_noted() -> None:
    body = {**completion("ok"), "usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}}}
    _, exchange = await _post(_wire(Server(lambda _: httpx2.Response(200, json=body))), {"n": 1})
    assert exchange.cached_tokens == 8
    _, exchange = await _post(_wire(Server()), {"n": 1})
    assert exchange.cached_tokens is None


async def test_questions_about_the_server_are_never_recorded() -> None:
    recording = Recording()
    server = Server()
    wire = _wire(server, recording)
    for _ in range(2):
        await wire.handle_async_request(httpx2.Request("GET", "http://127.0.0.1:9/v1/models"))
    assert (server.total, len(recording)) == (2, 0)


@pytest.mark.parametrize(
    ("status", "again"),
    [(200, False), (400, False), (404, False), (408, True), (429, True), (500, True), (503, True)],
)
def test_which_answers_are_worth_another_try(status: int, again: bool) -> None:
    assert is_retryable(status) is again
