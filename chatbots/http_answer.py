"""Answers of a bot over HTTP, bounded, and without the keys that it was sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.complaints import read_pause
from hallulab.agents.models.receiving import decode_text, read_body
from hallulab.agents.models.redaction import Redaction, make_redaction
from hallulab.scenarios.files.json_text import read_json

_LINE_END = re.compile(r"\r\n|\n|\r")

_MOST_EVENTS = 100_000
"""Events of an answer at most: each takes time, and a reply has a tenth of so many tokens."""

_DONE = "[DONE]"
"""Data of the last event of many services."""


@dataclass(frozen=True)
class HttpAnswer:
    """An answer."""

    status: int
    text: str
    redaction: Redaction
    """Removes what was sent in headers: also from texts that are made of its pieces."""
    value: Any = None
    """It as JSON; None: it is none, or null."""
    is_json: bool = False
    events: tuple[Any, ...] | None = None
    """The data of its server-sent events, JSON where that is expected; None: it is no stream."""
    location: str | None = None
    """Its header `Location`, as it came."""
    pause: float | None = None
    """Seconds after which it wants to be asked again; None: it does not say."""


async def receive_answer(
    response: httpx2.Response, url: str, secrets: Sequence[str], json_events: bool
) -> HttpAnswer:
    """Read an answer to its end.

    Args:
        response: its body is not read yet.
        url: its address, for errors.
        secrets: what was sent in headers and must come back nowhere.
        json_events: whether the data of events is JSON.

    Raises:
        ModelError: it is too long, redirects, or is packed in a way that nobody asked for.
    """
    redaction = make_redaction(*secrets)
    location, status = response.headers.get("Location"), response.status_code
    pause = read_pause(response.headers)
    streams = response.headers.get("Content-Type", "").lower().startswith("text/event-stream")
    read = await read_body(response, url, redaction)
    if streams:
        events = tuple(_iterate_events(read.decode("utf-8", "replace"), url, redaction, json_events))
        return HttpAnswer(status, "", redaction, events=events, location=location, pause=pause)
    text = redaction.text(read.decode(json.detect_encoding(read), "replace"))
    try:
        value, is_json = _read_value(text, redaction), True
    except ValueError:
        value, is_json = None, False
    return HttpAnswer(status, text, redaction, value, is_json, location=location, pause=pause)


def _iterate_events(text: str, url: str, redaction: Redaction, as_json: bool) -> Iterator[Any]:
    """Yield the data of server-sent events up to `[DONE]`: objects and lists as such, other data as a text.

    White space counts: it stands between the pieces of a reply. Source: HTML standard, section 9.2.6.
    """
    data: list[str] = []
    events = 0
    for line in (*_LINE_END.split(text.removeprefix("\ufeff")), ""):
        name, _, value = line.partition(":")
        if name == "data":
            data.append(value.removeprefix(" "))
        elif not line and data:
            whole, data, events = "\n".join(data), [], events + 1
            if events > _MOST_EVENTS:
                raise ModelError(f"{url} gave an answer of more than {_MOST_EVENTS:,} events.")
            if whole.strip() == _DONE:
                return
            try:
                found = _read_value(whole, redaction)
            except ValueError as error:
                if as_json:
                    told = redaction.text(whole)[:80]
                    raise ModelError(f"{url} sent an event that is no JSON: {told!r}.") from error
                found = None
            yield found if as_json or isinstance(found, dict | list) else redaction.text(whole)


def _read_value(text: str, redaction: Redaction) -> Any:
    """Read JSON, with bounded depth; secrets may be escaped in its texts."""
    return redaction.value(read_json(text, redaction.text))
