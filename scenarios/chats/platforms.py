"""Traces of two tracing platforms as spans: Langfuse and MLflow.

Traces of Langfuse, as its API and its exports give them (API reference of October 2026).
A value is a trace with `observations`, a trace without (its `input` and `output` then tell all), an
observation with `traceId`, or a session with `traces`. Names may be in camel or in snake case. Observations
of the types RETRIEVER and TOOL have the evidence; in older versions, spans whose name says that they
retrieve.

Traces of MLflow (versions 2.14 to 3.5): `Trace.to_json()`, or rows of `mlflow.search_traces()` as JSON.
A value has `info` and `data.spans`, or the columns `trace_id` (in MLflow 2 `request_id`), `request`,
`response` and `spans`. Attributes of spans are JSON in texts, such as `mlflow.spanType`. The session is
`mlflow.trace.session` of the trace's metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from hallulab.scenarios.chats.opentelemetry import read_timestamp
from hallulab.scenarios.chats.traces import TraceSpan
from hallulab.scenarios.chats.values import FormatError, list_in
from hallulab.scenarios.files.json_text import parse_json

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
        Flaw: it is nothing of Langfuse.
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


_KINDS: dict[Any, Literal["model", "evidence"]] = {
    "CHAT_MODEL": "model",
    "LLM": "model",
    "RETRIEVER": "evidence",
    "RERANKER": "evidence",
    "TOOL": "evidence",
}


def is_mlflow(value: Mapping[str, Any]) -> bool:
    """Return whether a value is a trace of MLflow."""
    return {"info", "data"} <= value.keys() or {"request", "response", "spans"} <= value.keys()


def read_mlflow_spans(value: Mapping[str, Any]) -> Iterator[TraceSpan]:
    """Yield the spans of a trace.

    Raises:
        Flaw: it has no identifier or no list of spans.
    """
    info, data = _get_object(value.get("info")), _get_object(value.get("data"))
    about = {**value, **info}
    id = about.get("trace_id") or about.get("request_id")
    spans = data.get("spans", value.get("spans"))
    if not isinstance(id, str) or not id or not isinstance(spans, list):
        raise FormatError("a trace needs `trace_id` and a list of spans. Export it with `Trace.to_json()`.")
    session, topic = _find_metadata(about, "mlflow.trace.session"), _find_metadata(about, "topic")
    for span in spans:
        if not isinstance(span, Mapping):
            raise FormatError("`spans` must hold objects. Correct it.")
        yield _build_mlflow_span(id, span, session, topic)


def _build_mlflow_span(
    trace: str, span: Mapping[str, Any], session: str | None, topic: str | None
) -> TraceSpan:
    found = {key: _parse_value(one) for key, one in _get_object(span.get("attributes")).items()}
    kind = found.get("mlflow.spanType", span.get("span_type"))
    return TraceSpan(
        trace=trace,
        kind=_KINDS.get(kind, "other") if isinstance(kind, str) else "other",
        root=not (span.get("parent_id") or span.get("parent_span_id")),
        start=read_timestamp(span.get("start_time_unix_nano", span.get("start_time"))),
        end=read_timestamp(span.get("end_time_unix_nano", span.get("end_time"))),
        name=str(span.get("name") or ""),
        given=found.get("mlflow.spanInputs", span.get("inputs")),
        gave=found.get("mlflow.spanOutputs", span.get("outputs")),
        session=session,
        model=_read_text(found.get("mlflow.llm.model")),
        topic=topic,
    )


def _parse_value(text: Any) -> Any:
    """Return an attribute's value, which MLflow writes as JSON."""
    if not isinstance(text, str):
        return text
    try:
        return parse_json(text)
    except ValueError:
        return text


def _find_metadata(about: Mapping[str, Any], key: str) -> str | None:
    """Return an entry of a trace's metadata or tags, which have other names in MLflow 2."""
    places = (_get_object(about.get(name)) for name in ("trace_metadata", "request_metadata", "tags"))
    return next((found for place in places if (found := _read_text(place.get(key)))), None)


def _get_object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
