"""Spans of OpenTelemetry, by the conventions of OpenTelemetry GenAI and of OpenInference.

A file has exports of OTLP in JSON (`resourceSpans`, OTLP 1.9), or spans as Python's exporter and Phoenix
write them: one object a line, with `context` and `flatten_attributes`. Attributes are read as documented in

- semantic-conventions-genai v0.1.0 (and semantic-conventions v1.37 to v1.41): `gen_ai.operation.name`,
  `gen_ai.conversation.id`, `gen_ai.input.messages`, `gen_ai.output.messages`, `gen_ai.system_instructions`,
  `gen_ai.retrieval.documents`, `gen_ai.tool.call.result`, `gen_ai.request.model`, on the span or on its event
  `gen_ai.client.inference.operation.details`. Events of v1.36 and before, a message each, are not read;
- OpenInference's semantic conventions of October 2026: `openinference.span.kind`, `session.id`,
  `llm.input_messages`, `llm.output_messages`, `retrieval.documents`, `reranker.output_documents`,
  `input.value`, `output.value`, `llm.model_name`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.traces import TraceSpan, read_traces, unpack_json
from hallulab.scenarios.chats.values import FormatError, list_in
from hallulab.scenarios.files.json_text import MAX_DEPTH
from hallulab.scenarios.text.wording import shorten_line

Attributes = Mapping[str, Any]

_MODEL_OPERATIONS = ("chat", "generate_content", "text_completion")
_EVIDENCE_KINDS = ("RETRIEVER", "TOOL", "RERANKER")
_NEITHER = "no span with attributes of OpenTelemetry GenAI or OpenInference. Export spans with their content."


def read_otel_spans(value: Mapping[str, Any]) -> Iterator[TraceSpan]:
    """Yield the spans in a value of a file.

    Raises:
        FormatError: it is no span.
    """
    listed = value.get("resourceSpans", value.get("resource_spans"))
    if listed is None:
        yield _build_span(value)
        return
    for place, span in _walk_lists({"resourceSpans": listed}, ("resourceSpans", "scopeSpans", "spans"), ""):
        try:
            yield _build_span(span)
        except FormatError as error:
            raise FormatError(f"{place}: {error}") from error


def _walk_lists(value: Any, keys: tuple[str, ...], place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (place, object) of each object under keys that lead from list to list."""
    if not isinstance(value, Mapping):
        raise FormatError(f"{place.rstrip('.')}: must be an object. Correct it.")
    if not keys:
        yield place, value
        return
    listed = value.get(keys[0], [])
    if not isinstance(listed, list):
        raise FormatError(f"{place}{keys[0]}: must be a list. Correct it.")
    for number, one in enumerate(listed):
        yield from _walk_lists(one, keys[1:], f"{place}{keys[0]}.{number}" + ("." if keys[1:] else ""))


def _build_span(value: Mapping[str, Any]) -> TraceSpan:
    context = value.get("context")
    context = context if isinstance(context, Mapping) else {}
    trace = value.get("traceId") or value.get("trace_id") or context.get("trace_id")
    if not isinstance(trace, str) or not trace:
        raise FormatError("a span has no trace identifier (`traceId` or `context.trace_id`). Add it.")
    found = flatten_attributes(value.get("attributes"))
    for event in list_in(value, "events"):
        if isinstance(event, Mapping) and event.get("name") == "gen_ai.client.inference.operation.details":
            found = {**found, **flatten_attributes(event.get("attributes"))}
    nest = build_attribute_tree(found)
    kind = _determine_kind(found)
    given, gave = _extract_messages(found, nest)
    return TraceSpan(
        trace=trace,
        kind=kind,
        root=not (value.get("parentSpanId") or value.get("parent_id") or value.get("parent_span_id")),
        start=_read_time(value, "startTimeUnixNano", "start_time"),
        end=_read_time(value, "endTimeUnixNano", "end_time"),
        name=_read_text(found.get("gen_ai.tool.name")) or _read_text(value.get("name")) or "",
        given=given,
        gave=_extract_evidence(found, nest) if kind == "evidence" else gave,
        system=found.get("gen_ai.system_instructions"),
        session=_read_text(found.get("gen_ai.conversation.id")) or _read_text(found.get("session.id")),
        model=_read_text(found.get("gen_ai.request.model")) or _read_text(found.get("llm.model_name")),
        topic=_read_text(found.get("topic")) or _read_text(found.get("metadata.topic")),
    )


def is_span(value: Mapping[str, Any]) -> bool:
    """Return whether a value is an export of OTLP, or a span."""
    return bool({"resourceSpans", "resource_spans"} & value.keys()) or (
        "attributes" in value and bool({"context", "traceId", "trace_id"} & value.keys())
    )


def _determine_kind(found: Attributes) -> Literal["model", "evidence", "other"]:
    operation, kind = found.get("gen_ai.operation.name"), found.get("openinference.span.kind")
    if operation in _MODEL_OPERATIONS or kind == "LLM":
        return "model"
    if operation in ("retrieval", "execute_tool") or kind in _EVIDENCE_KINDS:
        return "evidence"
    return "other"


