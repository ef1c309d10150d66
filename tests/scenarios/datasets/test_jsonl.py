from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.labelled import GoldSpan, LabelledReply
from hallulab.scenarios.transcript import Message, Passage
from tests.kit.refusals import refusal


def jsonl(folder: Path, *lines: dict[str, Any]) -> str:
    path = folder / "mine.jsonl"
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def test_a_line_of_ours_needs_reply_passages_and_label_only(tmp_path: Path) -> None:
    (reply,) = load_labelled(jsonl(tmp_path, {"reply": "Yes.", "passages": ["A.", "B."], "label": False}))
    assert (reply.id, reply.dataset, reply.label, reply.spans) == ("line-1", "mine", False, None)
    found = [(passage.id, passage.text) for passage in reply.passages]
    assert found == [("passage#0", "A."), ("passage#1", "B.")]


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
        *(
            (
                {"spans": [{"start": start, "end": end}]},
                f"spans: the label [{start}, {end}) is no stretch of the reply, which has 4 characters. "
                "Correct the offsets.",
            )
            for start, end in ((0, 9), (2, 2))
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
        ({"passages": []}, "passages: is empty; give at least 1. Correct it; see docs/labelled-data.md."),
    ],
)
def test_a_wrong_line_of_ours_is_refused(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    path = jsonl(tmp_path, {"reply": "Yes.", "passages": ["A."], "label": True} | change)
    assert refusal(load_labelled, path) == f"{path}, line 1: {complaint}"


@pytest.mark.parametrize(
    "change",
    [
        *({"spans": [{"start": 0, "end": end}]} for end in ("1", 1.5, True)),
        *({"spans": [{"start": start, "end": 2}]} for start in ("1", 0.5, False)),
    ],
)
def test_only_whole_numbers_are_offsets(tmp_path: Path, change: dict[str, Any]) -> None:
    path = jsonl(tmp_path, {"reply": "Yes.", "passages": ["A."]} | change)
    assert "is no place in the reply. Give whole numbers" in refusal(load_labelled, path)


def test_a_file_has_no_parts(tmp_path: Path) -> None:
    path = jsonl(tmp_path)
    assert (
        refusal(load_labelled, path, source="wow")
        == "--source wow: a JSONL file is read whole. Leave --source out."
    )
