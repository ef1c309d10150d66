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
def test_thoughts_calls_and_marks_in_a_stream_are_no_reply(path: str, events: list[SentEvent]) -> None:
    assert join_events(URL, path, events) == SAID


@pytest.mark.parametrize(
    "data",
    [
        {"type": "response.failed", "response": {"error": {"message": "no water"}}},
        {"type": "error", "errorText": "no water"},
        {"event": "error", "code": "internal", "message": "no water"},
    ],
)
def test_an_event_that_says_that_the_bot_failed_breaks_the_reply_off(data: dict[str, Any]) -> None:
    events = [*speak("text-delta"), SentEvent(data)]
    with pytest.raises(ChatbotError, match=f"{URL} broke off its reply: no water"):
        join_events(URL, "delta", events)