def _extract_messages(found: Attributes, nest: Any) -> tuple[Any, Any]:
    """Return what a span was given, and gave."""
    if "gen_ai.input.messages" in found or "gen_ai.output.messages" in found:
        return unpack_json(found.get("gen_ai.input.messages")), unpack_json(
            found.get("gen_ai.output.messages")
        )
    model = _get_at(nest, "llm") or {}
    given, gave = (_unpack_messages(_get_at(model, key)) for key in ("input_messages", "output_messages"))
    return given or found.get("input.value"), gave or found.get("output.value")


def _unpack_messages(messages: Any) -> list[Any]:
    """Return OpenInference's messages as objects with role and content."""
    found = []
    for one in messages if isinstance(messages, list) else []:
        message = _get_at(one, "message")
        if not isinstance(message, Mapping):
            message = {}
        parts = _get_at(message, "contents")
        content = message.get("content")
        if content is None and isinstance(parts, list):
            content = [_build_part(_get_at(part, "message_content")) for part in parts]
        calls = [_get_at(call, "tool_call") for call in list_in(message, "tool_calls")]
        found.append({"role": message.get("role"), "content": content, "tool_calls": calls})
    return found


def _build_part(part: Any) -> dict[str, Any]:
    return {"type": _get_at(part, "type"), "text": _get_at(part, "text")}


def _extract_evidence(found: Attributes, nest: Any) -> Any:
    for path in (("retrieval", "documents"), ("reranker", "output_documents")):
        listed = _get_at(nest, *path)
        if isinstance(listed, list):
            return [_get_at(one, "document") or one for one in listed]
    for key in ("gen_ai.retrieval.documents", "gen_ai.tool.call.result", "output.value"):
        if found.get(key) is not None:
            return unpack_json(found[key])
    return None


def flatten_attributes(value: Any) -> dict[str, Any]:
    """Return attributes by their full names, in whichever of the three forms they are: OTLP, flat, nested."""
    if isinstance(value, list):
        return {
            one["key"]: _read_any_value(one.get("value"))
            for one in value
            if isinstance(one, Mapping) and isinstance(one.get("key"), str)
        }
    if not isinstance(value, Mapping):
        return {}
    flat: dict[str, Any] = {}
    waiting = deque((str(key), one) for key, one in value.items())
    while waiting:
        name, one = waiting.popleft()
        if isinstance(one, Mapping):
            flat.setdefault(name, dict(one))
            waiting += [(f"{name}.{key}", inner) for key, inner in one.items()]
        elif isinstance(one, list) and any(isinstance(inner, Mapping) for inner in one):
            flat[name] = one
            waiting += [(f"{name}.{number}", inner) for number, inner in enumerate(one)]
        else:
            flat[name] = one
    return flat


def _read_any_value(value: Any) -> Any:
    """Return the value of OTLP's `AnyValue`."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    kind, inner = next(iter(value.items()))
    if kind == "arrayValue" and isinstance(inner, Mapping):
        return [_read_any_value(one) for one in list_in(inner, "values")]
    if kind == "kvlistValue" and isinstance(inner, Mapping):
        return flatten_attributes(inner.get("values"))
    return inner


def build_attribute_tree(flat: Attributes) -> Any:
    """Return attributes as objects in each other; keys from 0 on make a list. Of a clash, objects win.

    Raises:
        FormatError: a name has more parts than JSON may have levels.
    """
    root: dict[str, Any] = {}
    for name, value in flat.items():
        if isinstance(value, Mapping):
            continue
        if name.count(".") >= MAX_DEPTH:
            raise FormatError(
                f"the attribute {shorten_line(name)} has more than {MAX_DEPTH} parts. Shorten its name."
            )
        *path, last = name.split(".")
        at = root
        for key in path:
            inner = at.get(key)
            if not isinstance(inner, dict):
                inner = at[key] = {}
            at = inner
        if not isinstance(at.get(last), dict):
            at[last] = value
    return _convert_to_lists(root)


def _convert_to_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _convert_to_lists(one) for key, one in value.items()}
    if inner and all(key.isdecimal() for key in inner):
        # Any number of digits: `int` reads 4,300.
        return [inner[key] for key in sorted(inner, key=Decimal)]
    return inner


def _get_at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _read_text(value: Any) -> str | None:
    return str(value) if isinstance(value, str | int) and str(value) else None


def _read_time(value: Mapping[str, Any], *keys: str) -> float:
    return read_timestamp(next((value[key] for key in keys if value.get(key)), None))


def read_timestamp(value: Any) -> float:
    """Return a time as a number: digits, or ISO 8601; 0 for anything else."""
    return parse_timestamp(value) or 0.0


def parse_timestamp(value: Any) -> float | None:
    """Return a time as a number: digits, or ISO 8601; None for anything else."""
    if isinstance(value, str):
        value = re.sub(r" (?:UTC|GMT)$", "Z", value.strip())
    for read in (float, lambda text: datetime.fromisoformat(text).timestamp()):
        with suppress(TypeError, ValueError, OverflowError):
            found = float(read(value))
            return found if isfinite(found) else None
    return None


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of a file of traces."""
    return read_traces(path, reading, read_otel_spans)


def recognize(start: FileStart) -> bool:
    """Return whether the first object is a span, or an export of spans."""
    return start.value is not None and is_span(start.value)


INFO = ChatFormat(
    name="otel",
    about="spans of OpenTelemetry GenAI",
    endings=(".json", ".jsonl"),
    read=read,
    recognize=recognize,
    rank=3,
)
