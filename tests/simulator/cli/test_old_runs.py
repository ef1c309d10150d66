"""A run folder of version 0.1.0 as of commit 2a0b3893 opens in what came after (docs/upgrade.md)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hallulab import Run
from tests.places import RECORDINGS
from tests.simulator.command_line import CommandLine


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDINGS / "old_run", tmp_path / "old"))


def test_its_report_has_the_numbers_that_it_had(old: Path, hallulab: CommandLine) -> None:
    ended = hallulab("report", old)
    assert (ended.code, (old / "report.html").is_file()) == (0, True)
    rows = [row for detector in ("halludetect", "lexical") for row in Run(old).report().by(detector)]
    assert [(row.chatbot, row.detector, row.hpt_1, row.scored_turns) for row in rows] == [
        ("vanilla", "halludetect", 0.5, 2),
        ("agent", "halludetect", 0.5, 2),
        ("vanilla", "lexical", 0.5, 2),
        ("agent", "lexical", 0.5, 2),
    ]


def test_it_is_exported_and_compared_with_itself(old: Path, tmp_path: Path, hallulab: CommandLine) -> None:
    assert hallulab("export", old, "--detector", "lexical", "--out", tmp_path / "replies.jsonl").code == 0
    again = shutil.copytree(old, tmp_path / "again")
    assert hallulab("compare", old, again).code == 0


def test_a_detector_of_another_version_judges_again(old: Path, hallulab: CommandLine) -> None:
    assert hallulab("detect", old, "--detectors", "lexical").code == 0
    verdicts = Run(old).verdicts()
    assert list(verdicts[verdicts.detector == "lexical"].outcome) == ["scored"] * 4
