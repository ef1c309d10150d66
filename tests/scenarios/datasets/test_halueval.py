from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.labelled import GoldSpan, LabelledData
from tests.kit.refusals import refusal

QA = {
    "knowledge": "The mill is old.",
    "question": "Is it old?",
    "right_answer": "Yes.",
    "hallucinated_answer": "No.",
}
DIALOGUE = {
    "knowledge": "Iron Man has RDJ.",
    "dialogue_history": "[Human]: Like it? [Assistant]: Sure! [Human]: Who plays? ",
    "right_response": "RDJ.",
    "hallucinated_response": "Tom.",
}
SUMMARY = {"document": "A long day.", "right_summary": "Long.", "hallucinated_summary": "Short."}
GENERAL = {"ID": "1", "user_query": "Sing.", "chatgpt_response": "La la, I sang.", "hallucination": "yes"}
LINES = {"qa": QA, "dialogue": DIALOGUE, "summarization": SUMMARY, "general": GENERAL}


def load(folder: Path, part: str | None, line: dict[str, Any] | None = None) -> LabelledData:
    for name, default in LINES.items():
        (folder / f"{name}_data.json").write_text(json.dumps(line or default) + "\n")
    return load_labelled("halueval", folder, part)


def test_a_question_has_a_right_and_a_hallucinated_answer(tmp_path: Path) -> None:
    right, wrong = load(tmp_path, "qa")
    assert (right.id, right.reply, right.label) == ("qa-1-right", "Yes.", False)
    assert (wrong.id, wrong.reply, wrong.label) == ("qa-1-hallucinated", "No.", True)
    assert {(reply.task, reply.question, reply.spans) for reply in (right, wrong)} == {
        ("qa", "Is it old?", None)
    }
    assert [passage.text for passage in wrong.passages] == ["The mill is old."]
    assert right.group == wrong.group


@pytest.mark.parametrize(
    ("history", "question", "before"),
    [
        (DIALOGUE["dialogue_history"], "Who plays?", (("user", "Like it?"), ("assistant", "Sure!"))),
        ("[Assistant]: Hello.", "", (("assistant", "Hello."),)),
    ],
)
def test_a_dialogue_ends_with_the_question_of_the_user(
    history: str, question: str, before: tuple[tuple[str, str], ...], tmp_path: Path
) -> None:
    right, _ = load(tmp_path, "dialogue", DIALOGUE | {"dialogue_history": history})
    assert (right.question, [(said.role, said.text) for said in right.history]) == (question, [*before])


def test_a_document_has_two_summaries(tmp_path: Path) -> None:
    right, wrong = load(tmp_path, "summarization")
    assert [(reply.task, reply.reply, reply.label) for reply in (right, wrong)] == [
        ("summary", "Long.", False),
        ("summary", "Short.", True),
    ]


def test_a_general_response_has_no_evidence(tmp_path: Path) -> None:
    (reply,) = load(tmp_path, "general")
    assert (reply.id, reply.question, reply.passages) == ("general-1-response", "Sing.", ())
    assert (reply.label, reply.spans) == (True, None)


@pytest.mark.parametrize(
    ("change", "spans"),
    [
        ({"hallucination_spans": ["I sang"]}, (GoldSpan(start=7, end=13),)),
        ({"hallucination_spans": ["La", "a"]}, (GoldSpan(start=0, end=2), GoldSpan(start=1, end=2))),
        ({"hallucination_spans": ["a", "a"]}, (GoldSpan(start=1, end=2), GoldSpan(start=4, end=5))),
        ({"hallucination_spans": ["I sang", "I sang"]}, None),
        ({"hallucination_spans": ["I sang", "elsewhere"]}, None),
        ({"hallucination_spans": []}, None),
        ({"hallucination": "no"}, ()),
    ],
)
def test_quotations_of_a_general_response_become_spans(
    tmp_path: Path, change: dict[str, Any], spans: tuple[GoldSpan, ...] | None
) -> None:
    (reply,) = load(tmp_path, "general", GENERAL | change)
    assert reply.spans == spans


def test_the_first_edition_calls_its_label_otherwise(tmp_path: Path) -> None:
    first = {key: value for key, value in GENERAL.items() if key != "hallucination"}
    (reply,) = load(tmp_path, "general", first | {"hallucination_label": "no"})
    assert reply.label is False


def test_without_a_part_those_with_evidence_are_loaded(tmp_path: Path) -> None:
    found = [reply.meta["source"] for reply in load(tmp_path, None)]
    assert found == ["qa", "qa", "dialogue", "dialogue", "summarization", "summarization"]


def test_empty_texts_are_left_out_and_counted(tmp_path: Path) -> None:
    data = load(tmp_path, "qa", QA | {"right_answer": " "})
    assert ([reply.label for reply in data], data.left_out) == ([True], {"empty reply": 1})


@pytest.mark.parametrize(
    ("part", "line", "complaint"),
    [
        (
            "general",
            GENERAL | {"hallucination_label": "yes"},
            "general_data.json, line 1: either hallucination or hallucination_label must be given. "
            "Correct it; see docs/labelled-data.md.",
        ),
        (
            "qa",
            SUMMARY,
            "qa_data.json, line 1: document: unknown key. Correct its spelling or remove it; "
            "see docs/labelled-data.md.",
        ),
        (
            "code",
            QA,
            "--source code: halueval has no such part. Give one of: qa, dialogue, summarization, general.",
        ),
    ],
)
def test_what_is_wrong_is_refused(tmp_path: Path, part: str, line: dict[str, Any], complaint: str) -> None:
    assert refusal(load, tmp_path, part, line) == complaint
