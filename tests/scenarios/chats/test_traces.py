"""Traces of other tools: read to the same turn, and each says what it took for what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas
import pytest

from hallulab.scenarios.chats.formats import format_of, read_chats
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.transcript import Conversation
from tests.kit.refusals import refusal

ASKED, REPLIED, FEE = "What is the fee?", "It is 500.", "The fee is 200."
USER, ASSISTANT = {"role": "user", "content": ASKED}, {"role": "assistant", "content": REPLIED}


def encode(value: Any, snake: bool = False) -> dict[str, Any]:
    """A value of OTLP, with the null members that Phoenix writes in snake case."""
    if snake:
        return {"string_value": value if isinstance(value, str) else json.dumps(value), "int_value": None}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}


def span(id: str, parent: str, attributes: dict[str, Any], **beside: Any) -> dict[str, Any]:
    return {
        "traceId": "t", "spanId": id, "parentSpanId": parent, "name": id,
        "startTimeUnixNano": "1790843400000000000", "endTimeUnixNano": "1790843401000000000",
        "attributes": [{"key": key, "value": encode(one)} for key, one in attributes.items()],
        **beside,
    }  # fmt: skip


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]}


def event(name: str, **attributes: str) -> dict[str, Any]:
    listed = [{"key": key, "value": encode(one)} for key, one in attributes.items()]
    return {"name": name, "attributes": listed}


def log(name: str, content: str) -> dict[str, Any]:
    said = {"key": "content", "value": encode(content)}
    if name == "gen_ai.choice":
        said = {"key": "message", "value": {"kvlistValue": {"values": [said]}}}
    body = {"kvlistValue": {"values": [said]}}
    return {"timeUnixNano": "1", "traceId": "t", "spanId": "2", "eventName": name, "body": body}


CHAT = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "s"}
FIND = {
    "gen_ai.operation.name": "retrieval",
    "gen_ai.retrieval.documents": [{"content": FEE, "source": "fees.md"}],
}
PHOENIX = {
    "llm": {"input.value": ASKED, "output.value": REPLIED, "session.id": "s"},
    "find": {
        "retrieval.documents.0.document.content": FEE,
        "retrieval.documents.0.document.metadata": {"source": "fees.md"},
    },
}


def phoenix(id: str, kind: str, parent: str | None) -> dict[str, Any]:
    return {
        "name": id, "context": {"trace_id": "t", "span_id": id}, "span_kind": kind, "parent_id": parent,
        "start_time": "2026-10-01T00:00:00+00:00", "attributes": PHOENIX[id], "events": [],
    }  # fmt: skip


def frame(id: str, kind: str, parent: str | None) -> dict[str, Any]:
    return {
        "name": id, "span_kind": kind, "parent_id": parent, "start_time": 1790843400000,
        "context.trace_id": "t", "context.span_id": id, "attributes.empty": None,
        **{f"attributes.{key}": one for key, one in PHOENIX[id].items()},
    }  # fmt: skip


def snake(id: str, kind: str, parent: str | None) -> dict[str, Any]:
    flat = {key: one for key, one in PHOENIX[id].items() if isinstance(one, str)}
    metadata = {"retrieval.documents.0.document.metadata": {"source": "fees.md"}} if id == "find" else {}
    return {
        "trace_id": "t", "span_id": id, "parent_span_id": parent, "name": id, "events": None,
        "start_time_unix_nano": 1790843400000000000,
        "attributes": [
            {"key": key, "value": encode(one, snake=True)}
            for key, one in {**flat, **metadata, "openinference.span.kind": kind}.items()
        ],
    }  # fmt: skip


BOTH = (("llm", "CHAIN", None), ("find", "RETRIEVER", "llm"))
OPENINFERENCE = (
    "user ← input.value, reply ← output.value, passages ← retrieval.documents, session ← session.id, "
    "time ← start_time"
)
GENAI = "passages ← gen_ai.retrieval.documents, session ← gen_ai.conversation.id, time ← start_time"

FILES: dict[str, tuple[Any, str]] = {
    "Traceloop": (otlp(
        span("1", "", {
            "traceloop.span.kind": "workflow", "traceloop.association.properties.session_id": "s",
            "traceloop.entity.input": {"args": [ASKED], "kwargs": {}},
            "traceloop.entity.output": json.dumps(REPLIED)}),
        span("3", "1", {
            "traceloop.span.kind": "tool",
            "traceloop.entity.output": [{"page_content": FEE, "metadata": {"source": "fees.md"}}]}),
    ), "user ← traceloop.entity.input.args, reply ← traceloop.entity.output, "
       "passages ← traceloop.entity.output, session ← traceloop.association.properties.session_id, "
       "time ← start_time"),
    "Traceloop's prompts": (otlp(
        span("1", "", {
            "llm.request.type": "chat", "gen_ai.request.model": "m", "session.id": "s",
            "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": ASKED,
            "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": REPLIED}),
        span("2", "1", FIND),
    ), "user ← gen_ai.prompt, reply ← gen_ai.completion, passages ← gen_ai.retrieval.documents, "
       "session ← session.id, time ← start_time, model ← gen_ai.request.model"),
    "Vercel": (otlp(
        span("1", "", {
            "ai.operationId": "ai.generateText", "ai.prompt": {"prompt": ASKED}, "ai.response.text": REPLIED,
            "ai.telemetry.metadata.sessionId": "s"}),
        span("2", "1", {
            "ai.operationId": "ai.toolCall", "ai.toolCall.name": "find",
            "ai.toolCall.result": [{"text": FEE, "source": "fees.md"}]}),
    ), "user ← ai.prompt.prompt, reply ← ai.response.text, passages ← ai.toolCall.result, "
       "session ← ai.telemetry.metadata.sessionId, time ← start_time"),
    "events of a span": (otlp(
        span("1", "", CHAT, events=[
            event("gen_ai.user.message", content=ASKED),
            event("gen_ai.choice", message=json.dumps({"content": REPLIED})),
        ]),
        span("2", "1", FIND),
    ), f"user ← messages of events, reply ← messages of events, {GENAI}"),
    "records of the log": ([
        {"resourceLogs": [{"scopeLogs": [{"logRecords": [
            log("gen_ai.user.message", ASKED), log("gen_ai.choice", REPLIED)]}]}]},
        otlp(span("2", "", CHAT), span("3", "2", FIND)),
    ], f"user ← gen_ai.user.message, reply ← gen_ai.choice, {GENAI}"),
    "details of an event": (otlp(
        span("1", "", CHAT, events=[event(
            "gen_ai.client.inference.operation.details", **{
                "gen_ai.input.messages": json.dumps([USER]),
                "gen_ai.output.messages": json.dumps([ASSISTANT])})]),
        span("2", "1", FIND),
    ), f"user ← gen_ai.input.messages, reply ← gen_ai.output.messages, {GENAI}"),
    "LangGraph": ([{
        **phoenix("llm", "CHAIN", None),
        "attributes": {
            "session.id": "s",
            "input.value": json.dumps({"messages": [{"type": "human", "content": ASKED}]}),
            "output.value": json.dumps({"messages": [
                {"type": "human", "content": ASKED},
                {"type": "ai", "content": "", "tool_calls": [{"name": "find"}]},
                {"type": "tool", "content": json.dumps([{"text": FEE, "source": "fees.md"}])},
                {"type": "ai", "content": REPLIED},
            ]}),
        },
    }], "user ← input.value.messages, reply ← output.value.messages, session ← session.id, "
        "time ← start_time"),
    "Phoenix's lines": ([phoenix(*one) for one in BOTH], OPENINFERENCE),
    "Phoenix's answer": ({"data": [phoenix(*one) for one in BOTH], "next_cursor": None}, OPENINFERENCE),
    "Phoenix's data frame": ([frame(*one) for one in BOTH], OPENINFERENCE),
    "Phoenix's OTLP": (
        {"resource_spans": [{"scope_spans": [{"spans": [snake(*one) for one in BOTH]}]}]}, OPENINFERENCE),
    "Tempo": ({"trace": {"batches": [{"instrumentationLibrarySpans": [{"spans": [
        span("1", "", {**CHAT, "gen_ai.input.messages": [USER], "gen_ai.output.messages": [ASSISTANT]}),
        span("2", "1", FIND),
    ]}]}]}}, f"user ← gen_ai.input.messages, reply ← gen_ai.output.messages, {GENAI}"),
    "Langfuse's @observe": ([{
        "id": "t", "sessionId": "s", "timestamp": "2026-10-01T00:00:00Z", "output": REPLIED,
        "input": {"args": ["<bot.Bot object at 0x7f>", ASKED], "kwargs": {}},
        "observations": [
            {"type": "TOOL", "name": "find", "output": [{"text": FEE, "source": "fees.md"}]},
            {"type": "GENERATION", "input": "Suggest questions.", "output": "May I keep it?"},
        ],
    }], "user ← input.args, reply ← output, passages ← output, session ← sessionId, time ← timestamp"),
    "Langfuse's observations": ({"data": [
        {"id": "2", "traceId": "t", "type": "RETRIEVER", "parentObservationId": "1", "name": "find",
         "startTime": "2026-10-01T00:00:01Z", "output": [{"text": FEE, "source": "fees.md"}]},
        {"id": "1", "traceId": "t", "type": "AGENT", "parentObservationId": None, "sessionId": "s",
         "startTime": "2026-10-01T00:00:00Z", "input": {"question": ASKED},
         "output": {"final_answer": REPLIED}},
        {"id": "3", "traceId": "t", "type": "GENERATION", "parentObservationId": "1",
         "startTime": "2026-10-01T00:00:02Z", "input": "Suggest questions.", "output": "May I keep it?"},
    ], "meta": {}}, "user ← input.question, reply ← output.final_answer, passages ← output, "
                    "session ← sessionId, time ← startTime"),
}  # fmt: skip


def write(folder: Path, content: Any) -> Path:
    path = folder / ("a.jsonl" if isinstance(content, list) else "a.json")
    listed = content if isinstance(content, list) else [content]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in listed))
    return path


def read(path: Path, reading: Reading) -> list[Conversation]:
    return [one for _, one in read_chats(path, format_of(path), reading)]


@pytest.mark.parametrize("tool", FILES)
def test_a_turn_is_read_and_what_was_taken_for_it_is_said(tool: str, tmp_path: Path) -> None:
    content, described = FILES[tool]
    reading = Reading()
    (one,) = read(write(tmp_path, content), reading)
    assert one.id == "s"
    assert [(turn.user, turn.reply) for turn in one.turns] == [(ASKED, REPLIED)]
    found = [(passage.document, passage.text) for passage in one.turns[0].passages]
    assert found == [("fees.md", FEE)]
    assert reading.describe() == described


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_data_frame_of_phoenix_is_read_from_a_table(ending: str, tmp_path: Path) -> None:
    rows = [frame(*one) for one in BOTH]
    documents = [{"document.content": FEE, "document.metadata": {"source": "fees.md"}}]
    rows[1] = {name: cell for name, cell in rows[1].items() if "documents" not in name}
    rows[1]["attributes.retrieval.documents"] = documents
    path, table = tmp_path / f"a.{ending}", pandas.DataFrame(rows)
    if ending == "csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path)
    reading = Reading()
    (one,) = read(path, reading)
    (turn,) = one.turns
    assert (one.id, turn.user, turn.reply) == ("s", ASKED, REPLIED)
    assert [(passage.document, passage.text) for passage in turn.passages] == [("fees.md", FEE)]
    assert reading.describe() == OPENINFERENCE


def traces(*rows: tuple[str, str | None, Any, Any]) -> list[dict[str, Any]]:
    return [
        {"id": id, "sessionId": "s", "timestamp": at, "input": given, "output": gave, "projectId": "p"}
        for id, at, given, gave in rows
    ]


def test_a_trace_of_a_session_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    lines = traces(
        ("a", "2026-10-01T00:00:00Z", "First?", "1"),
        ("b", "2026-10-01T00:00:01Z", {"x": 1, "y": 2}, "2"),
        ("c", "2026-10-01T00:00:02Z", "Third?", "3"),
    )
    reading = Reading()
    (one,) = read(write(tmp_path, lines), reading)
    assert [turn.user for turn in one.turns] == ["First?", "Third?"]
    assert reading.notes == [
        "1 trace of sessions with others left out, because no question with a reply can be read there: b."
    ]


def test_a_later_trace_with_the_whole_dialogue_restores_the_turn_that_was_not_read(tmp_path: Path) -> None:
    said = [
        {"role": role, "content": text}
        for role, text in (
            ("user", "First?"), ("assistant", "1"), ("user", "Second?"), ("assistant", "2"),
            ("user", "Third?"),
        )
    ]  # fmt: skip
    lines = traces(("a", "2026-10-01T00:00:00Z", said[:1], "1"), ("c", "2026-10-01T00:00:02Z", said, "3"))
    (one,) = read(write(tmp_path, lines), Reading())
    assert [(turn.user, turn.reply) for turn in one.turns] == [
        ("First?", "1"), ("Second?", "2"), ("Third?", "3")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("times", "note"),
    [
        (("yesterday", "2026-10-01T00:00:01Z"),
         "Traces without a time that can be read stand before the others, as in the file (session s)."),
        (("2026-10-01T00:00:01Z", "2026-10-01T02:00:01+02:00"),
         "Traces of the same time stand as in the file (session s)."),
    ],
)  # fmt: skip
def test_times_that_do_not_decide_the_order_are_told(
    times: tuple[str, str], note: str, tmp_path: Path
) -> None:
    lines = traces(("a", times[0], "First?", "1"), ("b", times[1], "Second?", "2"))
    reading = Reading()
    (one,) = read(write(tmp_path, lines), reading)
    assert [turn.user for turn in one.turns] == ["First?", "Second?"]
    assert reading.notes == [note]


@pytest.mark.parametrize(
    ("rows", "asked"),
    [
        ([("2026-10-01T00:00:00Z", "A?"), ("2026-10-01T00:00:01Z", "A?")], ["A?", "A?"]),
        ([("2026-10-01T00:00:01Z", "B?"), ("1790000000000", "A?")], ["A?", "B?"]),
    ],
    ids=["the same turn again", "times in different units"],
)
def test_traces_of_a_session_are_turns_in_the_order_of_time(
    rows: list[tuple[str, str]], asked: list[str], tmp_path: Path
) -> None:
    (one,) = read(write(tmp_path, traces(*((at, at, said, "Yes.") for at, said in rows))), Reading())
    assert [turn.user for turn in one.turns] == asked


def test_the_user_says_which_key_has_the_message(tmp_path: Path) -> None:
    lines = traces(("a", None, {"title": "Fees", "words": ASKED}, {"html": "<b>", "plain": REPLIED}))
    reading = Reading({"user": "words", "reply": "plain"})
    (one,) = read(write(tmp_path, lines), reading)
    assert [(turn.user, turn.reply) for turn in one.turns] == [(ASKED, REPLIED)]
    assert reading.describe() == "user ← input.words, reply ← output.plain, session ← sessionId"


def test_another_field_of_traces_is_not_mapped(tmp_path: Path) -> None:
    path = write(tmp_path, traces(("a", None, ASKED, REPLIED)))
    assert refusal(read, path, Reading({"passages": "words"})) == (
        f"{path}: --map passages: of traces, only user and reply can be mapped, to keys of what the root "
        "span was given and gave. Leave the others out."
    )


def test_attributes_of_another_convention_are_named(tmp_path: Path) -> None:
    said = {"acme.chat.prompt": ASKED, "acme.chat.answer": REPLIED}
    path = write(tmp_path, otlp(span("1", "", {}), span("2", "1", said)))
    assert refusal(read, path, Reading()) == (
        f"{path}, line 1: no span has attributes of OpenTelemetry GenAI, OpenInference, Traceloop and "
        "Vercel's AI SDK: theirs begin with `acme.chat`. Export spans with their content."
    )


def test_records_of_the_log_without_a_message_are_told(tmp_path: Path) -> None:
    spans = otlp(
        span("1", "", {**CHAT, "gen_ai.input.messages": [USER], "gen_ai.output.messages": [ASSISTANT]})
    )
    line = {"resourceLogs": [{"scopeLogs": [{"logRecords": [
        {"timeUnixNano": "1", "traceId": "t", "body": {"stringValue": "started"}}]}]}]}  # fmt: skip
    reading = Reading()
    (one,) = read(write(tmp_path, [spans, line]), reading)
    assert len(one.turns) == 1
    assert reading.notes == ["Not read: 1 records of logs that are no messages of a model."]


def test_a_reply_of_the_root_is_not_taken_from_a_later_request_of_a_model(tmp_path: Path) -> None:
    (line,) = traces(("a", None, {"x": 1, "y": 2}, REPLIED))
    line["observations"] = [
        {"type": "GENERATION", "input": [USER], "output": ASSISTANT, "endTime": "2026-10-01T00:00:01Z"},
        {"type": "GENERATION", "input": "Suggest.", "output": "More?", "endTime": "2026-10-01T00:00:02Z"},
    ]
    (one,) = read(write(tmp_path, [line]), Reading())
    assert [(turn.user, turn.reply) for turn in one.turns] == [(ASKED, REPLIED)]
