from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.datasets import list_datasets, load_labelled
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.labelled import GoldSpan, LabelledReply
from hallulab.scenarios.transcript import Message, Passage

TURN = {
    "model_name": "t5",
    "data_source": "wow",
    "knowledge": "Chalk came first.",
    "message": "What came first?",
    "response": "Crayons came first.",
    "begin_label": "Not fully attributable",
}


def begin(folder: Path, *changes: dict[str, Any]) -> Path:
    lines = [json.dumps(TURN | change) for change in changes]
    (folder / "turns.jsonl").write_text("\n".join(lines))
    return folder


def refused(dataset: str, data: Path | None = None, source: str | None = None) -> str:
    with pytest.raises(UsageError) as raised:
        load_labelled(dataset, data, source)
    return str(raised.value)


def test_a_line_of_begin_becomes_a_labelled_reply(tmp_path: Path) -> None:
    (reply,) = load_labelled("begin", begin(tmp_path, {}))
    assert (reply.id, reply.dataset, reply.task) == ("wow-1", "begin", "dialogue")
    assert (reply.question, reply.reply) == ("What came first?", "Crayons came first.")
    assert [passage.text for passage in reply.passages] == ["Chalk came first."]
    assert (reply.label, reply.spans) == (True, None)
    assert reply.meta == {"model": "t5", "source": "wow"}


def test_an_attributable_reply_is_not_hallucinated(tmp_path: Path) -> None:
    (reply,) = load_labelled("begin", begin(tmp_path, {"begin_label": "Fully attributable"}))
    assert reply.label is False


def test_generic_replies_are_left_out_and_counted(tmp_path: Path) -> None:
    data = load_labelled("begin", begin(tmp_path, {}, {"begin_label": "Generic"}))
    assert (len(data), data.left_out) == (1, {"Generic": 1})


def test_a_part_of_begin_counts_its_own(tmp_path: Path) -> None:
    begin(tmp_path, {}, {"data_source": "tc"}, {"data_source": "cmu", "begin_label": "Generic"})
    data = load_labelled("begin", tmp_path, "tc")
    assert ([reply.id for reply in data], data.left_out) == (["tc-2"], {})


def test_replies_to_the_same_knowledge_are_a_group(tmp_path: Path) -> None:
    first, second, third = load_labelled(
        "begin", begin(tmp_path, {}, {"model_name": "gpt2"}, {"knowledge": "x"})
    )
    assert first.group == second.group != third.group


def test_knowledge_in_another_spelling_is_the_same_group_of_begin(tmp_path: Path) -> None:
    # As the release has it for some of the systems.
    spellings = ("Elvis (January 8, 1935\u00a0– 1977) didn't.", "elvis ( january 8, 1935 – 1977 ) did n't .")
    first, second, other = load_labelled(
        "begin", begin(tmp_path, *({"knowledge": one} for one in (*spellings, "Elvis (1936) didn't.")))
    )
    assert first.group == second.group != other.group
    assert [reply.passages[0].text for reply in (first, second)] == list(spellings)


BEGIN_FILES = (
    "turns.jsonl or wow/begin_dev_wow.tsv or cmu-dog/begin_dev_cmu.tsv or topicalchat/begin_dev_tc.tsv or "
    "wow/begin_test_wow.tsv or cmu-dog/begin_test_cmu.tsv or topicalchat/begin_test_tc.tsv"
)


def test_begin_needs_its_folder() -> None:
    assert refused("begin") == f"begin: name the folder that holds {BEGIN_FILES} with --data DIR."


def test_begin_without_its_files_is_refused(tmp_path: Path) -> None:
    assert refused("begin", tmp_path) == (
        f"{tmp_path}/turns.jsonl: there is no such file. "
        f"Give the folder that holds {BEGIN_FILES} with --data DIR."
    )


def official(folder: Path, name: str, *changes: dict[str, Any]) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(TURN), *("\t".join((TURN | change).values()) for change in changes)]
    path.write_bytes("\r\n".join(lines).encode())
    return folder


