"""The identity of a result: one hash of everything it depends on, for users, chatbots and detectors alike.

A result is kept while its identity stays the same, and made again when it changes. The hash covers the
component's code, options, prompts, served models, seed and learnt numbers. The code is the component's own
modules and our modules that they import, directly or indirectly, without `PLUMBING`. Comments, docstrings,
layout and type annotations of functions and variables do not count. See docs/architecture.md.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from hallulab.agents.models.prompt import Prompt
from hallulab.scenarios.files.digest import digest
from hallulab.scenarios.transcript import Frozen

OURS = "hallulab"
"""The package that holds all of ours."""

PLUMBING = (
    # The vocabulary, and the readers of data and options: what they read counts by its content.
    "hallulab.scenarios.datasets",
    "hallulab.scenarios.errors",
    "hallulab.scenarios.files",
    "hallulab.scenarios.labelled",
    "hallulab.scenarios.options",
    "hallulab.scenarios.packs",
    "hallulab.scenarios.plugins",
    "hallulab.scenarios.transcript",
    # How a request reaches a server, and how a server is started.
    "hallulab.agents.machine",
    "hallulab.agents.models.allowance",
    "hallulab.agents.models.base_url",
    "hallulab.agents.models.client",
    "hallulab.agents.models.errors",
    "hallulab.agents.models.received",
    "hallulab.agents.models.recording",
    "hallulab.agents.models.redaction",
    "hallulab.agents.models.replicas",
    "hallulab.agents.models.wire",
    "hallulab.agents.serving",
    # Reports about results, and the handling of other people's failures.
    "hallulab.agents.claim_check",
    "hallulab.agents.foreign",
    "hallulab.agents.identity",
    "hallulab.agents.served_model",
    "hallulab.chatbots.protocol",
    "hallulab.detectors.base.checking",
    "hallulab.detectors.base.fitted",
    "hallulab.detectors.base.protocol",
)
"""Modules and whole packages whose own code does not decide a result. What they import counts as if the
component had imported it."""


def identity(
    code: str | Sequence[str],
    options: Any,
    prompts: Iterable[Prompt] = (),
    models: Mapping[str, str] | None = None,
    seed: int | None = None,
    learnt: Any = None,
) -> str:
    """Hash everything that a component's results depend on, except its input; return 16 hex digits.

    Args:
        code: the component's module (`__name__`), or several that do not import each other; see
            `compute_code_version`.
        options: the options in force: a pydantic model or a JSON value.
        prompts: the prompt files it uses.
        models: the models it asks: role → `hallulab.agents.served_model.identify_model`.
        seed: the seed of its requests; None if it asks no model or gets the seed with each call.
        learnt: tuned numbers or weights that no other argument holds; same types as `options`.
    """
    modules = (code,) if isinstance(code, str) else tuple(code)
    return digest(
        [
            {module: compute_code_version(module) for module in modules},
            make_plain(options),
            {prompt.name: prompt.version for prompt in prompts},
            dict(models or {}),
            seed,
            make_plain(learnt),
        ]
    )[:16]


def compute_code_version(module: str) -> str:
    """Hash the code of a component in `module`; return 12 hex digits.

    Raises:
        ValueError: there is no such module, or it has no Python source.
    """
    return digest(collect_code(module))[:12]


def collect_code(
    module: str, uncounted: Sequence[str] = PLUMBING, beyond: Sequence[str] = ()
) -> dict[str, str]:
    """Return the modules of a component in `module`: name → hash of its code.

    These are the module and what it imports of our packages, also inside functions. For a component that is
    not ours, its own package counts, too.

    Args:
        uncounted: modules and packages that do not count, though what they import does.
        beyond: modules and packages that do not count, and neither does what only they import.

    Raises:
        ValueError: there is no such module, or it has no Python source.
    """
    packages = {OURS, module.partition(".")[0]}
    found: dict[str, str] = {}
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in seen or _is_of(name, beyond):
            continue
        seen.add(name)
        path = _find_file(name)
        if path is None:
            raise ValueError(f"the module {name} has no Python source")
        code, imports = _read(path)
        if not _is_of(name, uncounted):
            found[name] = code
        waiting += [one for one in imports if one.partition(".")[0] in packages and _find_file(one)]
    return found


def strip_code(source: str) -> str:
    """Remove comments, docstrings, annotations and layout from source text.

    Annotations of class fields stay, because pydantic reads them. The docstring of a class stays if a model
    is asked for an instance of it (`Session.structured`), because the model reads it.
    """
    return _strip(ast.parse(source))


def _strip(tree: ast.Module) -> str:
    """Do the work of `strip_code` on a syntax tree, which is changed."""
    return ast.unparse(_Bare(_answer_classes(tree)).visit(tree))


def make_plain(value: Any) -> Any:
    """A value as JSON knows it."""
    return value.model_dump(mode="json") if isinstance(value, Frozen) else value


def _is_of(module: str, packages: Sequence[str]) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in packages)


@cache
def _find_file(module: str) -> Path | None:
    """Return the source file of a module; None if there is no such module or no source."""
    package = module.rpartition(".")[0]
    if package and not _is_package(package):
        return None  # a name inside a module
    spec = find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin)


@cache
def _is_package(module: str) -> bool:
    package = module.rpartition(".")[0]
    if package and not _is_package(package):
        return False
    spec = find_spec(module)
    return spec is not None and spec.submodule_search_locations is not None


_READ: dict[Path, tuple[str, tuple[str, ...]]] = {}
"""What `_read` found in files."""


def list_known_code() -> dict[Path, tuple[str, tuple[str, ...]]]:
    """Return what is known of files, for `take_over` in another process."""
    return dict(_READ)


def take_over(known: Mapping[Path, tuple[str, tuple[str, ...]]]) -> None:
    """Know of files what another process knows, without reading them again."""
    _READ.update(known)


def _read(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the hash of a file's code, and its imports: modules and names that may be modules."""
    if path not in _READ:
        _READ[path] = _hash_file(path)
    return _READ[path]


