"""Traces of MLflow (versions 2.14 to 3.5): `Trace.to_json()`, or rows of `mlflow.search_traces()` as JSON.

A value has `info` and `data.spans`, or the columns `trace_id` (in MLflow 2 `request_id`), `request`,
`response` and `spans`. Attributes of spans are JSON in texts, such as `mlflow.spanType`. The session is
`mlflow.trace.session` of the trace's metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat
from hallulab.scenarios.chats.otel import read_timestamp
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.traces import TraceSpan, read_traces
from hallulab.scenarios.chats.values import FormatError
from hallulab.scenarios.files.json_text import parse_json

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
        FormatError: it has no identifier or no list of spans.
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
        yield _build_span(id, span, session, topic)


def _build_span(trace: str, span: Mapping[str, Any], session: str | None, topic: str | None) -> TraceSpan:
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


def _read_text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of a file of traces."""
    return read_traces(path, reading, read_mlflow_spans)


def recognize(start: FileStart) -> bool:
    """Return whether the first object is a trace of MLflow."""
    return start.value is not None and is_mlflow(start.value)


INFO = ChatFormat(
    name="mlflow",
    about="traces of MLflow",
    endings=(".json", ".jsonl"),
    read=read,
    recognize=recognize,
    rank=5,
)
