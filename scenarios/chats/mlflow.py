"""Traces of MLflow (versions 2.14 to 3.5): `Trace.to_json()`, or rows of `mlflow.search_traces()` as JSON.

A value has `info` and `data.spans`, or the columns `trace_id` (in MLflow 2 `request_id`), `request`,
`response` and `spans`. Attributes of spans are JSON in texts, such as `mlflow.spanType`. The session is
`mlflow.trace.session` of the trace's metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from hallulab.scenarios.chats.spans import time_of
from hallulab.scenarios.chats.traces import TraceSpan
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


def spans_in(value: Mapping[str, Any]) -> Iterator[TraceSpan]:
    """Yield the spans of a trace.

    Raises:
        Flaw: it has no identifier or no list of spans.
    """
    info, data = _object(value.get("info")), _object(value.get("data"))
    about = {**value, **info}
    id = about.get("trace_id") or about.get("request_id")
    spans = data.get("spans", value.get("spans"))
    if not isinstance(id, str) or not id or not isinstance(spans, list):
        raise FormatError("a trace needs `trace_id` and a list of spans. Export it with `Trace.to_json()`.")
    session, topic = _metadata(about, "mlflow.trace.session"), _metadata(about, "topic")
    for span in spans:
        if not isinstance(span, Mapping):
            raise FormatError("`spans` must hold objects. Correct it.")
        yield _span(id, span, session, topic)


def _span(trace: str, span: Mapping[str, Any], session: str | None, topic: str | None) -> TraceSpan:
    found = {key: _value(one) for key, one in _object(span.get("attributes")).items()}
    kind = found.get("mlflow.spanType", span.get("span_type"))
    return TraceSpan(
        trace=trace,
        kind=_KINDS.get(kind, "other") if isinstance(kind, str) else "other",
        root=not (span.get("parent_id") or span.get("parent_span_id")),
        start=time_of(span.get("start_time_unix_nano", span.get("start_time"))),
        end=time_of(span.get("end_time_unix_nano", span.get("end_time"))),
        name=str(span.get("name") or ""),
        given=found.get("mlflow.spanInputs", span.get("inputs")),
        gave=found.get("mlflow.spanOutputs", span.get("outputs")),
        session=session,
        model=_text(found.get("mlflow.llm.model")),
        topic=topic,
    )


def _value(text: Any) -> Any:
    """Return an attribute's value, which MLflow writes as JSON."""
    if not isinstance(text, str):
        return text
    try:
        return parse_json(text)
    except ValueError:
        return text


def _metadata(about: Mapping[str, Any], key: str) -> str | None:
    """Return an entry of a trace's metadata or tags, which have other names in MLflow 2."""
    places = (_object(about.get(name)) for name in ("trace_metadata", "request_metadata", "tags"))
    return next((found for place in places if (found := _text(place.get(key)))), None)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
