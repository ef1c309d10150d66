from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.endpoints import Credentials
from hallulab.agents.models.receiving import LARGEST, read_object, read_value
from hallulab.agents.models.recording import Recording
from hallulab.agents.models.transport import CallRecord, ModelCall, ModelTransport
from hallulab.scenarios.errors import ReplayMiss
from hallulab.scenarios.files.json_text import digest
from hallulab.testing.scripted import completion
from tests.agents.models.endpoints import failure

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


def _wire(server: Server, recording: Recording | None = None, concurrency: int = 16) -> ModelTransport:
    recording = Recording() if recording is None else recording
    return ModelTransport(recording, asyncio.Semaphore(concurrency), 5.0, server)


def _credentials(api_key: str) -> Credentials:
    return Credentials({"Authorization": f"Bearer {api_key}"}, (api_key,))


async def _post(
    wire: ModelTransport, body: Mapping[str, Any], api_key: str = "EMPTY"
) -> tuple[httpx2.Response, CallRecord]:
    call = ModelCall(lambda: _credentials(api_key), digest(body), body)
    return await wire.ask(httpx2.Request("POST", URL, json=body), call), call.record


def _tell(response: httpx2.Response) -> str:
    """Return all that others can read of an answer."""
    return f"{response.text} {read_value(response)} {response.headers}"


async def _list(wire: ModelTransport, api_key: str = "EMPTY") -> httpx2.Response:
    call = ModelCall(lambda: _credentials(api_key))
    return await wire.ask(httpx2.Request("GET", "http://127.0.0.1:9/v1/models"), call)


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
    assert read_object(first) == read_object(second)
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
    assert not (tmp_path / "r.jsonl").exists()
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
    assert read_object(second) == read_object(first)
    assert (replayed.replayed, replayed.latency_s) == (True, round(live.latency_s, 4))


async def test_the_key_is_in_no_recording_even_when_the_server_repeats_it(tmp_path: Path) -> None:
    def repeats(_: Any) -> httpx2.Response:
        return httpx2.Response(400, json={"error": {"message": "bad key sk-secret-1 given"}})

    path = tmp_path / "r.jsonl"
    recording = Recording.record(path)
    response, _ = await _post(_wire(Server(repeats), recording), {"n": 1}, "sk-secret-1")
    recording.close()
    assert "sk-secret-1" not in path.read_text()
    assert "sk-secret-1" not in _tell(response)
    assert read_object(response)["error"]["message"] == "bad key [key] given"


def _in_json(key: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in key)


@pytest.mark.parametrize("status", [200, 302, 400, 401, 404, 429, 500])
@pytest.mark.parametrize("form", [str, _in_json, lambda key: f"Bearer {key}"])
async def test_the_key_is_nowhere_in_what_comes_back(
    status: int, form: Callable[[str], str], tmp_path: Path
) -> None:
    """In texts, in keys, at every depth, and in headers."""
    key = "sk-secret/1-canary"
    text = (
        json.dumps(completion("said"))
        .replace("said", form(key))
        .replace('"usage"', f'"{form(key)}": [["{form(key)}"]], "usage"')
    )
    headers = {"Retry-After": key, "Location": f"http://127.0.0.1/{key}", "X-Echo": key}
    path = tmp_path / "r.jsonl"
    recording = Recording.record(path)
    wire = _wire(Server(lambda _: httpx2.Response(status, text=text, headers=headers)), recording)
    try:
        response, _ = await _post(wire, {"n": 1}, key)
        said = _tell(response)
    except ModelError as error:
        assert status == 302
        said = str(error)
    recording.close()
    assert "[key]" in said or status == 302
    assert "canary" not in said + (path.read_text() if path.exists() else "")


async def test_the_key_is_not_in_the_error_about_an_answer_that_is_no_json() -> None:
    wire = _wire(Server(lambda _: httpx2.Response(200, text="<b>Authorization: Bearer sk-secret-1</b>")))
    said = await failure(_post(wire, {"n": 1}, "sk-secret-1"))
    assert "'<b>Authorization: Bearer [key]</b>'" in said


@pytest.mark.parametrize("length", range(2000 - 12, 2001))
async def test_no_part_of_a_key_is_left_where_a_long_answer_is_cut(length: int) -> None:
    text = "x" * length + "sk-secret-1" + "y" * 100
    wire = _wire(Server(lambda _: httpx2.Response(400, text=text)))
    response, _ = await _post(wire, {"n": 1}, "sk-secret-1")
    assert "sk" not in _tell(response)


async def test_the_key_is_not_in_an_error_of_the_protocol() -> None:
    def breaks(_: Any) -> httpx2.Response:
        raise httpx2.RemoteProtocolError("illegal header line: b'sk-secret-1'")

    with pytest.raises(httpx2.RemoteProtocolError, match=r"illegal header line: b'\[key\]'") as caught:
        await _post(_wire(Server(breaks)), {"n": 1}, "sk-secret-1")
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("by", ["token", "bytes"])
async def test_a_key_that_tokens_spell_is_not_recorded(by: str) -> None:
    key = "sk-secret-1"
    body = completion({"a": 1.0})
    body["choices"][0]["logprobs"]["content"] = [
        {"token": char if by == "token" else "", "logprob": 0.0, "bytes": list(char.encode())} for char in key
    ]
    recording = Recording()
    wire = _wire(Server(lambda _: httpx2.Response(200, json=body)), recording)
    await _post(wire, {"n": 1}, key)
    (kept,) = recording._answers.values()
    assert kept["body"]["choices"][0]["logprobs"] == {"content": ["[key]"]}


