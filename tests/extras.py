"""An environment without the packages of some extras, as Python sees it: they cannot be found."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import packages_distributions
from typing import Any

import pytest

from tests.places import ROOT

EXTRAS = ("local", "documents", "tables", "plots", "ray")
"""Those that a user names; `all` and `dev` are made of them."""


def read_project() -> dict[str, Any]:
    """Return the tables of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def list_distributions(lines: Iterable[str]) -> set[str]:
    """Return the names of requirements."""
    return {normalize(re.split(r"[\[<>=!~ ]", line, maxsplit=1)[0]) for line in lines}


@cache
def find_distributions() -> dict[str, list[str]]:
    """Return the distributions that offer each top-level module."""
    return {module: [*map(normalize, names)] for module, names in packages_distributions().items()}


@cache
def list_modules(extra: str) -> frozenset[str]:
    """Return the top-level modules of what an extra installs beside the base."""
    wanted = list_distributions(read_project()["project"]["optional-dependencies"][extra])
    offered = find_distributions()
    return frozenset(module for module, names in offered.items() if wanted & set(names))


def hide_extras(monkeypatch: pytest.MonkeyPatch, *extras: str) -> None:
    """Let Python find no module of these extras until the test ends."""
    hidden = frozenset().union(*map(list_modules, extras))
    assert hidden
    find = PathFinder.find_spec

    def find_others(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return None if name.partition(".")[0] in hidden else find(name, path, target)

    monkeypatch.setattr(PathFinder, "find_spec", find_others)
    for name in [name for name in sys.modules if name.partition(".")[0] in hidden]:
        monkeypatch.delitem(sys.modules, name)
