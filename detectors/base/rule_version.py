"""A hash of the code that a detector's verdicts follow from.

It is part of the detector's version: verdicts of an older rule are made anew on resuming, not taken for
today's. Any edit counts, a comment's too: nobody has to judge which edit changes a verdict.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module

from scenarios.files.digest import digest

_OURS = ("scenarios.", "agents.", "detectors.")


@cache
def rule_version(module: str) -> str:
    """Hash of the code of the detector in `module`: 12 hex digits."""
    return digest(rule_sources(module))[:12]


def rule_sources(module: str) -> dict[str, str]:
    """Name → source text of the modules that the detector in `module` is made of: itself and those of ours
    that it imports, directly or by way of others.
    """
    sources: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in sources:
            continue
        sources[name] = source_of(name)
        waiting += _imports(sources[name])
    return sources


def source_of(module: str) -> str:
    """Source text of a module."""
    return inspect.getsource(import_module(module))


def _imports(source: str) -> Iterator[str]:
    """Modules of ours that are imported, all by `from package.module import name`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_OURS):
            yield str(node.module)
