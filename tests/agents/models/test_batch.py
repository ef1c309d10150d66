"""Requests that go out in waves, and what comes of each."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hallulab.agents.models import batch
from hallulab.agents.models.answers import ModelError, RefusedRequest
from hallulab.agents.models.batch import BatchTransport
from hallulab.agents.models.transport import CallRecord
from hallulab.agents.models.wave_files import Asked, Service, Wave, WaveStore
from hallulab.scenarios.errors import OperationalError
from hallulab.testing.scripted import completion
from tests.agents.models.endpoints import LOCAL, pool_at

Line = dict[str, Any]


class Runner:
    """Answers each wave from a function of the lines asked, and counts what it is asked one by one."""

    service: Service = "vllm"

    def __init__(self, answer: Callable[[Line], Line | str | None] | None = None) -> None:
        self._answer = answer or good
        self.waves: list[list[Line]] = []
        self.one_by_one = 0

    async def ask(self, request: httpx2.Request) -> httpx2.Response:
        self.one_by_one += 1
        return httpx2.Response(200, json=completion("at once"), request=request)

    async def settle(self) -> None:
        pass

    async def run(self, wave: Wave, api_key: str) -> None:
        asked = [json.loads(line) for line in wave.input.read_text().splitlines()]
        self.waves.append(asked)
        lines = [self._answer(line) for line in asked]
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines if line is not None]
        wave.raw.write_text("".join(f"{text}\n" for text in texts))

    async def aclose(self) -> None:
        pass


def good(asked: Line) -> Line:
    """A line that answers with the last message in capitals."""
    body = completion(asked["body"]["messages"][-1]["content"].upper())
    return {"custom_id": asked["custom_id"], "response": {"status_code": 200, "body": body}, "error": None}


def refused(asked: Line, status: int) -> Line:
    """A line that refuses a request, as OpenAI's API does."""
    response = {"status_code": status, "body": {"error": {"message": "no"}}}
    return {"custom_id": asked["custom_id"], "response": response, "error": None}


def say_nothing(line: str) -> None:
    """Where nobody listens."""


async def answers(
    runner: Runner, folder: Path, *texts: str, url: str = LOCAL, tell: Callable[[str], None] = say_nothing
) -> list[str | BaseException]:
    """What comes of questions that are asked at the same time, in waves."""
    transport = BatchTransport(runner, patience_s=0.5)
    transport.open(folder, fresh=False)
    pool = pool_at(transport, url, concurrency=1000)

    async def ask(text: str) -> str:
        with transport.work.piece():
            extra = {"temperature": 0.0}
            messages = [{"role": "user", "content": text}]
            return (await pool.get().create(messages, extra, CallRecord())).text

    async with transport.sending_waves([LOCAL], tell):
        return await asyncio.gather(*map(ask, texts), return_exceptions=True)


async def test_what_is_asked_at_the_same_time_is_one_wave(tmp_path: Path) -> None:
    runner = Runner()
    assert await answers(runner, tmp_path, "a", "b", "a", "c") == ["A", "B", "A", "C"]
    [asked] = runner.waves
    assert sorted(line["body"]["messages"][0]["content"] for line in asked) == ["a", "b", "c"]
    assert {(line["method"], line["url"]) for line in asked} == {("POST", "/v1/chat/completions")}
    assert asked[0]["custom_id"] == Asked(f"{LOCAL}/chat/completions", asked[0]["body"]).id


async def test_a_wave_is_told_when_it_is_handed_over_and_when_it_is_answered(tmp_path: Path) -> None:
    told: list[str] = []
    await answers(Runner(), tmp_path, "a", "b", tell=told.append)
    lines = [line.rpartition(", ")[0] for line in told]
    assert lines == ["wave 1: 2 requests handed over", "wave 1: answered"]


async def test_what_is_known_is_not_asked_again_by_another_process(tmp_path: Path) -> None:
    await answers(Runner(), tmp_path, "a", "b")
    runner = Runner()
    assert await answers(runner, tmp_path, "b", "c") == ["B", "C"]
    assert [[line["body"]["messages"][0]["content"] for line in wave] for wave in runner.waves] == [["c"]]


async def test_a_line_that_refuses_is_that_requests_error_alone(tmp_path: Path) -> None:
    runner = Runner(lambda asked: refused(asked, 400) if "b" in json.dumps(asked["body"]) else good(asked))
    first, second = await answers(runner, tmp_path, "a", "b")
    assert first == "A"
    assert isinstance(second, RefusedRequest)
    assert str(second) == f"model 'm' at {LOCAL} refused the request with status 400: no"
    assert len(runner.waves) == 1


