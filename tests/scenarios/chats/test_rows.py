"""Rows of any table: exactly which conversation they make, and what the reading says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from hallulab.scenarios.chats.formats import format_of, read_chats
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.errors import UsageError
from tests.kit.refusals import refusal

Said = dict[str, list[tuple[str, str, list[str]]]]
"""Conversation → message, reply and passages of its turns."""

ROLES = ("user", "assistant")
BOATS = [("How long is the rental?", "Two hours."), ("And the deposit?", "50 euros.")]


def read(path: Path, **options: Any) -> tuple[Said, Reading]:
    reading = Reading(**options)
    return {
        one.id: [(turn.user, turn.reply, [passage.text for passage in turn.passages]) for turn in one.turns]
        for _, one in read_chats(path, format_of(path, reading), reading)
    }, reading


def write(folder: Path, text: str | bytes, name: str = "boats.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refuse(path: Path, **options: Any) -> str:
    return refusal(read, path, **options).removeprefix(str(path))


# Columns.


OPEN = ("Is it open?", "Yes.", [])


@pytest.mark.parametrize(
    ("table", "expected", "described"),
    [
        (
            "Question,answer,Session ID,createdAt,score\n"
            "And the deposit?,50 euros.,a,2026-05-02T10:00:00Z,1\n"
            "Is it open?,Yes.,b,2026-05-02T09:30:00Z,1\n"
            "How long is the rental?,Two hours.,a,2026-05-02T09:00:00Z,0\n",
            {"a": [(*turn, []) for turn in BOATS], "b": [OPEN]},
            "user ← Question, reply ← answer, session ← Session ID, time ← createdAt; not read: score",
        ),
        (
            "conversation_id,role,content,created_at\n"
            "b,user,Is it open?,2026-05-02 11:00:00\n"
            "a,user,How long is the rental?,2026-05-02 09:00:00\n"
            "a,assistant,Two hours.,2026-05-02 09:00:05\n"
            "b,assistant,Yes.,2026-05-02 11:00:05\n",
            {"b": [OPEN], "a": [(*BOATS[0], [])]},
            "role ← role, text ← content, session ← conversation_id, time ← created_at",
        ),
        (
            "inputs.question,outputs.answer,reference.answer,id\nHow long?,2 h.,3 h.,7\n",
            {"row-1": [("How long?", "2 h.", [])]},
            "user ← inputs.question, reply ← outputs.answer; not read: reference.answer, id",
        ),
    ],
    ids=["names in any spelling, by time", "a row is a message", "flattened names of LangSmith"],
)
def test_columns_are_known_by_their_names(table: str, expected: Said, described: str, tmp_path: Path) -> None:
    said, reading = read(write(tmp_path, table))
    assert (said, reading.describe()) == (expected, described)


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("user,question,answer", "`user` and `question` could both be the user."),
        ("question,answer,response", "`answer` and `response` could both be the reply."),
        ("query,prompt,user_message,reply", "`query`, `prompt` and `user_message` could all be the user."),
        ("question,answer,context,documents", "`context` and `documents` could both be the passages."),
    ],
)
def test_two_candidates_are_refused_and_named(header: str, told: str, tmp_path: Path) -> None:
    cells = ",".join("x" for _ in header.split(","))
    assert refuse(write(tmp_path, f"{header}\n{cells}\n")).startswith(f", line 1: {told} Say which: --map ")


def test_the_user_decides_between_candidates(tmp_path: Path) -> None:
    path = write(tmp_path, "user,question,answer\nu-17,How long is the rental?,Two hours.\n")
    said, reading = read(path, mapping={"user": "question"})
    assert said == {"row-1": [("How long is the rental?", "Two hours.", [])]}
    assert reading.describe() == "user ← question, reply ← answer; not read: user"


def test_a_mapping_makes_a_table_of_any_names_known(tmp_path: Path) -> None:
    path = write(tmp_path, "frage,antwort\nWie lange?,Zwei Stunden.\n")
    assert "it has the columns frage, antwort, separated by `,`, in which no message" in refuse(path)
    said, _ = read(path, mapping={"user": "frage", "reply": "Antwort"})
    assert said == {"row-1": [("Wie lange?", "Zwei Stunden.", [])]}


def test_a_name_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "question,answer\nA?,B.\n")
    assert refuse(path, mapping={"reply": "antwort"}).startswith(", line 1: in no format")
    with pytest.raises(
        UsageError, match=r"--map reply=antwort: there is no such name .*among question, answer"
    ):
        list(read_chats(path, "csv", Reading({"reply": "antwort"})))


def test_of_deepeval_what_the_bot_was_given_is_evidence(tmp_path: Path) -> None:
    path = write(tmp_path, (
        "input,actual_output,expected_output,context,retrieval_context\n"
        "How long?,Two hours.,2 h,The ideal.,Boats: 2 hours.|Deposit: 50 euros.\n"
    ))  # fmt: skip
    said, reading = read(path)
    assert said == {"row-1": [("How long?", "Two hours.", ["Boats: 2 hours.", "Deposit: 50 euros."])]}
    assert reading.describe() == (
        "user ← input, reply ← actual_output, passages ← retrieval_context; "
        "not read: expected_output, context"
    )
    assert reading.notes == ["`retrieval_context`: passages are separated by bars, as DeepEval writes them."]


def test_a_bar_in_another_table_is_a_bar(tmp_path: Path) -> None:
    said, _ = read(write(tmp_path, "question,answer,context\nA?,B.,| 1 | 2 |\n"))
    assert said == {"row-1": [("A?", "B.", ["| 1 | 2 |"])]}


# Cells.


@pytest.mark.parametrize(
    ("cell", "passages"),
    [
        ("['It is 5.', \"It's 6.\"]", ["It is 5.", "It's 6."]),
        ("['It is 5.' 'It is 6.']", ["It is 5.", "It is 6."]),
        ("array(['It is 5.', 'It is 6.'], dtype=object)", ["It is 5.", "It is 6."]),
        ('["It is 5."]', ["It is 5."]),
        ("[Document(metadata={'source': 'a.md'}, page_content='It is 5.')]", ["It is 5."]),
        ("['It is 5.', nan]", ["It is 5."]),
        ("[1] says it is 5.", ["[1] says it is 5."]),
        ("[open('/etc/passwd').read() + 'x']", ["[open('/etc/passwd').read() + 'x']"]),
        *((nothing, []) for nothing in ("nan", "None", "['']", "null", "[]", "NaN", "", "[None]")),
    ],
)
def test_a_list_that_was_written_as_text_is_a_list(cell: str, passages: list[str], tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps({"question": "A?", "answer": "B.", "contexts": cell}), "a.jsonl")
    assert read(path)[0] == {"row-1": [("A?", "B.", passages)]}


def test_messages_in_the_cells_of_an_export_are_unpacked(tmp_path: Path) -> None:
    line = {
        "thread_id": "s", "timestamp": "2026-05-02T09:00:00Z",
        "input": json.dumps({"messages": [{"role": "user", "content": "How long?"}]}),
        "output": json.dumps({"role": "assistant", "content": "Two hours."}),
    }  # fmt: skip
    assert read(write(tmp_path, json.dumps(line), "a.jsonl"))[0] == {"s": [("How long?", "Two hours.", [])]}


def test_json_is_never_a_message(tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps({"question": '{"a": 1, "b": 2}', "answer": "B."}), "a.jsonl")
    assert refuse(path).startswith(
        ", line 1: `question` is an object or a list in which no message is known:"
    )


def test_a_list_of_numbers_is_what_somebody_wrote(tmp_path: Path) -> None:
    assert read(write(tmp_path, "question,answer\nA?,[1]\n"))[0] == {"row-1": [("A?", "[1]", [])]}


def test_a_dialogue_of_ragas_is_a_dialogue(tmp_path: Path) -> None:
    listed = [
        {"content": BOATS[0][0], "type": "human"}, {"content": BOATS[0][1], "type": "ai"},
        {"content": BOATS[1][0], "type": "human"}, {"content": BOATS[1][1], "type": "ai"},
    ]  # fmt: skip
    path = write(tmp_path, json.dumps({"user_input": repr(listed), "reference": "x"}), "a.jsonl")
    said, reading = read(path)
    assert said == {"row-1": [(*turn, []) for turn in BOATS]}
    assert reading.describe() == "messages ← user_input; not read: reference"


def test_messages_as_python_prints_them_are_messages(tmp_path: Path) -> None:
    listed = "[HumanMessage(content='How long?', additional_kwargs={}), AIMessage(content='Two hours.')]"
    path = write(tmp_path, json.dumps({"user_input": listed, "reference": "x"}), "a.jsonl")
    assert read(path)[0] == {"row-1": [("How long?", "Two hours.", [])]}


# Rows and their order.


def test_messages_without_a_conversation_are_one_and_that_is_told(tmp_path: Path) -> None:
    said, reading = read(write(tmp_path, "role,content\nuser,A?\nassistant,B.\nuser,C?\nassistant,D.\n"))
    assert said == {"all": [("A?", "B.", []), ("C?", "D.", [])]}
    assert reading.notes == ["No name says of which conversation a message is: all are one conversation."]


def test_a_message_of_no_conversation_among_others_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "session,role,content\na,user,A?\n,assistant,B.\n")
    assert refuse(path) == ", line 3: `session` is empty, so the message is of no conversation. Fill it in."


def test_a_cell_may_be_a_whole_message(tmp_path: Path) -> None:
    lines = [
        {"session_id": "a", "message": json.dumps({"type": kind, "data": {"content": text}})}
        for kind, text in (("human", "How long?"), ("ai", "Two hours."))
    ]
    path = write(tmp_path, json.dumps(lines), "a.json")
    assert read(path)[0] == {"a": [("How long?", "Two hours.", [])]}


def test_turns_with_points_and_turns_before_times(tmp_path: Path) -> None:
    path = write(tmp_path, (
        "session,turn,timestamp,date,question,answer\n"
        "a,1.10,1,1,C?,C.\na,1.2,9,9,B?,B.\na,1.1,5,5,A?,A.\n"
    ))  # fmt: skip
    assert [user for user, *_ in read(path)[0]["a"]] == ["A?", "B?", "C?"]


@pytest.mark.parametrize(
    ("times", "told"),
    [
        (("10/1/2026 9:30", "10/2/2026 9:30"), ", line 2: '10/1/2026 9:30' is no time by which rows"),
        (("2026-05-02", ""), ", line 3: other rows of the conversation 'a' have a turn or time"),
        (("2026-05-02T09:00", "2026-05-02T09:00Z"), "times that cannot be compared: '2026-05-02T09:00' and"),
        (("1777712400", "2026-05-02T09:00Z"), "times that cannot be compared: "),
        (("3", "2", "2"), "run from new to old, and some have the same time"),
    ],
)
def test_an_order_that_is_not_known_is_refused(times: tuple[str, ...], told: str, tmp_path: Path) -> None:
    rows = "".join(f"a,{time},{number}?,{number}.\n" for number, time in enumerate(times))
    assert told in refuse(write(tmp_path, f"session,timestamp,question,answer\n{rows}"))


def test_equal_times_are_told(tmp_path: Path) -> None:
    path = write(tmp_path, "session,date,question,answer\na,2026-05-02,A?,A.\na,2026-05-02,B?,B.\n")
    said, reading = read(path)
    assert [user for user, *_ in said["a"]] == ["A?", "B?"]
    assert reading.notes == [
        "In 1 conversation, such as 'a', rows have the same turn or time: these stand in the "
        "order of the file."
    ]


def test_a_time_that_decides_nothing_may_be_in_any_form(tmp_path: Path) -> None:
    path = write(tmp_path, "session,date,question,answer\na,10/1/2026,A?,A.\nb,10/2/2026,B?,B.\n")
    assert list(read(path)[0]) == ["a", "b"]


@pytest.mark.parametrize("first", [0, 4], ids=["repeated", "in parts"])
def test_rows_with_a_dialogue_count_each_reply_once(first: int, tmp_path: Path) -> None:
    said = [{"role": role, "content": f"{n}"} for n in range(4) for role in ROLES]
    rows = [{"session_id": "a", "chat": said[:4]}, {"session_id": "a", "chat": said[first:]}]
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.Table.from_pylist(rows), path)
    assert [user for user, *_ in read(path)[0]["a"]] == ["0", "1", "2", "3"]


def test_rows_that_are_no_turn_are_counted(tmp_path: Path) -> None:
    said, reading = read(write(tmp_path, "question,answer\nA?,\n,Hello.\nB?,B.\nC?,\n"))
    assert said["row-3"] == [("B?", "B.", [])]
    assert reading.notes == [
        "Left out: 2 rows without a reply.", "Left out: 1 row without a message of the user.",
    ]  # fmt: skip
