"""Calls that somebody watches: their text as it grows, and the answer as if nobody had."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel
from tenacity import wait_none

from hallulab.agents.models import streaming
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.agents.models.watching import CallProgress, watching
from hallulab.testing.endpoint import StubProtocol, completion, format_events, serve_protocol, serve_stub
from hallulab.testing.scripted import Script, ScriptedTransport, scripted_pool
from tests.agents.models.endpoints import LOCAL, QUESTION, refusal

HOSTILE = "<script>alert(1)</script> \x1b[31m red \u202e turned \u2066"
PAUSE = 2 * streaming.TELL_EVERY_S


class SlowModel(ScriptedTransport):
    """A model whose pieces are further apart than texts are told."""

    async def wait_for_piece(self, body: dict[str, Any], number: int) -> None:
        await asyncio.sleep(PAUSE)


def watched(transport: httpx2.AsyncBaseTransport, url: str = LOCAL, **options: Any) -> ModelPool:
    return ModelPool({"default": Endpoint("m", url)}, transport=transport, backoff=wait_none(), **options)


class Streams(httpx2.AsyncBaseTransport):
    """Answers requests for streams with given bytes, and others with a whole answer.

    Args:
        reads: what is read of the stream.
        status: its status.
        kind: its content type.
        again: what is read of a stream after the first; None: the same.
    """

    def __init__(
        self,
        reads: Sequence[bytes],
        status: int = 200,
        kind: str = "text/event-stream",
        again: Sequence[bytes] | None = None,
    ) -> None:
        self._reads, self._status, self._kind = reads, status, kind
        self._again = reads if again is None else again
        self.asked: list[bool] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(await request.aread())
        self.asked.append(bool(body["stream"]))
        if not body["stream"]:
            return httpx2.Response(200, json=completion({**body, "logprobs": None}))
        return httpx2.Response(self._status, headers={"Content-Type": self._kind}, content=self._read())

    async def _read(self) -> AsyncIterator[bytes]:
        for one in self._reads if len(self.asked) == 1 else self._again:
            yield one


def delta(content: str) -> dict[str, Any]:
    return {"model": "m", "choices": [{"index": 0, "delta": {"content": content}}]}


END = {"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


async def ask(pool: ModelPool, step: str = "generate") -> tuple[str, list[CallProgress]]:
    """The answer to the question, and what was told meanwhile."""
    told: list[CallProgress] = []
    with watching(told.append):
        answer = await pool.session("chatbot").text(step, QUESTION)
    return answer, told


async def test_the_text_grows_word_by_word_before_the_answer_is_there() -> None:
    answer, told = await ask(watched(SlowModel(lambda _: "Water boils at 100.")))
    assert answer == "Water boils at 100."
    assert told == [
        CallProgress("chatbot.generate"),
        CallProgress("chatbot.generate", ""),
        CallProgress("chatbot.generate", "Water "),
        CallProgress("chatbot.generate", "Water boils "),
        CallProgress("chatbot.generate", "Water boils at "),
        CallProgress("chatbot.generate", "Water boils at 100."),
    ]


async def test_pieces_that_come_together_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "TELL_EVERY_S", 60)
    _, told = await ask(watched(ScriptedTransport(lambda _: "a " * 100)))
    assert [one.text for one in told] == [None, "", "a ", "a " * 100]


@pytest.mark.parametrize("script", [lambda _: "Water boils.", lambda _: HOSTILE])
async def test_the_answer_is_recorded_as_if_nobody_had_watched(script: Script, tmp_path: Path) -> None:
    lines = []
    for name, streams in (("whole", False), ("streamed", True)):
        recording = Recording.record(tmp_path / name)
        transport = ScriptedTransport(script)
        pool = watched(transport, recording=recording, timed=False)
        if streams:
            await ask(pool)
        else:
            await pool.session("chatbot").text("generate", QUESTION)
        recording.close()
        assert [body["stream"] for body in transport.requests] == [streams]
        lines.append(json.loads((tmp_path / name).read_text()))
    assert lines[0] == lines[1]


async def test_log_probabilities_and_usage_of_a_real_connection_are_joined() -> None:
    with serve_stub() as url:
        found = []
        for streams in (True, False):
            pool = ModelPool({"default": Endpoint("stub", url)})
            with watching(lambda _: None) if streams else nullcontext():
                session = pool.session("detector")
                wanted = {"logprobs": True, "top_logprobs": 5, "max_tokens": 8}
                found.append(await session.complete("word", [{"role": "user", "content": "?"}], wanted))
            await pool.close()
    assert found[0] == found[1]
    assert found[0].first_token is not None
    assert (found[0].text, found[0].prompt_tokens, found[0].completion_tokens) == ("Yes", 100, 20)


class Instance(BaseModel):
    """An answer by a schema."""

    fee: int


async def test_json_and_decisions_are_steps_without_a_text() -> None:
    transport = ScriptedTransport(lambda body: {"Yes": 1.0} if "logprobs" in body else '{"fee": 3}')
    told: list[CallProgress] = []
    with watching(told.append):
        session = watched(transport).session("chatbot")
        await session.on("default").structured("split", QUESTION, Instance)
        await session.choose("verify", QUESTION, ["Yes", "No"])
    assert told == [CallProgress("chatbot.split"), CallProgress("chatbot.verify")]
    assert [body["stream"] for body in transport.requests] == [False, False]


async def test_without_a_watcher_nothing_is_streamed() -> None:
    pool, transport = scripted_pool(lambda _: "Yes.")
    await pool.session("chatbot").text("generate", QUESTION)
    assert "stream_options" not in transport.requests[0]


async def test_what_others_ask_is_not_told() -> None:
    told: list[CallProgress] = []
    pool = watched(ScriptedTransport(lambda _: "Yes."))
    with watching(told.append):
        pass
    await pool.session("chatbot").text("generate", QUESTION)
    assert told == []


@pytest.mark.parametrize("status", [400, 404, 422, 500, 501])
async def test_an_endpoint_that_refuses_streams_is_asked_for_whole_answers(status: int) -> None:
    transport = Streams([b'{"error": {"message": "stream is unknown"}}'], status, "application/json")
    pool = watched(transport)
    first, told = await ask(pool)
    assert [one.text for one in told] == [None, ""]
    with watching(told.append):
        await pool.session("chatbot", 7).text("generate", QUESTION)
    assert "Complaint" in first
    assert transport.asked == [True, False, False]


async def test_an_endpoint_that_answers_with_the_whole_is_asked_once() -> None:
    whole = json.dumps(completion({"messages": [{}]})).encode()
    transport = Streams([whole], kind="application/json")
    answer, told = await ask(watched(transport))
    assert "Complaint" in answer
    assert [one.text for one in told] == [None]
    assert transport.asked == [True]


@pytest.mark.parametrize(
    "reads",
    [
        [b"data: {no json\n\n"],
        [b"data: 7\n\n"],
        [b'data: {"choices": 7}\n\n'],
        [b'data: {"choices": [7]}\n\n'],
        [b'data: {"choices": [{"delta": 7}]}\n\n'],
        [b'data: {"choices": [{"delta": {"content": 7}}]}\n\n'],
        [b'data: {"choices": [{"delta": {}, "logprobs": 7}]}\n\n'],
        [b'data: {"choices": [{"delta": {}}, {"delta": {}}]}\n\n'],
        [b'data: {"error": {"message": "no"}}\n\n'],
        [b"data: " + b"[" * 100_000 + b"\n\n"],
        [b"data: [DONE]\n\n"],
        [b"x" * (1 << 20)] * 17,
    ],
)
async def test_a_stream_that_cannot_be_joined_is_asked_for_as_a_whole(reads: list[bytes]) -> None:
    transport = Streams(reads)
    answer, _ = await ask(watched(transport))
    assert "Complaint" in answer
    assert transport.asked == [True, False]


async def test_a_stream_that_breaks_off_is_tried_again_and_its_text_begins_anew() -> None:
    whole = list(format_events([delta("Water "), delta("boils."), END]))
    answer, told = await ask(watched(Streams(whole[:1], again=whole)))
    assert answer == "Water boils."
    assert [one.text for one in told] == [None, "", "Water ", "", "Water ", "Water boils."]


def empty_reason(content: str) -> dict[str, Any]:
    return {"model": "m", "choices": [{"index": 0, "delta": {"content": content}, "finish_reason": ""}]}


@pytest.mark.parametrize("reason", [{}, {"finish_reason": ""}, {"finish_reason": "null"}])
async def test_an_end_without_a_reason_is_asked_for_as_a_whole(reason: dict[str, str]) -> None:
    choice = {"index": 0, "delta": {"content": "Wat"}, **reason}
    transport = Streams(list(format_events([{"model": "m", "choices": [choice]}])))
    answer, _ = await ask(watched(transport))
    assert "Complaint" in answer
    assert transport.asked == [True, False]


DROPPED = {"code": 502, "message": "dropped"}
ERROR = {"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]}
IN_CHOICE = {"model": "m", "choices": [{**ERROR["choices"][0], "error": DROPPED}]}
BROKEN = {
    "an empty reason in each piece": [*format_events([empty_reason("Water "), empty_reason("boi")])][:2],
    "an error at the end": list(format_events([delta("Wat"), {**ERROR, "error": DROPPED}])),
    "an error in the last choice": list(format_events([delta("Wat"), IN_CHOICE])),
    "an error in place of a piece": list(format_events([delta("Wat"), {"error": DROPPED}])),
}


@pytest.mark.parametrize("reads", BROKEN.values(), ids=BROKEN)
async def test_a_stream_that_breaks_off_is_tried_again_and_then_asked_for_as_a_whole(
    reads: list[bytes],
) -> None:
    once = Streams(reads, again=[*format_events([delta("Water."), END])])
    assert (await ask(watched(once)))[0] == "Water."
    assert once.asked == [True, True]
    always = Streams(reads)
    assert "Complaint" in (await ask(watched(always)))[0]
    assert always.asked == [True, True, False]


async def test_other_refusals_are_those_of_the_endpoint() -> None:
    transport = ScriptedTransport(lambda _: refusal(401, "no such key"))
    with pytest.raises(Exception, match="refused the request with status 401: no such key"):
        await ask(watched(transport))
    assert len(transport.requests) == 1


async def test_letters_in_two_reads_and_halves_of_one_in_two_pieces_are_whole() -> None:
    umlaut, *rest = format_events([delta("tée "), delta("\ud83d"), delta("\ude00"), END])
    raw = umlaut.replace(b"\\u00e9", "é".encode())
    middle = raw.index("é".encode()) + 1
    answer, _ = await ask(watched(Streams([raw[:middle], raw[middle:], *rest])))
    assert answer == "tée 😀"


async def test_a_key_in_two_pieces_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-mine")

    class Repeats(SlowModel):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            parts = [delta("It is "), delta("sk-secret"), delta("-of-mine"), delta(", sir."), END]
            events = list(format_events(parts))

            async def read() -> AsyncIterator[bytes]:
                for one in events:
                    await asyncio.sleep(PAUSE)
                    yield one

            return httpx2.Response(200, headers={"Content-Type": "text/event-stream"}, content=read())

    answer, told = await ask(watched(Repeats(lambda _: "")))
    assert answer == "It is [key], sir."
    assert {one.text for one in told if one.text} == {"It is ", "It is [key], ", "It is [key], sir."}


async def test_stopping_in_mid_stream_closes_the_connection() -> None:
    closed = threading.Event()

    class Slow(StubProtocol):
        seconds = 8.0

        def connection_lost(self, error: Exception | None) -> None:
            closed.set()

    with serve_protocol(Slow) as url:
        pool = ModelPool({"default": Endpoint("stub", url)})
        begun = asyncio.Event()
        with watching(lambda progress: begun.set() if progress.text else None):
            task = asyncio.create_task(pool.session("chatbot").text("generate", QUESTION))
        await asyncio.wait_for(begun.wait(), 120)
        assert not closed.is_set()
        task.cancel()
        await asyncio.wait([task])
        assert await asyncio.to_thread(closed.wait, 20)
        assert task.cancelled()
        await pool.close()
