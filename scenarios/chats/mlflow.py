"""Traces of MLflow (versions 2.14 to 3.5): `Trace.to_json()`, or rows of `mlflow.search_traces()` as JSON.

A value has `info` and `data.spans`, or the columns `trace_id` (in MLflow 2 `request_id`), `request`,
`response` and `spans`. Attributes of spans are JSON in texts, such as `mlflow.spanType`. The session is
`mlflow.trace.session` of the trace's metadata.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, recognize_object
from hallulab.scenarios.chats.conventions import Kind
from hallulab.scenarios.chats.row_order import read_timestamp
from hallulab.scenarios.chats.traces import TraceSpan, read_traces
from hallulab.scenarios.chats.values import FormatError, get_object, get_text
from hallulab.scenarios.files.json_text import parse_json

_KINDS: dict[Any, Kind] = {
    "AGENT": "agent",
    "CHAT_MODEL": "model",
    "LLM": "model",
    "RETRIEVER": "evidence",
    "RERANKER": "evidence",
    "TOOL": "evidence",
}
_SESSION = "mlflow.trace.session"
_TIMES = ("start", "end")


def is_mlflow(value: Mapping[str, Any]) -> bool:
    """Return whether a value is a trace of MLflow."""
    return {"info", "data"} <= value.keys() or {"request", "response", "spans"} <= value.keys()


def read_mlflow_spans(value: Mapping[str, Any], left_out: Counter[str]) -> Iterator[TraceSpan]:
    """Yield the spans of a trace.

    Raises:
        FormatError: it has no identifier or no list of spans.
    """
    about = {**value, **get_object(value, "info")}
    id = about.get("trace_id") or about.get("request_id")
    spans = get_object(value, "data").get("spans", value.get("spans"))
    if not isinstance(id, str) or not id or not isinstance(spans, list):
        raise FormatError("a trace needs `trace_id` and a list of spans. Export it with `Trace.to_json()`.")
    session, topic = _find_metadata(about, _SESSION), _find_metadata(about, "topic")
    for span in spans:
        if not isinstance(span, Mapping):
            raise FormatError("`spans` must hold objects. Correct it.")
        yield _build_span(id, span, session, topic)


def _build_span(trace: str, span: Mapping[str, Any], session: str | None, topic: str | None) -> TraceSpan:
    found = {key: _parse_value(one) for key, one in get_object(span, "attributes").items()}
    kind = found.get("mlflow.spanType", span.get("span_type"))
    works = _KINDS.get(kind, "other") if isinstance(kind, str) else "other"
    inputs, outputs = (
        found.get(name, span.get(short))
        for name, short in (("mlflow.spanInputs", "inputs"), ("mlflow.spanOutputs", "outputs"))
    )
    times = [
        read_timestamp(span.get(f"{which}_time_unix_nano", span.get(f"{which}_time"))) for which in _TIMES
    ]
    names = {
        "user": "mlflow.spanInputs" if inputs else None,
        "passages" if works == "evidence" else "reply": "mlflow.spanOutputs" if outputs else None,
        "session": _SESSION if session else None,
        "time": "start_time" if times[0] is not None else None,
    }
    return TraceSpan(
        trace=trace,
        kind=works,
        root=not (span.get("parent_id") or span.get("parent_span_id")),
        start=times[0],
        end=times[1],
        name=str(span.get("name") or ""),
        given=inputs,
        gave=outputs,
        session=session,
        model=get_text(found, "mlflow.llm.model"),
        topic=topic,
        names={field: name for field, name in names.items() if name is not None},
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
    places = ("trace_metadata", "request_metadata", "tags")
    return next((found for place in places if (found := get_text(about.get(place), key))), None)


INFO = ChatFormat(
    name="mlflow",
    about="traces of MLflow",
    endings=(".json", ".jsonl"),
    read=partial(read_traces, read=read_mlflow_spans),
    recognize=recognize_object(is_mlflow),
    rank=5,
)
