"""Events of streams, in the habits of services, and the answer that they are joined to."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from tenacity import wait_none

from hallulab.agents.models.answers import ModelError, ToolCall, read_completion
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.joined_streams import JoinedCompletion, join_pieces
from hallulab.agents.models.model import ModelPool
from hallulab.testing.endpoint import format_events
from tests.agents.models.endpoints import LOCAL, QUESTION, pool_at
from tests.agents.models.test_streaming import END, Streams, ask, delta, empty_reason, watched

WHOLE = {"index": 0, "message": {"role": "assistant", "content": "Water."}, "finish_reason": "stop"}
PARTS = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Water."}]
STOP = {"index": 0, "finish_reason": "stop"}
HABITS: dict[str, list[Any]] = {
    "other events": [{"type": "ping"}, delta("Water."), None, END],
    "a whole answer": [{"model": "m", "choices": [WHOLE]}],
    "parts": [{"model": "m", "choices": [{"index": 0, "delta": {"content": PARTS}}]}, END],
    "empty reasons behind the reason": [empty_reason("Water."), END, empty_reason("")],
    "no piece at the end": [delta("Water."), {"model": "m", "choices": [STOP]}],
    "no choices with the usage": [delta("Water."), END, {"choices": None, "usage": {"prompt_tokens": 1}}],
    "an empty piece": [{"choices": [{"index": 0, "delta": None}]}, delta("Water."), END],
    "a filter in place of a piece": [delta("Water."), {"choices": [{"index": 0, "offsets": {}}]}, END],
    "a role, then a whole answer": [
        {"model": "m", "choices": [{"index": 0, "delta": {"role": "assistant"}}]},
        {"model": "m", "choices": [WHOLE]},
    ],
    "end elsewhere": [delta("Water."), {"choices": [{"delta": {}, "finishReason": "stop"}]}],
    "null at the end": [delta("Water."), {"model": "m", "choices": [{**STOP, "delta": None}]}],
}
LINES = [b"data: " + json.dumps(one).encode() + b"\n" for one in (delta("Water."), END)]


@pytest.mark.parametrize(
    "reads",
    [
        *(list(format_events(events)) for events in HABITS.values()),
        [b"\xef", b"\xbb\xbf", *format_events([delta("Water."), END])],
        [*list(format_events([delta("Water."), END]))[:2], b'data: "[DONE]"\n\n'],
        [*LINES, b"data: [DONE]"],
        [b"data: \n\n", *LINES, b"data:\n\ndata: [DONE]"],
        [b": keep-alive\n\n", json.dumps({"model": "m", "choices": [WHOLE]}).encode()],
    ],
    ids=[*HABITS, "byte order mark", "quoted end", "no empty lines", "empty data", "no event at all"],
)
async def test_streams_of_other_habits_are_joined(reads: list[bytes]) -> None:
    transport = Streams(reads)
    assert (await ask(watched(transport)))[0] == "Water."
    assert transport.asked == [True]


async def test_pieces_of_another_choice_are_left_out() -> None:
    pieces = [delta("Water "), delta("WRONG"), delta("boils."), END]
    pieces[1]["choices"][0]["index"] = 1
    assert (await ask(watched(Streams([*format_events(pieces)]))))[0] == "Water boils."


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["Water ", "Water boils ", "Water boils at 100."], "Water boils at 100."),
        (["Water ", "boils at 100.", "Water boils at 100."], "Water boils at 100."),
        (["ha", "ha", "haha"], "hahahaha"),
        (["Water boils.", "Water boils."], "Water boils.Water boils."),
        ([], ""),
    ],
)
def test_a_text_that_is_told_again_is_there_once(pieces: list[str], text: str) -> None:
    assert join_pieces(pieces) == text


@pytest.mark.parametrize("told", ['{"message": "upstream timed out"}', "upstream timed out"])
async def test_an_event_that_is_called_an_error_is_one(told: str) -> None:
    first = next(iter(format_events([delta("Wat")])))
    reads = [first, f"event: error\ndata: {told}\n\n".encode(), *format_events([END])]
    with pytest.raises(ModelError, match="upstream timed out"):
        await pool_at(OnlyStreams(reads)).session("chatbot").text("generate", QUESTION)


@pytest.mark.parametrize(
    "kind", ["text/plain; charset=utf-8", "application/json", "application/octet-stream"]
)
async def test_a_stream_that_is_called_something_else_is_joined(kind: str) -> None:
    usage = {"id": "x", "usage": {"prompt_tokens": 9, "completion_tokens": 5}}
    reads = [*format_events([delta("Water "), delta("boils."), END, usage])]
    session = pool_at(OnlyStreams(reads, kind=kind)).session("chatbot")
    assert await session.text("generate", QUESTION) == "Water boils."
    assert [(call.prompt_tokens, call.completion_tokens) for call in session.calls] == [(9, 5)]


async def test_a_key_in_pieces_is_found_in_a_stream_that_is_called_something_else() -> None:
    pieces = [delta("It is sk-canary-"), delta("1234567890."), END]
    transport = OnlyStreams([*format_events(pieces)], kind="text/plain")
    endpoint = Endpoint("m", "https://models.example/v1", "CANARY_KEY")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CANARY_KEY", "sk-canary-1234567890")
        pool = ModelPool({"default": endpoint}, transport=transport, backoff=wait_none(), attempts=2)
        assert await pool.session("chatbot").text("generate", QUESTION) == "It is [key]."


class OnlyStreams(Streams):
    """Answers each request with a stream."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(bool(json.loads(await request.aread())["stream"]))
        return httpx2.Response(200, headers={"Content-Type": self._kind}, content=self._read())


