"""docs/metrics.md against the columns of the tables."""

from __future__ import annotations

from benchmarks.glossary import page
from tests.places import ROOT


def test_the_docs_have_every_column_with_its_hint_word_for_word() -> None:
    assert (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8") == page()
