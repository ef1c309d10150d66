"""Spans as rows: an object or a row of a table each, with input, output and the span around it.

Exports of W&B Weave (calls), Opik and Braintrust, and the tables of LangSmith and Langfuse. Which of them a
file is of does not matter: a row names its trace, the span around it (the outermost names none), its kind,
its times, its input and its output.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.cells import is_nothing, unpack_cell
from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat
from hallulab.scenarios.chats.conventions import RETRIEVES, Kind, read_text
from hallulab.scenarios.chats.csv import find_encoding, find_separator, read_table_values
from hallulab.scenarios.chats.reading import Reading, fold_keys, fold_names
from hallulab.scenarios.chats.row_order import read_timestamp
from hallulab.scenarios.chats.span_files import (
    ROW_GAVE,
    ROW_GIVEN,
    ROW_PARENTS,
    ROW_TRACES,
    is_span_row,
)
from hallulab.scenarios.chats.traces import TraceSpan, read_traces
from hallulab.scenarios.chats.values import FormatError, get_text

_NAMES: Mapping[str, tuple[str, ...]] = {
    "id": fold_names("span_id id run_id observation_id"),
    "name": fold_names("name op_name display_name span_name"),
    "start": fold_names("start_time started_at created start timestamp"),
    "end": fold_names("end_time ended_at end"),
    "session": fold_names("session_id thread_id conversation_id"),
    "model": fold_names("model model_name provided_model_name"),
}
_KINDS: Mapping[str, Kind] = {
    "llm": "model", "generation": "model", "chat": "model", "chat_model": "model",
    "retriever": "evidence", "retrieval": "evidence", "reranker": "evidence", "tool": "evidence",
    "agent": "agent",
}  # fmt: skip


def _read_row(value: Mapping[str, Any], left_out: Counter[str]) -> Iterator[TraceSpan]:
    own, names = fold_keys(value), fold_keys({name: name for name in value})
    trace = read_text(_get(own, ROW_TRACES))
    if trace is None:
        raise FormatError("a span names no trace. Export it with its `trace_id`.")
    found = {what: read_text(_get(own, known)) for what, known in _NAMES.items()}
    attributes = unpack_cell(own.get("spanattributes"))  # of Braintrust
    name = (found["name"] or get_text(attributes, "name") or "").rpartition("/")[2]
    kind_name = own.get("runtype") or own.get("type") or get_text(attributes, "type")
    kind = _KINDS.get(str(kind_name).casefold())
    if kind is None:
        kind = "evidence" if RETRIEVES.search(name) else "other"
    gave = "passages" if kind == "evidence" else "reply"
    told = {
        "user": ROW_GIVEN, gave: ROW_GAVE, "session": _NAMES["session"], "time": _NAMES["start"],
        "model": _NAMES["model"],
    }  # fmt: skip
    yield TraceSpan(
        trace=trace,
        id=found["id"] or "",
        kind=kind,
        root=is_nothing(_get(own, ROW_PARENTS)),
        start=read_timestamp(found["start"]),
        end=read_timestamp(found["end"]),
        name=name,
        given=_get(own, ROW_GIVEN),
        gave=_get(own, ROW_GAVE),
        beside=own.get("metadata"),
        session=found["session"],
        model=found["model"],
        names={
            what: str(names[key])
            for what, known in told.items()
            for key in known
            if not is_nothing(own.get(key))
        },
    )


def _get(own: Mapping[str, Any], known: Iterable[str]) -> Any:
    return next((own[key] for key in known if not is_nothing(own.get(key))), None)


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of the spans of a file, in JSON or in a table."""
    return read_traces(path, reading, _read_row, read_table_values(path, reading))


def recognize(start: FileStart) -> bool:
    """Return whether the first object, or the header, is that of spans."""
    if start.value is not None:
        return is_span_row(start.value)
    text = start.data.decode(find_encoding(start.data), "replace").lstrip()
    return text[:1] not in ("{", "[") and is_span_row(find_separator(text.splitlines()[:2])[1])


INFO = ChatFormat(
    name="span-rows",
    about="spans as rows, each with its trace and the span around it (Weave, Opik, Braintrust, LangSmith)",
    endings=(".jsonl", ".json", ".csv"),
    read=read,
    recognize=recognize,
    rank=6,
)
