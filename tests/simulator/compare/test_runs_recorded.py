"""Recorded bots before and after a change: two personas of the demo, and the 13 of docs/compare.md.

To add a pair of recorded runs, make a fixture of two run folders and give it to `compared`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hallulab.simulator.compare.runs import RunCompared, compare_runs
from hallulab.simulator.compare.summary import summarize_run
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from tests.demo import replay as replay_demo
from tests.places import RECORDINGS, ROOT
from tests.simulator.command_line import CommandLine

Runs = tuple[RunFolder, RunFolder]


@pytest.fixture(scope="module")
def demo_runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """One bot with the demo's personas: vanilla before, agent after."""
    folder = tmp_path_factory.mktemp("demo-runs")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HALLULAB_CACHE", str(folder / "cache"))
        before, after = (
            replay_demo(folder / name, chatbots=[{"name": "bot", "kind": kind}])
            for name, kind in (("before", "vanilla"), ("after", "agent"))
        )
    return before, after


def test_recorded_runs_of_the_demo_differ_in_two_turns(demo_runs: Runs) -> None:
    run = compared(*demo_runs)
    assert [
        (turn.kind, turn.persona, turn.turn, turn.detector, turn.before.spans, turn.after.spans, turn.noise)
        for turn in run.turns.turns
    ] == [
        ("gone", "refrigerator-stops-cooling", 0, "metarag", 3, 0, False),
        ("better", "refrigerator-stops-cooling", 0, "halludetect", 3, 1, False),
    ]
    hpt = [line for line in run.differences if line.metric == "hpt_1"]
    assert [(line.detector, line.personas, line.before, line.after, line.is_significant) for line in hpt] == [
        ("halludetect", 2, 1.0, 0.5, False),
        ("metarag", 2, 1.0, 0.25, False),
    ]
    assert [(change.what, change.of, change.before, change.after) for change in run.changes] == [
        ("kind", "chatbot bot", "vanilla", "agent")
    ]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The bot before and after, replayed."""
    folder = tmp_path_factory.mktemp("runs")
    return replay(folder / "before"), replay(folder / "after")


def replay(path: Path) -> RunFolder:
    """Replay `examples/compare_NAME.yaml` into the folder of that name."""
    run = RunFolder(path)
    file = ROOT / "examples" / f"compare_{path.name}.yaml"
    experiment = load_experiment(file, {"model": "qwen2.5-coder-1.5b"})
    settings = RunSettings(replay=RECORDINGS / "headline.jsonl.gz", quiet=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HALLULAB_CACHE", str(path.parent / "cache"))
        asyncio.run(run_experiment(experiment, run, settings, simulate=True))
    return run


def compared(before: RunFolder, after: RunFolder) -> RunCompared:
    return compare_runs([summarize_run(before), summarize_run(after)]).runs[0]


@pytest.mark.slow
def test_a_bot_that_hallucinates_less_is_told_apart(runs: Runs) -> None:
    before, after = runs
    better, worse = compared(before, after), compared(after, before)
    [found] = [line for line in better.differences if line.is_significant]
    assert (found.detector, found.metric, found.personas, found.difference) == (
        "halludetect",
        "hpt_1",
        13,
        -0.538462,
    )
    assert found.ci95 == (-0.956065, -0.120858)
    assert not found.worse
    [back] = [line for line in worse.differences if line.worse]
    assert (back.difference, back.p_holm) == (0.538462, found.p_holm)


@pytest.mark.slow
def test_the_page_of_the_docs_has_what_is_printed(
    hallulab: CommandLine, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    lines = [line.rstrip() for line in hallulab("compare", *(run.path for run in runs)).out.splitlines()]
    page = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    for name, printed in (
        ("compare", lines[: lines.index("gone (8):") - 1]),
        ("tables", lines[next(at for at, line in enumerate(lines) if "Δ TokAcc" in line) :]),
    ):
        _, shown = page.split(f"<!-- {name} begin{'s' if name == 'compare' else ''} -->\n```\n")
        shown, _ = shown.split("\n```\n<!--", 1)
        assert shown.splitlines() == printed
