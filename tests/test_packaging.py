"""What is installed is what the code needs: its data files, and the distributions that it imports."""

from __future__ import annotations

import ast
import sys
from fnmatch import fnmatch
from functools import cache
from typing import Any

import pytest

from hallulab.scenarios.packs.kinds import KINDS
from tests.extras import EXTRAS, find_distributions, list_distributions, read_project
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
    return read_project()


@cache
def list_nodes() -> list[ast.AST]:
    """Imports and calls in the sources that run in hallulab's environment."""
    return [
        node
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if path.name not in IN_OTHER_ENVIRONMENTS
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)
    ]


def list_calls(function: str) -> list[list[str]]:
    """The texts that each call of a function is given."""
    return [
        list_texts(node.args)
        for node in list_nodes()
        if isinstance(node, ast.Call) and ast.unparse(node.func) == function
    ]


def imported() -> set[str]:
    """Top-level modules of others that the packages import."""
    found = {name for names in list_calls("importlib.import_module") for name in names}
    for node in list_nodes():
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return {name.partition(".")[0] for name in found} - set(PACKAGES) - sys.stdlib_module_names


def list_texts(arguments: list[ast.expr]) -> list[str]:
    """Return the arguments that are texts, as they stand in the code."""
    return [one.value for one in arguments if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def declared(project: dict[str, Any], *extras: str) -> set[str]:
    """Distributions that the base installation and these extras bring."""
    lines: list[str] = list(project["project"]["dependencies"])
    for extra in extras:
        lines += project["project"]["optional-dependencies"][extra]
    return list_distributions(lines)


def test_everything_imported_is_declared(project: dict[str, Any]) -> None:
    offered = find_distributions()
    missing = {
        module: offered.get(module)
        for module in imported()
        if not declared(project, *EXTRAS) & set(offered.get(module, []))
    }
    assert missing == {}


def test_everything_declared_is_imported(project: dict[str, Any]) -> None:
    offered = find_distributions()
    used = {name for module in imported() for name in offered.get(module, [])}
    assert sorted(declared(project, *EXTRAS) - used) == []


def test_what_an_extra_is_asked_for_is_what_it_installs(project: dict[str, Any]) -> None:
    offered, extras = find_distributions(), project["project"]["optional-dependencies"]
    calls = list_calls("require_extra")
    wrong = [
        f"{extra}: {module}"
        for extra, *modules in calls
        for module in modules
        if not list_distributions(extras[extra]) & set(offered[module])
    ]
    assert (wrong, {extra for extra, *_ in calls}) == ([], set(EXTRAS))


def test_kinds_of_documents_need_what_their_extra_installs(project: dict[str, Any]) -> None:
    offered = find_distributions()
    needed = {name for kind in KINDS.values() for module in kind.needs for name in offered[module]}
    assert needed == list_distributions(project["project"]["optional-dependencies"]["documents"])


def test_all_extras_are_in_all_and_developers_have_them(project: dict[str, Any]) -> None:
    extras = project["project"]["optional-dependencies"]
    assert extras["all"] == [f"hallulab[{','.join(EXTRAS)}]"]
    assert "hallulab[all]" in extras["dev"]
    assert set(extras) == {*EXTRAS, "all", "dev", "release"}


def test_every_data_file_is_installed(project: dict[str, Any]) -> None:
    patterns: list[str] = project["tool"]["setuptools"]["package-data"]["*"]
    left_out = [
        str(path.relative_to(ROOT))
        for package in (*PACKAGES, "examples")
        for path in (ROOT / package).rglob("*")
        if path.is_file()
        and path.suffix not in {".py", ".pyc"}
        and not any(fnmatch(path.name, pattern) for pattern in patterns)
    ]
    assert left_out == []


def test_every_dependency_has_a_lower_bound(project: dict[str, Any]) -> None:
    assert [line for line in project["project"]["dependencies"] if ">=" not in line] == []
