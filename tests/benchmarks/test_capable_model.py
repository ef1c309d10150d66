"""The detectors on a capable model: `bench` prints the recorded numbers, and the docs have them."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hallulab
from benchmarks.capable_model import (
    BEGINS,
    CHEAPER,
    ENDS,
    MODEL,
    PUBLISHED,
    Difference,
    Judging,
    compare_auroc,
    judge,
    page,
)
from benchmarks.command import write_between
from hallulab.scenarios.datasets.jsonl import PassageInput, ReplyLine
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Frozen, Judgement
from hallulab.simulator.bench.evaluate import compute_costs
from tests.builders import labelled
from tests.places import ROOT
from tests.simulator.bench.material import evaluation

DOCS = ROOT / "docs" / "studies" / "trust.md"

NUMBERS = {
    ("gold", "halludetect"): (0.776, 0.938, 0.930, 0.917, 5.4, 7029),
    ("ragtruth", "halludetect"): (0.835, 0.714, 0.891, 0.622, 4.0, 5725),
    ("mtrag", "halludetect"): (0.750, 0.545, None, None, 4.5, 7317),
    ("begin", "halludetect"): (0.730, 0.400, None, None, 3.6, 2564),
    ("gold", "metarag"): (0.875, 0.960, 0.754, 0.735, 16.9, 13928),
    ("mtrag", "metarag"): (0.718, 0.533, None, None, 35.8, 44093),
    ("mtrag", "direct-judge"): (0.694, 0.533, None, None, 1.0, 1197),
}
"""AUROC and F1 of replies, those of sentences, calls and tokens a reply, as measured when it was recorded."""


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def read_lines_of(kept: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(kept.read_bytes()).splitlines()]


def write_line(reply: dict[str, Any]) -> str:
    """A kept reply as `hallulab bench FILE` reads it."""
    passages = [keep_fields(PassageInput, passage) for passage in reply["passages"]]
    return json.dumps({**keep_fields(ReplyLine, reply), "passages": passages}) + "\n"


def keep_fields(model: type[Frozen], value: dict[str, Any]) -> dict[str, Any]:
    return {name: given for name, given in value.items() if name in model.model_fields}


@pytest.mark.parametrize("judging", PUBLISHED, ids=lambda one: f"{one.dataset}-{one.detector}")
def test_bench_prints_the_recorded_numbers(judging: Judging, tmp_path: Path) -> None:
    replies = tmp_path / f"{judging.dataset}.jsonl"
    replies.write_text("".join(map(write_line, read_lines_of(judging.kept))), encoding="utf-8")
    hallulab.bench(
        str(replies),
        detectors=[judging.detector],
        limit=judging.limit,
        seed=0,
        replay=judging.replay,
        json_file=tmp_path / "numbers.json",
        quiet=True,
        **MODEL,
    )
    rows = {
        row["level"]: row
        for row in json.loads((tmp_path / "numbers.json").read_text())["rows"]
        if row["detector"] == judging.detector
    }
    reply, sentence = rows["response"], rows.get("sentence", {"auroc": None, "f1": None})
    auroc, f1, of_sentences, f1_of_sentences, calls, tokens = NUMBERS[judging.dataset, judging.detector]
    assert (round(reply["auroc"], 3), round(reply["f1"], 3)) == (auroc, f1)
    if of_sentences is not None:
        assert (round(sentence["auroc"], 3), round(sentence["f1"], 3)) == (of_sentences, f1_of_sentences)
    assert (round(reply["calls_per_reply"], 1), round(reply["tokens_per_reply"])) == (calls, tokens)
    assert reply["failed"] == 0


def docs_rows(columns: int) -> list[list[str]]:
    """The rows of a table in the page, by its number of columns."""
    tables = DOCS.read_text(encoding="utf-8").split(BEGINS)[1].split(ENDS)[0]
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in tables.splitlines()]
    return [cells for cells in found if len(cells) == columns and cells[0].startswith("`")]


def test_the_docs_have_these_numbers() -> None:
    shown = [
        [None if cell == "–" else float(cell.replace(",", "")) for cell in row[3:]] for row in docs_rows(9)
    ]
    assert shown == [list(NUMBERS[judging.dataset, judging.detector]) for judging in PUBLISHED]


@pytest.mark.parametrize(
    ("place", "share"),
    [(0, 0.6), (1, 0.5), (2, 0.5), (4, 0.45), (5, 0.25)],
    ids=["gold", "mtrag", "ragtruth", "mtrag, no examples", "metarag"],
)
async def test_the_cheaper_way_costs_at_most_this_share_and_is_not_significantly_worse(
    place: int, share: float
) -> None:
    judging, options = CHEAPER[place]
    published, cheaper = await judge(judging), await judge(replace(judging, options=options))
    costs = [compute_costs(one).tokens_per_reply or 0.0 for one in (published, cheaper)]
    assert costs[1] <= share * costs[0]
    difference = compare_auroc(published, cheaper, "response")
    assert difference is not None
    assert len(published.replies) >= 24
    assert difference.interval is None or difference.interval[1] >= 0


def test_a_paired_difference_is_that_of_aurocs_with_its_interval() -> None:
    replies = [labelled(f"reply {place}", place % 2 == 0, group=str(place)) for place in range(24)]

    def scored(*scores: float) -> list[Judgement]:
        return [Judgement(outcome="scored", score=one, flagged=one > 0.5, spans=()) for one in scores]

    right = [0.9 if reply.label else 0.1 for reply in replies]
    good = evaluation(replies, *scored(*right))
    bad = evaluation(replies, *scored(*(1.0 - score for score in right)))
    same = compare_auroc(good, good, "response")
    assert same == Difference(1.0, 1.0, (0.0, 0.0))
    worse = compare_auroc(good, bad, "response")
    assert worse is not None
    assert (worse.change, np.isclose(worse.after, 0.0)) == (-1.0, True)


def test_a_page_without_marks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# A page\n")
    with pytest.raises(UsageError, match="has no lines"):
        write_between(tmp_path / "page.md", BEGINS, ENDS, "| a |\n")


@pytest.mark.slow
def test_the_docs_have_the_tables_of_the_command() -> None:
    """Slow, because every judgement is replayed once more."""
    assert f"{BEGINS}{page()}{ENDS}" in DOCS.read_text(encoding="utf-8")