async def test_a_request_that_failed_for_the_time_being_is_in_the_next_wave(tmp_path: Path) -> None:
    def answer(asked: Line) -> Line:
        return good(asked) if len(runner.waves) == 2 else refused(asked, 429)

    runner = Runner(answer)
    assert await answers(runner, tmp_path, "a", "b") == ["A", "B"]
    assert [len(wave) for wave in runner.waves] == [2, 2]


@pytest.mark.parametrize("line", [None, "no JSON", '{"custom_id": "of another"}', "[]"])
async def test_a_missing_line_is_an_error_of_its_request(tmp_path: Path, line: str | None) -> None:
    runner = Runner(lambda asked: line if "b" in json.dumps(asked["body"]) else good(asked))
    first, second = await answers(runner, tmp_path, "a", "b")
    assert first == "A"
    assert isinstance(second, RefusedRequest)
    assert "has no line for this request" in str(second)
    assert [len(wave) for wave in runner.waves] == [2, 1, 1, 1]  # four tries


async def test_an_answer_that_is_none_is_an_error_as_one_by_one(tmp_path: Path) -> None:
    def answer(asked: Line) -> Line:
        return {"custom_id": asked["custom_id"], "response": {"status_code": 200, "body": {"x": 1}}}

    [found] = await answers(Runner(answer), tmp_path, "a")
    assert isinstance(found, ModelError)
    assert "gave an answer that is no chat completion" in str(found)


async def test_other_servers_are_asked_at_once(tmp_path: Path) -> None:
    runner = Runner()
    assert await answers(runner, tmp_path, "a", url="http://127.0.0.1:8/v1") == ["at once"]
    assert (runner.one_by_one, runner.waves) == (1, [])


async def test_a_wave_that_fails_as_a_whole_ends_the_run(tmp_path: Path) -> None:
    def answer(asked: Line) -> Line:
        raise OperationalError("the disk is full")

    with pytest.raises(OperationalError, match="the disk is full"):
        await answers(Runner(answer), tmp_path, "a", "b")


@pytest.mark.parametrize(
    ("bound", "most", "sizes"), [("MOST_REQUESTS", 2, [2, 2, 1]), ("MOST_BYTES", 1, [1, 1, 1, 1, 1])]
)
async def test_a_large_wave_is_several_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int, sizes: list[int]
) -> None:
    monkeypatch.setattr(batch, bound, most)
    runner = Runner()
    assert await answers(runner, tmp_path, *"abcde") == [*"ABCDE"]
    assert [len(wave) for wave in runner.waves] == sizes


async def test_what_was_asked_before_the_waves_is_known_later(tmp_path: Path) -> None:
    runner = Runner()
    for _ in range(2):
        transport = BatchTransport(runner)
        transport.open(tmp_path, fresh=False)
        client = pool_at(transport).get()
        told = await client.create([{"role": "user", "content": "a"}], {}, CallRecord())
        assert told.text == "at once"
        async with transport.sending_waves([LOCAL], say_nothing):
            pass
    assert runner.one_by_one == 1
    assert WaveStore(tmp_path, fresh=False).open == []
    assert os.listdir(tmp_path) == ["wave-0000-output.jsonl"]


class Forwarding(Runner):
    """Notes which address each wave goes to, and with which key; fails at first, so that the wave is open."""

    service: Service = "api"

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, str]] = []

    async def run(self, wave: Wave, api_key: str) -> None:
        self.sent.append((wave.state.base_url, api_key))
        if len(self.sent) == 1:
            raise OperationalError("killed")
        await super().run(wave, api_key)


@pytest.mark.parametrize("address", [LOCAL, "http://evil.example/v1"])
async def test_a_wave_of_a_folder_names_no_address_for_a_key(tmp_path: Path, address: str) -> None:
    runner = Forwarding()
    with pytest.raises(OperationalError, match="killed"):
        await answers(runner, tmp_path, "one")
    state = tmp_path / "wave-0001.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "base_url": address}))
    assert await answers(runner, tmp_path, "one") == ["ONE"]
    assert {url for url, _ in runner.sent} == {LOCAL}
    assert (tmp_path / "wave-0002-output.jsonl").exists() == (address != LOCAL)


async def test_no_answer_that_repeats_a_header_is_kept(tmp_path: Path) -> None:
    class Repeating(Runner):
        async def ask(self, request: httpx2.Request) -> httpx2.Response:
            return httpx2.Response(200, json=completion(request.headers["x-key"]), request=request)

    transport = BatchTransport(Repeating(), patience_s=0.5)
    transport.open(tmp_path, fresh=False)
    headers = {"x-key": "hk-1234567890", "Content-Type": "application/json"}
    body = {"model": "m", "messages": []}
    await transport.handle_async_request(
        httpx2.Request("POST", f"{LOCAL}/chat/completions", json=body, headers=headers)
    )
    assert "hk-1234567890" not in read_all(tmp_path)


def read_all(folder: Path) -> str:
    return "".join(file.read_text() for file in folder.rglob("*") if file.is_file())
