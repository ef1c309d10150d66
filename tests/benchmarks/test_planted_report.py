"""The report on planted errors in the docs is what the command prints, from the recordings."""

from __future__ import annotations

import pytest

from benchmarks import planted_report
from tests.places import ROOT


def test_the_docs_have_the_report_of_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert planted_report.main([]) == 0
    _, begun = (ROOT / "docs" / "studies" / "stress.md").read_text().split("<!-- planted_report begins -->\n")
    shown, _ = begun.split("<!-- planted_report ends -->")
    assert shown == capsys.readouterr().out
