from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.labelled import LabelledData, Ratings
from tests.kit.refusals import refusal

RATED = {"id": "a", "reply": "Yes.", "passages": ["A."], "meta": {"ratings": "3 4 3"}}


def load(folder: Path, **changes: Any) -> LabelledData:
    (folder / "replies.jsonl").write_text(json.dumps(RATED | changes) + "\n")
    return load_labelled("mtrag", folder)


def test_a_median_under_4_is_hallucinated_and_the_ratings_are_kept(tmp_path: Path) -> None:
    (reply,) = load(tmp_path)
    assert (reply.id, reply.dataset, reply.label, reply.spans) == ("a", "mtrag", True, None)
    assert reply.ratings == Ratings(values=(3.0, 4.0, 3.0), clean_from=4.0)


@pytest.mark.parametrize(
    ("ratings", "label"), [("4 4 1", False), ("1 3 4", True), ("3 4", True), ("4 4", False), ("2", True)]
)
def test_the_label_is_computed_from_the_ratings(ratings: str, label: bool, tmp_path: Path) -> None:
    (reply,) = load(tmp_path, label=label, meta={"ratings": ratings})
    assert reply.label is label


def test_a_label_that_the_ratings_deny_is_refused(tmp_path: Path) -> None:
    assert refusal(load, tmp_path, label=False) == (
        "replies.jsonl, line 1: the label is false, yet the median of the ratings '3 4 3' is under 4. "
        "Correct it; see docs/labelled-data.md."
    )
    assert "is not under 4" in refusal(load, tmp_path, label=True, meta={"ratings": "4 4 4"})


@pytest.mark.parametrize(
    "meta", [{}, {"ratings": ""}, {"ratings": "3 5"}, {"ratings": "3 x"}, {"ratings": 3}]
)
def test_missing_and_wrong_ratings_are_refused(meta: dict[str, Any], tmp_path: Path) -> None:
    assert refusal(load, tmp_path, meta=meta) == (
        f"replies.jsonl, line 1: meta.ratings is {meta.get('ratings')!r}, and must be the raters' numbers "
        "from 1 to 4, such as '3 4 4'. Correct it; see docs/labelled-data.md."
    )


def test_spans_of_a_clean_reply_are_refused(tmp_path: Path) -> None:
    found = refusal(load, tmp_path, meta={"ratings": "4 4"}, spans=[{"start": 0, "end": 1}])
    assert found.startswith("replies.jsonl, line 1: the label is false, yet there are spans.")


def test_there_are_no_parts(tmp_path: Path) -> None:
    load(tmp_path)
    said = "--source x: mtrag has no parts. Leave it out."
    assert refusal(load_labelled, "mtrag", tmp_path, "x") == said
