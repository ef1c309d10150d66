"""What is installed is what the code needs: its data files, and the distributions that it imports."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from fnmatch import fnmatch
from importlib.metadata import packages_distributions
from typing import Any

import pytest

from tests.places import ROOT

PACKAGES = ["scenarios", "agents", "detectors", "chatbots", "simulator", "hallulab"]
IN_OTHER_ENVIRONMENTS = {
    "bot_worker.py",
    "convert_gguf.py",
    "describe_gguf.py",
    "lettucedetect_worker.py",
    "hhem_worker.py",
    "minicheck_worker.py",
    "pytest_plugin.py",
    "refchecker_worker.py",
}


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    settings: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported() -> set[str]:
    """Top-level modules of others that the packages import."""
    found: set[str] = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            if path.name in IN_OTHER_ENVIRONMENTS:
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    found.update(alias.name.split(".")[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module:
                    found.add(node.module.split(".")[0])
    return found - set(PACKAGES) - sys.stdlib_module_names


def declared(project: dict[str, Any]) -> set[str]:
    lines: list[str] = project["project"]["dependencies"]
    return {normalized(re.split(r"[\[<>=!~ ]", line, maxsplit=1)[0]) for line in lines}


def test_everything_imported_is_declared(project: dict[str, Any]) -> None:
    offered = packages_distributions()
    missing = {
        module: offered.get(module)
        for module in imported()
        if not declared(project) & {normalized(name) for name in offered.get(module, [])}
    }
    assert missing == {}


def test_everything_declared_is_imported(project: dict[str, Any]) -> None:
    offered = packages_distributions()
    used = {normalized(name) for module in imported() for name in offered.get(module, [])}
    assert sorted(declared(project) - used) == []


def test_every_data_file_is_installed(project: dict[str, Any]) -> None:
    patterns: list[str] = project["tool"]["setuptools"]["package-data"]["*"]
    left_out = [
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file()
        and path.suffix not in {".py", ".pyc"}
        and not any(fnmatch(path.name, pattern) for pattern in patterns)
    ]
    assert left_out == []


def test_every_dependency_has_a_lower_bound(project: dict[str, Any]) -> None:
    assert [line for line in project["project"]["dependencies"] if ">=" not in line] == []
