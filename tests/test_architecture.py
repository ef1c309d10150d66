"""docs/design/architecture.md against the tree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.places import ROOT

DOCS = sorted(path.relative_to(ROOT) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
FLOORS = ("scenarios", "agents", "detectors", "chatbots", "simulator", "hallulab", "benchmarks", "tests")
PLACE = re.compile(rf"`((?:{'|'.join(FLOORS)})/[\w./-]*\w)`")
"""A path of the repository, as the docs write it."""


def text_of(name: Path) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [doc for doc in DOCS if doc.name != "CHANGELOG.md"], ids=str)
def test_paths_that_docs_name_are_there(name: Path) -> None:
    missing = [path for path in PLACE.findall(text_of(name)) if not (ROOT / path).exists()]
    assert missing == []


def drawn() -> set[str]:
    """The paths in the drawing."""
    drawing = text_of(Path("docs/design/architecture.md")).split("```")[1]
    return set(re.findall(rf"(?:{'|'.join(FLOORS)})/[\w/]+", drawing))


def test_the_drawing_has_every_room_and_no_other() -> None:
    rooms = {
        path.parent.relative_to(ROOT).as_posix()
        for floor in ("scenarios", "agents", "simulator")
        for path in (ROOT / floor).glob("*/__init__.py")
    }
    assert drawn() == rooms


@pytest.mark.parametrize(
    "what",
    [
        "a chatbot",
        "a detector",
        "a scenario",
        "a data set",
        "a metric of runs",
        "a metric of `bench`",
        "a chart of runs",
        "a chat format, read or written",
        "a command",
    ],
)
def test_the_table_says_which_file_to_add(what: str) -> None:
    """`test_paths_that_docs_name_are_there` looks whether its neighbours are there."""
    [file] = re.findall(
        rf"^\| {re.escape(what)} \| (.*?) \|", text_of(Path("docs/design/architecture.md")), re.MULTILINE
    )
    assert PLACE.search(file)


def list_rooms() -> list[Path]:
    """The rooms of three floors, and the two floors that are one room each."""
    inside = (
        path.parent.relative_to(ROOT)
        for floor in ("agents", "scenarios", "simulator")
        for path in (ROOT / floor).glob("*/__init__.py")
    )
    return [Path("chatbots"), Path("detectors"), *sorted(inside)]


@pytest.mark.parametrize("room", list_rooms(), ids=str)
def test_each_room_says_what_it_is_for_and_where_to_begin(room: Path) -> None:
    text = text_of(room / "README.md")
    assert "**May import**" in text
    files = re.findall(r"`([\w/]+\.(?:py|yaml))`", text.partition("**Begin with**")[2])
    assert files
    assert [name for name in files if not (ROOT / room / name).exists()] == []
