"""Trivia+, a table of replies with sentence labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.errors import UsageError

ROW = {
    "source": "ms_marco", "split": "test", "model": "gemma", "workerId": ["a", "b"],
    "article": "A drill costs 5 euros.", "question": "The fee?",
    "answer": "A drill costs 5 euros. A saw is free.",
    "answer_sentence_list": ["A drill costs 5 euros.", "A saw is free."],
    "sentence_level_majority_vote": ["supports", "not-mentioned"],
    "response_level_label_binary": 1, "response_level_label_binary_ws_llm_aaj": 0,
}  # fmt: skip


def write(folder: Path, *changes: dict[str, Any]) -> Path:
    rows = [ROW | change for change in changes]
    parquet.write_table(pa.Table.from_pylist(rows), folder / "Triviaplus_all_cleaned.parquet")
    return folder


def test_a_wrong_sentence_is_a_span(tmp_path: Path) -> None:
    (reply,) = load_labelled("triviaplus", write(tmp_path, {}))
    assert (reply.label, reply.question, reply.reply) == (True, "The fee?", ROW["answer"])
    assert reply.spans is not None
    assert [(span.start, span.end, span.label) for span in reply.spans] == [(23, 37, "not-mentioned")]
    assert reply.meta == {"split": "test", "source": "msmarco", "model": "gemma"}


def test_a_sentence_that_stands_nowhere_leaves_the_label_without_places(tmp_path: Path) -> None:
    write(tmp_path, {"answer_sentence_list": ["A drill costs 5 euros.", "A saw is gratis."]})
    (reply,) = load_labelled("triviaplus", tmp_path)
    assert (reply.label, reply.spans) == (True, None)


def test_a_noisy_label_has_no_places(tmp_path: Path) -> None:
    (reply,) = load_labelled("triviaplus", write(tmp_path, {}), options={"labels": "ws_llm_aaj"})
    assert (reply.label, reply.spans) == (False, None)


@pytest.mark.parametrize(("part", "count"), [("test", 2), ("train", 1), ("drop", 1), ("msmarco", 2)])
def test_a_part_is_a_split_or_a_collection(tmp_path: Path, part: str, count: int) -> None:
    write(tmp_path, {}, {"split": "train"}, {"source": "drop"})
    assert len(load_labelled("triviaplus", tmp_path, part)) == count


def test_an_empty_answer_is_left_out_and_counted(tmp_path: Path) -> None:
    data = load_labelled("triviaplus", write(tmp_path, {}, {"answer": " "}))
    assert (len(data), data.left_out) == (1, {"empty reply": 1})


def test_a_folder_without_the_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no file Triviaplus….parquet in it\. Give its folder"):
        load_labelled("triviaplus", tmp_path)
