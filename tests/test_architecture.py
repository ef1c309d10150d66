"""docs/architecture.md against the tree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.places import ROOT

DOCS = sorted(path.relative_to(ROOT) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")))
FLOORS = ("scenarios", "agents", "detectors", "chatbots", "simulator", "hallulab", "benchmarks", "tests")
PLACE = re.compile(rf"`((?:{'|'.join(FLOORS)})/[\w./-]*\w)`")
"""A path of the repository, as the docs write it."""


def text_of(name: Path) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [doc for doc in DOCS if doc.name != "CHANGELOG.md"], ids=str)
def test_paths_that_docs_name_are_there(name: Path) -> None:
    missing = [path for path in PLACE.findall(text_of(name)) if not (ROOT / path).exists()]
    assert missing == []


def test_every_room_is_in_the_architecture() -> None:
    told = text_of(Path("docs/architecture.md"))
    rooms = {
        path.parent.name
        for floor in ("scenarios", "agents", "simulator")
        for path in (ROOT / floor).glob("*/__init__.py")
    }
    assert {room for room in rooms if f"`{room}`" not in told} == set()


def test_every_room_of_the_drawing_is_there() -> None:
    drawing = text_of(Path("docs/architecture.md")).split("```")[1]
    named = set(re.findall(rf"(?:{'|'.join(FLOORS)})/[\w/]+", drawing))
    assert named
    assert {
        path for path in named if not any((ROOT / f"{path}{end}").exists() for end in ("", ".py"))
    } == set()
