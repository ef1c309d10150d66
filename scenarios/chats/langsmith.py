"""Runs of LangSmith: a run a line, or `runs`, with `inputs`, `outputs` and `run_type`.

As in LangSmith's run data format of October 2026. A run of the type `retriever` or `tool` has evidence; the
runs of one thread (`session_id`, `thread_id` or `conversation_id` of the metadata) are one conversation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, recognize_object, require_object
from hallulab.scenarios.chats.conventions import Kind
from hallulab.scenarios.chats.row_order import read_timestamp
from hallulab.scenarios.chats.traces import TraceSpan, read_traces
from hallulab.scenarios.chats.values import FormatError, get_first, get_object, get_text, list_in

_THREADS = ("session_id", "thread_id", "conversation_id")
_KINDS: Mapping[str, Kind] = {"llm": "model", "retriever": "evidence", "tool": "evidence"}
_DEEPEST = 50


def read_langsmith_spans(
    value: Mapping[str, Any], left_out: Counter[str], levels: int = _DEEPEST
) -> Iterator[TraceSpan]:
    """Yield a run, and those in it, as spans.

    Args:
        value: a run, or an object with `runs`.
        left_out: counts what has no place in a conversation; nothing of a run does.
        levels: how deep runs may stand in each other.

    Raises:
        FormatError: a run has no identifier, or they stand too deep in each other.
    """
    if isinstance(value.get("runs"), list):
        for one in value["runs"]:
            yield from read_langsmith_spans(require_object(one), left_out, levels)
        return
    trace = value.get("trace_id") or value.get("id")
    if not isinstance(trace, str) or not trace or not levels:
        raise FormatError("a run has no `trace_id` and no `id`. Export it with them.")
    about = get_object(value.get("extra"), "metadata")
    kind = _KINDS.get(str(value.get("run_type")), "other")
    thread = next((key for key in _THREADS if about.get(key)), None)
    names = {"user": "inputs", "reply": "outputs"} if kind != "evidence" else {"passages": "outputs"}
    yield TraceSpan(
        trace=trace,
        kind=kind,
        root=not (value.get("parent_run_id") or value.get("parent_run_ids")),
        start=read_timestamp(value.get("start_time")),
        end=read_timestamp(value.get("end_time")),
        name=str(value.get("name") or ""),
        given=value.get("inputs"),
        gave=value.get("outputs"),
        beside=about,
        session=None if thread is None else str(about[thread]),
        model=get_text(about, "ls_model_name"),
        names=names if thread is None else {**names, "session": thread},
    )
    for child in list_in(value, "child_runs"):
        inner = {"trace_id": trace, "parent_run_id": trace, **require_object(child)}
        yield from read_langsmith_spans(inner, left_out, levels - 1)


INFO = ChatFormat(
    name="langsmith",
    about="runs of LangSmith",
    endings=(".jsonl", ".json"),
    read=partial(read_traces, read=read_langsmith_spans),
    recognize=recognize_object(
        lambda value: {"run_type", "inputs"} <= (get_first(value, "runs") or value).keys()
    ),
    rank=0,
)
