"""Logs of requests: the reply beside the messages, lines of one session, and parts of messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.chats.formats import format_of, read_chats
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.sessions import LoggedChat, join_sessions
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Conversation, Turn
from tests.builders import conversation
from tests.kit.refusals import refusal
from tests.scenarios.chats.test_formats import written


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def bot(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def read(folder: Path, *lines: Any, **options: Any) -> tuple[list[Conversation], Reading]:
    path, reading = written(folder, "a.jsonl", list(lines)), Reading(**options)
    return [one for _, one in read_chats(path, format_of(path), reading)], reading


def list_turns(one: Conversation) -> list[tuple[str, str, list[str]]]:
    return [(turn.user, turn.reply, [passage.text for passage in turn.passages]) for turn in one.turns]


REPLIES: list[tuple[str, Any]] = [
    ("response", "B."),
    ("output", "B."),
    ("completion", {"id": "1", "choices": [{"index": 0, "message": {"role": "assistant", "content": "B."}}]}),
    ("choices", [{"message": {"content": "B."}, "finish_reason": "stop"}]),
    ("choices", [{"text": "B."}]),
    (
        "response",
        {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "B."}]},
    ),
    ("response", {"output": {"message": {"role": "assistant", "content": [{"text": "B."}]}}}),
    ("response", {"candidates": [{"content": {"role": "model", "parts": [{"text": "B."}]}}]}),
    ("response", {"output": [{"type": "message", "role": "assistant", "content": "B."}]}),
    ("response", {"message": {"role": "assistant", "content": "B."}, "done": True}),
    ("response", {"status_code": 200, "body": {"choices": [{"message": {"content": "B."}}]}}),
    ("response", {"answer": "B."}),
    ("response", [bot("B.")]),
]


@pytest.mark.parametrize(("name", "reply"), REPLIES)
def test_a_reply_beside_the_messages_is_the_last_one(name: str, reply: Any, tmp_path: Path) -> None:
    said = [user("First?"), bot("1"), user("A?")]
    (one,), reading = read(tmp_path, {"messages": said, name: reply, "contexts": ["Fee: 200."], "score": 1})
    assert list_turns(one) == [("First?", "1", []), ("A?", "B.", ["Fee: 200."])]
    assert name in reading.taken["reply"]
    assert list(reading.unread) == ["score"]


def test_a_reply_that_ends_the_messages_is_not_read_twice(tmp_path: Path) -> None:
    (one,), reading = read(tmp_path, {"messages": [user("A?"), bot("B.")], "response": {"content": "B."}})
    assert list_turns(one) == [("A?", "B.", [])]
    assert reading.describe() == (
        "user ← messages (role user), reply ← messages (role assistant); not read: response"
    )


def test_two_names_that_could_be_the_reply_are_refused_and_a_mapping_decides(tmp_path: Path) -> None:
    line = {"messages": [user("A?")], "answer": "gold", "response": "B."}
    with pytest.raises(UsageError, match="`answer` and `response` could both be the reply"):
        read(tmp_path, line)
    (one,), _ = read(tmp_path, line, mapping={"reply": "response"})
    assert list_turns(one) == [("A?", "B.", [])]


def test_a_reply_in_no_known_shape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"line 1: response: no reply is found in it\. Put its text there"):
        read(tmp_path, {"messages": [user("A?")], "response": {"usage": {"tokens": 3}}})


def test_request_and_response_of_a_log_are_one_chat(tmp_path: Path) -> None:
    request = {"model": "m", "system": "Be brief.", "messages": [user("A?")]}
    (one,), _ = read(tmp_path, {"request": request, "response": {"choices": [{"message": bot("B.")}]}})
    assert (one.model, list_turns(one)) == ("m", [("A?", "B.", [])])
    assert [(step.name, step.text) for step in one.turns[0].steps] == [("system", "Be brief.")]


def test_other_replies_of_a_request_are_counted(tmp_path: Path) -> None:
    _, reading = read(
        tmp_path, {"messages": [user("A?")], "choices": [{"message": bot("B.")}, {"message": bot("C.")}]}
    )
    assert reading.notes == ["Other replies of a request left out (choices): 1."]


def test_lines_of_a_session_are_one_conversation(tmp_path: Path) -> None:
    lines = [
        {"sessionId": "s", "messages": [user("A?"), bot("B.")], "contexts": ["Fee: 200."]},
        {"sessionId": "t", "messages": [user("X?"), bot("Y.")]},
        {"sessionId": "s", "messages": [user("C?"), bot("D.")]},
    ]
    found, reading = read(tmp_path, *lines)
    assert [(one.id, list_turns(one)) for one in found] == [
        ("s", [("A?", "B.", ["Fee: 200."]), ("C?", "D.", [])]),
        ("t", [("X?", "Y.", [])]),
    ]
    assert reading.describe() == (
        "user ← messages (role user), reply ← messages (role assistant), session ← sessionId, "
        "passages ← contexts"
    )


def test_lines_of_a_session_stand_by_their_time(tmp_path: Path) -> None:
    lines = [
        {"session_id": "s", "created_at": f"2026-10-0{day}", "messages": [user(f"{day}?"), bot("B.")]}
        for day in (2, 1)
    ]
    (one,), reading = read(tmp_path, *lines)
    assert [turn.user for turn in one.turns] == ["1?", "2?"]
    assert "created_at" in reading.taken["time"]
    with pytest.raises(UsageError, match=r'created_at: "soon" is no time by which the lines of a session'):
        read(tmp_path, {"session_id": "s", "created_at": "soon", "messages": [user("A?"), bot("B.")]})


@pytest.mark.parametrize("session", [{}, {"session_id": "a"}])
def test_lines_that_repeat_the_dialogue_count_each_reply_once(
    session: dict[str, str], tmp_path: Path
) -> None:
    first, second = [user("A?"), bot("B.")], [user("C?"), bot("D.")]
    (one,), _ = read(
        tmp_path,
        {"id": "a", **session, "messages": first, "contexts": ["one"]},
        {"id": "b", **session, "messages": first + second, "contexts": ["two"]},
    )
    assert (one.id, list_turns(one)) == ("a", [("A?", "B.", ["one"]), ("C?", "D.", ["two"])])


def test_a_line_that_goes_on_elsewhere_is_a_branch(tmp_path: Path) -> None:
    start = [user("A?"), bot("B.")]
    a, b = read(
        tmp_path,
        {"id": "a", "messages": start},
        {"id": "b", "messages": [*start, user("C?"), bot("D.")]},
        {"id": "c", "messages": [*start, user("E?"), bot("F.")]},
    )[0]
    assert [(one.id, [turn.reply for turn in one.turns]) for one in (a, b)] == [
        ("a", ["B.", "D."]),
        ("c", ["F."]),
    ]
    assert b.branch is not None
    assert (b.branch.conversation, b.branch.turn, [message.text for message in b.branch.history]) == (
        "a", 1, ["A?", "B."],
    )  # fmt: skip


def test_equal_lines_of_two_people_are_two_conversations(tmp_path: Path) -> None:
    lines = [{"id": id, "messages": [user("Hi!"), bot("Hello.")]} for id in "ab"]
    assert [one.id for one in read(tmp_path, *lines)[0]] == ["a", "b"]


def number(turns: list[Turn]) -> tuple[Turn, ...]:
    return tuple(turn.model_copy(update={"index": index}) for index, turn in enumerate(turns))


@given(
    turns=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("cd")), min_size=1, max_size=6),
    windows=st.integers(1, 6),
)
def test_a_session_that_is_logged_in_windows_has_each_turn_once(
    turns: list[tuple[str, str]], windows: int
) -> None:
    # Each turn is told from the others, as by a time in it.
    told = [Turn(index=0, user=f"{at} {asked}", reply=reply) for at, (asked, reply) in enumerate(turns)]
    chats = [
        LoggedChat("line 1", 1, conversation("s", []).model_copy(update={"turns": number(part)}), "s", None)
        for end in range(1, len(told) + 1)
        if (part := told[max(0, end - windows) : end])
    ]
    ((_, one),) = join_sessions(Path("a"), chats, Reading())
    assert [turn.user for turn in one.turns] == [turn.user for turn in told]
    assert [turn.index for turn in one.turns] == list(range(len(told)))


def test_messages_with_the_newest_first_are_put_in_order_and_that_is_told(tmp_path: Path) -> None:
    said = [{**bot("B."), "timestamp": 2}, {**user("A?"), "timestamp": 1}]
    (one,), reading = read(tmp_path, {"messages": said})
    assert list_turns(one) == [("A?", "B.", [])]
    assert reading.notes == [
        "Messages were put in the order of their times, in which they did not stand (messages)."
    ]


IMAGE = {"type": "image_url", "image_url": {"url": "data:,"}}


def test_images_are_left_out_and_counted(tmp_path: Path) -> None:
    content = [{"type": "text", "text": "A?"}, IMAGE, IMAGE, {"type": "input_audio"}]
    (one,), reading = read(tmp_path, {"messages": [user(content), bot("B.")]})
    assert list_turns(one) == [("A?", "B.", [])]
    assert reading.notes == [
        "Parts of messages left out, for they have no words (image_url): 2.",
        "Parts of messages left out, for they have no words (input_audio): 1.",
    ]


def test_a_conversation_with_a_message_that_is_only_an_image_is_left_out_and_counted(tmp_path: Path) -> None:
    found, reading = read(
        tmp_path,
        {"id": "a", "messages": [user([IMAGE]), bot("A cat.")]},
        {"id": "b", "messages": [user("A?"), bot("B.")]},
    )
    assert [one.id for one in found] == ["b"]
    assert reading.notes[-1] == ("Conversations left out, because a message has only parts without words: 1.")


DOCUMENTS: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    ({"type": "document", "title": "Fees", "source": {
        "type": "text", "media_type": "text/plain", "data": "Fee: 200."}}, [("Fees", "Fee: 200.")]),
    ({"type": "search_result", "source": "fees.md", "title": "Fees", "content": [
        {"type": "text", "text": "Fee: 200."}]}, [("fees.md", "Fee: 200.")]),
    ({"document": {"format": "txt", "name": "Fees", "source": {"text": "Fee: 200."}}},
     [("Fees", "Fee: 200.")]),
    ({"type": "document", "source": {
        "type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}, []),
]  # fmt: skip


@pytest.mark.parametrize(("part", "passages"), DOCUMENTS)
def test_documents_of_a_question_are_passages_of_its_reply(
    part: dict[str, Any], passages: list[tuple[str, str]], tmp_path: Path
) -> None:
    (one,), reading = read(tmp_path, {"messages": [user([part, {"type": "text", "text": "A?"}]), bot("B.")]})
    assert [(passage.document, passage.text) for passage in one.turns[0].passages] == passages
    assert len(reading.notes) == (not passages)


RESULTS: list[dict[str, Any]] = [
    {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "Fee: 200."}]},
    {"toolResult": {"toolUseId": "1", "content": [{"text": "Fee: 200."}]}},
    {"functionResponse": {"name": "find", "response": {"result": "Fee: 200."}}},
    {"type": "tool-result", "toolName": "find", "result": "Fee: 200."},
    {"type": "web_fetch_tool_result", "tool_use_id": "1", "content": {"type": "web_fetch_result", "content": {
        "type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Fee: 200."}}}},
]  # fmt: skip


@pytest.mark.parametrize("part", RESULTS)
def test_what_a_tool_gave_is_a_passage(part: dict[str, Any], tmp_path: Path) -> None:
    (one,), reading = read(tmp_path, {"messages": [user("A?"), user([part]), bot("B.")]})
    assert list_turns(one) == [("A?", "B.", ["Fee: 200."])]
    assert "messages (tool results)" in reading.taken["passages"]


def test_of_a_search_of_the_web_the_cited_words_are_passages_and_sentences_go_on(tmp_path: Path) -> None:
    found = {"url": "https://fees.example", "title": "Fees", "cited_text": "200."}
    cited = {"type": "web_search_result_location", **found}
    content = [
        {"type": "server_tool_use", "id": "1", "name": "web_search", "input": {"query": "fee"}},
        {"type": "web_search_tool_result", "tool_use_id": "1", "content": [
            {"type": "web_search_result", "url": "https://fees.example", "encrypted_content": "x"}]},
        {"type": "text", "text": "The fee is "},
        {"type": "text", "text": "200", "citations": [cited]},
        {"type": "text", "text": "."},
    ]  # fmt: skip
    (one,), _ = read(tmp_path, {"messages": [user("A?"), bot(content)]})
    assert list_turns(one) == [("A?", "The fee is 200.", ["200."])]


@pytest.mark.parametrize(
    ("asked", "replied"),
    [
        ("User", "ASSISTANT"),
        ("customer", "Agent"),
        ("human", "bing"),
        ("Human", "gpt-4"),
        ("prompter", "bard"),
    ],
)
def test_roles_count_without_case(asked: str, replied: str, tmp_path: Path) -> None:
    said = [{"from": asked, "value": "A?"}, {"from": replied, "value": "B."}]
    (one,), reading = read(tmp_path, {"conversations": said})
    assert list_turns(one) == [("A?", "B.", [])]
    assert (
        reading.describe() == f"user ← conversations (from {asked}), reply ← conversations (from {replied})"
    )


def test_an_unknown_role_is_named(tmp_path: Path) -> None:
    assert refusal(read, tmp_path, {"conversations": [{"from": "narrator", "value": "A?"}]}) == (
        'a.jsonl, line 1: conversations.0.from: "narrator" is no known role. '
        "Give `user`, `assistant`, `system` or `tool`."
    )


LANGCHAIN = [
    [{"type": "human", "data": {"content": "A?"}}, {"type": "ai", "data": {"content": "B."}}],
    [{"type": "human", "content": "A?"}, {"type": "ai", "content": "B.", "tool_calls": []}],
    [{"lc": 1, "type": "constructor", "id": ["langchain", "messages", name], "kwargs": {"content": text}}
     for name, text in (("HumanMessage", "A?"), ("AIMessageChunk", "B."))],
]  # fmt: skip


@pytest.mark.parametrize("said", LANGCHAIN)
def test_messages_of_langchain(said: list[dict[str, Any]], tmp_path: Path) -> None:
    (one,), _ = read(tmp_path, {"messages": said})
    assert list_turns(one) == [("A?", "B.", [])]
