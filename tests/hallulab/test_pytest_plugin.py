"""The pytest plugin: a run by replay in a test, and the assertion that it is no worse than a baseline."""

from __future__ import annotations

from pathlib import Path

import pytest

import hallulab
from hallulab.simulator.compare.gate_command import GateWarning
from hallulab.simulator.compare.summary import RunSummary, summarize_run
from hallulab.simulator.records.folder import RunFolder
from tests.demo import EXPERIMENT, MODEL, RECORDING
from tests.hallulab.test_front_door import modules_after
from tests.places import ROOT

pytest_plugins = ["pytester"]

TEST = f"""
import hallulab, pytest

@pytest.fixture(scope="module")
def run(hallulab_run):
    return hallulab_run(
        {str(EXPERIMENT)!r}, replay={str(RECORDING)!r}, model={MODEL!r}, chatbots=["vanilla"],
        detectors=["lexical"], personas=["airline-cancelled-flight"],
    )

def test_it_is_a_run(run):
    assert len(run.turns()) == 2

def test_passes(run):
    with pytest.warns(UserWarning, match="not enough personas to detect a regression: 1 persona, 6 needed"):
        hallulab.assert_no_regression(run, against=run.path)

def test_fails(run):
    hallulab.assert_no_regression(run, against=run.path, max_hpt=0.1)

def test_was_not_recorded(hallulab_run):
    hallulab_run(
        {str(EXPERIMENT)!r}, replay={str(RECORDING)!r}, model={MODEL!r}, chatbots=["vanilla"],
        detectors=["lexical"], personas=["airline-cancelled-flight"], seed=5,
    )
"""


def test_a_project_tests_its_bot_by_replay(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALLULAB_CACHE", str(pytester.path / "cache"))
    pytester.makepyfile(TEST)
    ended = pytester.runpytest_inprocess("-p", "no:asyncio", "-W", "error", "--no-header")
    ended.assert_outcomes(passed=2, failed=2)
    ended.stdout.fnmatch_lines(
        [
            ">       hallulab.assert_no_regression(run, against=run.path, max_hpt=0.1)",
            "E       AssertionError: Blocked: hallulab-run0 against the baseline hallulab-run0.",
            "E         vanilla by lexical: HPT-1 *; at most 0.1 is allowed",
            "E       warning: not enough personas to detect a regression: 1 persona, 6 needed.*",
            "hallulab_run: the recording * has no answer to this request: *Run it as then, or record again *",
        ]
    )


def test_the_plugin_loads_nothing_heavy() -> None:
    loaded = modules_after("import hallulab.pytest_plugin")
    assert not loaded & {"pydantic", "numpy", "torch", "openai", "typer", "ray"}


def test_the_plugin_is_an_entry_point() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\nhallulab = "hallulab.pytest_plugin"\n' in text


def test_what_a_failure_says(demo_replay: RunFolder, tmp_path: Path) -> None:
    """A baseline in which nothing was found: every hallucination of the demo is new."""
    clean = tmp_path / "clean.json"
    clean.write_text(without_findings(summarize_run(demo_replay)).text())
    with pytest.raises(AssertionError) as failed:
        hallulab.assert_no_regression(demo_replay.path, against=clean, max_hpt=0.9)
    lines = str(failed.value).splitlines()
    assert lines[0] == "Blocked: demo against the baseline demo."
    assert "new:" in lines
    assert lines[1] == "  vanilla by halludetect and vanilla by metarag: HPT-1 1; at most 0.9 is allowed"
    assert (
        "  vanilla by halludetect, refrigerator-stops-cooling, turn 1, 0 → 3 hallucinations: They should "
        "provide the necessary information, such as the model number, serial number, and date of purchase."
    ) in lines


def test_what_the_verdict_does_not_say_is_a_warning(demo_replay: RunFolder) -> None:
    with pytest.warns(GateWarning, match="not enough personas to detect a regression: 2 personas, 9 needed"):
        found = hallulab.assert_no_regression(hallulab.load_run(demo_replay.path), against=demo_replay.path)
    assert found.verdict == "passed"


def without_findings(run: RunSummary) -> RunSummary:
    """The summary, in which no detector found anything, and every reply was another one."""
    chats = []
    for chat in run.conversations:
        turns = tuple(
            turn.model_copy(
                update={
                    "reply": "0" * 16,
                    "verdicts": {
                        name: verdict.model_copy(update={"flagged": False, "spans": 0, "tokens": 0})
                        for name, verdict in turn.verdicts.items()
                    },
                }
            )
            for turn in chat.turns
        )
        chats.append(chat.model_copy(update={"turns": turns}))
    return run.model_copy(update={"conversations": tuple(chats)})
