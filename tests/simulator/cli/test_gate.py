"""`hallulab compare --save` and `hallulab gate` on the recorded demo."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from hallulab.simulator.records.folder import RunFolder
from tests.simulator.command_line import CodeAndError, CommandLine

BLIND = "not enough personas to detect a regression: 2 personas, 9 needed."


@pytest.fixture
def baseline(hallulab: CommandLine, demo_replay: RunFolder, tmp_path: Path) -> Path:
    """The demo's baseline."""
    path = tmp_path / "baseline.json"
    assert hallulab("compare", demo_replay.path, "--save", path).code == 0
    return path


def changed_demo(demo: RunFolder, place: Path, change: Any) -> RunFolder:
    """A copy of the demo; `change` edits the verdict of each line in place."""
    copy = RunFolder(Path(shutil.copytree(demo.path, place)))
    verdicts = [json.loads(line) for line in copy.verdicts.read_text().splitlines()]
    for verdict in verdicts:
        change(verdict)
    copy.verdicts.write_text("".join(f"{json.dumps(verdict)}\n" for verdict in verdicts))
    return copy


def add_a_severe_span(verdict: dict[str, Any]) -> None:
    """Let HalluDetect find a hallucination of severity 5 in each reply."""
    if verdict["detector"] == "halludetect":
        span = {"start": None, "end": None, "text": "Rs 500 <b>`x`</b>", "severity": 5, "reason": "No."}
        verdict |= {"flagged": True, "score": 5, "spans": [span]}


def test_a_baseline_is_small_and_always_the_same(
    hallulab: CommandLine, demo_replay: RunFolder, baseline: Path
) -> None:
    printed = hallulab("compare", demo_replay.path, "--save", "-").out
    assert json.loads(printed) == json.loads(baseline.read_text())
    assert hallulab("compare", demo_replay.path, "--save", "-").out == printed
    assert len(printed) < 100_000


def test_the_demo_passes_against_its_own_baseline_and_says_that_it_sees_nothing(
    hallulab: CommandLine, demo_replay: RunFolder, baseline: Path, tmp_path: Path
) -> None:
    files = {name: tmp_path / f"gate.{name}" for name in ("markdown", "junit", "json")}
    flags = [part for name, path in files.items() for part in (f"--{name}", path)]
    ended = hallulab("gate", demo_replay.path, "--against", baseline, *flags)
    assert ended.code == 0
    assert ended.out.startswith(
        "Passed: demo against the baseline demo, but a regression could not be detected."
    )
    assert BLIND in ended.out
    assert BLIND in files["markdown"].read_text()
    assert ElementTree.parse(files["junit"]).getroot()[0].get("skipped") == "16"
    assert json.loads(files["json"].read_text())["verdict"] == "passed"


def test_a_run_folder_is_a_baseline_too(hallulab: CommandLine, demo_replay: RunFolder) -> None:
    assert hallulab("gate", demo_replay.path, "--against", demo_replay.path).code == 0


def test_a_limit_blocks(hallulab: CommandLine, demo_replay: RunFolder, baseline: Path) -> None:
    ended = hallulab("gate", demo_replay.path, "--against", baseline, "--max-hpt", "0.9")
    assert ended.code == 1
    assert "vanilla by halludetect and vanilla by metarag: HPT-1 1; at most 0.9 is allowed" in " ".join(
        ended.out.split()
    )


def test_a_detector_nobody_measured_is_refused(
    hallulab: CommandLine, demo_replay: RunFolder, baseline: Path
) -> None:
    ended = hallulab("gate", demo_replay.path, "--against", baseline, "--require-calibrated")
    assert ended.code == 3
    assert ended.out.startswith("Not comparable: demo against the baseline demo cannot be judged.")


def test_severe_findings_on_the_same_replies_are_the_detectors_noise(
    hallulab: CommandLine, demo_replay: RunFolder, baseline: Path, tmp_path: Path
) -> None:
    copy = changed_demo(demo_replay, tmp_path / "run", add_a_severe_span)
    ended = hallulab("gate", copy.path, "--against", baseline)
    assert ended.code == 0
    assert "the chatbot did not change there" in " ".join(ended.out.split())


def test_severe_findings_in_other_replies_block_and_are_quoted(
    hallulab: CommandLine, demo_replay: RunFolder, baseline: Path, tmp_path: Path
) -> None:
    copy = changed_demo(demo_replay, tmp_path / "run", add_a_severe_span)
    chats = [json.loads(line) for line in copy.conversations.read_text().splitlines()]
    for chat in chats:
        chat["turns"][0]["reply"] += " And more."
    copy.conversations.write_text("".join(f"{json.dumps(chat)}\n" for chat in chats))
    comment = tmp_path / "gate.md"
    ended = hallulab("gate", copy.path, "--against", baseline, "--markdown", comment)
    assert ended.code == 1
    assert "**New severe hallucinations (20)**" in comment.read_text()
    assert "flagged: Rs 500 &#60;b&#62;&#96;x&#96;&#60;/b&#62;" in comment.read_text()
    assert hallulab("gate", copy.path, "--against", baseline, "--severity-guard", "off").code == 0


def test_a_run_without_verdicts_cannot_be_compared(
    hallulab: CommandLine, demo_replay: RunFolder, baseline: Path, tmp_path: Path
) -> None:
    copy = RunFolder(Path(shutil.copytree(demo_replay.path, tmp_path / "run")))
    copy.verdicts.unlink()
    assert hallulab("gate", copy.path, "--against", baseline).code == 3


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--severity-guard", "high"], "--severity-guard high: give a severity from 1 to 5, or off."),
        (["--planted", "b.json"], "--planted goes with --require-calibrated"),
        (["--min-coverage", "90"], "--min-coverage 90: give a share from 0 to 1"),
        (["--min-answered", "90"], "--min-answered 90: give a share from 0 to 1"),
        (["--markdown", "x", "--junit", "x"], "name the same file"),
    ],
)
def test_a_wrong_flag_is_a_usage_error(
    code_and_error: CodeAndError, demo_replay: RunFolder, baseline: Path, flags: list[str], message: str
) -> None:
    code, error = code_and_error("gate", demo_replay.path, "--against", baseline, *flags)
    assert code == 2
    assert message in error


def test_no_output_may_overwrite_the_baseline(
    code_and_error: CodeAndError, demo_replay: RunFolder, baseline: Path
) -> None:
    code, error = code_and_error("gate", demo_replay.path, "--against", baseline, "--json", baseline)
    assert (code, "a file of the input would be lost" in error) == (2, True)


def test_what_is_no_baseline_is_a_usage_error(
    code_and_error: CodeAndError, demo_replay: RunFolder, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    code, error = code_and_error("gate", demo_replay.path, "--against", wrong)
    assert code == 2
    assert "Give a run folder, or a file of `hallulab compare RUN --save FILE`." in error
