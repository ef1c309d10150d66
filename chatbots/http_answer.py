"""Answers of a bot over HTTP, bounded, and without the keys that it was sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx2

from hallulab.agents.models.answers import UNREADABLE, ModelError
from hallulab.agents.models.complaints import read_complaint
from hallulab.agents.models.decoding import decode_text, is_garbled
from hallulab.agents.models.finish_reasons import read_ending
from hallulab.agents.models.pauses import read_pause
from hallulab.agents.models.receiving import read_body
from hallulab.agents.models.redaction import Redaction, make_redaction
from hallulab.chatbots.http_events import DONE, SentEvent
from hallulab.scenarios.files.json_text import read_json

_LINE_END = re.compile(r"\r\n|\n|\r")

_MOST_EVENTS = 100_000
"""Events of an answer at most: each takes time, and a reply has a tenth of so many tokens."""

_DONE_AMID_JSON = DONE | {"done", "end"}

_FIELDS = frozenset({"data", "event", "id", "retry", ""})
"""Beginnings of the lines of events; nothing: a comment."""

_PART = re.compile(r"[0-9a-z]")
"""Names of the parts of Vercel's data stream; 0: a piece of the text."""

_OF_LINES = re.compile(r"ndjson|jsonl|jsonlines|stream\+json|json-seq")
"""In content types of JSON lines."""

_REASONS = frozenset({"finishreason", "stopreason", "donereason", "nativefinishreason"})
"""Fields that tell why a text ended, in small letters, without `_`."""

_LOCATIONS = ("Location", "Operation-Location", "Azure-AsyncOperation")
"""Headers that say where the result of a job will be."""


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
    events: tuple[SentEvent, ...] | None = None
    """Its server-sent events, or its JSON lines; None: it is no stream."""
    location: str | None = None
    """Its header that says where to go on, as it came."""
    pause: float | None = None
    """Seconds after which it wants to be asked again; None: it does not say."""

    @property
    def fields(self) -> dict[str, Any]:
        """Its fields that are not null; of a stream those of all its events, of which the last counts."""
        parts = [self.value] if self.events is None else [one.data for one in self.events]
        pairs = (pair for one in parts if isinstance(one, dict) for pair in one.items())
        return {name: value for name, value in pairs if value is not None}

    @property
    def cut_by(self) -> str | None:
        """The last reason that it gives why a text ended, if that is then perhaps not whole; else None."""
        parts = [self.value] if self.events is None else [one.data for one in self.events]
        told = [reason for reason in _list_reasons(parts) if read_ending(reason) != "unknown"]
        return told[-1] if told and read_ending(told[-1]) in ("cut", "broken") else None


