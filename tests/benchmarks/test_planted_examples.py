"""The list of planted errors in the docs is what the command prints."""

from __future__ import annotations

import pytest

from benchmarks import planted_examples
from tests.places import ROOT


def test_the_docs_have_the_list_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    planted_examples.main()
    assert (ROOT / "docs" / "studies" / "planted-examples.md").read_text() == capsys.readouterr().out
