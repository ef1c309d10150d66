"""The recorded runs judged by a second, capable judge: the pages have what the command prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.second_judge import judge_again, main, page
from hallulab.simulator.records.folder import RunFolder
from tests.demo import replay_headline
from tests.places import ROOT

BEGINS, ENDS = "<!-- second judge begins -->\n", "<!-- second judge ends -->"


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def shown_in(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8").split(BEGINS)[1].split(ENDS)[0]


def test_the_study_of_the_first_run_has_both_judges_of_the_recorded_demo(
    demo_replay: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    """It takes some seconds, for it shows which judge of the demo to believe."""
    before = demo_replay.verdicts.read_bytes()
    assert main([str(demo_replay.path)]) == 0
    assert capsys.readouterr().out == shown_in("docs/studies/first-run.md")
    assert demo_replay.verdicts.read_bytes() == before


@pytest.mark.slow
def test_the_page_of_chatbots_has_both_judges_of_the_headline_run(tmp_path: Path) -> None:
    """Slow, because 130 replies are made and judged again."""
    headline, again = tmp_path / "headline", tmp_path / "again"
    replay_headline(headline)
    judge_again(headline, again)
    assert page(again) == shown_in("docs/studies/chatbots.md")


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert main([str(tmp_path / "empty")]) == 2
    assert "error: " in capsys.readouterr().err