PIECES = ["sk-se", "cret", "-1"]


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"message": {"content": "a"}, "logprobs": {"tokens": PIECES}}]},
        {"choices": [{"message": {"content": [{"type": "text", "text": piece} for piece in PIECES]}}]},
        {"choices": [{"message": {"content": "a", "tool_calls": [{"id": piece} for piece in PIECES]}}]},
        {"choices": [{"message": {"content": piece}} for piece in PIECES]},
        {"choices": [{"message": {}, "tops": [[{"token": "x"}, {"token": piece}] for piece in PIECES]}]},
        {"choices": [{"message": {}, "bytes": [list(piece.encode()) for piece in PIECES]}]},
        {"choices": [{"message": {}, "bytes": list("".join(PIECES).encode())}]},
        {"error": {"parts": PIECES}},
    ],
)
async def test_a_key_that_a_list_spells_is_not_recorded(body: dict[str, Any]) -> None:
    recording = Recording()
    status = 400 if "error" in body else 200
    wire = _wire(Server(lambda _: httpx2.Response(status, json=body)), recording)
    with suppress(ModelError):
        await _post(wire, {"n": 1}, "".join(PIECES))
    held = json.dumps(list(recording._answers.values()))
    assert "cret" not in held
    assert str(ord("k")) not in held


async def test_of_a_long_answer_that_is_no_json_no_half_key_is_kept() -> None:
    key = "sk-secret-1"
    escaped = _in_json(key)
    for cut in range(1, len(escaped), 5):
        recording = Recording()
        text = (escaped * 3000)[:-cut]
        wire = _wire(Server(lambda _, text=text: httpx2.Response(400, text=text)), recording)
        await _post(wire, {"n": 1}, key)
        (kept,) = recording._answers.values()
        assert kept["body"]["error"]["message"].replace("[key]", "") == ""


async def test_what_an_endpoint_says_of_its_models_has_no_key() -> None:
    wire = _wire(Server(lambda _: httpx2.Response(200, json={"data": [{"id": "sk-secret-1"}]})))
    told = await _list(wire, "sk-secret-1")
    assert told.json() == {"data": [{"id": "[key]"}]}


async def test_half_characters_and_numbers_that_are_none_are_replaced(tmp_path: Path) -> None:
    text = json.dumps(completion("a\ud800b")).replace('"created": 0', '"created": NaN')
    recording = Recording.record(tmp_path / "r.jsonl")
    response, _ = await _post(_wire(Server(lambda _: httpx2.Response(200, text=text)), recording), {"n": 1})
    recording.close()
    assert read_object(response)["choices"][0]["message"]["content"] == "a\ufffdb"
    assert "created" not in read_object(response)
    again, _ = await _post(_wire(Server(), Recording.replay(tmp_path / "r.jsonl")), {"n": 1})
    assert read_object(again) == read_object(response)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"choices":' * 200_000, '{"a":' * 300 + "1" + "}" * 300])
async def test_a_deeply_nested_answer_is_no_chat_completion(text: str) -> None:
    with pytest.raises(ModelError, match="gave an answer that is no chat completion: '"):
        await _post(_wire(Server(lambda _: httpx2.Response(200, text=text))), {"n": 1})


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
async def test_an_answer_in_another_encoding_is_read_without_its_key(encoding: str) -> None:
    text = json.dumps(completion("Bearer sk-secret-1"))
    wire = _wire(Server(lambda _: httpx2.Response(200, content=text.encode(encoding))))
    response, _ = await _post(wire, {"n": 1}, "sk-secret-1")
    assert read_object(response)["choices"][0]["message"]["content"] == "Bearer [key]"


async def test_an_answer_that_is_not_packed_as_it_says_is_an_error() -> None:
    class Broken(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"not packed"

    headers = {"Content-Encoding": "gzip"}
    wire = _wire(Server(lambda _: httpx2.Response(200, stream=Broken(), headers=headers)))
    assert await failure(_post(wire, {"n": 1})) == (
        f"{URL} gave an answer that cannot be unpacked. Look at the endpoint, or at a proxy before it."
    )


class Endless(httpx2.AsyncByteStream):
    """A body without end, and how much of it was read."""

    def __init__(self) -> None:
        self.given = 0
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.given += 1 << 20
            yield b" " * (1 << 20)

    async def aclose(self) -> None:
        self.closed = True


async def test_an_endless_answer_is_read_to_the_limit_and_no_further() -> None:
    body = Endless()
    wire = _wire(Server(lambda _: httpx2.Response(200, stream=body)))
    assert await failure(_post(wire, {"n": 1})) == (
        f"{URL} gave an answer of more than 16 MiB, which no model gives. Correct its address."
    )
    assert (body.given, body.closed) == (LARGEST + (1 << 20), True)


async def test_a_recorded_answer_that_is_no_completion_ends_the_replay(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recording = Recording.record(path)
    await _post(_wire(Server(), recording), {"n": 1})
    recording.close()
    path.write_text(path.read_text().replace('"choices"', '"chosen"'))
    with pytest.raises(
        ReplayMiss, match=r"r\.jsonl holds an answer to this request that is no chat completion"
    ):
        await _post(_wire(Server(), Recording.replay(path)), {"n": 1})


@pytest.mark.parametrize("text", ["<html>Bad gateway</html>", "null", "[]", '"text"', "7"])
async def test_an_answer_that_is_no_object_becomes_an_error_body(text: str) -> None:
    wire = _wire(Server(lambda _: httpx2.Response(400, text=text)))
    response, _ = await _post(wire, {"n": 1})
    assert read_object(response) == {"error": {"message": text}}


async def test_questions_about_the_server_are_never_recorded() -> None:
    recording = Recording()
    server = Server()
    wire = _wire(server, recording)
    for _ in range(2):
        await _list(wire)
    assert (server.total, len(recording)) == (2, 0)
