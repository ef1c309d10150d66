"""Labelled files as other programs save them: with a byte order mark, CRLF and blank lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.datasets.hotpotqa import read_hotpotqa
from hallulab.scenarios.errors import UsageError
from tests.kit.refusals import refusal
from tests.scenarios.datasets.test_begin import TURN
from tests.scenarios.datasets.test_detector_eval import ANSWER
from tests.scenarios.datasets.test_halubench import ROW
from tests.scenarios.datasets.test_halueval import QA
from tests.scenarios.datasets.test_hotpotqa import QUESTION
from tests.scenarios.datasets.test_mtrag import RATED
from tests.scenarios.datasets.test_ragtruth import QA as SOURCE
from tests.scenarios.datasets.test_ragtruth import RESPONSE
from tests.scenarios.datasets.test_wice import CLAIM

MINE = {"id": "a", "reply": "Yes.", "passages": ["A."], "label": False}

FILES: dict[str, dict[str, dict[str, Any]]] = {
    "begin": {"turns.jsonl": TURN},
    "detector-eval": {"chats.jsonl": {"id": "c1", "turns": [ANSWER]}},
    "halubench": {"halubench.jsonl": ROW},
    "halueval": {"qa_data.json": QA},
    "ragtruth": {"source_info.jsonl": SOURCE, "response.jsonl": RESPONSE},
    "wice": {"claims.jsonl": CLAIM},
    "hotpotqa": {"distractor.jsonl": QUESTION},
    "mine": {"mine.jsonl": MINE},
    "mtrag": {"replies.jsonl": RATED},
}
PARTS = {"halueval": "qa"}


def read(dataset: str, folder: Path) -> list[str]:
    """The identifiers in the files of a data set."""
    if dataset == "hotpotqa":
        return [question.id for question in read_hotpotqa(folder)]
    if dataset == "mine":
        return [reply.id for reply in load_labelled(str(folder / "mine.jsonl"))]
    return [reply.id for reply in load_labelled(dataset, folder, PARTS.get(dataset))]


def write(dataset: str, folder: Path, encode: Callable[[str], bytes]) -> None:
    for name, line in FILES[dataset].items():
        (folder / name).write_bytes(encode(json.dumps(line)))


@pytest.mark.parametrize("dataset", FILES)
def test_a_byte_order_mark_crlf_and_blank_lines_change_nothing(dataset: str, tmp_path: Path) -> None:
    write(dataset, tmp_path, str.encode)
    plain = read(dataset, tmp_path)
    write(dataset, tmp_path, lambda line: f"\ufeff{line}\r\n\r\n \t\r\n".encode())
    assert read(dataset, tmp_path) == plain
    assert len(plain) > 0


@pytest.mark.parametrize("dataset", FILES)
def test_a_file_that_is_not_utf_8_is_refused(dataset: str, tmp_path: Path) -> None:
    write(dataset, tmp_path, lambda line: line.encode("utf-16"))
    with pytest.raises(UsageError, match=r", line 1: the text is not UTF-8\. Save the file as UTF-8\.$"):
        read(dataset, tmp_path)


@pytest.mark.parametrize("dataset", ["detector-eval", "mtrag", "wice", "mine"])
def test_a_repeated_identifier_is_refused(dataset: str, tmp_path: Path) -> None:
    write(dataset, tmp_path, lambda line: f"{line}\n{line}\n".encode())
    ((name, line),) = FILES[dataset].items()
    identifier = line.get("id") or line["meta"]["id"]
    said = f"{name}, line 2: id: {identifier} occurs before. Give each line its own id."
    assert refusal(read, dataset, tmp_path) == said


def test_an_official_table_may_have_a_byte_order_mark_and_blank_lines(tmp_path: Path) -> None:
    table = tmp_path / "wow/begin_dev_wow.tsv"
    table.parent.mkdir()
    rows = ["\t".join(TURN), "", "\t".join(TURN.values()), ""]
    table.write_text("\ufeff" + "\r\n".join(rows), encoding="utf-8", newline="")
    assert [reply.id for reply in load_labelled("begin", tmp_path)] == ["wow-1"]


def test_an_official_array_may_have_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "hotpot_dev_distractor_v1.json").write_bytes(f"\ufeff[{json.dumps(QUESTION)}]\r\n".encode())
    assert read("hotpotqa", tmp_path) == ["5a"]
