"""Chats as frameworks, desks and spreadsheets save them: what is told, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.errors import UsageError
from tests.scenarios.chats.test_field_files import (
    BOT,
    BOT2,
    ONE,
    USER,
    USER2,
    A,
    B,
    P,
    Q,
    R,
    read,
    refuse,
    said,
)
from tests.scenarios.chats.test_saved_chats import GAVE

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
    refuse(tmp_path, *REFUSED[kind])


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
