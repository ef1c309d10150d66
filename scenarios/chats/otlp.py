"""Spans in OTLP's JSON by the GenAI conventions (semantic-conventions-genai v0.1.0), which `otel` reads.

A line for each conversation: one trace, in which `invoke_agent` has the whole dialogue and, of each turn, a
span `retrieval` with the passages and a span `chat` with message and reply. A verdict is an event
`gen_ai.evaluation.result` of the `chat` that it is about. A run does not keep the time of day: its spans
begin with the year 2000, and `chat` lasts a second longer than the calls of the models did.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats import otel
from hallulab.scenarios.chats.chat_format import ChatFormat, encode_json, write_lines
from hallulab.scenarios.chats.messages import collect_messages
from hallulab.scenarios.chats.record import KEY, PARTS, Marked, build_chat_context
from hallulab.scenarios.transcript import Verdict

_BEGINNING = 946_684_800_000_000_000
"""Nanoseconds from 1970 to 2000."""
_SECOND = 1_000_000_000
FLAGGED, CLEAN = "hallucinated", "not_hallucinated"


def write(path: Path, chats: Iterable[Marked], without: frozenset[str]) -> None:
    """Write a line with the trace of each conversation."""
    write_lines(path, (encode_json(build_otlp_line(marked, without)) for marked in chats))


def build_otlp_line(marked: Marked, without: frozenset[str]) -> dict[str, Any]:
    """Return the trace of a conversation; without all parts it has nothing but the dialogue."""
    spans = list(_build_spans(marked, without))
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _encode({"service.name": "hallulab"})},
                "scopeSpans": [{"scope": {"name": "hallulab"}, "spans": spans}],
            }
        ]
    }


def _build_spans(marked: Marked, without: frozenset[str]) -> Iterator[dict[str, Any]]:
    one = marked.conversation
    said = collect_messages(one)
    about: dict[str, Any] = {
        "gen_ai.conversation.id": one.id,
        "gen_ai.agent.name": one.chatbot,
        "gen_ai.provider.name": "hallulab",
        "gen_ai.request.model": one.model,
    }
    children = list[dict[str, Any]]()
    verdicts = defaultdict[int, list[Verdict]](list)
    for verdict in () if "spans" in without else marked.verdicts:
        verdicts[verdict.turn].append(verdict)
    at = _BEGINNING
    for turn in one.turns:
        if turn.passages and "passages" not in without:
            passages = encode_json(
                [
                    {
                        **found.model_dump(include={"id", "document", "score", "topic"}, exclude_none=True),
                        "content": found.text,
                    }
                    for found in turn.passages
                ]
            )
            own = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": passages}
            children.append(_build_span(one.id, f"retrieval {turn.index}", at, at + _SECOND, own))
            at += _SECOND
        ends = at + _SECOND + round(sum(call.latency_s for call in turn.calls) * _SECOND)
        own = {
            **about,
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": _encode_messages([("user", turn.user)]),
            "gen_ai.output.messages": _encode_messages([("assistant", turn.reply)]),
        }
        children.append(
            {
                **_build_span(one.id, f"chat {turn.index}", at, ends, own),
                "events": [_build_event(verdict, ends) for verdict in verdicts[turn.index]],
            }
        )
        at = ends
    root = {
        **about,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.input.messages": _encode_messages(said[:-1]),
        "gen_ai.output.messages": _encode_messages(said[-1:]),
    }
    if not without >= frozenset(PARTS):
        root[KEY] = build_chat_context(marked, without).model_dump_json()
    yield _build_span(one.id, "invoke_agent", _BEGINNING, at, root)
    yield from children


def _encode_messages(said: Iterable[tuple[str, str]]) -> str:
    return encode_json([{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in said])


def _build_span(
    conversation: str, name: str, start: int, end: int, attributes: Mapping[str, Any]
) -> dict[str, Any]:
    parent = {} if name == "invoke_agent" else {"parentSpanId": _make_id(conversation, "invoke_agent")[:16]}
    return {
        "traceId": _make_id(conversation, "trace"),
        "spanId": _make_id(conversation, name)[:16],
        **parent,
        "name": name.partition(" ")[0],
        "kind": 1,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(end),
        "attributes": _encode(attributes),
    }


def _make_id(conversation: str, name: str) -> str:
    return hashlib.sha256(encode_json([conversation, name]).encode()).hexdigest()[:32]


def _build_event(verdict: Verdict, at: int) -> dict[str, Any]:
    """Return a verdict as an event; one that failed or abstained has no score, and says why."""
    told: dict[str, Any] = {"gen_ai.evaluation.name": verdict.detector}
    if verdict.outcome == "scored":
        told["gen_ai.evaluation.score.value"] = float(verdict.score or 0)
        told["gen_ai.evaluation.score.label"] = FLAGGED if verdict.flagged else CLEAN
        found = verdict.spans or ()
        explanation = "; ".join(": ".join(filter(None, (span.text, span.reason))) for span in found)
    else:
        told["error.type"] = verdict.outcome
        explanation = verdict.error or ""
    if explanation:
        told["gen_ai.evaluation.explanation"] = explanation
    told[f"{KEY}.version"] = verdict.version
    return {"name": otel.EVALUATION, "timeUnixNano": str(at), "attributes": _encode(told)}


def _encode(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"doubleValue": one} if isinstance(one, float) else {"stringValue": one}}
        for key, one in attributes.items()
    ]


INFO = ChatFormat(
    name="otlp",
    about="spans of OpenTelemetry GenAI, with verdicts as events",
    endings=(".jsonl", ".json"),
    read=otel.read,
    write=write,
    rank=13,
)
