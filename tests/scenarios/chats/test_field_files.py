"""Files as people have them: each is read as it was meant, or refused with one sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.chats.formats import format_of, read_chats, without_mapping
from hallulab.scenarios.chats.reading import Reading, parse_mapping
from hallulab.scenarios.errors import UsageError

Q, A, P = "What is the fee?", "It is 500.", "The fee is 200."
R, B, S = "And in May?", "It is 600.", "In May it is 300."
USER, BOT = {"role": "user", "content": Q}, {"role": "assistant", "content": A}
USER2, BOT2 = {"role": "user", "content": R}, {"role": "assistant", "content": B}

Chat = list[tuple[str, str, list[str]]]
ONE: list[Chat] = [[(Q, A, [P])]]
BARE: list[Chat] = [[(Q, A, [])]]
TWO: list[Chat] = [[(Q, A, []), (R, B, [])]]


def read(tmp_path: Path, name: str, held: Any, mapping: str | None = None) -> tuple[list[Chat], Reading]:
    """Return user, reply and passages of each turn of each conversation of a file."""
    path = tmp_path / name
    lines = "\n".join(json.dumps(one, ensure_ascii=False) for one in held) if name.endswith("l") else ""
    path.write_text(held if isinstance(held, str) else lines or json.dumps(held), encoding="utf-8")
    reading = Reading(parse_mapping(mapping))
    chats = [one for _, one in read_chats(path, format_of(path, reading), reading)]
    return [
        [(turn.user, turn.reply, [found.text for found in turn.passages]) for turn in one.turns]
        for one in chats
    ], reading


def refuse(tmp_path: Path, name: str, held: Any, sentence: str) -> None:
    """Assert that a file is refused with a sentence."""
    with pytest.raises(UsageError, match=re.escape(sentence)):
        read(tmp_path, name, held)


def said(*messages: Any) -> list[dict[str, Any]]:
    return [{"messages": messages}]


def timed(*times: Any) -> list[dict[str, Any]]:
    told = (USER, BOT, USER2, BOT2)
    return said(*({**one, "created_at": at} for one, at in zip(told, times, strict=True)))


def vercel(**part: Any) -> list[dict[str, Any]]:
    found = {"title": "fees.md", "content": P}
    used = {"toolCallId": "1", "input": {}, **part}
    parts = [{"type": "step-start"}, {**used, "output": [found]}, {"type": "text", "text": A}]
    return said(
        {"role": "user", "parts": [{"type": "text", "text": Q}]}, {"role": "assistant", "parts": parts}
    )


def span(id: str, parent: str | None, given: Any, gave: Any, **more: Any) -> dict[str, Any]:
    return {"id": id, "trace_id": "t", "parent_id": parent, "inputs": given, "output": gave, **more}


def note(id: str, text: str, public: bool) -> dict[str, Any]:
    role = "customer" if id == "1" else "agent"
    return {"session_id": "s", "role": role, "content": text, "public": public}


def branch(id: str, parent: str, text: str, user: bool, **more: Any) -> dict[str, Any]:
    return {"messageId": id, "parentMessageId": parent, "text": text, "isCreatedByUser": user, **more}


READ: dict[str, tuple[str, Any, list[Chat]]] = {
    "thoughts of a model before its reply": (
        "a.jsonl", said(USER, {**BOT, "content": f"<think>\n800? No.\n</think>\n\n{A}"}), BARE,
    ),
    "thoughts whose beginning the template has, in a table": (
        "a.csv", f'question,answer\n{Q},"800?\n</think>\n\n{A}"\n', BARE,
    ),
    "thoughts that Open WebUI folds": (
        "a.jsonl",
        said(USER, {**BOT, "content": f'<details type="reasoning" done="true">\n> 800?\n</details>\n{A}'}),
        BARE,
    ),
    "marks of sources that ChatGPT shows as links": (
        "a.json",
        [{"id": "s", "mapping": {
            "1": {"parent": None, "message": {
                "author": {"role": "user"}, "content": {"content_type": "text", "parts": [Q]}}},
            "2": {"parent": "1", "message": {
                "author": {"role": "assistant"},
                "content": {"content_type": "text", "parts": [f"{A} \ue200cite\ue202turn0search1\ue201"]}}},
        }}],
        BARE,
    ),
    "LibreChat's export": (
        "a.json",
        {"conversationId": "s", "options": {"model": "m"}, "messages": [
            branch("1", "0", Q, True), branch("2", "1", "No.", False),
            branch("3", "1", A, False, sender="M")]},
        BARE,
    ),
    "LibreChat's export with children": (
        "a.json",
        {"conversationId": "s", "messages": [branch("1", "0", Q, True, children=[
            branch("2", "1", A, False, children=[
                branch("3", "2", R, True, children=[branch("4", "3", B, False)])])])]},
        TWO,
    ),
    "messages of LibreChat's API": (
        "a.json",
        [branch("1", "0", Q, True), branch("2", "1", "", False, sender="Fees", content=[
            {"type": "think", "think": "800?"},
            {"type": "tool_call", "tool_call": {"name": "find", "output": P}},
            {"type": "text", "text": A}])],
        ONE,
    ),
    "Dify's messages": (
        "a.json",
        {"limit": 20, "data": [{"conversation_id": "s", "inputs": {"name": "x"}, "query": Q, "answer": A,
         "retriever_resources": [{"document_name": "fees.md", "score": 0.9, "content": P}]}]},
        ONE,
    ),
    "an answer of Dify, with its question": (
        "a.jsonl",
        [{"query": Q, "answer": A, "metadata": {"retriever_resources": [{"content": P, "score": 0.9}]}}],
        ONE,
    ),
    "Flowise's export": (
        "a.json",
        [{"sessionId": "s", "messages": [
            USER, {"role": "bot", "content": A, "sourceDocuments": [{"pageContent": P, "metadata": {}}]}]}],
        ONE,
    ),
    "messages of Vercel's AI SDK 5, with a part that is called as its tool": (
        "a.jsonl", vercel(type="tool-findFees", state="output-available"), ONE,
    ),
    "messages of Vercel's AI SDK 4": (
        "a.jsonl",
        said(USER, {**BOT, "toolInvocations": [
            {"state": "result", "toolCallId": "1", "toolName": "find", "args": {}, "result": P}]}),
        ONE,
    ),
    "messages of Haystack": (
        "a.jsonl",
        said(
            {"role": "user", "content": [{"text": Q}]},
            {"role": "tool", "content": [{"tool_call_result": {"result": P, "origin": {"tool_name": "f"}}}]},
            {"role": "assistant", "content": [{"text": A}]},
        ),
        ONE,
    ),
    "messages of LlamaIndex": (
        "a.jsonl",
        said({"role": "user", "blocks": [{"block_type": "text", "text": Q}]},
             {"role": "assistant", "blocks": [{"block_type": "thinking", "content": "800?"},
                                              {"block_type": "text", "text": A}]}),
        BARE,
    ),
    "a result of LlamaIndex": (
        "a.jsonl", [{"query": Q, "response": A, "source_nodes": [{"node": {"text": P}, "score": 0.8}]}], ONE,
    ),
    "passages inside the reply's object": (
        "a.jsonl", [{"inputs": {"question": Q}, "outputs": {"answer": A, "documents": [P]}}], ONE,
    ),
    "calls of Weave, the inner ones among them": (
        "a.jsonl",
        [span("1", None, {"question": Q}, {"answer": A}),
         span("2", "1", {"query": "fee"}, [{"content": P}], op_name="weave:///e/p/op/retrieve:v1"),
         span("3", "1", {"question": Q}, "fee", op_name="weave:///e/p/op/rewrite:v1")],
        ONE,
    ),
    "observations of Langfuse as a table": (
        "a.csv",
        "id,type,name,startTime,parentObservationId,input,output,traceId\n"
        f"1,AGENT,bot,2026-10-01T09:30:00Z,,{Q},{A},t\n"
        f"2,RETRIEVER,find,2026-10-01T09:30:01Z,1,fee,{P},t\n"
        "3,GENERATION,rewrite,2026-10-01T09:30:02Z,1,Rewrite it,fee,t\n",
        ONE,
    ),
    "calls of Weave with attributes, and an object of the program": (
        "a.jsonl", [span("1", None, {"self": "<Bot>", "question": Q}, A, attributes={})], BARE,
    ),
    "spans of Opik": (
        "a.json",
        [{"id": "1", "trace_id": "t", "parent_span_id": None, "type": "general", "start_time": "2026-10-01",
          "input": {"input": Q}, "output": {"output": A}},
         {"id": "2", "trace_id": "t", "parent_span_id": "1", "type": "tool", "input": {"q": "fee"},
          "output": {"contexts": [P]}}],
        ONE,
    ),
    "messages of a ticket, which is before all of them": (
        "a.json",
        [{"id": id, "parent_id": "t", "session_id": "s", "role": role, "text": text}
         for id, role, text in (("1", "user", Q), ("2", "bot", A))],
        BARE,
    ),
    "messages from new to old, each reply in the second of its question": (
        "a.jsonl",
        said(*({**one, "created_at": at} for one, at in ((BOT2, 2), (USER2, 2), (BOT, 1), (USER, 1)))),
        TWO,
    ),
    "a program's context, which is no evidence": (
        "a.jsonl", [{"inputs": {"question": Q, "context": {"user": "u-1"}}, "outputs": {"answer": A}}], BARE,
    ),
    "a list of passages for each reply": (
        "a.jsonl", [{"messages": [USER, BOT, USER2, BOT2], "contexts": [[P], [S]]}],
        [[(Q, A, [P]), (R, B, [S])]],
    ),
    "choices that do not stand in their order": (
        "a.jsonl",
        [{"messages": [USER], "choices": [{"index": 1, "message": BOT2}, {"index": 0, "message": BOT}]}],
        BARE,
    ),
    "spans of Braintrust": (
        "a.jsonl",
        [{"span_id": "1", "root_span_id": "1", "span_parents": None, "input": Q, "output": A},
         {"span_id": "2", "root_span_id": "1", "span_parents": ["1"], "input": "Rewrite", "output": "fee"}],
        BARE,
    ),
    "requests of Helicone": (
        "a.jsonl", [{"request_body": {"messages": [USER]}, "response_body": {"choices": [{"message": BOT}]}}],
        BARE,
    ),
    "columns of words and titles": (
        "a.jsonl",
        [{"question": Q, "answer": A, "contexts": {"title": ["a", "b"], "text": [P, S], "score": [1, 0]}}],
        [[(Q, A, [P, S])]],
    ),
    "titles and sentences, as in HotpotQA": (
        "a.jsonl",
        [{"question": Q, "answer": A, "context": [["Fees", ["The fee", " is 200."]], ["May", [S]]]}],
        [[(Q, A, [P, S])]],
    ),
    "cells that stand for nothing": (
        "a.csv", f"question,answer,context\n{Q},{A},#N/A\n{R},{B},-\n", [[(Q, A, [])], [(R, B, [])]],
    ),
    "a column for each passage": (
        "a.csv", f"question,answer,context_1,context_2\n{Q},{A},{P},{S}\n", [[(Q, A, [P, S])]],
    ),
    "passages by the names of their documents": (
        "a.jsonl", [{"question": Q, "answer": A, "context": {"fees.md": P, "may.md": S}}],
        [[(Q, A, [P, S])]],
    ),
    "passages in the row of the question": (
        "a.csv", f"session,role,content,context\ns,user,{Q},{P}\ns,bot,{A},\n", ONE,
    ),
    "a table of Markdown": (
        "a.csv", f"| question | answer |\n| --- | :-: |\n| {Q} | {A} |\n", BARE,
    ),
    "a table with spaces behind commas": (
        "a.csv", f'question, answer, contexts\n"{Q}", "{A}", "[""{P}""]"\n', ONE,
    ),
    "notes that only colleagues see, in a table": (
        "a.json", [note("1", Q, True), note("2", "He is angry.", False), note("3", A, True)], BARE,
    ),
    "notes that only colleagues see, among messages": (
        "a.jsonl", said(USER, {**BOT, "content": "He is angry.", "private": True}, BOT), BARE,
    ),
    "times in seconds and in thousandths": (
        "a.jsonl", timed(1790843400, 1790843401000, 1790843460, 1790843461000), TWO,
    ),
    "rows with times in seconds and in thousandths": (
        "a.csv",
        f"session_id,role,content,time\ns,user,{Q},1790843400\ns,bot,{A},1790843401000\n"
        f"s,user,{R},1790843460\ns,bot,{B},1790843461000\n",
        TWO,
    ),
    "times with a zone and without": (
        "a.jsonl",
        timed("2026-10-01T09:30:00Z", "2026-10-01T11:30:05", "2026-10-01T09:31:00Z", "2026-10-01T11:31:05"),
        TWO,
    ),
    "times without a zone in an hour that some clocks leave out": (
        "a.jsonl",
        timed("2026-03-29T01:59:00", "2026-03-29T02:30:00", "2026-03-29T03:10:00", "2026-03-29T03:20:00"),
        TWO,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", READ)
def test_a_file_is_read_as_it_was_meant(kind: str, tmp_path: Path) -> None:
    name, held, expected = READ[kind]
    assert read(tmp_path, name, held)[0] == expected


REFUSED: dict[str, tuple[str, Any, str]] = {
    "the answer that is right, and a model's": (
        "a.csv", f"question,answer,model_answer\n{Q},200.,{A}\n",
        "`answer` and `model_answer` could both be the reply. Say which: --map reply=answer or "
        "--map reply=model_answer.",
    ),
    "a column for a model by its name": (
        "a.csv", f"question,answer,answer_gpt_4o\n{Q},200.,{A}\n", "`answer` and `answer_gpt_4o` could both",
    ),
    "names of passages in place of their words": (
        "a.jsonl", [{"question": Q, "answer": A, "documents": ["kb/fees.md#3", "kb/may.md#1"]}],
        "`documents`: 'kb/fees.md#3' is the name of a passage, and not its words.",
    ),
    "identifiers of passages beside messages": (
        "a.jsonl", [{"messages": [USER, BOT], "contexts": ["3f2504e0-4f89-11d3-9a0c-0305e82c3301"]}],
        "`contexts`: '3f2504e0-4f89-11d3-9a0c-0305e82c3301' is the name of a passage",
    ),
    "messages from new to old, some at the same time": (
        "a.jsonl",
        said(*({**one, "created_at": at} for one, at in ((USER2, 2), (BOT, 1), (USER, 1), (USER, 1)))),
        "messages run from new to old, and some have the same time",
    ),
    "several tries of a reply": (
        "a.json",
        [{"message_id": id, "parent_message_id": parent, "session_id": "s", "role": role, "text": text}
         for id, parent, role, text in (("1", "", "user", Q), ("2", "1", "bot", A), ("3", "1", "bot", B))],
        "`parent_message_id`: several messages have '1' before them, so they are a tree",
    ),
    "messages of many conversations that are not named": (
        "a.json",
        [{"id": id, "parent_id": parent, "role": role, "text": text} for id, parent, role, text in (
            ("1", None, "user", Q), ("2", "1", "bot", A), ("3", None, "user", R))],
        "`parent_id`: is empty in several rows, so they are of several conversations.",
    ),
    "turns whose reply stands first": (
        "a.csv", f"session,turn,role,content\ns,1,bot,{A}\ns,1,user,{Q}\n",
        "the reply of turn '1' of the conversation 's' stands before the user's message.",
    ),
    "turns that begin anew, without a conversation": (
        "a.csv", f"turn,role,content\n1,user,{Q}\n2,bot,{A}\n1,user,{R}\n2,bot,{B}\n",
        "turn '1' is there twice, so the rows are of several conversations. Say which column has these:",
    ),
    "messages that are all internal": (
        "a.json", [note("1", Q, False), note("2", A, False)], "no message is shown to the user, as `public`,",
    ),
    "two lists of rows in one object": (
        "a.json", {"data": [{"question": Q, "answer": A}], "rows": [{"question": R, "answer": B}]},
        "If `data` has the conversations, give that list alone.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_a_file_that_may_mean_two_things_is_refused(kind: str, tmp_path: Path) -> None:
    refuse(tmp_path, *REFUSED[kind])


@pytest.mark.parametrize("more", ["answer_relevancy", "response_time", "response_model", "expected_output"])
def test_a_column_about_the_reply_is_no_reply(more: str, tmp_path: Path) -> None:
    assert read(tmp_path, "a.csv", f"question,answer,{more}\n{Q},{A},0.9\n")[0] == BARE


def test_a_name_with_commas_can_be_mapped(tmp_path: Path) -> None:
    table = f'question,"[gpt] Answer, please: {{q}}"\n{Q},{A}\n'
    assert read(tmp_path, "a.csv", table, "reply=[gpt] Answer, please: {q}")[0] == BARE
    assert parse_mapping("user=a, reply=b,c") == {"user": "a", "reply": "b,c"}


def test_a_command_without_a_mapping_says_where_there_is_one(tmp_path: Path) -> None:
    told = (
        "This command has no --map: `hallulab import` has one; give the conversations.jsonl that it writes."
    )
    with pytest.raises(UsageError, match=re.escape(told)), without_mapping():
        read(tmp_path, "a.csv", f"question,answer,response\n{Q},{A},{B}\n")


def test_replies_with_thoughts_are_counted_and_kept_as_a_step(tmp_path: Path) -> None:
    thought = f"<think>800?</think>{A}"
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"messages": [USER, {**BOT, "content": thought}]}))
    reading = Reading()
    ((_, one),) = read_chats(path, "openai", reading)
    assert [(step.name, step.text) for step in one.turns[0].steps] == [("thoughts", thought)]
    assert reading.notes == ["Replies from which the thoughts of the model were left out: 1."]


def test_a_name_that_may_have_passages_is_told(tmp_path: Path) -> None:
    reading = read(tmp_path, "a.csv", f"question,answer,source_url,sources\n{Q},{A},u,{P}\n")[1]
    assert reading.notes == ["No passages were read. If sources has them, say so: --map passages=sources."]


def test_a_list_that_may_run_from_new_to_old_is_told(tmp_path: Path) -> None:
    listed = [{"role": one["role"], "content": one["content"]} for one in (BOT2, USER2, BOT, USER)]
    assert (
        read(tmp_path, "a.json", listed)[1].notes[1].startswith("The first message is the assistant's, and")
    )