def _list_reasons(value: Any) -> list[str]:
    """Return why texts ended, by all fields of JSON that tell it, in order."""
    if isinstance(value, list):
        return [reason for item in value for reason in _list_reasons(item)]
    if not isinstance(value, dict):
        return []
    inner = [reason for item in value.values() for reason in _list_reasons(item)]
    own = [told for name, told in value.items() if name.lower().replace("_", "") in _REASONS]
    if isinstance(details := value.get("incomplete_details"), dict):  # OpenAI's Responses
        own.append(details.get("reason"))
    return inner + [told for told in own if isinstance(told, str)]


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
        ModelError: it is too long, tells an error amid a stream, is packed in a way that nobody asked for, or
            in letters that nobody names.
    """
    redaction = make_redaction(*secrets)
    location = next((response.headers[name] for name in _LOCATIONS if name in response.headers), None)
    answer = HttpAnswer(
        response.status_code, "", redaction, location=location, pause=read_pause(response.headers)
    )
    if 300 <= answer.status < 400:
        await response.aclose()
        return answer
    kind = response.headers.get("Content-Type", "").lower()
    read = await read_body(response, url, redaction)
    whole = decode_text(read, response.headers)
    if answer.status < 300 and is_garbled(read, whole):
        raise ModelError(f"{url}: {UNREADABLE}")
    if kind.startswith("text/event-stream") or _looks_like_events(whole):
        events = tuple(_iterate_events(whole, url, redaction, json_events))
        return replace(answer, events=_decode_texts(events, redaction))
    parts = _read_parts(whole, url, redaction)
    if parts is not None:
        return replace(answer, events=parts)
    answer = replace(answer, text=redaction.text(whole))
    try:
        return replace(answer, value=_read_value(answer.text, redaction), is_json=True)
    except ValueError:
        are_expected = json_events or _OF_LINES.search(kind) is not None
        return replace(answer, events=_read_lines(answer.text, redaction, are_expected))


def _looks_like_events(text: str) -> bool:
    """Return whether a text is nothing but events, whatever its content type says."""
    lines = _LINE_END.split(text.removeprefix("\ufeff"))
    told = [line.partition(":") for line in lines if line]
    names = {name if colon else None for name, colon, _ in told}
    return "data" in names and names <= _FIELDS and "" in lines[:-1]


def _decode_texts(events: tuple[SentEvent, ...], redaction: Redaction) -> tuple[SentEvent, ...]:
    """Return events whose texts are all texts of JSON, with quotation marks, as those texts."""
    if not all(one.data.startswith('"') for one in events if isinstance(one.data, str)):
        return events
    try:
        return tuple(
            SentEvent(_read_value(one.data, redaction), one.name) if isinstance(one.data, str) else one
            for one in events
        )
    except ValueError:
        return events


def _read_parts(text: str, url: str, redaction: Redaction) -> tuple[SentEvent, ...] | None:
    """Return the pieces of the text in Vercel's data stream, such as `0:"It opens"`; None: it is none.

    Raises:
        ModelError: it tells an error (`3:`).
    """
    lines = [line.partition(":") for line in text.split("\n") if line]
    if not any(name == "0" for name, _, _ in lines) or not all(_PART.fullmatch(name) for name, _, _ in lines):
        return None
    try:
        parts = [(name, _read_value(value, redaction)) for name, _, value in lines]
    except ValueError:
        return None
    failed = next((value for name, value in parts if name == "3"), None)
    if failed is not None:
        raise ModelError(f"{url} broke off its reply: {read_complaint(failed)}")
    return tuple(SentEvent(value) for name, value in parts if name == "0")


def _read_lines(text: str, redaction: Redaction, expected: bool) -> tuple[SentEvent, ...] | None:
    """Return the values of JSON lines, which some services stream; None: it is none, or nobody expects them.

    Several objects are such lines in any case.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or len(lines) > _MOST_EVENTS or not (expected or all(one.startswith("{") for one in lines)):
        return None
    try:
        return tuple(SentEvent(_read_value(line, redaction)) for line in lines)
    except ValueError:
        return None


def _iterate_events(text: str, url: str, redaction: Redaction, as_json: bool) -> Iterator[SentEvent]:
    """Yield server-sent events up to `[DONE]`, with objects and lists as such, other data as a text.

    White space counts: it stands between the pieces of a reply. An event without data is none. Source: HTML
    standard, section 9.2.6.

    Raises:
        ModelError: there are too many, one is no JSON, or one is an error.
    """
    data: list[str] = []
    events, kind = 0, ""
    for line in (*_LINE_END.split(text.removeprefix("\ufeff")), ""):
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
        elif field == "event":
            kind = value.strip()
        elif not line and data:
            whole, data, events = "\n".join(data), [], events + 1
            name, kind = kind, ""
            if not whole:
                continue
            if events > _MOST_EVENTS:
                raise ModelError(f"{url} gave an answer of more than {_MOST_EVENTS:,} events.")
            if whole.strip().lower() in (_DONE_AMID_JSON if as_json else DONE):
                return
            if name.lower() == "error":
                raise ModelError(f"{url} broke off its reply: {read_complaint(redaction.text(whole))}")
            try:
                found = _read_value(whole, redaction)
            except ValueError as error:
                if as_json:
                    told = redaction.text(whole)[:80]
                    raise ModelError(f"{url} sent an event that is no JSON: {told!r}.") from error
                found = None
            yield SentEvent(
                found if as_json or isinstance(found, dict | list) else redaction.text(whole),
                redaction.text(name),
            )


def _read_value(text: str, redaction: Redaction) -> Any:
    """Read JSON, with bounded depth; secrets may be escaped in its texts."""
    return redaction.value(read_json(text, redaction.text))
