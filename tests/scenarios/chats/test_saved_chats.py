"""Chats as frameworks, desks and spreadsheets save them: what is read."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from hallulab.scenarios.chats.formats import read_chats
from hallulab.scenarios.chats.reading import Reading
from tests.scenarios.chats.test_field_files import (
    BARE,
    BOT,
    ONE,
    TWO,
    USER,
    USER2,
    A,
    B,
    Chat,
    P,
    Q,
    R,
    read,
    said,
)

CALL = {"type": "function_call", "call_id": "1", "name": "find", "arguments": "{}"}
GAVE = {"type": "function_call_output", "call_id": "1", "output": P}
OUTPUT = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": A}]}
INVOKED = {"state": "result", "toolCallId": "1", "toolName": "find", "args": {}, "result": {"chunks": [P]}}


def spoken(kind: str, words: str) -> dict[str, Any]:
    return {"content": [{"type": kind, "transcript": words}]}


def mastra(role: str, at: int, *parts: dict[str, Any]) -> dict[str, Any]:
    content = {"format": 2, "parts": parts, "content": "?"}
    return {"id": str(at), "threadId": "s", "role": role, "createdAt": at, "content": content}


def words(role: str, text: str) -> list[dict[str, Any]]:
    return [{"role": role, "parts": [{"type": "text", "content": text}]}]


def write_csv(*rows: tuple[Any, ...]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(
        [json.dumps(one) if isinstance(one, dict) else one for one in row] for row in rows
    )
    return text.getvalue()


LOGFIRE = write_csv(
    ("trace_id", "span_id", "parent_span_id", "start_timestamp", "attributes"),
    ("1", "2", "", "2026-10-01T09:30:00Z", {
        "gen_ai.operation.name": "chat", "gen_ai.input.messages": words("user", Q),
        "gen_ai.output.messages": words("assistant", A)}),
    ("1", "3", "2", "2026-10-01T09:30:01Z", {"gen_ai.operation.name": "execute_tool", "tool_response": P}),
)  # fmt: skip

READ: dict[str, tuple[str, Any, str | None, list[Chat]]] = {
    "a session of OpenAI's Agents SDK": (
        "a.json", [USER, {"type": "reasoning", "summary": []}, CALL, GAVE, OUTPUT], None, ONE,
    ),
    "such items among messages": ("a.jsonl", said(USER, CALL, GAVE, OUTPUT), None, ONE),
    "a table of the Agents SDK": (
        "a.json",
        [{"session_id": "s", "message_data": json.dumps(one)} for one in (USER, CALL, GAVE, OUTPUT)],
        "text=message_data", ONE,
    ),
    "Mastra's messages": (
        "a.json",
        [mastra("user", 1, {"type": "text", "text": Q}),
         mastra("assistant", 2, {"type": "tool-invocation", "toolInvocation": INVOKED},
                {"type": "text", "text": A})],
        None, ONE,
    ),
    "a table of parts of Vercel's AI SDK": (
        "a.json",
        [{"chatId": "s", "role": one["role"], "parts": [{"type": "text", "text": one["content"]}]}
         for one in (USER, BOT)],
        None, BARE,
    ),
    "messages of Vercel's AI SDK with their text beside its parts": (
        "a.json", [{**one, "parts": [{"type": "text", "text": one["content"]}]} for one in (USER, BOT)],
        None, BARE,
    ),
    "a call with Vapi": (
        "a.json",
        {"messages": [
            {"role": "user", "message": Q, "time": 1},
            {"role": "bot", "message": A, "time": 4},
            {"role": "tool_calls", "message": "", "toolCalls": [{"id": "1"}], "time": 2},
            {"role": "tool_call_result", "name": "find", "result": P, "time": 3}]},
        None, ONE,
    ),
    "DeepSeek's export": (
        "a.json",
        [{"id": "s", "mapping": {
            "root": {"parent": None, "message": None},
            "1": {"parent": "root", "message": {"fragments": [{"type": "REQUEST", "content": Q}]}},
            "2": {"parent": "1", "message": {"model": "m", "fragments": [
                {"type": "THINK", "content": "800?"}, {"type": "RESPONSE", "content": A}]}}}}],
        None, BARE,
    ),
    "a request to Ollama, and its answer": ("a.jsonl", [{"messages": [USER], "message": BOT}], None, BARE),
    "what was said aloud": (
        "a.jsonl",
        said({"role": "user", **spoken("input_audio", Q)}, {"role": "assistant", **spoken("audio", A)}),
        None, BARE,
    ),
    "a reply that was said aloud": (
        "a.jsonl", said(USER, {"role": "assistant", "content": None, "audio": {"transcript": A}}), None, BARE,
    ),
    "messages within objects, by their path": (
        "a.json", {"values": {"messages": [USER, BOT]}, "next": []}, "messages=values.messages", BARE,
    ),
    "messages with a text called message": (
        "a.json", {"transcript": [{"role": "user", "message": Q}, {"role": "agent", "message": A}]},
        "messages=transcript", BARE,
    ),
    "a dialogue, and the reply to it": (
        "a.jsonl", [{"dialogue": [USER, BOT, USER2], "response": B}], None, TWO,
    ),
    "a dialogue in a cell, and the reply to it": (
        "a.jsonl", [{"chat": json.dumps([USER, BOT, USER2]), "response": B}], None, TWO,
    ),
    "a list with one reply": ("a.jsonl", [{"messages": [USER], "outputs": [A]}], None, BARE),
    "texts of JSON in a table": (
        "a.csv", f'input,output\n"""{Q}""","""{A}"""\n', None, BARE,
    ),
    "a quotation in a table": (
        "a.csv", f'input,output\n{Q},"""{A}"""\n', None, [[(Q, f'"{A}"', [])]],
    ),
    "thoughts in a channel of gpt-oss": (
        "a.jsonl", said(USER, {**BOT, "channel": "analysis", "content": "800?"}, {**BOT, "channel": "final"}),
        None, BARE,
    ),
    "thoughts in a row": (
        "a.csv", f"session,role,type,content\ns,user,text,{Q}\ns,bot,thinking,800?\ns,bot,text,{A}\n",
        None, BARE,
    ),
    "pages that are only named": (
        "a.jsonl",
        [{"messages": [USER, BOT], "search_results": [{"title": "Fees", "url": "https://a.b"}]}],
        None, BARE,
    ),
    "a dialogue in place of passages": (
        "a.jsonl", [{"question": R, "answer": B, "context": [USER, BOT]}], None, [[(R, B, [])]],
    ),
    "a dialogue in place of passages, beside messages": (
        "a.jsonl", [{"messages": [USER, {**BOT, "context": [USER]}], "context": [USER2]}], None, BARE,
    ),
    "sources of a message with their words": (
        "a.jsonl", said(USER, {**BOT, "sources": [{"title": "fees.md", "content": P}]}), None, ONE,
    ),
    "sources of a message that are only named, and words of the reply that are cited": (
        "a.jsonl", said(USER, {**BOT, "sources": [{"title": "F", "url": "u"}], "citations": [{"text": A}]}),
        None, BARE,
    ),
    "passages beside the reply of a trace": (
        "a.json",
        {"id": "1", "run_type": "chain", "inputs": {"input": Q},
         "outputs": {"answer": A, "context": [{"page_content": P}]}},
        None, ONE,
    ),
    "passages beside the question of a trace": (
        "a.json",
        {"id": "1", "run_type": "chain", "inputs": {"input": Q, "context": P}, "outputs": {"answer": A}},
        None, ONE,
    ),
    "names of passages beside the reply of a trace": (
        "a.json",
        {"id": "1", "run_type": "chain", "inputs": {"input": Q},
         "outputs": {"answer": A, "documents": ["a.md"]}},
        None, BARE,
    ),
    "a span of an agent of Pydantic AI": (
        "a.jsonl",
        [{"trace_id": "1", "span_id": "2", "name": "agent run", "attributes": {
            "gen_ai.operation.name": "invoke_agent", "final_result": A,
            "pydantic_ai.all_messages": json.dumps([*words("user", Q), *words("assistant", A)])}}],
        None, BARE,
    ),
    "a table of Logfire": ("a.csv", LOGFIRE, None, ONE),
    "a message that is there twice": (
        "a.csv",
        f"session,message_id,role,content\ns,1,user,{Q}\ns,2,bot,{A}\ns,2,bot,{A}\n", None, BARE,
    ),
    "two tables in one file": (
        "a.csv", f"session,question,answer\ns,{Q},{A}\nsession,question,answer\ns,{R},{B}\n", None, TWO,
    ),
    "names in full width, and with an accent apart": (
        "a.csv", f"ｑｕｅｓｔｉｏｎ,re\u0301ponse\n{Q},{A}\n", "reply=r\u00e9ponse", BARE,
    ),
    "messages that were deleted, in a table": (
        "a.csv", f"session,role,content,is_deleted\ns,user,{Q},0\ns,bot,No.,1\ns,bot,{A},0\n", None, BARE,
    ),
    "a reply of Ragas in JSON, which is a text there": (
        "a.jsonl", [{"user_input": Q, "response": '{"text": "It is 500."}'}], None,
        [[(Q, '{"text": "It is 500."}', [])]],
    ),
    "a message of DeepEval in JSON, which is a text there": (
        "a.jsonl", [{"input": '["a", "b"]', "actual_output": A}], None, [[('["a", "b"]', A, [])]],
    ),
    "a dialogue in a text of Ragas": (
        "a.jsonl", [{"user_input": json.dumps([USER, BOT, USER2]), "response": B}], None, TWO,
    ),
    "messages that were deleted at a time": (
        "a.csv", f"session,role,content,deleted_at\ns,user,{Q},\ns,bot,No.,2026-10-01\ns,bot,{A},\n",
        None, BARE,
    ),
    "messages with a source and a type that are none of AutoGen's": (
        "a.json", {"messages": [
            {"source": "web", "type": "text", "from": "user", "content": Q},
            {"source": "web", "type": "text", "from": "bot", "content": A}]},
        None, BARE,
    ),
    "passages with a role": (
        "a.jsonl", [{"question": Q, "answer": A, "documents": [{"role": "policy", "content": P}]}], None, ONE,
    ),
    "messages that were deleted": (
        "a.jsonl", said(USER, {**BOT, "content": "No.", "deleted": True}, BOT), None, BARE,
    ),
    "a tracker of Rasa with what was taken back": (
        "a.json",
        {"sender_id": "s", "events": [
            {"event": "user", "text": "No."}, {"event": "rewind"},
            {"event": "user", "text": Q}, {"event": "bot", "text": "No."}, {"event": "undo"},
            {"event": "bot", "text": A},
            {"event": "user", "text": "/restart"}, {"event": "restart"},
            {"event": "user", "text": R}, {"event": "bot", "text": B}]},
        None, TWO,
    ),
    "events of Strands": (
        "a.jsonl",
        [{"name": "invoke_agent", "context": {"trace_id": "1", "span_id": "2"}, "attributes": {
            "gen_ai.operation.name": "invoke_agent"}, "events": [
            {"name": "gen_ai.user.message", "attributes": {"content": json.dumps([{"text": Q}])}},
            {"name": "gen_ai.choice", "attributes": {"message": A}}]}],
        None, BARE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", READ)
def test_a_saved_chat_is_read(kind: str, tmp_path: Path) -> None:
    name, held, mapping, expected = READ[kind]
    assert read(tmp_path, name, held, mapping)[0] == expected


def test_of_excel_the_sheet_and_the_row_with_a_known_header_are_read(tmp_path: Path) -> None:
    book = Workbook()
    book.active.append(["About these chats"])
    sheet = book.create_sheet("May")
    for cells in (["Chats of May"], [None], ["question", "answer"], [Q, A]):
        sheet.append(cells)
    book.save(tmp_path / "b.xlsx")
    reading = Reading()
    (one,) = [one for _, one in read_chats(tmp_path / "b.xlsx", "excel", reading)]
    assert [(turn.user, turn.reply) for turn in one.turns] == [(Q, A)]
    assert reading.notes == ["The sheet 'May' was read, and not 'Sheet'."]
