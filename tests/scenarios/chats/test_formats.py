"""Files of other tools: found out by content, and read to the same conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.chats.formats import format_of, read_chats
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Conversation


def encode(value: Any) -> dict[str, str]:
    """A value of OTLP."""
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}


def otlp(name: str, start: int, parent: str = "", **attributes: Any) -> dict[str, Any]:
    return {
        "traceId": "t1", "spanId": str(start), "parentSpanId": parent, "name": name,
        "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 1),
        "attributes": [
            {"key": key.replace("__", "."), "value": encode(one)} for key, one in attributes.items()],
    }  # fmt: skip


def phoenix(name: str, start: str, parent: str | None, attributes: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name, "context": {"trace_id": "t1", "span_id": start}, "parent_id": parent,
        "start_time": start, "attributes": attributes,
    }  # fmt: skip


GIVEN = [{"role": "user", "parts": [{"type": "text", "content": "What is the fee?"}]}]
GAVE = [{"role": "assistant", "parts": [{"type": "text", "content": "It is 500."}], "finish_reason": "stop"}]
FEES = {"page_content": "The fee is 200.", "metadata": {"source": "fees.md"}}

FILES: dict[str, tuple[str, Any]] = {
    "openai": ("a.jsonl", [{"id": "s", "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What is the fee?"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "find"}}]},
        {"role": "tool", "name": "find", "tool_call_id": "1", "content": json.dumps([FEES])},
        {"role": "assistant", "content": "It is 500."},
    ]}]),
    "sharegpt": ("a.json", [{"id": "s", "system": "Be brief.", "conversations": [
        {"from": "human", "value": "What is the fee?"},
        {"from": "observation", "value": json.dumps([FEES])},
        {"from": "gpt", "value": "It is 500."},
    ]}]),
    "otel": ("a.json", {"resourceSpans": [{"scopeSpans": [{"spans": [
        otlp("chat", 2, "1", gen_ai__operation__name="chat", gen_ai__input__messages=GIVEN,
             gen_ai__output__messages=GAVE, gen_ai__conversation__id="s"),
        otlp("find", 1, "1", gen_ai__operation__name="retrieval", gen_ai__retrieval__documents=[
            {"content": "The fee is 200.", "source_id": "fees.md"}]),
    ]}]}]}),
    "openinference": ("a.jsonl", [
        phoenix("llm", "2026-10-01T00:00:02Z", "x", {
            "openinference.span.kind": "LLM", "session.id": "s",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "What is the fee?",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": "It is 500.",
        }),
        phoenix("find", "2026-10-01T00:00:01Z", "x", {
            "openinference": {"span": {"kind": "RETRIEVER"}},
            "retrieval": {"documents": [
                {"document.content": "The fee is 200.", "document.metadata": {"source": "fees.md"}},
            ]},
        }),
    ]),
    "langfuse": ("a.json", [{
        "id": "t1", "sessionId": "s", "timestamp": "2026-10-01T00:00:00Z", "output": "It is 500.",
        "input": {"messages": [{"role": "user", "content": "What is the fee?"}]},
        "observations": [
            {"type": "GENERATION", "name": "rewrite", "input": "What is the fee?", "output": "fee"},
            {"type": "RETRIEVER", "name": "find", "output": [FEES]},
        ],
    }]),
    "mlflow": ("a.json", {
        "info": {"trace_id": "tr", "trace_metadata": {"mlflow.trace.session": "s"}},
        "data": {"spans": [
            {"span_id": "1", "parent_span_id": None, "name": "ask", "attributes": {
                "mlflow.spanType": '"CHAIN"', "mlflow.spanInputs": '{"question": "What is the fee?"}',
                "mlflow.spanOutputs": '"It is 500."'}},
            {"span_id": "2", "parent_span_id": "1", "name": "find", "attributes": {
                "mlflow.spanType": '"RETRIEVER"', "mlflow.spanOutputs": json.dumps([FEES])}},
        ]},
    }),
}  # fmt: skip
"""Format → name and content of a file with the same conversation."""


def written(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    if name.endswith(".jsonl"):
        path.write_text("".join(f"{json.dumps(line)}\n" for line in content))
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
    return path


def read(path: Path) -> list[Conversation]:
    return [one for _, one in read_chats(path, format_of(path))]


@pytest.mark.parametrize("format", FILES)
def test_the_same_conversation_is_read_from_each_format(format: str, tmp_path: Path) -> None:
    path = written(tmp_path, *FILES[format])
    # Both conventions of OpenTelemetry have one reader.
    assert format_of(path) == {"openinference": "otel"}.get(format, format)
    (one,) = read(path)
    (turn,) = one.turns
    assert (one.id, one.persona, one.stop_reason) == ("s", "s", "unknown")
    assert (turn.user, turn.reply) == ("What is the fee?", "It is 500.")
    assert [(passage.document, passage.text) for passage in turn.passages] == [("fees.md", "The fee is 200.")]


def test_csv_rows_are_put_together_and_ordered(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", (
        "session_id,turn,question,answer,context,topic\n"
        'x,2,And then?,"Wait,\nplease.",,fees\n'
        "y,1,Hello?,Hi.,,\n"
        'x,1,What is the fee?,500.,"[""Fee: 200."", ""Office: 9 to 5.""]",\n'
    ))  # fmt: skip
    x, y = read(path)
    assert [(turn.user, turn.reply, len(turn.passages)) for turn in x.turns] == [
        ("What is the fee?", "500.", 2),
        ("And then?", "Wait,\nplease.", 0),
    ]
    assert [step.text for turn in x.turns for step in turn.steps] == ["fees"]
    assert (y.id, len(y.turns)) == ("y", 1)


def test_a_cell_of_somebody_elses_csv_keeps_its_apostrophe(tmp_path: Path) -> None:
    (one,) = read(written(tmp_path, "a.csv", "question,answer\n'tis?,'=1+1\n"))
    assert (one.turns[0].user, one.turns[0].reply) == ("'tis?", "'=1+1")


def test_a_reply_that_stands_in_the_request_too_is_one(tmp_path: Path) -> None:
    reply = {"role": "assistant", "content": "B."}
    said = [{"role": "user", "content": "A?"}, reply]
    about = {"id": "t", "sessionId": "s", "timestamp": "2026-10-01T00:00:00Z"}
    (one,) = read(written(tmp_path, "a.jsonl", [{**about, "input": said, "output": reply}]))
    assert [(turn.user, turn.reply) for turn in one.turns] == [("A?", "B.")]


BRIEF = ("system", "Be brief.")
A, B, C, D = ("user", "A?"), ("assistant", "B."), ("user", "C?"), ("assistant", "D.")


@pytest.mark.parametrize(
    ("said", "turns"),
    [
        ([A, ("user", "Please."), B, D], [("A?\n\nPlease.", "B.\n\nD.", [])]),
        ([("assistant", "Hi!"), A, B], [("A?", "B.", [("greeting", "Hi!")])]),
        ([A, B, BRIEF, C, D], [("A?", "B.", []), ("C?", "D.", [BRIEF])]),
        ([A, B, BRIEF], [("A?", "B.", [BRIEF])]),
        ([A, ("assistant", ""), C, ("assistant", None)], [("A?", "", []), ("C?", "", [])]),
        ([A, B, C], [("A?", "B.", [])]),
    ],
    ids=["follow each other", "greeting", "system between", "system at the end", "empty", "no reply"],
)
def test_messages_make_turns_with_steps(
    said: list[tuple[str, Any]], turns: list[tuple[str, str, list[tuple[str, str]]]], tmp_path: Path
) -> None:
    line = {"messages": [{"role": role, "content": content} for role, content in said]}
    (one,) = read(written(tmp_path, "a.jsonl", [line]))
    found = [(turn.user, turn.reply, [(step.name, step.text) for step in turn.steps]) for turn in one.turns]
    assert found == turns


def found(path: Path) -> list[tuple[str, list[str]]]:
    """Reply and evidence of the turns of the one conversation of a file."""
    (one,) = read(path)
    return [(turn.reply, [passage.text for passage in turn.passages]) for turn in one.turns]


def test_what_a_tool_gave_is_evidence_of_the_reply_that_comes_after_it(tmp_path: Path) -> None:
    roles = ("tool", "user", "assistant", "tool", "user", "assistant", "tool", "assistant")
    said = [{"role": role, "content": f"{role} {at}"} for at, role in enumerate(roles)]
    assert found(written(tmp_path, "a.jsonl", [{"messages": said}])) == [
        ("assistant 2", ["tool 0"]),
        ("assistant 5\n\nassistant 7", ["tool 3", "tool 6"]),
    ]


def test_a_part_with_what_a_tool_gave_is_evidence(tmp_path: Path) -> None:
    said = [
        {"role": "user", "content": "A?"},
        {"role": "assistant", "content": [{"type": "tool_use", "name": "find"}]},
        {"role": "user", "content": [{"type": "tool_result", "content": "Fee: 200."}]},
        {"role": "assistant", "content": "It is 200."},
    ]
    path = written(tmp_path, "a.jsonl", [{"messages": said}])
    assert found(path) == [("It is 200.", ["Fee: 200."])]
    assert [step.name for step in read(path)[0].turns[0].steps] == ["tool_call"]


def test_a_span_with_a_message_of_a_tool_is_read_and_its_words_are_evidence_once(tmp_path: Path) -> None:
    given = [
        *GIVEN,
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "1", "name": "find"}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": "Fee: 200."}]},
    ]
    spans = [
        otlp("find", 1, "1", gen_ai__operation__name="execute_tool", gen_ai__tool__call__result="Fee: 200."),
        otlp(
            "chat", 2, "1", gen_ai__operation__name="chat", gen_ai__input__messages=given,
            gen_ai__output__messages=GAVE,
        ),
    ]  # fmt: skip
    path = written(tmp_path, "a.json", {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    assert found(path) == [("It is 500.", ["Fee: 200."])]


def test_a_trace_without_a_reply_is_a_conversation_without_turns(tmp_path: Path) -> None:
    traces = [
        {"id": id, "sessionId": id, "timestamp": "2026-10-01T00:00:00Z", "input": "A?", "output": output}
        for id, output in (("s", None), ("t", "B."))
    ]
    path = written(tmp_path, "a.jsonl", traces)
    assert [(one.id, len(one.turns)) for one in read(path)] == [("s", 0), ("t", 1)]


@pytest.mark.parametrize("behind", [" , oops [{}]", "[{}]", " {}"])
def test_nothing_behind_a_list_is_skipped(behind: str, tmp_path: Path) -> None:
    said = [{"role": "user", "content": "A?"}, {"role": "assistant", "content": "B."}]
    path = written(tmp_path, "a.json", f"{json.dumps([{'messages': said}])}\n{behind}")
    with pytest.raises(UsageError, match=r"a\.json, line 2: there is text after the end of the list\."):
        read(path)


def test_a_megabyte_is_read(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "a" * 10**6}, {"role": "assistant", "content": "b" * 10**6}]
    (one,) = read(written(tmp_path, "a.jsonl", [{"messages": said}]))
    assert [(len(turn.user), len(turn.reply)) for turn in one.turns] == [(10**6, 10**6)]


def test_the_evidence_of_a_line_is_that_of_its_last_reply(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "A?"}, {"role": "assistant", "content": "B."}] * 2
    (one,) = read(written(tmp_path, "a.jsonl", [{"messages": said, "contexts": ["Fee: 200."]}]))
    assert [[passage.text for passage in turn.passages] for turn in one.turns] == [[], ["Fee: 200."]]
