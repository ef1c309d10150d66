from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.datasets.hotpotqa import HotpotQuestion, read_hotpotqa
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Passage
from tests.kit.refusals import refusal

QUESTION = {
    "_id": "5a",
    "question": "Who built it?",
    "answer": "Ann",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["Mill", 1], ["Ann", 0]],
    "context": [["Mill", ["A mill.", " Ann built it."]], ["Bob", ["A man."]], ["Ann", ["A builder."]]],
}


def read(folder: Path, **changes: Any) -> tuple[HotpotQuestion, ...]:
    (folder / "distractor.jsonl").write_text(json.dumps(QUESTION | changes))
    return read_hotpotqa(folder)


def test_a_question_keeps_its_paragraphs_apart(tmp_path: Path) -> None:
    (question,) = read(tmp_path)
    assert (question.id, question.question, question.answer) == ("5a", "Who built it?", "Ann")
    assert question.supporting == {0, 2}
    assert question.passages == (
        Passage(id="5a#0", document="Mill", text="Title: Mill\nA mill. Ann built it."),
        Passage(id="5a#1", document="Bob", text="Title: Bob\nA man."),
        Passage(id="5a#2", document="Ann", text="Title: Ann\nA builder."),
    )


def test_a_folder_is_needed() -> None:
    assert refusal(read_hotpotqa, None) == (
        "hotpotqa: name the folder that holds distractor.jsonl or hotpot_dev_distractor_v1.json "
        "with --data DIR."
    )


def official(folder: Path, text: str) -> Path:
    (folder / "hotpot_dev_distractor_v1.json").write_text(text)
    return folder


def test_the_official_array_gives_the_same_questions(tmp_path: Path) -> None:
    array = json.dumps([QUESTION, QUESTION | {"_id": "5b"}])
    first, second = read_hotpotqa(official(tmp_path, array))
    assert second.id == "5b"
    assert read(tmp_path) == (first,)


def test_a_wrong_question_of_the_official_array_is_refused(tmp_path: Path) -> None:
    assert refusal(read_hotpotqa, official(tmp_path, json.dumps([QUESTION, QUESTION | {"level": "?"}]))) == (
        "hotpot_dev_distractor_v1.json, question 2: level: input should be 'easy', 'medium' or 'hard'. "
        "Correct it; see docs/labelled-data.md."
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "[{",
            "not valid JSON (Expecting property name enclosed in double quotes: line 1 column 3 (char 2))",
        ),
        (json.dumps(QUESTION), "it is no list of questions"),
    ],
)
def test_a_damaged_official_array_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    assert refusal(read_hotpotqa, official(tmp_path, text)) == (
        f"hotpot_dev_distractor_v1.json: {complaint}. Download it again."
    )


def test_a_supporting_fact_without_its_paragraph_is_refused(tmp_path: Path) -> None:
    said = r"line 1: the supporting fact 'Eve' has no paragraph in context\. Correct it"
    with pytest.raises(UsageError, match=said):
        read(tmp_path, supporting_facts=[["Eve", 0]])
