from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hallulab.scenarios.datasets import load_labelled
from tests.kit.refusals import refusal

ROW = {
    "id": "1", "passage": "Two touchdowns.", "question": "How many?", "answer": "Three", "label": "FAIL",
    "source_ds": "DROP",
}  # fmt: skip
PASSING = ROW | {"id": "2", "answer": "Two", "label": "PASS", "source_ds": "covidQA"}


def parquet(folder: Path, *rows: dict[str, Any]) -> Path:
    pq.write_table(pa.Table.from_pylist(list(rows)), folder / "test-00000-of-00001.parquet")
    return folder


def test_a_failing_answer_is_hallucinated(tmp_path: Path) -> None:
    failing, passing = load_labelled("halubench", parquet(tmp_path, ROW, PASSING))
    assert (failing.id, failing.reply, failing.label) == ("1", "Three", True)
    assert (passing.id, passing.reply, passing.label) == ("2", "Two", False)
    assert (failing.task, failing.question, failing.meta) == ("qa", "How many?", {"source": "DROP"})
    assert [passage.text for passage in failing.passages] == ["Two touchdowns."]
    assert failing.group == passing.group


def test_the_rows_can_be_lines_too(tmp_path: Path) -> None:
    (tmp_path / "halubench.jsonl").write_text(json.dumps(PASSING | {"score": 1}))
    assert [reply.id for reply in load_labelled("halubench", tmp_path)] == ["2"]


def test_a_part_is_a_source_data_set(tmp_path: Path) -> None:
    parquet(tmp_path, ROW, PASSING)
    assert [reply.id for reply in load_labelled("halubench", tmp_path, "covidQA")] == ["2"]
    assert refusal(load_labelled, "halubench", tmp_path, "drop") == (
        "--source drop: halubench has no such part (did you mean `DROP`?). Give one of: DROP, covidQA."
    )


def test_empty_answers_are_left_out_and_counted(tmp_path: Path) -> None:
    data = load_labelled("halubench", parquet(tmp_path, ROW, PASSING | {"answer": ""}))
    assert ([reply.id for reply in data], data.left_out) == (["1"], {"empty answer": 1})


def test_a_repeated_id_is_made_unique(tmp_path: Path) -> None:
    taken = PASSING | {"id": "1-2"}
    parquet(tmp_path, ROW, taken, ROW | {"source_ds": "covidQA"}, ROW)
    assert [reply.id for reply in load_labelled("halubench", tmp_path)] == ["1", "1-2", "1-3", "1-4"]
    assert [reply.id for reply in load_labelled("halubench", tmp_path, "covidQA")] == ["1-2", "1-3"]


def test_a_row_keeps_its_id_before_one_that_is_made(tmp_path: Path) -> None:
    parquet(tmp_path, ROW, ROW, PASSING | {"id": "1-2"})
    assert [reply.id for reply in load_labelled("halubench", tmp_path)] == ["1", "1-3", "1-2"]


def test_an_unknown_label_is_refused(tmp_path: Path) -> None:
    assert refusal(load_labelled, "halubench", parquet(tmp_path, ROW, ROW | {"label": "MAYBE"})) == (
        "test-00000-of-00001.parquet, row 2: label: input should be 'PASS' or 'FAIL'. "
        "Correct it; see docs/labelled-data.md."
    )


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test-00000-of-00001.parquet").write_text("no")
    complaint = refusal(load_labelled, "halubench", tmp_path)
    assert complaint.startswith("test-00000-of-00001.parquet: no Parquet (")
    assert complaint.endswith("). Write or download it again.")
