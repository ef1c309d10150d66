from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.datasets import load_labelled
from tests.kit.refusals import refusal

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


def refused(data: Path | None = None, source: str | None = None) -> str:
    return refusal(load_labelled, "begin", data, source)


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


def test_generic_and_empty_replies_are_left_out_and_counted_in_their_part(tmp_path: Path) -> None:
    begin(tmp_path, {"response": ""}, {"data_source": "tc"}, {"data_source": "cmu", "begin_label": "Generic"})
    found = {part: load_labelled("begin", tmp_path, part) for part in (None, "tc")}
    assert [reply.id for reply in found[None]] == [reply.id for reply in found["tc"]] == ["tc-2"]
    assert found[None].left_out == {"empty reply": 1, "Generic": 1}
    assert found["tc"].left_out == {}
    assert refused(tmp_path, "dd") == "--source dd: begin has no such part. Give one of: wow, cmu, tc."


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


def test_begin_without_its_files_is_refused(tmp_path: Path) -> None:
    assert refused() == f"begin: name the folder that holds {BEGIN_FILES} with --data DIR."
    assert refused(tmp_path) == (
        f"turns.jsonl: there is no such file. Give the folder that holds {BEGIN_FILES} with --data DIR."
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
    assert refused(tmp_path, "dd").endswith("Give one of: wow, cmu, tc, dev, test.")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"response": "two\tvalues"}, "there are 7 values for 6 columns. Download the file again."),
        (
            {"data_source": "dd"},
            "data_source: input should be 'wow', 'cmu' or 'tc'. Correct it; see docs/labelled-data.md.",
        ),
    ],
)
def test_a_wrong_official_line_of_begin_is_refused(
    tmp_path: Path, change: dict[str, Any], complaint: str
) -> None:
    official(tmp_path, "wow/begin_dev_wow.tsv", {}, change)
    assert refused(tmp_path) == f"wow/begin_dev_wow.tsv, line 3: {complaint}"


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
    assert refused(begin(tmp_path, {}, change)) == f"turns.jsonl, line 2: {complaint}"


def test_a_torn_line_is_refused_also_at_the_end(tmp_path: Path) -> None:
    begin(tmp_path, {}, {})
    file = tmp_path / "turns.jsonl"
    file.write_text(file.read_text()[:-5])
    complaint = refused(tmp_path)
    assert complaint.startswith(f"{file.name}, line 2: not valid JSON (")
    assert complaint.endswith("). Correct or delete the line.")
