"""Spans of OpenTelemetry, by any of the conventions of `conventions`, out of any file of `span_files`.

Records of logs that are messages of a model belong to their span, wherever that stands in the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, ReadChat, recognize_object
from hallulab.scenarios.chats.conventions import is_reply, read_content_of, read_event, read_text
from hallulab.scenarios.chats.reading import Reading, fold_keys
from hallulab.scenarios.chats.record import KEY
from hallulab.scenarios.chats.row_order import read_timestamp
from hallulab.scenarios.chats.span_files import (
    find_spans,
    flatten_attributes,
    is_span,
    is_span_row,
    read_body,
)
from hallulab.scenarios.chats.traces import TraceSpan, read_traces
from hallulab.scenarios.chats.values import FormatError, list_in

EVALUATION = "gen_ai.evaluation.result"
"""Event with a verdict on what a span gave."""

_MOST_SEEN = 5
_LOGS = "records of logs that are no messages of a model"
_VERDICTS = "verdicts of evaluations, since `hallulab detect` makes verdicts"


def read_otel_spans(value: Mapping[str, Any], left_out: Counter[str]) -> Iterator[TraceSpan]:
    """Yield the spans in a value of a file, and count what is left out.

    Raises:
        FormatError: it is no span.
    """
    for place, own in find_spans(value):
        try:
            yield from _build_span(own, left_out)
        except FormatError as error:
            raise FormatError(f"{place}: {error}" if place else str(error)) from error


def _build_span(own: Mapping[str, Any], left_out: Counter[str]) -> Iterator[TraceSpan]:
    attributes = flatten_attributes(own.get("attributes"))
    if "body" in own or "timeunixnano" in own or "eventname" in own:
        yield from _build_event(own, attributes, left_out)
        return
    context = fold_keys(own["context"]) if isinstance(own.get("context"), Mapping) else {}
    trace = own.get("traceid") or context.get("traceid")
    if not isinstance(trace, str) or not trace:
        raise FormatError("a span has no trace identifier (`traceId` or `context.trace_id`). Add it.")
    events = [
        (str(event.get("name")), flatten_attributes(event.get("attributes")))
        for event in list_in(own, "events")
        if isinstance(event, Mapping)
    ]
    # Verdicts that we exported stand under our own key, too, and are read there.
    foreign = sum(name == EVALUATION and f"{KEY}.version" not in found for name, found in events)
    if foreign:
        left_out[_VERDICTS] += foreign
    says = read_content_of(attributes, events, read_text(own.get("spankind")))
    start, end = (_find_time(own, name) for name in ("start", "end"))
    begins = Counter(".".join(name.split(".")[:2]) for name in attributes)
    seen = tuple(name for name, _ in begins.most_common(_MOST_SEEN))
    yield TraceSpan(
        trace=trace,
        id=read_text(own.get("spanid") or context.get("spanid")) or "",
        kind=says.kind,
        root=not (own.get("parentspanid") or own.get("parentid") or context.get("parentid")),
        start=start[1],
        end=end[1],
        name=says.texts.get("tool") or read_text(own.get("name")) or "",
        given=says.given,
        gave=says.gave,
        system=says.system,
        session=says.texts.get("session"),
        model=says.texts.get("model"),
        topic=says.texts.get("topic"),
        names={**says.names, "time": start[0]} if start[0] else says.names,
        about=attributes.get(KEY),
        seen=() if {"user", "reply", "passages"} & says.names.keys() else seen,
    )


def _build_event(
    own: Mapping[str, Any], attributes: Mapping[str, Any], left_out: Counter[str]
) -> Iterator[TraceSpan]:
    """Yield the message of a record of a log as a part of its span."""
    name = read_text(own.get("eventname")) or read_text(attributes.get("event.name")) or ""
    message = read_event(name, attributes, read_body(own.get("body")))
    details = read_content_of({}, [(name, attributes)])
    trace = read_text(own.get("traceid"))
    if trace is None or (message is None and not details.names):
        left_out[_VERDICTS if name == EVALUATION else _LOGS] += 1
        return
    given, gave = (None, [message]) if is_reply(name) else ([message], None)
    yield TraceSpan(
        trace=trace,
        id=read_text(own.get("spanid")) or "",
        kind="event",
        start=_find_time(own, "")[1],
        given=given if message is not None else details.given,
        gave=gave if message is not None else details.gave,
        session=details.texts.get("session"),
        model=details.texts.get("model"),
        names={"reply" if is_reply(name) else "user": name} if message is not None else details.names,
    )


def _find_time(own: Mapping[str, Any], which: str) -> tuple[str, float | None]:
    """Return the name of a time of a span, and the time in seconds."""
    for name in (f"{which}timeunixnano", f"{which}time", f"{which}timestamp", "observedtimeunixnano"):
        if own.get(name) not in (None, ""):
            return f"{which}_time".lstrip("_"), read_timestamp(own[name])
    return "", None


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of a file of traces."""
    return read_traces(path, reading, read_otel_spans)


INFO = ChatFormat(
    name="otel",
    about="spans of OpenTelemetry GenAI",
    endings=(".json", ".jsonl"),
    read=read,
    recognize=recognize_object(lambda value: is_span(value) and not is_span_row(value)),
    rank=3,
)
