"""Streams of services: which events are pieces of the reply."""

from __future__ import annotations

from typing import Any

import pytest

from hallulab.chatbots.http_events import SentEvent, join_events
from hallulab.chatbots.protocol import ChatbotError

URL = "http://127.0.0.1:9000/chat"
SAID = "It opens at 7."


def speak(kind: str, key: str = "type", name: str = "delta") -> list[SentEvent]:
    """Return the reply in two pieces."""
    return [SentEvent({key: kind, name: piece}) for piece in ("It opens", " at 7.")]


@pytest.mark.parametrize(
    ("path", "events"),
    [
        # OpenAI's Responses.
        (
            "delta",
            [
                SentEvent({"type": "response.reasoning_summary_text.delta", "delta": "Hours?"}),
                SentEvent({"type": "response.function_call_arguments.delta", "delta": '{"q": 1}'}),
                *speak("response.output_text.delta"),
                SentEvent({"type": "response.output_text.done", "text": SAID}),
            ],
        ),
        (
            "delta || text",
            [
                SentEvent({"type": "response.reasoning_text.done", "text": "Hours?"}),
                *speak("response.output_text.delta"),
                SentEvent({"type": "response.output_text.done", "text": SAID}),
            ],
        ),
        # Vercel's messages.
        ("delta", [SentEvent({"type": "reasoning-delta", "delta": "Hm."}), *speak("text-delta")]),
        # Flowise: camel case, and an end that has data.
        (
            "data",
            [
                SentEvent({"event": "agentThought", "data": "Hm."}),
                *speak("token", "event", "data"),
                SentEvent({"event": "end", "data": "[DONE]"}),
            ],
        ),
        # LangGraph's messages, with the result of a tool.
        (
            "[0].content",
            [
                SentEvent([{"type": "tool", "content": "hours.md"}, {}]),
                SentEvent([{"type": "AIMessageChunk", "content": "It opens"}, {}]),
                SentEvent([{"type": "AIMessageChunk", "content": " at 7."}, {}]),
            ],
        ),
        # Names of events alone.
        (
            "v",
            [
                SentEvent({"v": "Hm."}, "thought"),
                SentEvent({"v": "It opens"}),
                SentEvent({"v": " at 7."}, "message"),
            ],
        ),
        # Gradio tells all again at the end.
        ("[0]", [SentEvent([SAID], "generating"), SentEvent([SAID], "complete")]),
        # LangGraph's state begins with what the user said.
        ("m[-1]", [SentEvent({"m": ["When?"]}, "values"), SentEvent({"m": ["When?", SAID]}, "values")]),
        # Coze proposes what to ask next.
        (
            "content",
            [
                *speak("answer", name="content"),
                SentEvent({"type": "answer", "content": SAID}, "conversation.message.completed"),
                SentEvent({"type": "verbose", "content": "{}"}, "conversation.message.completed"),
                SentEvent({"type": "follow_up", "content": "And on Sunday?"}),
            ],
        ),
        # A failed tool is no failed bot.
        ("delta", [SentEvent({"type": "tool-error", "error": "no water"}), *speak("text-delta")]),
        # Texts, and what was found in an event of its own.
        (None, [SentEvent([{"text": SAID}], "sources"), SentEvent("It opens"), SentEvent(" at 7.")]),
        # Dify's moderation takes back what was said.
        (
            "answer",
            [
                SentEvent({"event": "message", "answer": "Hm."}),
                SentEvent({"event": "message_replace", "answer": SAID}),
            ],
        ),
    ],
)
def test_thoughts_calls_and_marks_in_a_stream_are_no_reply(path: str | None, events: list[SentEvent]) -> None:
    assert join_events(URL, path, events) == SAID


@pytest.mark.parametrize(
    "data",
    [
        {"type": "response.failed", "response": {"error": {"message": "no water"}}},
        {"type": "error", "errorText": "no water"},
        {"event": "error", "code": "internal", "message": "no water"},
        {"error": "no water", "delta": " at"},
        {"result": {"isError": True, "message": "no water"}},
    ],
)
def test_an_event_that_says_that_the_bot_failed_breaks_the_reply_off(data: dict[str, Any]) -> None:
    events = [*speak("text-delta"), SentEvent(data)]
    with pytest.raises(ChatbotError, match=f"{URL} broke off its reply: no water"):
        join_events(URL, "delta", events)


def test_an_error_in_the_place_of_a_piece_is_no_piece() -> None:
    events = [*speak("item", name="content"), SentEvent({"type": "error", "content": "no water"})]
    with pytest.raises(ChatbotError, match=f"{URL} broke off its reply: error: no water"):
        join_events(URL, "content", events)
