"""Functions begin with a verb, and a class name means one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.places import ROOT

FLOORS = ("scenarios", "agents", "detectors", "chatbots", "simulator")
VERBS = frozenset((ROOT / "tests" / "verbs.txt").read_text(encoding="utf-8").split())


def walk_nodes(floor: str) -> Iterator[tuple[Path, ast.AST]]:
    """Yield every node of a floor's syntax trees, with its file."""
    for file in sorted((ROOT / floor).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            yield file, node


def has_free_name(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is no property, overload or dunder method."""
    decorators = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
    return not node.name.startswith("__") and "property" not in decorators and "overload" not in decorators


def test_a_class_name_of_ours_means_one_thing() -> None:
    """The main loops of peers' and bots' programs ask each program for a class `Worker`."""
    found = defaultdict(list)
    for floor in FLOORS:
        for file, node in walk_nodes(floor):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(file)
    assert [name for name, files in found.items() if len(files) > 1] == ["Worker"]


@pytest.mark.parametrize("floor", FLOORS)
def test_half_of_the_functions_of_a_floor_begin_with_a_verb(floor: str) -> None:
    words = [
        node.name.lstrip("_").partition("_")[0]
        for _, node in walk_nodes(floor)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and has_free_name(node)
    ]
    assert sum(word in VERBS for word in words) >= len(words) / 2