def test_the_official_files_of_begin_give_the_same_replies(tmp_path: Path) -> None:
    turns = ({}, {"response": 'He said "no'}, {"data_source": "cmu"}, {"data_source": "tc"})
    official(tmp_path / "official", "wow/begin_dev_wow.tsv", *turns[:2])
    official(tmp_path / "official", "cmu-dog/begin_dev_cmu.tsv", turns[2])
    official(tmp_path / "official", "topicalchat/begin_dev_tc.tsv", turns[3])
    (tmp_path / "ours").mkdir()
    ours = load_labelled("begin", begin(tmp_path / "ours", *turns))
    assert load_labelled("begin", tmp_path / "official") == ours
    assert [reply.id for reply in ours] == ["wow-1", "wow-2", "cmu-3", "tc-4"]


def test_the_official_test_split_of_begin_is_numbered_apart(tmp_path: Path) -> None:
    official(tmp_path, "wow/begin_dev_wow.tsv", {})
    official(tmp_path, "wow/begin_test_wow.tsv", {}, {"model_name": "gpt2"})
    official(tmp_path, "cmu-dog/begin_test_cmu.tsv", {"data_source": "cmu"})
    assert [reply.id for reply in load_labelled("begin", tmp_path)] == [
        *("wow-1", "wow-test-1", "wow-test-2", "cmu-test-3")
    ]
    assert [reply.id for reply in load_labelled("begin", tmp_path, "dev")] == ["wow-1"]
    assert [reply.id for reply in load_labelled("begin", tmp_path, "cmu")] == ["cmu-test-3"]
    assert refused("begin", tmp_path, "dd").endswith("Give one of: wow, cmu, tc, dev, test.")


def test_an_official_line_of_begin_with_another_number_of_values_is_refused(tmp_path: Path) -> None:
    official(tmp_path, "wow/begin_dev_wow.tsv", {}, {"response": "two\tvalues"})
    assert refused("begin", tmp_path) == (
        f"{tmp_path}/wow/begin_dev_wow.tsv, line 3: there are 7 values for 6 columns. "
        "Download the file again."
    )


def test_a_wrong_value_in_an_official_line_of_begin_is_refused(tmp_path: Path) -> None:
    official(tmp_path, "wow/begin_dev_wow.tsv", {"data_source": "dd"})
    assert refused("begin", tmp_path) == (
        f"{tmp_path}/wow/begin_dev_wow.tsv, line 2: data_source: input should be 'wow', 'cmu' or 'tc'. "
        "Correct it; see docs/labelled-data.md."
    )


def test_empty_replies_of_begin_are_left_out_and_counted(tmp_path: Path) -> None:
    data = load_labelled("begin", begin(tmp_path, {"response": ""}, {}))
    assert ([reply.id for reply in data], data.left_out) == (["wow-2"], {"empty reply": 1})


