"""Chats, data sets and traces as products of 2026 write them: what is read, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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
    refuse,
    said,
)

TRACE = {"id": "t", "timestamp": "2026-10-01T00:00:00Z", "input": {"question": Q}, "output": {"answer": A}}
EXAMPLE = {"id": "e", "dataset_id": "d", "inputs": {"question": Q}, "outputs": {"answer": A}}
PROXY, CODER = ({"content": Q, "role": "assistant", "name": "user_proxy"},
                {"content": A, "role": "user", "name": "coder"})  # fmt: skip
TOOL = (
    '<details type="tool_calls" done="true" id="1" name="find" arguments="{}" '
    'result="&quot;The fee is 200.&quot;">\n<summary>Tool Executed</summary>\n</details>\n'
)


def coze(kind: str, words: str, role: str = "assistant") -> dict[str, Any]:
    return {"conversation_id": "c", "role": role, "type": kind, "content": words}


def letta(kind: str, **words: Any) -> dict[str, Any]:
    return {"id": kind, "message_type": f"{kind}_message", **words}


def pydantic(kind: str, words: str, **more: Any) -> dict[str, Any]:
    return {"parts": [{"part_kind": kind, "content": words, **more}], "kind": "request"}


COZE = [
    coze("question", Q, "user"), coze("knowledge", P), coze("verbose", '{"msg_type": "finish"}'),
    coze("answer", A), coze("follow_up", "More?"),
]  # fmt: skip
LETTA = [
    letta("user", content=Q), letta("reasoning", reasoning="800?"),
    letta("tool_call", tool_call={"name": "find", "arguments": "{}"}), letta("tool_return", tool_return=P),
    letta("assistant", content=A),
]  # fmt: skip

READ: dict[str, tuple[str, Any, str | None, list[Chat]]] = {
    "Langfuse, passages in the metadata": ("a.jsonl", [{**TRACE, "metadata": {"context": [P]}}], None, ONE),
    "Langfuse, such metadata as a text": (
        "a.jsonl", [{**TRACE, "metadata": json.dumps({"contexts": [P]})}], None, ONE,
    ),
    "Langfuse, a user's place as metadata": (
        "a.jsonl", [{**TRACE, "metadata": {"context": {"user": "u"}}}], None, BARE,
    ),
    "Langfuse, a research agent": (
        "a.jsonl",
        [{**TRACE, "observations": [{"type": "SPAN", "name": "research-agent", "input": Q, "output": A}]}],
        None, BARE,
    ),
    "Langfuse, a request that failed": (
        "a.jsonl", [TRACE, {**TRACE, "id": "u", "output": {"error": "timeout"}}], None, [*BARE, []],
    ),
    "Braintrust, whose spans have their names inside": (
        "a.jsonl",
        [{"span_id": "1", "root_span_id": "1", "span_parents": None, "input": Q, "output": A},
         {"span_id": "2", "root_span_id": "1", "span_parents": ["1"], "input": Q, "output": [P],
          "span_attributes": {"name": "retrieve", "type": "function"}}],
        None, ONE,
    ),
    "an experiment of LangSmith": ("a.jsonl", [{**EXAMPLE, "reference_outputs": {"answer": B}}], None, BARE),
    "a data set of LangSmith, if the user says so": ("a.jsonl", [EXAMPLE], "reply=outputs", BARE),
    "an experiment of Phoenix": (
        "a.json",
        [{"example_id": "e", "input": {"question": Q}, "output": {"answer": A}, "trace_id": "t",
          "start_time": "2026-10-01T00:00:00Z"}],
        None, BARE,
    ),
    "Coze's messages": ("a.json", {"code": 0, "data": COZE}, None, ONE),
    "Coze's messages in a list of messages": ("a.json", {"messages": COZE}, None, ONE),
    "Coze's calls of tools": (
        "a.json", [COZE[0], coze("function_call", "{}"), coze("tool_response", P), COZE[3]], None, ONE,
    ),
    "Letta's messages": ("a.json", LETTA, None, ONE),
    "Letta's messages in a list of messages": ("a.json", {"messages": LETTA}, None, ONE),
    "Lex 1": ("a.jsonl", [{"inputTranscript": Q, "botResponse": A, "sessionId": "s"}], None, BARE),
    "Lex 2": (
        "a.jsonl",
        [{"sessionId": "s", "timestamp": f"2026-10-01T00:00:0{at}Z", "inputTranscript": asked,
          "messages": [{"content": replied, "contentType": "PlainText"}]}
         for at, asked, replied in ((2, R, B), (1, Q, A))],
        None, TWO,
    ),
    "a history of LangChain in a file": (
        "a.json", [{"type": "human", "data": {"content": Q}}, {"type": "ai", "data": {"content": A}}],
        None, BARE,
    ),
    "AutoGen's UserProxy": (
        "a.json",
        {"messages": [{"source": "UserProxy", "content": Q, "type": "TextMessage"},
                      {"source": "bot", "content": A, "type": "TextMessage"}]},
        None, BARE,
    ),
    "a session of the ADK that begins with its state": (
        "a.json",
        {"id": "s", "app_name": "a", "events": [
            {"author": "user", "actions": {"state_delta": {}}},
            {"author": "user", "content": {"parts": [{"text": Q}]}},
            {"author": "bot", "content": {"parts": [{"text": A}]}}]},
        None, BARE,
    ),
    "a reply that Pydantic AI made again": (
        "a.json",
        [pydantic("user-prompt", Q), pydantic("text", B), pydantic("retry-prompt", "Again."),
         pydantic("text", A)],
        None, BARE,
    ),
    "a tool of Pydantic AI that was called again": (
        "a.json",
        [pydantic("user-prompt", Q), pydantic("text", A),
         pydantic("retry-prompt", "Again.", tool_name="find"), pydantic("tool-return", P, tool_name="find")],
        None, ONE,
    ),
    "messages of Semantic Kernel": (
        "a.json", {"messages": [
            {"role": "user", "items": [{"content_type": "text", "text": Q}]},
            {"role": "assistant", "items": [{"content_type": "text", "text": A}]}]},
        None, BARE,
    ),
    "messages of Microsoft's Agent Framework": (
        "a.json", {"messages": [
            {"role": {"type": "role", "value": "user"}, "contents": [{"type": "text", "text": Q}]},
            {"role": {"type": "role", "value": "assistant"}, "contents": [{"type": "text", "text": A}]}]},
        None, BARE,
    ),
    "Azure's evaluation of an agent": (
        "a.jsonl",
        [{"query": [{"role": "user", "content": [{"type": "text", "text": Q}]}], "response": [
            {"role": "tool", "content": [{"type": "tool_result", "tool_result": {"text": P}}]},
            {"role": "assistant", "content": [{"type": "text", "text": A}]}]}],
        None, ONE,
    ),
    "a server of MCP among OpenAI's items": (
        "a.json",
        [USER, {"type": "mcp_list_tools", "server_label": "kb", "tools": []},
         {"type": "mcp_call", "name": "find", "output": P}, BOT],
        None, ONE,
    ),
    "Gemini's interactions": (
        "a.jsonl", [{"input": Q, "outputs": [{"type": "thought"}, {"type": "text", "text": A}]}], None, BARE,
    ),
    "promptfoo, an object as output": (
        "a.json",
        {"results": {"results": [
            {"vars": {"query": Q}, "response": {"output": {"answer": A, "context": [P]}}}]}},
        None, ONE,
    ),
    "a call of a tool in a reply of Open WebUI": (
        "a.json", [{"id": "c", "chat": {"messages": [USER, {**BOT, "content": TOOL + A}]}}], None, ONE,
    ),
    "a run of code in a reply of Open WebUI": (
        "a.json",
        [{"id": "c", "chat": {"messages": [USER, {**BOT, "content": TOOL.replace(
            "tool_calls", "code_interpreter").replace("result=", "output=") + A}]}}],
        None, ONE,
    ),
    "chunks of RAGFlow": ("a.jsonl", said(USER, {**BOT, "reference": [{"content": P}]}), None, ONE),
    "an answer to compare with beside a reply": (
        "a.jsonl", said(USER, {**BOT, "reference": "The fee is 200 a year."}), None, BARE,
    ),
    "passages in the metadata of a line": (
        "a.jsonl", [{"messages": [USER, BOT], "metadata": {"retrieved_contexts": [P]}}], None, ONE,
    ),
    "names of passages in the metadata of a line": (
        "a.jsonl", [{"messages": [USER, BOT], "metadata": {"documents": ["fees.md"]}}], None, BARE,
    ),
    "a node of LlamaIndex": (
        "a.jsonl",
        [{"query": Q, "response": A, "source_nodes": [{"node": {"text_resource": {"text": P}}, "score": 1}]}],
        None, ONE,
    ),
    "a link among a tool's results": (
        "a.jsonl",
        said(USER, {"role": "tool", "content": json.dumps({"content": [
            {"type": "text", "text": P}, {"type": "resource_link", "uri": "x", "name": "x"}]})}, BOT),
        None, ONE,
    ),
    "tokens in place of passages (Ollama)": (
        "a.jsonl", [{"prompt": Q, "response": A, "context": [1, 2, 3]}], None, BARE,
    ),
    "rows of MongoDB": (
        "a.json",
        [{"session_id": {"$oid": "s"}, "created_at": {"$date": f"2026-10-01T00:00:0{at}Z"}, **one}
         for at, one in ((1, BOT), (0, USER))],
        None, BARE,
    ),
    "passages beside a reply, in a script without spaces": (
        "a.jsonl", [{"question": "费用?", "answer": {"answer": "五百", "context": "费用是二百卢比。"}}], None,
        [[("费用?", "五百", ["费用是二百卢比。"])]],
    ),
    "a user's name beside a reply, in such a script": (
        "a.jsonl", [{"question": "费用?", "answer": {"answer": "五百", "context": "李明"}}], None,
        [[("费用?", "五百", [])]],
    ),
    "a mapping of who speaks, where rows have an input, too": (
        "a.jsonl",
        [{"type": "user_message", "input": "", "output": Q}, {"type": "bot", "input": "", "output": A}],
        "role=type,text=output", BARE,
    ),
    "one conversation's messages, some without its number": (
        "a.json", {"messages": [{**USER, "thread_id": None}, *({**one, "thread_id": 1} for one in (
            BOT, USER2, BOT2))]},
        None, TWO,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", READ)
def test_a_file_of_a_product_is_read(kind: str, tmp_path: Path) -> None:
    name, held, mapping, expected = READ[kind]
    assert read(tmp_path, name, held, mapping)[0] == expected


PROXIED = (
    "a message of 'user_proxy' has the role `assistant`: AutoGen 0.2 writes roles as one of its agents sees "
    "them. Write `user` for the user, and `assistant` for the others."
)
REFUSED: dict[str, tuple[str, Any, str]] = {
    "a data set of LangSmith": (
        "a.jsonl", [EXAMPLE],
        "a row of a data set (`dataset_id`): its `outputs` may be the answer to compare with, and no reply. "
        "Export the runs of an experiment, or say that it is the reply: --map reply=outputs.",
    ),
    "AutoGen 0.2, as one agent sees the roles": ("a.jsonl", said(PROXY, CODER), PROXIED),
    "such a list": ("a.json", [PROXY, CODER], PROXIED),
    "steps of Chainlit": (
        "a.json",
        [{"type": "user_message", "threadId": "t", "input": "", "output": Q},
         {"type": "retrieval", "threadId": "t", "input": Q, "output": P},
         {"type": "assistant_message", "threadId": "t", "input": "", "output": A}],
        "`type`: 'user_message': the row is one message, and no message with its reply. Make a table with a "
        "row a message: columns session_id, role, content and time.",
    ),
    "messages of two conversations in one list": (
        "a.json", {"messages": [{**one, "threadId": at} for at, one in enumerate((USER, BOT))]},
        "the messages are of several conversations, as `threadId` says. Give this list alone, or as lines: "
        "then each conversation is read.",
    ),
    "an answer that was made again": (
        "a.jsonl",
        [{"id": id, "parent_id": before, "session_id": "s", "question": R, "answer": B}
         for id, before in (("1", None), ("2", "1"), ("3", "1"))],
        "several messages have '1' before them, so they are a tree, and no conversation.",
    ),
    "Slack's channel with a bot": (
        "a.json", {"messages": [{"type": "message", "user": "U", "text": Q, "ts": "1.2"}]},
        "messages.0.role: is missing. Give `user`, `assistant`, `system` or `tool`.",
    ),
    "a test set of Ragas": (
        "a.jsonl", [{"user_input": Q, "reference_contexts": [P], "reference": A}],
        "`user_input` has one message, and no column has the reply. Name it: --map reply=NAME.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_a_file_of_a_product_that_has_no_replies_or_no_speakers_is_refused(kind: str, tmp_path: Path) -> None:
    refuse(tmp_path, *REFUSED[kind])
