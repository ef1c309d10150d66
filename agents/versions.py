"""Versions of components: one hash of all that a result depends on, except its input.

A result is kept while the version of what made it stays the same, and made again when it changes. A
component's `VERSION` says what its code does not show: its author raises it when results change for another
reason, such as new weights behind the same name. The hash of its code is the guard for the rest.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hallulab.agents.models.prompt import Prompt
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.transcript import Frozen

CORE = (
    "hallulab.agents.autogen",
    "hallulab.agents.models.answers",
    "hallulab.agents.models.finish_reasons",
    "hallulab.agents.models.log_probabilities",
    "hallulab.agents.models.model",
    "hallulab.agents.models.probe",
    "hallulab.agents.models.prompt",
    "hallulab.agents.models.session",
    "hallulab.agents.models.written_calls",
    "hallulab.agents.retrieval",
    "hallulab.agents.team",
    "hallulab.detectors.base.reading",
    "hallulab.scenarios.text",
)
"""Modules, and packages with all their modules, that count for every component: how a model is asked and its
answer read, the search, the handling of text, and in which languages it is read."""

_COMPONENTS = {
    "hallulab.chatbots.": ("hallulab.chatbots.", "hallulab.detectors."),
    "hallulab.detectors.": ("hallulab.detectors.",),
}
"""Beginnings of the names of components' modules → those of modules that are own code if they are imported. A
guarded chatbot marks replies by rules of the detectors' floor."""

_PROTOCOLS = ("hallulab.chatbots.protocol", "hallulab.detectors.base.protocol")
"""Modules that every component imports, and that check what it returns: they decide no result."""


def compute_version(
    module: str,
    version: int,
    options: Any,
    prompts: Iterable[Prompt] = (),
    models: Mapping[str, str] | None = None,
    seed: int | None = None,
    learnt: Any = None,
) -> str:
    """Hash all that a component's results depend on, except their input; return 16 hex digits.

    Args:
        module: the component's module (`__name__`); see `compute_code_version`.
        options: the options in force: a pydantic model or a JSON value.
        models: the models it asks: role → `hallulab.agents.served_model.identify_model`.
        seed: the seed of its requests; None if it asks no model or gets the seed with each call.
        learnt: tuned numbers or weights that no other argument holds; same types as `options`.

    Raises:
        ValueError: there is no such module, or it has no Python source.
    """
    return digest(
        [
            [module, version, compute_code_version(module)],
            make_plain(options),
            {prompt.name: prompt.version for prompt in prompts},
            dict(models or {}),
            seed,
            make_plain(learnt),
        ]
    )[:16]


@cache
def compute_code_version(module: str) -> str:
    """Hash the code of a component in `module`, with `CORE`; return 12 hex digits.

    Comments, layout and docstrings do not count, except the docstrings of classes, which a model may be sent.

    Raises:
        ValueError: there is no such module, or it has no Python source.
    """
    own = list_own_modules(module)
    return digest({name: digest_code(_find_source(name)) for name in (*own, *_list_core())})[:12]


def list_own_modules(module: str) -> list[str]:
    """Return the modules that are a component's own code: its module, and what this imports of its package.

    The package of a detector of ours is the detectors' floor, of a chatbot of ours that and its own, of other
    modules of ours their folder, and of other people's components their distribution's package. Imports
    inside functions count.

    Raises:
        ValueError: there is no such module, or it has no Python source.
    """
    first, _, _ = module.partition(".")
    own = (f"{module.rpartition('.')[0] if first == 'hallulab' else first}.",)
    known = (packages for beginning, packages in _COMPONENTS.items() if module.startswith(beginning))
    packages = next(known, own)
    found, waiting = {module}, [module]
    while waiting:
        for name in _list_imports(_read_source(_find_source(waiting.pop()))):
            if name in found or name in _PROTOCOLS or not name.startswith(packages):
                continue
            if _locate(name) is not None:
                found.add(name)
                waiting.append(name)
    return sorted(found)


def digest_code(path: Path) -> str:
    """Hash the code of one file, as `compute_code_version` does."""
    return _digest_source(_read_source(path))


def make_plain(value: Any) -> Any:
    """Return a value as JSON knows it."""
    return value.model_dump(mode="json") if isinstance(value, Frozen) else value


@cache
def _list_core() -> tuple[str, ...]:
    """Return the modules of `CORE`, those of packages included."""
    found: list[str] = []
    for name in CORE:
        source = _find_source(name)
        if source.name == "__init__.py":
            found += [f"{name}.{path.stem}" for path in source.parent.glob("*.py") if path != source]
        else:
            found.append(name)
    return tuple(sorted(found))


def _find_source(module: str) -> Path:
    source = _locate(module)
    if source is None:
        raise ValueError(f"the module {module} has no Python source")
    return source


@cache
def _locate(module: str) -> Path | None:
    """Return the source file of a module; None if there is no such module or no source."""
    package = module.rpartition(".")[0]
    if package:
        above = _locate(package)
        if above is None or above.name != "__init__.py":
            return None  # a name inside a module
    spec = find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin)


def _read_source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _digest_source(source: str) -> str:
    return digest(ast.dump(_Bare().visit(ast.parse(source))))


@cache
def _list_imports(source: str) -> tuple[str, ...]:
    """Return the names that a text imports. All imports are absolute (tests/test_import_order.py)."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(found)


class _Bare(ast.NodeTransformer):
    """Removes texts that stand alone, those below attributes included, except docstrings of classes."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Visit all but the docstring."""
        kept = node.body[:1] if ast.get_docstring(node) is not None else []
        node.body = node.body[len(kept) :]
        self.generic_visit(node)
        node.body = kept + node.body
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Remove a text."""
        return None if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) else node
