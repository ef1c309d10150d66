"""The tables of docs/studies/chatbots.md: on the recorded demo, and whole (slow) against the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.headline import PAPER, page
from hallulab.simulator.records.folder import RunFolder
from tests.demo import replay_headline
from tests.places import ROOT

DOCS = ROOT / "docs" / "studies" / "chatbots.md"


def test_the_tables_have_every_chatbot_under_each_detector_and_in_the_paper(demo_replay: RunFolder) -> None:
    shown = page(demo_replay.path)
    for name in PAPER:
        assert [line.split(" | ")[0] for line in shown.splitlines() if f" | {name} | " in line] == [
            "| halludetect",
            "| metarag",
            "| the paper's",
        ]
    assert "| the paper's | agent | 3 | 0.42 | 0.43 | 96.1 | 96.4 | 47 |  |" in shown
    assert "in the paper HalluDetect 2.52 times in 23 calls." in shown
    assert "| chatbot | turns | tokens | turns, the paper's | tokens, the paper's |" in shown
    assert "By halludetect, no difference holds. By metarag, no difference holds." in shown


@pytest.mark.slow
def test_the_page_has_what_the_recording_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    replay_headline(tmp_path / "headline")
    _, begun = DOCS.read_text(encoding="utf-8").split("<!-- headline begins -->\n")
    shown, _ = begun.split("<!-- headline ends -->")
    assert shown == page(tmp_path / "headline")
