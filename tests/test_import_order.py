"""The house rule: scenarios ← agents ← detectors ← chatbots ← simulator, and no cycles between modules."""

from __future__ import annotations

import ast
from pathlib import Path

import networkx

ROOT = Path(__file__).parent.parent
ORDER = ["scenarios", "agents", "detectors", "chatbots", "simulator"]


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in found if name.split(".")[0] in ORDER}


SOURCES = {module_name(path): path for package in ORDER for path in (ROOT / package).rglob("*.py")}


def test_each_package_imports_only_from_its_left() -> None:
    wrong = [
        f"{module} imports {name}"
        for module, path in SOURCES.items()
        for name in imports(path)
        if ORDER.index(name.split(".")[0]) > ORDER.index(module.split(".")[0])
    ]
    assert wrong == []


def test_no_two_modules_import_each_other() -> None:
    graph = networkx.DiGraph(
        (module, name) for module, path in SOURCES.items() for name in imports(path) if name in SOURCES
    )
    assert list(networkx.simple_cycles(graph)) == []
