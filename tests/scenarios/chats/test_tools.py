"""Chats as other programs export them, and requests as APIs log them: what is read and told."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.chats.formats import format_of, read_chats
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Conversation
from tests.scenarios.chats.test_formats import written

ASKED, REPLIED, RULE = "What is the fee?", "It is 500.", "The fee is 200."


def text(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]


FILES: dict[str, tuple[str, Any, str, list[tuple[str, str]]]] = {
    "adk": (
        "a.json",
        {"id": "s", "appName": "fees", "events": [
            {"author": "user", "content": {"role": "user", "parts": [{"text": ASKED}]}},
            {"author": "bot", "content": {"role": "model", "parts": [{"functionCall": {"name": "find"}}]}},
            {"author": "bot", "content": {"role": "user", "parts": [
                {"functionResponse": {"name": "find", "response": {"result": RULE}}}]}},
            {"author": "bot", "partial": True, "content": {"role": "model", "parts": [{"text": "It"}]}},
            {"author": "bot", "content": {"role": "model", "parts": [{"text": REPLIED}]}},
            {"author": "bot", "actions": {"stateDelta": {}}},
        ]},
        "user ← events (role user), passages ← events (tool results), reply ← events (role assistant)",
        [("find", RULE)],
    ),
    "assistants": (
        "a.json",
        {"object": "list", "data": [
            {"object": "thread.message", "thread_id": "s", "role": "assistant", "created_at": 2,
             "content": [{"type": "text", "text": {"value": REPLIED, "annotations": []}}]},
            {"object": "thread.message", "thread_id": "s", "role": "user", "created_at": 1,
             "content": [{"type": "text", "text": {"value": ASKED, "annotations": []}}]},
        ]},
        "time ← created_at, user ← messages (role user), reply ← messages (role assistant)",
        [],
    ),
    "autogen": (
        "a.json",
        {"id": "s", "stop_reason": None, "messages": [
            {"source": "user", "content": ASKED, "type": "TextMessage"},
            {"source": "bot", "content": [{"id": "1", "name": "find"}], "type": "ToolCallRequestEvent"},
            {"source": "bot", "content": [{"content": RULE, "name": "find", "call_id": "1"}],
             "type": "ToolCallExecutionEvent"},
            {"source": "bot", "content": "800?", "type": "ThoughtEvent"},
            {"source": "bot", "content": REPLIED, "type": "TextMessage"},
            {"source": "end", "content": "Done.", "type": "StopMessage"},
        ]},
        "user ← messages (role user), passages ← messages (role tool), reply ← messages (role assistant)",
        [("find", RULE)],
    ),
    "bedrock": (
        "a.jsonl",
        [{"sessionId": "s", "input": {"text": ASKED}, "output": {"text": REPLIED}, "citations": [
            {"generatedResponsePart": {}, "retrievedReferences": [
                {"content": {"text": RULE}, "location": {"s3Location": {"uri": "fees.md"}}},
            ]},
        ]}],
        "user ← input.text, reply ← output.text, passages ← citations.retrievedReferences, "
        "session ← sessionId",
        [("fees.md", RULE)],
    ),
    "bot-framework": (
        "a.transcript",
        [
            {"type": "conversationUpdate", "conversation": {"id": "s"}},
            {"type": "message", "conversation": {"id": "s"}, "from": {"id": "1", "role": "user"},
             "text": ASKED},
            {"type": "typing", "conversation": {"id": "s"}, "from": {"id": "2", "role": "bot"}},
            {"type": "message", "conversation": {"id": "s"}, "from": {"id": "2", "role": "bot"},
             "text": REPLIED},
        ],
        "user ← activities (role user), reply ← activities (role bot)",
        [],
    ),
    "chatgpt": (
        "conversations.json",
        [{"conversation_id": "s", "current_node": "c", "mapping": {
            "r": {"id": "r", "message": None, "parent": None},
            "a": {"id": "a", "parent": "r", "message": {
                "author": {"role": "user"}, "content": {"content_type": "text", "parts": [ASKED]}}},
            "b": {"id": "b", "parent": "a", "message": {
                "author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["No."]}}},
            "t": {"id": "t", "parent": "a", "message": {
                "author": {"role": "tool", "name": "browser"},
                "content": {"content_type": "tether_quote", "text": RULE}}},
            "c": {"id": "c", "parent": "t", "message": {
                "author": {"role": "assistant"}, "content": {"content_type": "text", "parts": [REPLIED]}}},
        }}],
        "user ← mapping (role user), passages ← mapping (role tool), reply ← mapping (role assistant)",
        [("browser", RULE)],
    ),
    "claude": (
        "conversations.json",
        [{"uuid": "s", "chat_messages": [
            {"sender": "human", "text": ASKED, "attachments": [
                {"file_name": "fees.md", "extracted_content": RULE}]},
            {"sender": "assistant", "text": "", "content": text(REPLIED)},
        ]}],
        "user ← chat_messages (role human), passages ← chat_messages (context), "
        "reply ← chat_messages (role assistant)",
        [("fees.md", RULE)],
    ),
    "gemini": (
        "a.jsonl",
        [{"request": {"contents": [{"parts": [{"text": ASKED}]}]}, "sessionId": "s",
          "response": {"candidates": [{
            "content": {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": REPLIED}]},
            "groundingMetadata": {"groundingChunks": [
                {"web": {"uri": "https://fees.example", "title": "fees.example"}},
                {"retrievedContext": {"title": "fees.md", "uri": "gs://f", "text": RULE}}]},
        }]}}],
        "user ← contents (role user), reply ← response.candidates (role model), "
        "passages ← response.candidates (grounding), session ← sessionId",
        [("gs://f", RULE)],
    ),
    "inspect-log": (
        "a.json",
        {"version": 2, "eval": {}, "samples": [{"id": "s", "epoch": 1, "input": ASKED, "target": "200",
         "messages": [
             {"role": "user", "content": ASKED},
             {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": "find"}]},
             {"role": "tool", "function": "find", "tool_call_id": "1", "content": RULE},
             {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "?"}, *text(REPLIED)]},
         ], "output": {"model": "m"}}]},
        "user ← messages (role user), reply ← messages (role assistant), passages ← messages (role tool)",
        [("tool", RULE)],
    ),
    "intercom": (
        "a.json",
        {"type": "conversation.list", "conversations": [{"id": "s",
         "source": {"body": "<p>What is the <b>fee</b>?</p>", "author": {"type": "user"}},
         "conversation_parts": {"conversation_parts": [
             {"part_type": "note", "body": "<p>Be kind.</p>", "author": {"type": "admin"}},
             {"part_type": "comment", "body": "<p>It is 500.</p>", "author": {"type": "bot"}},
         ]}}]},
        "user ← conversation_parts (role user), reply ← conversation_parts (role assistant)",
        [],
    ),
    "langsmith": (
        "a.jsonl",
        [
            {"id": "1", "trace_id": "1", "run_type": "chain", "inputs": {"question": ASKED},
             "outputs": {"answer": REPLIED}, "start_time": "2026-10-01T00:00:00",
             "extra": {"metadata": {"thread_id": "s"}}},
            {"id": "2", "trace_id": "1", "parent_run_id": "1", "run_type": "retriever", "name": "find",
             "inputs": {"query": "fee"}, "start_time": "2026-10-01T00:00:01",
             "outputs": {"documents": [{"page_content": RULE, "metadata": {"source": "fees.md"}}]}},
        ],
        "user ← inputs.question, reply ← outputs.answer, passages ← outputs, session ← thread_id",
        [("fees.md", RULE)],
    ),
    "mtrag": (
        "a.json",
        [{"author": "a", "id": "s", "retriever": {}, "messages": [
            {"speaker": "user", "text": ASKED, "timestamp": 1},
            {"speaker": "agent", "text": REPLIED, "timestamp": 2,
             "contexts": [{"document_id": "fees.md", "text": RULE, "score": 1.5}]},
        ]}],
        "user ← messages (speaker user), reply ← messages (speaker agent), passages ← messages (context)",
        [("fees.md", RULE)],
    ),
    "openwebui": (
        "a.json",
        [{"id": "s", "chat": {"history": {"currentId": "3", "messages": {
            "1": {"id": "1", "parentId": None, "role": "user", "content": ASKED},
            "2": {"id": "2", "parentId": "1", "role": "assistant", "content": "No."},
            "3": {"id": "3", "parentId": "1", "role": "assistant", "content": REPLIED, "sources": [
                {"source": {"name": "fees.md"}, "document": [RULE], "metadata": [{}], "distances": [0.2]}]},
        }}}}],
        "user ← messages (role user), reply ← messages (role assistant), passages ← messages (context)",
        [("fees.md", RULE)],
    ),
    "promptfoo": (
        "a.json",
        {"evalId": "e", "results": {"version": 3, "results": [
            {"id": "s", "vars": {"question": ASKED, "context": RULE}, "response": {"output": REPLIED},
             "provider": {"id": "m"}, "success": True},
        ]}},
        "user ← question, passages ← context, reply ← response.output",
        [("context", RULE)],
    ),
    "pydantic-ai": (
        "a.json",
        [
            {"kind": "request", "conversation_id": "s", "instructions": "Be brief.", "parts": [
                {"part_kind": "user-prompt", "content": ASKED}]},
            {"kind": "response", "conversation_id": "s", "model_name": "m", "parts": [
                {"part_kind": "thinking", "content": "800?"},
                {"part_kind": "tool-call", "tool_name": "find", "args": "{}"}]},
            {"kind": "request", "conversation_id": "s", "parts": [
                {"part_kind": "tool-return", "tool_name": "find", "content": {"text": RULE}}]},
            {"kind": "response", "conversation_id": "s", "parts": [
                {"part_kind": "tool-call", "tool_name": "final_result", "args": REPLIED}]},
            {"kind": "request", "conversation_id": "s", "parts": [
                {"part_kind": "tool-return", "tool_name": "final_result", "content": "Processed."}]},
        ],
        "user ← messages (role user), passages ← messages (role tool), reply ← messages (role assistant)",
        [("find", RULE)],
    ),
    "rasa": (
        "a.json",
        {"sender_id": "s", "events": [
            {"event": "action", "name": "action_listen"},
            {"event": "user", "text": ASKED, "timestamp": 1},
            {"event": "bot", "text": REPLIED, "timestamp": 2},
            {"event": "bot", "text": None, "data": {"buttons": []}},
        ]},
        "user ← events (role user), reply ← events (role bot)",
        [],
    ),
    "responses": (
        "a.jsonl",
        [{"id": "s", "object": "response", "instructions": "Be brief.", "input": ASKED, "output": [
            {"type": "file_search_call", "results": [{"filename": "fees.md", "text": RULE, "score": 0.9}]},
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": REPLIED}]},
        ]}],
        "user ← input, passages ← output (file_search_call), reply ← output (role assistant)",
        [("fees.md", RULE)],
    ),
    "tau2": (
        "a.json",
        {"info": {"agent_info": {"llm": "m"}}, "tasks": [], "simulations": [{"id": "s", "messages": [
            {"role": "assistant", "content": "Hi!"},
            {"role": "user", "content": ASKED},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "name": "find"}]},
            {"role": "tool", "id": "1", "content": RULE, "requestor": "assistant"},
            {"role": "assistant", "content": REPLIED},
        ]}]},
        "reply ← messages (role assistant), user ← messages (role user), passages ← messages (role tool)",
        [("tool", RULE)],
    ),
    "wildchat": (
        "a.jsonl",
        [{"conversation_hash": "s", "model": "m", "language": "English", "conversation": [
            {"role": "user", "content": ASKED}, {"role": "assistant", "content": REPLIED}]}],
        "user ← conversation (role user), reply ← conversation (role assistant), model ← model; "
        "not read: language",
        [],
    ),
}  # fmt: skip
"""Format → name and content of a file, what is told of it, and the passages of its reply."""


def read(path: Path) -> tuple[list[Conversation], Reading]:
    reading = Reading()
    return [one for _, one in read_chats(path, format_of(path), reading)], reading


@pytest.mark.parametrize("format", FILES)
def test_a_conversation_of_each_tool(format: str, tmp_path: Path) -> None:
    name, content, told, passages = FILES[format]
    path = written(tmp_path, name, content)
    assert format_of(path) == format
    (one,), reading = read(path)
    assert (one.id, [(turn.user, turn.reply) for turn in one.turns]) == ("s", [(ASKED, REPLIED)])
    assert [(passage.document, passage.text) for passage in one.turns[0].passages] == passages
    assert reading.describe() == told


def test_of_a_tree_the_branch_that_is_shown_is_read_and_others_are_counted(tmp_path: Path) -> None:
    notes = [read(written(tmp_path, *FILES[name][:2]))[1].notes for name in ("chatgpt", "openwebui")]
    told = "Messages of other branches left out, such as regenerated answers: 1."
    assert notes == [[told], [told]]


def test_a_tree_that_says_no_last_message_is_read_to_the_last_one_and_a_circle_ends(tmp_path: Path) -> None:
    said = {"author": {"role": "user"}, "content": {"parts": [ASKED]}}
    nodes = {
        "a": {"parent": "b", "message": said},
        "b": {"parent": "a", "message": {"author": {"role": "assistant"}, "content": {"parts": [REPLIED]}}},
    }
    (one,), _ = read(written(tmp_path, "a.json", [{"mapping": nodes, "current_node": "b"}]))
    assert [(turn.user, turn.reply) for turn in one.turns] == [(ASKED, REPLIED)]


def test_texts_in_turn_are_user_and_reply(tmp_path: Path) -> None:
    (one,), reading = read(written(tmp_path, "a.jsonl", [{"id": "7", "data": ["A?", "B.", "C?", "D."]}]))
    assert [(turn.user, turn.reply) for turn in one.turns] == [("A?", "B."), ("C?", "D.")]
    assert reading.describe() == "user ← data (first, third, …), reply ← data (second, fourth, …)"


def test_of_a_task_of_mtrag_only_the_prediction_is_judged(tmp_path: Path) -> None:
    task = {
        "conversation_id": "c", "task_id": "c::2", "contexts": [{"document_id": "d", "text": RULE}],
        "input": [{"speaker": "user", "text": "A?"}, {"speaker": "agent", "text": "B."},
                  {"speaker": "user", "text": "C?"}],
        "targets": [{"speaker": "agent", "text": "gold"}],
    }  # fmt: skip
    path = written(tmp_path, "a.jsonl", [{**task, "predictions": [{"text": "D."}]}])
    (one,), _ = read(path)
    assert (one.id, [(turn.user, turn.reply) for turn in one.turns]) == ("c::2", [("C?", "D.")])
    assert one.branch is not None
    assert [message.text for message in one.branch.history] == ["A?", "B."]
    assert [passage.text for passage in one.turns[0].passages] == [RULE]
    with pytest.raises(
        UsageError, match=r"line 1: a task without `predictions`: nothing of a model is in it\."
    ):
        read(written(tmp_path, "b.jsonl", [task]))


def test_what_the_users_own_tools_gave_is_no_evidence(tmp_path: Path) -> None:
    simulation = {"id": "s", "messages": [
        {"role": "user", "content": ASKED},
        {"role": "user", "content": None, "tool_calls": [{"name": "look", "requestor": "user"}]},
        {"role": "tool", "content": "No signal.", "requestor": "user"},
        {"role": "assistant", "content": REPLIED},
    ]}  # fmt: skip
    (one,), reading = read(written(tmp_path, "a.json", {"simulations": [simulation]}))
    assert (one.turns[0].reply, one.turns[0].passages) == (REPLIED, ())
    assert reading.notes == ["Results of the user's own tools left out: 1."]


def pack(path: Path, samples: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        for name, sample in samples.items():
            archive.writestr(f"samples/{name}.json", json.dumps(sample))
    return path


def test_an_archive_of_inspect_has_a_conversation_a_sample(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "A?"}, {"role": "assistant", "content": "B."}]
    samples = {f"7_epoch_{epoch}": {"id": 7, "epoch": epoch, "messages": said} for epoch in (1, 2)}
    path = pack(tmp_path / "a.eval", samples)
    assert format_of(path) == "inspect-log"
    found, reading = read(path)
    assert [one.id for one in found] == ["7", "7-epoch-2"]
    assert reading.describe() == "user ← messages (role user), reply ← messages (role assistant)"


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.eval", {"1_epoch_1": {"messages": []}})
    path.write_bytes(path.read_bytes()[:80])
    with pytest.raises(UsageError, match=r"a\.eval: a damaged log of Inspect \(.*\)\. Copy it again\."):
        read(path)


def test_a_log_of_an_invocation_of_bedrock(tmp_path: Path) -> None:
    line = {
        "schemaType": "ModelInvocationLog", "modelId": "m", "requestId": "r", "operation": "Converse",
        "input": {"inputBodyJson": {"messages": [{"role": "user", "content": [{"text": ASKED}]}]}},
        "output": {"outputBodyJson": {
            "output": {"message": {"role": "assistant", "content": [{"text": REPLIED}]}}}},
    }  # fmt: skip
    (one,), reading = read(written(tmp_path, "a.jsonl", [line]))
    assert (one.id, one.model, one.turns[0].user, one.turns[0].reply) == ("r", "m", ASKED, REPLIED)
    assert reading.describe().startswith("user ← messages (role user), reply ← response")


def test_activities_of_copilot_studio_have_numbers_for_roles_and_cards_are_counted(tmp_path: Path) -> None:
    said = [
        {"type": "message", "from": {"role": 0}, "text": REPLIED, "timestamp": 3},
        {"type": "message", "from": {"role": 0}, "attachments": [{}], "timestamp": 4},
        {"type": "message", "from": {"role": 1}, "text": ASKED, "timestamp": 2},
        {"type": "message", "from": {"role": 0}, "text": "Hello!", "timestamp": 1},
    ]
    path = written(tmp_path, "a.jsonl", [{"activities": said}, {"activities": said[:1]}])
    found, reading = read(path)
    assert [(one.id, [(turn.user, turn.reply) for turn in one.turns]) for one in found] == [
        ("chat-1", [(ASKED, REPLIED)]),
        ("chat-2", []),
    ]
    assert [step.text for step in found[0].turns[0].steps] == ["Hello!"]
    assert "Messages without text left out, such as cards: 1." in reading.notes


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"activities": [7]}, "line 1: must be an object"),
        (
            {"activities": [{"type": "message", "from": {"name": "Bot"}, "text": "Hi"}]},
            "line 1: activities.0.role: is missing",
        ),
    ],
)
def test_a_wrong_activity_is_named(content: Any, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        read(written(tmp_path, "a.jsonl", [content]))


def test_responses_that_go_on_with_each_other_are_one_conversation(tmp_path: Path) -> None:
    def respond(id: str, asked: str, replied: str, **beside: str) -> dict[str, Any]:
        said = [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": replied}]}
        ]
        return {"id": id, "object": "response", "input": asked, "output": said, **beside}

    lines = [respond("r1", "A?", "B."), respond("r2", "C?", "D.", previous_response_id="r1"),
             respond("r3", "E?", "F.")]  # fmt: skip
    found, _ = read(written(tmp_path, "a.jsonl", lines))
    assert [(one.id, [turn.reply for turn in one.turns]) for one in found] == [
        ("r1", ["B.", "D."]),
        ("r3", ["F."]),
    ]


def test_where_no_variable_is_the_question_the_prompt_is_and_a_failed_request_is_counted(
    tmp_path: Path,
) -> None:
    prompt = json.dumps([{"role": "system", "content": "Be brief."}, {"role": "user", "content": ASKED}])
    results = [
        {"id": "a", "vars": {"city": "Bonn"}, "prompt": {"raw": prompt}, "response": {"output": REPLIED}},
        {"id": "b", "vars": {"city": "Bonn"}, "prompt": {"raw": ASKED}, "error": "timeout"},
    ]
    (a, b), reading = read(written(tmp_path, "a.json", {"results": {"results": results}}))
    assert [(turn.user, turn.reply) for turn in a.turns] == [(ASKED, REPLIED)]
    assert (b.id, b.turns) == ("b", ())
    assert reading.notes == ["Results without an output left out, such as those of a failed request: 1."]


def test_a_message_of_chatgpt_to_a_tool_is_a_call_and_its_thoughts_are_no_reply(tmp_path: Path) -> None:
    def say(role: str, kind: str, *parts: Any, to: str = "all") -> dict[str, Any]:
        content = {"content_type": kind, "parts": list(parts)}
        return {"author": {"role": role}, "recipient": to, "content": content}

    told = [
        say("system", "text", ""),
        say("user", "multimodal_text", {"content_type": "image_asset_pointer"}, ASKED),
        say("assistant", "thoughts", "Hm."),
        say("assistant", "text", "search('fee')", to="browser"),
        say("tool", "text", RULE),
        say("assistant", "text", REPLIED),
    ]
    nodes = {str(at): {"parent": str(at - 1), "message": one} for at, one in enumerate(told)}
    (one,), reading = read(written(tmp_path, "a.json", [{"id": "s", "mapping": nodes, "current_node": "5"}]))
    assert [(turn.user, turn.reply) for turn in one.turns] == [(ASKED, REPLIED)]
    assert [passage.text for passage in one.turns[0].passages] == [RULE]
    assert [step.name for step in one.turns[0].steps] == ["tool_call"]
    assert reading.notes == ["Parts of messages left out, for they have no words (image_asset_pointer): 1."]
