"""A guarded chatbot in a whole run, on recorded answers of the real model, and `report --guards` on it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.build import read_report
from hallulab.simulator.report.write import write_reports
from tests.places import RECORDINGS, ROOT
from tests.simulator.command_line import Ended

Hallulab = Callable[..., Ended]

EXPERIMENT = ROOT / "examples" / "guarded.yaml"


def replayed(folder: Path, **flags: object) -> None:
    """Run the experiment of docs/safeguards.md from the recording of the headline experiment."""
    settings = RunSettings(replay=RECORDINGS / "headline.jsonl.gz", quiet=True)
    experiment = load_experiment(EXPERIMENT, flags)
    asyncio.run(run_experiment(experiment, RunFolder(folder), settings, simulate=True))


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        folder = tmp_path_factory.mktemp("runs") / "guarded"
        replayed(folder)
        write_reports(RunFolder(folder))
    return folder


@pytest.fixture
def run(once: Path, tmp_path: Path) -> Path:
    """A copy of the run, to change."""
    return Path(shutil.copytree(once, tmp_path / "run"))


def test_the_report_says_what_the_guard_did_and_what_it_cost(once: Path) -> None:
    [row] = read_report(once / "report.json").safeguards
    assert (row.chatbot, row.detector, row.replies) == ("guarded", "combined", 2)
    assert (row.flagged, row.human, row.refused_share, row.unjudged) == (1, 1, 0.5, 0)
    assert (row.hpt_before, row.hpt_after, row.answers, row.hpt_answers) == (0.0, 0.0, 1, 1.0)
    assert (row.calls_per_reply, row.tokens_per_reply) == (22.0, 14936.5)


def test_the_page_says_what_refusals_add_to_hpt(once: Path) -> None:
    [hpt] = [row.hpt_1 for row in read_report(once / "report.json").rows if row.chatbot == "guarded"]
    page = (ROOT / "docs" / "safeguards.md").read_text(encoding="utf-8")
    assert f"which are in no document: HPT-1 is {hpt:.2f}, of answers 1.00." in page


def test_all_its_calls_are_the_chatbots(once: Path) -> None:
    costs = {(one.role, one.name): one.calls for one in read_report(once / "report.json").ledger}
    assert (costs["chatbot", "vanilla"], costs["chatbot", "guarded"]) == (4, 48)


def test_the_page_has_the_table_of_safeguards(once: Path) -> None:
    assert '<section id="safeguards">' in (once / "report.html").read_text()


def test_what_was_escalated_is_printed_with_its_reason(hallulab: Hallulab, once: Path) -> None:
    ended = hallulab("report", once, "--guards")
    first, last = ended.out.splitlines()
    assert (ended.code, ended.err) == (0, "")
    assert first.startswith("guarded, conversation ")
    assert (
        "turn 0: handed to a human: H = 0.44 reaches τ = 0.43 on the topic goods: unsupported is “The user "
        "can start by contacting the manufacturer or the retailer where they purchased the refrigerator.”"
    ) in first
    assert last == "2 guarded replies, 1 escalated"


def test_json_has_a_line_for_each_guarded_reply(hallulab: Hallulab, once: Path) -> None:
    assert hallulab("report", once, "--guards", "--json").out == (once / "audit.jsonl").read_text()


def test_guards_are_printed_without_corrected_numbers(hallulab: Hallulab, once: Path) -> None:
    ended = hallulab("report", once, "--guards", "--annotations", once / "annotations.jsonl")
    assert (ended.code, ended.out) == (2, "")
    assert (
        ended.err == "error: --guards prints no numbers. Leave out --planted, --annotations and --margin.\n"
    )


def test_a_run_without_guarded_replies_is_one_sentence(hallulab: Hallulab, demo_replay: RunFolder) -> None:
    ended = hallulab("report", demo_replay.path, "--guards")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        f"error: {demo_replay.path}: no reply was guarded. Run a chatbot of the kind `guarded` "
        "(docs/safeguards.md).\n"
    )


def test_a_run_that_goes_on_writes_a_log_that_is_whole(
    run: Path, once: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    log = run / "audit.jsonl"
    log.write_text(log.read_text().splitlines(keepends=True)[0])
    replayed(run)
    assert log.read_bytes() == (once / "audit.jsonl").read_bytes()


def test_another_policy_is_another_experiment(
    hallulab: Hallulab, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").mkdir()
    policy = (ROOT / "examples" / "guarded-policy.yaml").read_text().replace("general: 0.5", "general: 0.4")
    (tmp_path / "examples" / "guarded-policy.yaml").write_text(policy)
    monkeypatch.chdir(tmp_path)
    ended = hallulab(
        "run", "-c", EXPERIMENT, "--replay", RECORDINGS / "headline.jsonl.gz", "--out", run, "--quiet"
    )
    assert ended.code == 2
    assert "holds another experiment (it differs in options of chatbot guarded)" in ended.err