def test_an_unknown_part_of_begin_is_refused(tmp_path: Path) -> None:
    assert refused("begin", begin(tmp_path, {}), "dd") == (
        "--source dd: begin has no such part. Give one of: wow, cmu, tc."
    )


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"begin_label": "Fine"},
            "begin_label: input should be 'Fully attributable', 'Not fully attributable' or 'Generic'. "
            "Correct it; see docs/labelled-data.md.",
        ),
        ({"message": None}, "message: is null. Give a text."),
        ({"more": 1}, "more: unknown key. Correct its spelling or remove it; see docs/labelled-data.md."),
    ],
)
def test_a_wrong_line_of_begin_is_refused(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    assert refused("begin", begin(tmp_path, {}, change)) == f"{tmp_path}/turns.jsonl, line 2: {complaint}"


def test_a_torn_line_is_refused_also_at_the_end(tmp_path: Path) -> None:
    begin(tmp_path, {}, {})
    file = tmp_path / "turns.jsonl"
    file.write_text(file.read_text()[:-5])
    complaint = refused("begin", tmp_path)
    assert complaint.startswith(f"{file}, line 2: not valid JSON (")
    assert complaint.endswith("). Correct or delete the line.")


def test_an_unknown_data_set_names_the_known_ones() -> None:
    known = ", ".join(list_datasets())
    assert refused("bgin") == (
        f"bgin: no such labelled data. Give the path of a JSONL file, or one of: {known}."
    )


def jsonl(folder: Path, *lines: dict[str, Any]) -> str:
    path = folder / "mine.jsonl"
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def test_a_line_of_ours_needs_reply_passages_and_label_only(tmp_path: Path) -> None:
    (reply,) = load_labelled(jsonl(tmp_path, {"reply": "Yes.", "passages": ["A.", "B."], "label": False}))
    assert (reply.id, reply.dataset, reply.label, reply.spans) == ("line-1", "mine", False, None)
    assert [(passage.id, passage.text) for passage in reply.passages] == [
        ("passage#0", "A."),
        ("passage#1", "B."),
    ]


def test_a_full_line_of_ours(tmp_path: Path) -> None:
    line = {
        "id": "a",
        "task": "qa",
        "question": "When?",
        "history": [{"role": "user", "text": "Hello"}],
        "passages": [{"id": "d#3", "document": "d", "text": "In May."}],
        "reply": "Am 3. Mai – sicher.",
        "label": True,
        "spans": [{"start": 3, "end": 5, "label": "date"}],
        "group": "g",
        "meta": {"model": "m"},
    }
    (reply,) = load_labelled(jsonl(tmp_path, line))
    assert reply == LabelledReply(
        id="a",
        dataset="mine",
        task="qa",
        question="When?",
        history=(Message(role="user", text="Hello"),),
        passages=(Passage(id="d#3", document="d", text="In May."),),
        reply="Am 3. Mai – sicher.",
        label=True,
        spans=(GoldSpan(start=3, end=5, label="date"),),
        group="g",
        meta={"model": "m"},
    )


def test_spans_say_the_label(tmp_path: Path) -> None:
    line = {"reply": "Yes.", "passages": ["A."]}
    path = jsonl(tmp_path, line | {"spans": [{"start": 0, "end": 3}]}, line | {"spans": []})
    assert [reply.label for reply in load_labelled(path)] == [True, False]


def test_unlabelled_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    line = {"reply": "Yes.", "passages": ["A."]}
    data = load_labelled(jsonl(tmp_path, line, line | {"label": True}, line | {"label": None, "spans": None}))
    assert (len(data), data.left_out) == (1, {"unlabelled": 2})


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"spans": [{"start": 0, "end": 9}]},
            "spans: the label [0, 9) is no stretch of the reply, which has 4 characters. "
            "Correct the offsets.",
        ),
        (
            {"spans": [{"start": 2, "end": 2}]},
            "spans: the label [2, 2) is no stretch of the reply, which has 4 characters. "
            "Correct the offsets.",
        ),
        (
            {"label": False, "spans": [{"start": 0, "end": 2}]},
            "the label is false, yet there are spans. Correct it; see docs/labelled-data.md.",
        ),
        (
            {"label": True, "spans": []},
            "the label is true, yet spans is [], which says nowhere; leave spans out if nobody knows where. "
            "Correct it; see docs/labelled-data.md.",
        ),
        (
            {"passages": []},
            "passages: is empty; give at least 1. Correct it; see docs/labelled-data.md.",
        ),
    ],
)
def test_a_wrong_line_of_ours_is_refused(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    path = jsonl(tmp_path, {"reply": "Yes.", "passages": ["A."], "label": True} | change)
    assert refused(path) == f"{path}, line 1: {complaint}"


@pytest.mark.parametrize(
    "change",
    [
        *({"spans": [{"start": 0, "end": end}]} for end in ("1", 1.5, True)),
        *({"spans": [{"start": start, "end": 2}]} for start in ("1", 0.5, False)),
    ],
)
def test_only_whole_numbers_are_offsets(tmp_path: Path, change: dict[str, Any]) -> None:
    said = refused(jsonl(tmp_path, {"reply": "Yes.", "passages": ["A."]} | change))
    assert "input should be a valid" in said


def test_an_identifier_occurs_once(tmp_path: Path) -> None:
    line = {"id": "a", "reply": "Yes.", "passages": ["A."], "label": True}
    path = jsonl(tmp_path, line, line)
    assert refused(path) == f"{path}, line 2: id: a occurs before. Give each line its own id."


def test_a_file_has_no_parts(tmp_path: Path) -> None:
    path = jsonl(tmp_path)
    assert refused(path, source="wow") == "--source wow: a JSONL file is read whole. Leave --source out."
