"""The house rules: scenarios ← agents ← detectors ← chatbots ← simulator ← hallulab, an order of the rooms
inside, and no cycles between modules."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import networkx

from tests.places import ROOT, module_of

ORDER = ["scenarios", "agents", "detectors", "chatbots", "simulator", "hallulab"]

ROOMS = {
    "simulator": [
        {"options"},
        {"records"},
        {"statistics"},
        {"show"},
        {"engine"},
        {"authoring"},
        {"metrics"},
        {"decide"},
        {"report", "bench"},
        {"compare"},
        {"planting", "rag_trust", "annotate"},
        {"calibration"},
        {"chat"},
        {"viewer"},
        {"cli"},
    ],
    "agents": [{"models", "machine"}, {"retrieval", "serving"}, {"users"}],
}
"""Floor → its rooms from left to right; those that stand together may import each other."""

SHARED = {"base", "explanations", "features", "peers.workers"}
"""What detectors' methods may import of their floor; LogicGraph reads HHEM as the peer's worker does."""

METHODS = {path.parent.name for path in (ROOT / "detectors").glob("*/__init__.py")} - SHARED
"""Rooms of detectors that are methods."""


def in_floor(name: str) -> str:
    """The name of a module from its floor on, as a path has it; the front door is a floor, too."""
    inner = name.removeprefix("hallulab.")
    return inner if inner.split(".")[0] in ORDER else name


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {in_floor(name) for name in found if name.split(".")[0] == "hallulab"}


SOURCES = {in_floor(module_of(path)): path for package in ORDER for path in (ROOT / package).rglob("*.py")}


def test_each_package_imports_only_from_its_left() -> None:
    wrong = [
        f"{module} imports {name}"
        for module, path in SOURCES.items()
        for name in imports(path)
        if ORDER.index(name.split(".")[0]) > ORDER.index(module.split(".")[0])
    ]
    assert wrong == []


def test_benchmarks_import_the_kit_of_tests_only_and_tests_no_benchmarks_but_to_test_them() -> None:
    pattern = re.compile(r"^(?:from|import) (tests(?!\.kit\b)|benchmarks)\b", re.MULTILINE)
    wrong = [
        str(path)
        for floor, other in (("benchmarks", "tests"), ("tests", "benchmarks"))
        for path in (ROOT / floor).rglob("*.py")
        if other in pattern.findall(path.read_text(encoding="utf-8"))
        and "benchmarks" not in path.relative_to(ROOT / floor).parts
    ]
    assert wrong == []


def test_no_two_modules_import_each_other() -> None:
    graph = networkx.DiGraph(
        (module, name) for module, path in SOURCES.items() for name in imports(path) if name in SOURCES
    )
    assert list(networkx.simple_cycles(graph)) == []


def inner(module: str) -> str:
    """The room of a module inside its floor, or nothing for a module that stands in none."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def test_rooms_import_only_from_their_left() -> None:
    wrong = []
    for floor, order in ROOMS.items():
        place = {room: at for at, rooms in enumerate(order) for room in rooms}
        for module, path in SOURCES.items():
            if module.startswith(f"{floor}.") and inner(module) in place:
                wrong += [
                    f"{module} imports {name}"
                    for name in imports(path)
                    if name.startswith(f"{floor}.") and place.get(inner(name), -1) > place[inner(module)]
                ]
    assert wrong == []


def test_every_room_has_a_place_in_the_order() -> None:
    for floor, order in ROOMS.items():
        there = {path.parent.name for path in (ROOT / floor).glob("*/__init__.py")}
        assert there == set().union(*order)


def test_no_method_imports_another() -> None:
    wrong = [
        f"{module} imports {name}"
        for module, path in SOURCES.items()
        if module.startswith("detectors.") and inner(module) in METHODS
        for name in imports(path)
        if name.startswith("detectors.")
        and inner(name) not in {"", inner(module)}
        and not any(name == f"detectors.{room}" or name.startswith(f"detectors.{room}.") for room in SHARED)
    ]
    assert wrong == []


def test_shared_rooms_import_no_method() -> None:
    wrong = [
        f"{module} imports {name}"
        for module, path in SOURCES.items()
        if inner(module) in SHARED and module.startswith("detectors.")
        for name in imports(path)
        if name.startswith("detectors.") and inner(name) in METHODS
    ]
    assert wrong == []


def test_scenarios_are_pure_data() -> None:
    heavy = {
        "autogen",
        "asyncio",
        "httpx2",
        "lancedb",
        "openai",
        "socket",
        "subprocess",
        "torch",
        "transformers",
    }
    found = {
        f"{module} imports {name}"
        for module, path in SOURCES.items()
        if module.startswith("scenarios.")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        if name.split(".")[0] in heavy
    }
    # Whoever reads a stranger's document reads it within bounds: the process stands where they are read.
    assert found == {"scenarios.packs.conversion imports subprocess"}
