"""`hallulab detect --again` on an imported run with a scripted judge, by the command."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hallulab.simulator.engine.participants import OTHER_SEED
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.scripted import ScriptedModel
from tests.simulator.command_line import CommandLine, Ended

CHATS = 8
Ask = Callable[..., Ended]


class Judge:
    """Calls every reply clean; with another seed, it flags some of them, and gives no verdict on others."""

    def __init__(self) -> None:
        self.flips = frozenset[int]()
        self.mute = frozenset[int]()
        self.again: list[int] = []

    def __call__(self, body: dict[str, Any]) -> str | dict[str, float]:
        found = re.search(r"fee (\d+) is 200", json.dumps(body))
        number = int(found[1]) if found else -1
        is_again = int(body.get("seed") or 0) >= OTHER_SEED
        if not found or not is_again:
            return {"Yes": 0.9, "No": 0.1}
        self.again.append(number)
        if number in self.mute:
            return "Perhaps."
        return {"Yes": 0.2, "No": 0.8} if number in self.flips else {"Yes": 0.9, "No": 0.1}


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def run(hallulab: CommandLine, tmp_path: Path) -> RunFolder:
    lines = [
        [
            {"role": "user", "content": f"What is fee {number}?"},
            {"role": "assistant", "content": f"The fee {number} is 200 rupees.", "context": "It is 200."},
        ]
        for number in range(CHATS)
    ]
    file = tmp_path / "chats.jsonl"
    file.write_text("".join(f"{json.dumps({'messages': line})}\n" for line in lines))
    assert hallulab("import", file, "--out", tmp_path / "run").code == 0
    return RunFolder(tmp_path / "run")


@pytest.fixture
def ask(hallulab: CommandLine, run: RunFolder, judge: Judge) -> Ask:
    def ask(*flags: str | Path) -> Ended:
        with ScriptedModel(judge) as model:
            served = ("--model", model.name, "--base-url", model.base_url, "--quiet")
            return hallulab("detect", run.path, "--detectors", "direct-judge,lexical", *served, *flags)

    return ask


def rows(run: RunFolder) -> dict[str, dict[str, Any]]:
    found = json.loads(run.report.read_text())["judge_noise"]
    return {row["detector"]: row for row in found}


@pytest.mark.parametrize(
    ("flips", "flipped"),
    [((), 0.0), (range(CHATS), 1.0), (range(CHATS // 2), 0.5)],
    ids=["no", "all", "half"],
)
def test_flips_are_counted_and_the_first_verdicts_stay(
    ask: Ask, run: RunFolder, judge: Judge, flips: range, flipped: float
) -> None:
    judge.flips = frozenset(flips)
    assert ask().code == 0
    before, rows_before = run.verdicts.read_bytes(), json.loads(run.report.read_text())["rows"]
    assert "judge_noise" not in run.page.read_text()
    ended = ask("--again", "20")
    assert (ended.code, run.verdicts.read_bytes()) == (0, before)
    found = rows(run)
    own = found["direct-judge"]
    assert (own["asked"], own["scored"], own["flipped"]) == (CHATS, CHATS, flipped)
    assert (own["flagged"], own["cleared"]) == (len(flips), 0)
    assert own["score_change"] == pytest.approx(0.7 * flipped, abs=1e-6)
    assert (found["lexical"]["flipped"], found["lexical"]["asks_model"]) == (0.0, False)
    assert json.loads(run.report.read_text())["rows"] == rows_before
    assert "The judge's own noise:" in ended.out
    assert "lexical asks no model" in " ".join(ended.out.split())
    assert '<section id="judge_noise">' in run.page.read_text()
    with (run.path / "report-judge_noise.csv").open() as file:
        assert [float(row["flipped"]) for row in csv.DictReader(file)] == [flipped, 0.0]


def test_disagreements_are_the_noise_of_whoever_flips(ask: Ask, run: RunFolder, judge: Judge) -> None:
    judge.flips = frozenset({0})
    assert ask("--again", "8").code == 0
    [pair] = json.loads(run.report.read_text())["disagreements"]
    assert (pair["a"], pair["b"], pair["replies"]) == ("direct-judge", "lexical", CHATS)
    assert pair["by_a"] + pair["by_b"] + pair["by_both"] <= pair["disagree"]


def test_a_reply_that_it_cannot_judge_the_second_time_is_told_and_asked_about_once_more(
    ask: Ask, run: RunFolder, judge: Judge
) -> None:
    judge.mute = frozenset({3})
    ended = ask("--again", "8")
    own = rows(run)["direct-judge"]
    assert (ended.code, own["asked"], own["scored"], own["failed"]) == (0, CHATS, CHATS - 1, 1)
    assert "direct-judge failed on 1 of 8 replies the second time." in " ".join(ended.out.split())
    judge.mute, judge.again = frozenset(), []
    ask("--again", "8")
    assert set(judge.again) == {3}
    assert rows(run)["direct-judge"]["scored"] == CHATS


def test_a_larger_number_asks_about_more_replies_only(ask: Ask, run: RunFolder, judge: Judge) -> None:
    ask("--again", "3")
    first = set(judge.again)
    judge.again = []
    ask("--again", "8")
    assert (len(first), first & set(judge.again), first | set(judge.again)) == (3, set(), set(range(CHATS)))


def test_it_is_recorded_and_replayed(
    ask: Ask, hallulab: CommandLine, run: RunFolder, judge: Judge, tmp_path: Path
) -> None:
    judge.flips = frozenset({1, 2})
    assert ask("--again", "8", "--record", tmp_path / "asked.jsonl").code == 0
    second = sorted(map(_drop_times, run.again.read_text().splitlines()))
    run.again.unlink()
    flags = ("--detectors", "direct-judge,lexical", "--model", "scripted", "--quiet")
    replayed = hallulab("detect", run.path, *flags, "--again", "8", "--replay", tmp_path / "asked.jsonl")
    assert replayed.code == 0, replayed.err
    assert sorted(map(_drop_times, run.again.read_text().splitlines())) == second


def _drop_times(line: str) -> str:
    return json.dumps({**json.loads(line), "calls": []}, sort_keys=True)


def test_a_number_below_one_is_refused(ask: Ask) -> None:
    assert ask("--again", "0").code == 2
