"""Traces of Langfuse, as its API and its exports give them (API reference of October 2026).

A value is a trace with `observations`, a trace without (its `input` and `output` then tell all), an
observation with `traceId` (one without a parent is the root), a session with `traces`, or an answer of the
API with `data`. Names count in camel or in snake case. Observations of the types RETRIEVER and TOOL have the
evidence; in older versions, spans whose name says that they retrieve.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, recognize_object
from hallulab.scenarios.chats.conventions import RETRIEVES, Kind, read_text
from hallulab.scenarios.chats.reading import fold_keys, fold_name
from hallulab.scenarios.chats.row_order import read_timestamp
from hallulab.scenarios.chats.span_files import is_span_row
from hallulab.scenarios.chats.traces import TraceSpan, read_traces
from hallulab.scenarios.chats.values import FormatError, get_first, get_object, list_objects

_KINDS: Mapping[str, Kind] = {
    "RETRIEVER": "evidence", "TOOL": "evidence", "GENERATION": "model", "AGENT": "agent",
}  # fmt: skip
_TRACE = {"sessionid", "projectid", "traceid", "timestamp"}


def is_langfuse(value: Mapping[str, Any]) -> bool:
    """Return whether a value has the keys of a trace, an observation or a session, or wraps such."""
    own = fold_keys(value)
    if is_span_row(own) and "parentobservationid" not in own:
        return False  # of another tool
    named = {"id", "type"} & own.keys()  # other logs have an input, an output and a session, too
    if {"input", "output"} <= own.keys() and named and _TRACE & own.keys():
        return True
    if {"traceid", "type", "starttime"} <= own.keys():
        return True
    wrapped = get_first(own, "data")
    return is_langfuse(wrapped) if wrapped else bool({"observations", "traces"} & own.keys())


def read_langfuse_spans(value: Mapping[str, Any], left_out: Counter[str]) -> Iterator[TraceSpan]:
    """Yield a trace and its observations as spans.

    Raises:
        FormatError: it is nothing of Langfuse.
    """
    own = fold_keys(value)
    for key, session in (("traces", own.get("id")), ("data", None)):
        if isinstance(own.get(key), list):
            for one in own[key]:
                if not isinstance(one, Mapping):
                    raise FormatError(f"{key}: must hold objects. Correct it.")
                inner = fold_keys(one)
                named = {**inner, "sessionid": inner.get("sessionid") or session}
                yield from read_langfuse_spans(named, left_out)
            return
    if isinstance(own.get("trace"), Mapping):
        own = {**fold_keys(own["trace"]), **own}
    if own.get("traceid"):
        yield _build_span(own, str(own["traceid"]), is_alone=True)
        return
    id = own.get("id")
    if not isinstance(id, str) or not id:
        raise FormatError(
            "a trace has no `id`, and an observation no `traceId`. Export them with these fields."
        )
    yield TraceSpan(
        trace=id,
        kind="other",
        root=True,
        start=read_timestamp(own.get("timestamp")),
        given=own.get("input"),
        gave=own.get("output"),
        session=read_text(own.get("sessionid")),
        topic=read_text(get_object(own, "metadata").get("topic")),
        beside=own.get("metadata"),
        names=_list_names(own, "timestamp", "reply"),
    )
    says_nothing = own.get("input") is None and own.get("output") is None
    # The API's short form has identifiers only, which are no objects.
    for one in list_objects(own, "observations"):
        yield _build_span(fold_keys(one), id, is_alone=says_nothing)


def _build_span(own: Mapping[str, Any], trace: str, is_alone: bool) -> TraceSpan:
    """Return an observation; without what its trace says, it tells by its parent whether it is the root."""
    type, name = str(own.get("type")).upper(), str(own.get("name") or "")
    retrieves = type == "SPAN" and RETRIEVES.search(name)
    kind: Kind = "evidence" if retrieves else _KINDS.get(type, "other")
    return TraceSpan(
        trace=trace,
        id=read_text(own.get("id")) or "",
        kind=kind,
        root=is_alone and "parentobservationid" in own and not own["parentobservationid"],
        start=read_timestamp(own.get("starttime")),
        end=read_timestamp(own.get("endtime")),
        name=name,
        given=own.get("input"),
        gave=own.get("output"),
        beside=own.get("metadata"),
        session=read_text(own.get("sessionid")),
        model=read_text(own.get("model")) or read_text(own.get("providedmodelname")),
        names=_list_names(own, "startTime", "passages" if kind == "evidence" else "reply"),
    )


def _list_names(own: Mapping[str, Any], time: str, gave: str) -> dict[str, str]:
    """Return what is looked for → its name, as far as it is there."""
    names = {"user": "input", gave: "output", "session": "sessionId", "time": time, "model": "model"}
    return {field: name for field, name in names.items() if own.get(fold_name(name))}


INFO = ChatFormat(
    name="langfuse",
    about="traces of Langfuse",
    endings=(".json", ".jsonl"),
    read=partial(read_traces, read=read_langfuse_spans),
    recognize=recognize_object(is_langfuse),
    rank=6,
)