def _hash_file(path: Path) -> tuple[str, tuple[str, ...]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports = tuple(_find_imports(tree))  # before the next line removes those for type checkers
    return digest(_strip(tree)), imports


def _find_imports(tree: ast.Module) -> Iterator[str]:
    """Yield imported names. All imports are absolute (tests/test_import_order.py)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _answer_classes(tree: ast.Module) -> set[str]:
    """Return the names of the classes that models are asked for, and of the classes of their fields."""
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    waiting = [
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "structured"
        for argument in node.args
        for name in _find_names(argument)
    ]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in classes and name not in found:
            found.add(name)
            waiting += _find_names(classes[name])
    return found


def _find_names(node: ast.AST) -> list[str]:
    return [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]


_Block = TypeVar("_Block", ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.If)


class _Bare(ast.NodeTransformer):
    """Removes what does not decide a result from a syntax tree.

    Args:
        told: classes whose docstrings a model reads.
    """

    def __init__(self, told: set[str]) -> None:
        self._told = told
        self._in_class = False

    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self._block(node, in_class=False)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        kept = ast.get_docstring(node) if node.name in self._told else None
        bare = self._block(node, in_class=True)
        if kept is not None:
            node.body.insert(0, ast.Expr(ast.Constant(kept)))
        return bare

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self._block(node, in_class=False)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self._block(node, in_class=False)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Remove texts that stand alone: docstrings, also those below attributes."""
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        if self._in_class:
            return node
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign(targets=[node.target], value=node.value), node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return None
        return self._block(node, self._in_class)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if node.module == "__future__" else node

    def _block(self, node: _Block, in_class: bool) -> _Block:
        outside, self._in_class = self._in_class, in_class
        self.generic_visit(node)
        self._in_class = outside
        if not node.body and not isinstance(node, ast.Module):
            node.body = [ast.Pass()]
        return node
