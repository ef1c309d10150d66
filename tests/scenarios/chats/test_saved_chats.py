"""Chats as frameworks, desks and spreadsheets save them: what is read, told or refused."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from hallulab.scenarios.chats.formats import read_chats
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.errors import UsageError
from tests.scenarios.chats.test_field_files import (
    BARE,
    BOT,
    BOT2,
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


REFUSED: dict[str, tuple[str, Any, str]] = {
    "a name of a person, and what that one said": (
        "a.csv", f"user,message,bot_response\nida,{Q},{A}\n",
        "`user` and `message` could both be the user. Say which: --map user=user or --map user=message.",
    ),
    "a number of a conversation that a spreadsheet rounded": (
        "a.csv", f"session,question,answer\n1.23E+18,{Q},{A}\n1.23E+18,{R},{B}\n",
        "'1.23E+18' is a number that a spreadsheet has rounded, so its rows may be of several conversations.",
    ),
    "an identifier that may be that of a conversation": (
        "a.csv", f"id,role,content\n1,user,{Q}\n1,bot,{A}\n2,user,{R}\n2,bot,{B}\n",
        "`id`: '1' is there several times. If it says of which conversation a message is, say so: --map "
        "session=id; else delete that column.",
    ),
    "a conversation with columns": (
        "a.csv", f"0.role,0.text,1.role,1.text\nuser,{Q},assistant,{A}\n",
        "it has the columns 0.role, 0.text, 1.role, 1.text, separated by `,`, in which no message",
    ),
    "a speaker that is an object": (
        "a.jsonl", said({"author": {"type": "user"}, "content": Q}),
        'messages.0.author: {"type": "user"} is no known role.',
    ),
    "messages of which no column says who speaks": (
        "a.csv", f"session,message\ns,{Q}\ns,{A}\n",
        f"`message` does not say who speaks: '{Q}'. Say which column does: --map role=NAME.",
    ),
    "an object in place of a text": (
        "a.json", [{**USER, "content": {"fee": 1}}], 'row.content: a part of the kind "fee" is no text',
    ),
    "messages within an object": (
        "a.json", {"values": {"messages": [USER, BOT]}},
        "If `values.messages` has its messages, say so: --map messages=values.messages.",
    ),
    "several lists of messages in an object": (
        "a.json", {"one": [USER, BOT], "two": [USER2, BOT]},
        "for it has several lists of messages, such as `one` and `two`. Write each as an object: "
        '{"messages": […]}; or say which of them counts: --map messages=NAME.',
    ),
    "conversations within an object": (
        "a.json", {"found": {"chats": [{"messages": [USER, BOT]}]}},
        "If `found.chats` has the conversations, give that list alone.",
    ),
    "messages of which nobody knows who speaks": (
        "a.json", {"tags": [{"id": 1}], "comments": [{"author_id": 7, "body": Q}]},
        "If `comments` has its messages, it is not known who speaks in them (author_id, body). Make it",
    ),
    "a message with an unknown name, and a reply": (
        "a.json", [{"message": Q, "response": A}], "Say what they are: --map user=message.",
    ),
    "a message with an unknown name, a reply and a list": (
        "a.json", [{"message": Q, "response": A, "found": [{"text": P}]}], "are: --map user=message.",
    ),
    "several tries of a reply to a message that has none before it": (
        "a.json",
        [{"id": "1", "chatId": "s", **USER}, {"id": "2", "parentId": "1", "chatId": "s", **BOT},
         {"id": "3", "parentId": "1", "chatId": "s", **BOT2}],
        "`parentId`: several messages have '1' before them, so they are a tree",
    ),
    "an export with something else in place of messages": (
        "a.json", {"conversations": [{"title": "Fees", "responses": []}]},
        "`conversations` is no list of messages: ",
    ),
    "a list of lists": (
        "a.json", [[USER, BOT]], 'it is a list of lists. Write each as an object: {"messages": […]}.',
    ),
    "lines of lists": (
        "a.jsonl", [[USER, BOT], [USER2, BOT]], "if each line is a list of messages, write it as an object:",
    ),
    "JSON in a text of JSON": ("a.json", json.dumps(json.dumps([BOT])), "it is JSON within a text of JSON."),
    "a title above a table": (
        "a.csv", f"Chats of May,,\nsession,question,answer\ns,{Q},{A}\n",
        "its header seems to be line 2. Delete the lines before it.",
    ),
    "a note at the beginning of a chat of WhatsApp": (
        "a.txt", "01.03.26, 10:00 - Nachrichten sind verschlüsselt.\n01.03.26, 10:00 - Ida: Hi\n",
        "it looks like a chat that WhatsApp exported",
    ),
    "Slack, a bot first": (
        "a.json", [{"bot_id": "B", "text": A, "ts": "1.2"}], "it looks like messages that Slack exported",
    ),
    "an archive of TAR": ("a.txt", "a" + "\0" * 256 + "ustar", "it is a TAR archive. Unpack it"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_a_saved_chat_that_is_not_known_is_refused_with_the_remedy(kind: str, tmp_path: Path) -> None:
    name, held, sentence = REFUSED[kind]
    with pytest.raises(UsageError, match=re.escape(sentence)):
        read(tmp_path, name, held)


def test_a_path_that_does_not_lead_to_messages_is_refused_with_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"say so: --map messages=values\.messages\."):
        read(tmp_path, "a.json", {"values": {"messages": [USER, BOT]}}, "messages=values.msgs")


NOTED: dict[str, tuple[str, Any, str]] = {
    "a merged cell": (
        "a.csv", f"session,question,answer\ns,{Q},{A}\n,{R},{B}\n",
        "Rows without a conversation (`session`), each of which is one of its own: 1.",
    ),
    "two chatbots": (
        "a.csv", f"session,chatbot,question,answer\ns,x,{Q},{A}\ns,y,{R},{B}\n",
        "Conversations whose rows name several chatbots, of which the first counts: 1.",
    ),
    "a person after the bot": (
        "a.csv", f"session,role,content\ns,user,{Q}\ns,Bot,{A}\ns,agent,{B}\ns,bot,{B}\n",
        "Messages of `bot` and `agent` are all replies. If one of them is no chatbot, such as a human agent, "
        "leave its messages out.",
    ),
    "two agents": (
        "a.jsonl", said(USER, {**BOT, "name": "x"}, {**BOT, "name": "y"}),
        "Messages of `x` and `y` are all replies. If one of them is no chatbot, such as a human agent, leave "
        "its messages out.",
    ),
    "a message that was edited": (
        "a.csv", f"session,message_id,role,content\ns,1,user,{Q}\ns,2,bot,{A}\ns,2,bot,{B}\n",
        "Messages with the `message_id` of an earlier one, and other words: both were read: 1.",
    ),
    "conversations from new to old": (
        "a.csv",
        "".join(["session,role,content\n", *(
            f"{s},bot,{B}\n{s},user,{R}\n{s},bot,{A}\n{s},user,{Q}\n" for s in "st")]),
        "The first message is the assistant's, and the last one the user's: if the file runs from new to "
        "old, sort it from old to new.",
    ),
    "a message without a time, among others that are not in order": (
        "a.jsonl", said({**USER, "created_at": 2}, {**BOT, "created_at": 1}, USER2),
        "Some messages have no time, so messages stand as in the file (messages).",
    ),
    "a dialogue in place of passages": (
        "a.jsonl", [{"question": R, "answer": B, "context": [USER, BOT]}],
        "`context` has messages, and no passages: it was not read.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", NOTED)
def test_what_is_doubtful_is_told(kind: str, tmp_path: Path) -> None:
    name, held, note = NOTED[kind]
    assert read(tmp_path, name, held)[1].notes == [note]


TOLD: dict[str, tuple[str, Any, str]] = {
    "a row a message": (
        "a.json", [USER, {"role": "tool", "content": P}, BOT],
        "role ← role, text ← content, passages ← content (tool results)",
    ),
    "a row a conversation": (
        "a.json", [{"chat": json.dumps([USER, {"role": "tool", "content": P}, BOT])}],
        "messages ← chat, passages ← chat (tool results)",
    ),
    "a row an exchange": (
        "a.json", [{"input": [USER, {"role": "tool", "content": P}], "output": A}],
        "user ← input, reply ← output, passages ← input (tool results)",
    ),
    "a session of OpenAI's Agents SDK": (
        "a.json", [USER, GAVE, BOT], "role ← role, text ← content, passages ← row (function_call_output)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", TOLD)
def test_it_is_said_where_passages_of_tools_stand(kind: str, tmp_path: Path) -> None:
    name, held, told = TOLD[kind]
    found, reading = read(tmp_path, name, held)
    assert (found, reading.describe()) == (ONE, told)


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
