"""Traces of Langfuse, as its API and its exports give them (API reference of October 2026).

A value is a trace with `observations`, a trace without (its `input` and `output` then tell all), an
observation with `traceId`, or a session with `traces`. Names may be in camel or in snake case. Observations
of the types RETRIEVER and TOOL have the evidence; in older versions, spans whose name says that they
retrieve.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat
from hallulab.scenarios.chats.otel import read_timestamp
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.traces import TraceSpan, read_traces
from hallulab.scenarios.chats.values import FormatError, list_in

_EVIDENCE = ("RETRIEVER", "TOOL")
_RETRIEVES = re.compile(r"retriev|search|rerank", re.IGNORECASE)
_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")


def is_langfuse(value: Mapping[str, Any]) -> bool:
    """Return whether a value has the keys of a trace, an observation or a session."""
    keys = {_convert_to_snake_case(key) for key in value}
    trace = {"input", "output"} <= keys and bool(keys & {"session_id", "project_id", "trace_id", "timestamp"})
    return trace or bool(keys & {"observations", "traces"})


def read_langfuse_spans(value: Mapping[str, Any]) -> Iterator[TraceSpan]:
    """Yield a trace and its observations as spans.

    Raises:
        FormatError: it is nothing of Langfuse.
    """
    value = {_convert_to_snake_case(key): one for key, one in value.items()}
    if isinstance(value.get("traces"), list):
        for trace in value["traces"]:
            yield from read_langfuse_spans({"session_id": value.get("id"), **_check_object(trace, "traces")})
        return
    if isinstance(value.get("trace"), Mapping):
        value = {**{_convert_to_snake_case(key): one for key, one in value["trace"].items()}, **value}
    if value.get("trace_id"):
        yield _build_span(value, str(value["trace_id"]))
        return
    id = value.get("id")
    if not isinstance(id, str) or not id:
        raise FormatError(
            "a trace has no `id`, and an observation no `traceId`. Export them with these fields."
        )
    metadata = value.get("metadata")
    topic = metadata.get("topic") if isinstance(metadata, Mapping) else None
    yield TraceSpan(
        trace=id,
        kind="other",
        root=True,
        start=read_timestamp(value.get("timestamp")),
        given=value.get("input"),
        gave=value.get("output"),
        session=_read_text(value.get("session_id")),
        topic=_read_text(topic),
    )
    for one in list_in(value, "observations"):
        # The API's short form has identifiers only.
        if isinstance(one, Mapping):
            yield _build_span({_convert_to_snake_case(key): inner for key, inner in one.items()}, id)


def _build_span(value: Mapping[str, Any], trace: str) -> TraceSpan:
    kind, name = str(value.get("type")).upper(), str(value.get("name") or "")
    is_evidence = kind in _EVIDENCE or (kind == "SPAN" and bool(_RETRIEVES.search(name)))
    return TraceSpan(
        trace=trace,
        kind="evidence" if is_evidence else "model" if kind == "GENERATION" else "other",
        start=read_timestamp(value.get("start_time")),
        end=read_timestamp(value.get("end_time")),
        name=name,
        given=value.get("input"),
        gave=value.get("output"),
        session=_read_text(value.get("session_id")),
        model=_read_text(value.get("model")),
    )


def _check_object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise FormatError(f"{where}: must hold objects. Correct it.")
    return value


def _convert_to_snake_case(name: str) -> str:
    return _CAPITAL.sub(r"_\1", name).lower()


def _read_text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of a file of traces."""
    return read_traces(path, reading, read_langfuse_spans)


def recognize(start: FileStart) -> bool:
    """Return whether the first object is one of Langfuse."""
    return start.value is not None and is_langfuse(start.value)


INFO = ChatFormat(
    name="langfuse",
    about="traces of Langfuse",
    endings=(".json", ".jsonl"),
    read=read,
    recognize=recognize,
    rank=6,
)
