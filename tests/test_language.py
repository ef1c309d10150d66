"""No sentence of docs, docstrings or messages begins with What, Whether, That of or Those of."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.places import ROOT

PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(path for path in ROOT.glob("*/**/README.md") if (path.parent / "__init__.py").exists()),
]

FLOORS = ("agents", "chatbots", "detectors", "hallulab", "scenarios", "simulator")
HASHED = ("agents", "chatbots", "detectors")
"""Floors whose docstrings of classes belong to versions, and to schemas that models read: they may stay."""

_OPENING = re.compile(r"[\"'(*_`\[‘“]*(?:What|Whether|That of|Those of) [^?]*\Z")
_END = re.compile(r"[.!?][\"')*`\]’”]*\s+(?=\S)")
_FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ITEM = re.compile(r"(?:[-*]|\d+\.) +")


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text in one line or in several."""
    start = 0
    for end in _END.finditer(text):
        yield text[start : end.start() + 1]
        start = end.end()
    yield text[start:]


def find_openings(text: str) -> list[str]:
    """Return the sentences that begin as none should. A question may."""
    return [sentence for sentence in split_sentences(" ".join(text.split())) if _OPENING.match(sentence)]


def split_page(text: str) -> Iterator[str]:
    """Yield paragraphs, items of lists and cells of a Markdown page, without headings and code."""
    paragraph: list[str] = []
    for line in [*_COMMENT.sub("", _FENCE.sub("", text)).splitlines(), ""]:
        words = line.strip()
        item = _ITEM.match(words)
        begins = not words or words[0] in "|#" or item
        if begins and paragraph:
            yield " ".join(paragraph)
            paragraph = []
        if words.startswith("|"):
            yield from (cell.strip() for cell in words.split("|"))
        elif item:
            paragraph.append(words[item.end() :])
        elif words and not words.startswith("#") and (paragraph or not line.startswith("    ")):
            paragraph.append(words)


def list_texts(tree: ast.AST, *, classes: bool) -> Iterator[str]:
    """Yield the paragraphs of docstrings and other strings; a gap of an f-string becomes `_`."""
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    if not classes:
        inner |= {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef) and isinstance(node.body[0], ast.Expr)
        }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "_" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield from re.split(r"\n\s*\n|\n\s*[-*] |\n {8,}(?=\w+: )", node.value)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It ends. What is left is kept.", ["What is left is kept."]),
        ("What is left? Nothing.", []),
        ("**Whether it\nhelps** is open.", ["**Whether it helps** is open."]),
        ("See what follows. Those of us: that of others.", ["Those of us: that of others."]),
    ],
)
def test_openings_are_found(text: str, found: list[str]) -> None:
    assert find_openings(text) == found


def test_a_page_is_read_without_headings_and_code() -> None:
    page = (
        "# What it is\n\nOne\ntwo.\n\n    What x\n\n- three\n  four\n\n| What | five |\n\n```\nWhat y\n```\n"
    )
    assert [part for part in split_page(page) if part] == ["One two.", "three four", "What", "five"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_sentences_of_a_page_begin_with_their_subject(path: Path) -> None:
    parts = split_page(path.read_text(encoding="utf-8"))
    assert [found for part in parts for found in find_openings(part)] == []


@pytest.mark.parametrize("floor", FLOORS)
def test_docstrings_and_messages_begin_with_their_subject(floor: str) -> None:
    assert {
        f"{path.relative_to(ROOT)}: {found}"
        for path in (ROOT / floor).rglob("*.py")
        for text in list_texts(ast.parse(path.read_text(encoding="utf-8")), classes=floor not in HASHED)
        for found in find_openings(text)
    } == set()
