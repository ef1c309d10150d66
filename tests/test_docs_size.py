"""User pages are short, and leave measurements to docs/studies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.places import ROOT

MOST_WORDS = 30_000
DOCS = ROOT / "docs"
PAGES = [
    path
    for path in sorted(DOCS.rglob("*.md"))
    if path.relative_to(DOCS).parts[0] not in {"studies", "design"}
]
MEASURED = re.compile(r"^\|(?:.*[\d−-]\.\d+.*\|){3}", re.MULTILINE)
"""A row of a table with at least three decimal numbers."""


def test_user_pages_have_few_words() -> None:
    words = {
        path.relative_to(DOCS).as_posix(): len(path.read_text(encoding="utf-8").split()) for path in PAGES
    }
    assert sum(words.values()) <= MOST_WORDS, words


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_no_user_page_has_a_table_of_measurements(page: Path) -> None:
    assert MEASURED.search(page.read_text(encoding="utf-8")) is None