@pytest.mark.parametrize(
    ("events", "told", "tries"),
    [
        ([delta("Wat")], "completions: the stream broke off before its end.", 4),
        ([delta("Wat"), {"error": {"message": "dropped", "code": 502}}], "and an error: dropped", 4),
        ([{"error": {"message": "too long", "code": 400}}], "with status 400: too long", 1),
        ([{"type": "message_start", "message": {}}], "gave a stream of events in no form that is known", 1),
        ([{"choices": [{"text": "Wat", "finish_reason": "stop"}]}], "in no form that is known", 1),
    ],
)
async def test_a_stream_that_comes_unasked_and_breaks_off_is_told(
    events: list[dict[str, Any]], told: str, tries: int
) -> None:
    transport = OnlyStreams([f"data: {json.dumps(one)}\n\n".encode() for one in events])
    pool = ModelPool({"default": Endpoint("m", LOCAL)}, transport=transport, backoff=wait_none())
    with pytest.raises(ModelError, match=told):
        await pool.session("chatbot").text("generate", QUESTION)
    assert transport.asked == [False] * tries


@pytest.mark.parametrize(
    "pieces",
    [
        [[{"index": 0, "id": "a", "function": {"name": "sell", "arguments": '{"age": 6}'}}]],
        [
            [{"index": 0, "id": "a", "type": "function", "function": {"name": "sell", "arguments": ""}}],
            [{"index": 0, "function": {"arguments": '{"age"'}}],
            [{"index": 0, "id": "", "function": {"name": None, "arguments": ": 6}"}}],
        ],
        [[{"index": 0, "id": "a"}], [{"index": 0, "function": {"name": "sell", "arguments": '{"age": 6}'}}]],
        [[{"id": "a", "function": {"name": "sell", "arguments": '{"age": 6}'}}]],
    ],
)
def test_the_pieces_of_a_tools_call_are_one_call(pieces: list[list[Any]]) -> None:
    joined = JoinedCompletion()
    for one in pieces:
        joined.add({"choices": [{"delta": {"content": None, "tool_calls": one}}]})
    joined.add({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    found = read_completion(joined.build(), tools_offered=True)
    assert found.tool_calls == (ToolCall("a", "sell", '{"age": 6}'),)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("most", [1, 7, 10_000])
async def test_lines_end_as_they_like_and_an_event_may_have_several(end: bytes, most: int) -> None:
    events = [delta("Water "), delta("boils."), END]
    several = [
        line
        for one in events
        for line in (*(f"data: {each}" for each in json.dumps(one, indent=1).splitlines()), "")
    ]
    raw = end.join([b": a comment", b"", *(line.encode() for line in several), b"data: [DONE]", b"", b""])
    reads = [raw[at : at + most] for at in range(0, len(raw), most)]
    transport = Streams(reads)
    assert (await ask(watched(transport)))[0] == "Water boils."
    assert transport.asked == [True]
