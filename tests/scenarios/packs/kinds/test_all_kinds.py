"""What twenty documents of all kinds yield, against expectations that were written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from rapidfuzz.distance import Levenshtein

from hallulab.scenarios.packs.pack import Document
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.testing.tiny_pack import make_pack
from tests.scenarios.packs.all_kinds import NAMES, build_document, read_expected

MOST_WRONG = 0.02
"""Share of the expected words that may be wrong, missing or too many."""


def read_document(name: str, folder: Path) -> Document:
    """Return what hallulab makes of one of the documents, in a pack of its own."""
    documents = make_pack(folder / "pack") / "documents"
    for path in documents.iterdir():
        path.unlink()
    (documents / name).write_bytes(build_document(name))
    (found,) = load_scenario(documents.parent).documents
    return found


def split_words(text: str) -> list[str]:
    """Return the words of a text and the bars of its tables, without Markdown's marks."""
    words = [word.strip("*`\\") for word in text.replace("|", " | ").split()]
    return [word for word in words if word == "|" or word.strip("-:#+.•")]


@pytest.mark.parametrize("name", NAMES)
def test_a_document_yields_the_expected_words(name: str, tmp_path: Path) -> None:
    title, text = read_expected(name)
    found = read_document(name, tmp_path)
    expected = split_words(text)
    wrong = Levenshtein.distance(expected, split_words(found.text)) / len(expected)
    assert (found.title, wrong) == (title, pytest.approx(0, abs=MOST_WRONG))


def test_there_are_twenty_documents_of_fifteen_kinds() -> None:
    assert len(NAMES) == 20
    assert len({Path(name).suffix for name in NAMES}) == 15


def test_every_document_has_forty_words_at_least() -> None:
    short = [name for name in NAMES if sum(w != "|" for w in split_words(read_expected(name)[1])) < 40]
    assert short == []
