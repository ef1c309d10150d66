"""Events of a bot's answer over HTTP, and the reply that they are the pieces of."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hallulab.agents.models.complaints import put_in_one_line, read_complaint, says_it_failed
from hallulab.agents.models.joined_streams import join_pieces
from hallulab.chatbots.json_paths import search
from hallulab.chatbots.protocol import ChatbotError

DONE = frozenset({"[done]", "[end]"})
"""Data of the last event of many services, in small letters."""

_BESIDE = frozenset(
    [
        *("arguments", "follow", "function", "human", "interpreter", "progress", "reasoning", "status"),
        *(
            "suggestion",
            "suggestions",
            "think",
            "thinking",
            "thought",
            "thoughts",
            "tool",
            "tools",
            "verbose",
        ),
    ]
)
"""Words in the kind of an event whose text is no part of the reply: what the bot thinks, calls, finds, and
proposes to ask next."""
_FAILED = frozenset({"error", "failed"})
_LAST = frozenset({"complete", "completed", "done", "end", "final"})
"""Words in the kind of an event that may tell the whole reply again."""
_ANEW = frozenset({"replace", "values"})
"""Words in the kind of an event that tells the reply anew: Dify's moderation, LangGraph's state."""
_WORD = re.compile(r"[A-Z]?[a-z]+")
_LONGEST_KIND = 100


class SentEvent(NamedTuple):
    """A server-sent event, or a line of JSON."""

    data: Any
    """JSON where that is expected, else a text."""
    name: str = ""
    """Its field `event`."""


def join_events(url: str, path: str | None, events: Sequence[SentEvent]) -> str:
    """Return the reply that events are the pieces of; an event without a piece says something else.

    Args:
        url: the bot's address, for errors.
        path: where each event has its piece; None: its data is one.
        events: in order.

    Raises:
        ChatbotError: none has a piece, or one says that the bot failed.
    """
    pieces = [one.data if path is None else search(path, one.data) for one in events]
    spoken = {one.name for one in events if isinstance(one.data, str)}
    others = {one.name for one in events if not isinstance(one.data, str)}
    if path is None and others and (not spoken or others & spoken):  # else, events of their own
        raise ChatbotError(f"{url}: its events are JSON. Say where each has its piece in `event`.")
    texts: list[str] = []
    for event, piece in zip(events, pieces, strict=True):
        kind = _read_kind(event)
        if path is not None and (tells_failure(event.data) or kind & _FAILED) and "tool" not in kind:
            inner = event.data.get("response") if isinstance(event.data, Mapping) else None
            told = read_complaint(inner or event.data)  # inner: OpenAI's `response.failed`
            said = f": {put_in_one_line(piece)}" if isinstance(piece, str) and piece not in told else ""
            raise ChatbotError(f"{url} broke off its reply: {told}{said}")
        if not (isinstance(piece, str) and piece) or kind & _BESIDE or piece.strip().lower() in DONE:
            continue
        if kind & _ANEW or (kind & _LAST and piece.startswith("".join(texts))):
            texts = [piece]
        else:
            texts.append(piece)
    if path is not None and events and not texts:
        shown = put_in_one_line(json.dumps(events[0].data, ensure_ascii=False))[:120]
        raise ChatbotError(
            f"{url}: none of its events has a text at `{path}` (the option `event`); the first is {shown!r}."
        )
    return join_pieces(texts)


def tells_failure(data: Any) -> bool:
    """Return whether JSON says of itself that it is an error, also as the result of an MCP tool does."""
    return says_it_failed(data) or search("isError || result.isError", data) is True


def _read_kind(event: SentEvent) -> frozenset[str]:
    """Return the words of an event's name and of its field `type` or `event`, in small letters."""
    data = event.data[0] if isinstance(event.data, list) and event.data else event.data
    told = [data.get("type"), data.get("event")] if isinstance(data, Mapping) else []
    names = [event.name, *(one for one in told if isinstance(one, str))]
    return frozenset(word.lower() for name in names for word in _WORD.findall(name[:_LONGEST_KIND]))
