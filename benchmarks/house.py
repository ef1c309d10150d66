"""Measure the shape of the code: `python -m benchmarks.house [--json] [--walk]`.

The walk begins at `run_experiment`, which takes a run from its file to its journals, and follows an
experiment through static calls in the order of the code: into functions and methods that get it, or what is
made from it. Each function is entered once. Calls within one file are one stay; a stay in a file that was
left before is a return. Files of `simulator` count: other floors are libraries to a run. A method is found by
the types of annotations, constructors and results; calls of values whose type is not written down are not
followed.
"""

from __future__ import annotations

import ast
import io
import json
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.command import build_parser, format_head, format_row

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ("scenarios", "agents", "detectors", "chatbots", "simulator", "hallulab")
WALKED = "simulator"
"""Floor whose files count as stays."""
START = "run_experiment"
"""Function at which the walk begins; no other module of `simulator` has one of this name."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """A source file: its functions, its classes, and what its imports name.

    Args:
        name: dotted name, without `hallulab`.
        path: the file.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path = name, path
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.functions = {node.name: node for node in self.tree.body if isinstance(node, Function)}
        self.classes = {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}
        self.imported = {
            alias.asname or alias.name: (_strip(node.module), alias.name)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("hallulab.")
            for alias in node.names
        }

    @cached_property
    def used_names(self) -> Counter[str]:
        """How often each name is used in the file, as a name or as an attribute."""
        return Counter(
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Name | ast.Attribute)
        )


@dataclass(frozen=True)
class Definition:
    """A function or method, the module in which it stands, and its class if it has one."""

    module: Module
    node: Function
    owner: ast.ClassDef | None = None


@dataclass(frozen=True)
class Shape:
    """The numbers."""

    files: int
    lines: int
    stays: int
    returns: int
    private_used_once_per_1000: float
    attribute_docstrings_per_1000: float
    comment_percent: float
    modules_that_print_a_table: int
    modules_that_render_a_page: int
    modules_that_write_markdown_tables: int


class Walk:
    """Follows a value from a function through the calls that get it.

    Args:
        modules: all modules by name.
    """

    def __init__(self, modules: dict[str, Module]) -> None:
        self._modules = modules
        self._entered: set[int] = set()
        self.stays: list[str] = []
        """Names of modules, one after the other."""

    @property
    def returns(self) -> int:
        """How many stays are in a file that was left before."""
        return len(self.stays) - len(set(self.stays))

    def enter(self, found: Definition, value: set[str]) -> None:
        """Enter a function in which some names have the value.

        Args:
            found: the function.
            value: parameters that have it.
        """
        if id(found.node) in self._entered:
            return
        self._entered.add(id(found.node))
        counts = found.module.name.partition(".")[0] == WALKED
        if counts and self.stays[-1:] != [found.module.name]:
            self.stays.append(found.module.name)
        value = set(value)
        types = self._read_parameter_types(found)
        for node in _iterate_in_order(found.node.body):
            if isinstance(node, ast.Call):
                self._follow(node, found, value, types)
            for target, source in _list_bindings(node):
                if _names(source) & value:
                    value |= {name.id for name in ast.walk(target) if isinstance(name, ast.Name)}
                if isinstance(target, ast.Name) and (kind := self._find_type(source, found, types)):
                    types[target.id] = kind

    def _follow(
        self, call: ast.Call, found: Definition, value: set[str], types: dict[str, tuple[Module, str]]
    ) -> None:
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        has_value = receiver is not None and _names(receiver) & value
        if not has_value and not any(_names(one) & value for one in given):
            return
        target = self._find_called(call, found, types)
        if target is None:
            return
        names = [one.arg for one in (*target.node.args.posonlyargs, *target.node.args.args)]
        is_bound = bool(names) and names[0] in ("self", "cls")
        inner = {name for name, one in zip(names[is_bound:], call.args, strict=False) if _names(one) & value}
        inner |= {word.arg for word in call.keywords if word.arg and _names(word.value) & value}
        if is_bound and (has_value or target.node.name == "__init__"):
            inner.add(names[0])
        self.enter(target, inner)

    def _find_called(
        self, call: ast.Call, found: Definition, types: dict[str, tuple[Module, str]]
    ) -> Definition | None:
        if isinstance(call.func, ast.Name):
            return self._find_named(found.module, call.func.id)
        if isinstance(call.func, ast.Attribute):
            kind = self._find_type(call.func.value, found, types)
            return kind and self._find_method(*kind, call.func.attr)
        return None

    def _find_named(self, module: Module, name: str) -> Definition | None:
        home = self._find_home(module, name)
        if home is None:
            return None
        at, own = home
        if own in at.functions:
            return Definition(at, at.functions[own])
        return self._find_method(at, own, "__init__") or self._find_method(at, own, "__post_init__")

    def _find_home(self, module: Module, name: str) -> tuple[Module, str] | None:
        """Return the module in which a function or class stands that a name means, and its name there."""
        if name in module.functions or name in module.classes:
            return module, name
        if name in module.imported:
            there, own = module.imported[name]
            if there in self._modules:
                return self._find_home(self._modules[there], own)
        return None

    def _find_method(self, module: Module, owner: str, name: str) -> Definition | None:
        node = module.classes.get(owner)
        if node is None:
            return None
        for member in node.body:
            if isinstance(member, Function) and member.name == name:
                return Definition(module, member, node)
        for base in node.bases:
            home = self._find_home(module, base.id) if isinstance(base, ast.Name) else None
            if home and (inherited := self._find_method(*home, name)):
                return inherited
        return None

    def _read_parameter_types(self, found: Definition) -> dict[str, tuple[Module, str]]:
        every = found.node.args
        annotated = [*every.posonlyargs, *every.args, *every.kwonlyargs]
        types = {
            one.arg: kind
            for one in annotated
            if one.annotation and (kind := self._read_annotation(found.module, one.annotation))
        }
        if found.owner is not None and annotated:
            types[annotated[0].arg] = (found.module, found.owner.name)
        return types

    def _read_annotation(self, module: Module, annotation: ast.expr) -> tuple[Module, str] | None:
        """Return the first class of ours in an annotation, also within a union or an iterator."""
        for node in ast.walk(annotation):
            if isinstance(node, ast.Name):
                home = self._find_home(module, node.id)
                if home and home[1] in home[0].classes:
                    return home
        return None

    def _find_type(
        self, source: ast.expr, found: Definition, types: dict[str, tuple[Module, str]]
    ) -> tuple[Module, str] | None:
        """Return the class of an expression; None: it is not known."""
        match source:
            case ast.Name(id=name):
                return types.get(name) or self._find_home(found.module, name)
            case ast.Await(value=inner):
                return self._find_type(inner, found, types)
            case ast.Call():
                called = self._find_called(source, found, types)
                if called is not None and called.node.returns is not None and called.node.name != "__init__":
                    return self._read_annotation(called.module, called.node.returns)
                if isinstance(source.func, ast.Name):
                    home = self._find_home(found.module, source.func.id)
                    return home if home and home[1] in home[0].classes else None
            case ast.Attribute(value=inner, attr=name):
                kind = self._find_type(inner, found, types)
                return kind and self._find_attribute(*kind, name)
        return None

    def _find_attribute(self, module: Module, owner: str, name: str) -> tuple[Module, str] | None:
        described = module.classes.get(owner)
        for member in described.body if described else ():
            if isinstance(member, ast.AnnAssign) and ast.unparse(member.target) == name:
                return self._read_annotation(module, member.annotation)
            if isinstance(member, Function) and member.name == name and member.returns:
                return self._read_annotation(module, member.returns)
        begin = self._find_method(module, owner, "__init__")
        if begin is not None:
            types = self._read_parameter_types(begin)
            for node in ast.walk(begin.node):
                for target, source in _list_bindings(node):
                    if isinstance(target, ast.Attribute) and target.attr == name:
                        return self._find_type(source, begin, types)
        return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit code."""
    parser = build_parser("house", __doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--walk", action="store_true", help="list the stays of the walk")
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout")
    given = parser.parse_args(arguments)
    modules = load_modules(given.root)
    if given.walk:
        print(*walk(modules).stays, sep="\n")
        return 0
    shape = asdict(measure(modules))
    if given.json:
        print(json.dumps(shape, indent=2))
        return 0
    print(*format_head(["what", "number"]), sep="\n")
    for name, number in shape.items():
        print(format_row([name.replace("_", " "), f"{number:,}"]))
    return 0


def load_modules(root: Path) -> dict[str, Module]:
    """Return the modules of a checkout by name, without tests and benchmarks."""
    return {
        name: Module(name, path)
        for floor in FLOORS
        for path in sorted((root / floor).rglob("*.py"))
        for name in [_strip(".".join(path.relative_to(root).with_suffix("").parts))]
    }


def walk(modules: dict[str, Module]) -> Walk:
    """Walk from `run_experiment` along its experiment."""
    [start] = [
        Definition(module, module.functions[START])
        for name, module in modules.items()
        if START in module.functions and name.startswith("simulator.")
    ]
    walked = Walk(modules)
    walked.enter(start, {"experiment"})
    return walked


def measure(modules: dict[str, Module]) -> Shape:
    """Return the shape of modules."""
    walked = walk(modules)
    each = list(modules.values())
    lines = sum(len(module.text.splitlines()) for module in each)
    once = sum(len(list_private_used_once(module)) for module in each)
    documented = sum(count_attribute_docstrings(module.tree) for module in each)
    return Shape(
        files=len(each),
        lines=lines,
        stays=len(walked.stays),
        returns=walked.returns,
        private_used_once_per_1000=round(1000 * once / lines, 1),
        attribute_docstrings_per_1000=round(1000 * documented / lines, 1),
        comment_percent=round(100 * sum(count_comments(module.text) for module in each) / lines, 1),
        modules_that_print_a_table=sum(_prints_a_table(module) for module in each),
        modules_that_render_a_page=sum("render_page" in module.functions for module in each),
        modules_that_write_markdown_tables=sum(_writes_a_markdown_table(module) for module in each),
    )


def list_private_used_once(module: Module) -> list[str]:
    """Return the private functions of a module that are used exactly once in it."""
    return [name for name in module.functions if name.startswith("_") and module.used_names[name] == 1]


def count_attribute_docstrings(tree: ast.Module) -> int:
    """Count the texts that follow an assignment in a class or a module."""
    return sum(
        isinstance(before, ast.Assign | ast.AnnAssign) and _is_text(after)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.Module | Function)
        for before, after in zip(node.body, node.body[1:], strict=False)
    )


def count_comments(text: str) -> int:
    """Count the lines that are a comment or end with one."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(one.type == tokenize.COMMENT for one in tokens)


def _prints_a_table(module: Module) -> bool:
    called = {
        node.func.id
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    return bool(called & {"Table", "print_table"})


def _writes_a_markdown_table(module: Module) -> bool:
    """Return whether a text that is no docstring has the line below the head of a table."""
    docstrings = {
        id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Expr) and _is_text(node)
    }
    return any(
        isinstance(node.value, str) and node.value.replace(" ", "").startswith("|---")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and id(node) not in docstrings
    )


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)


def _strip(name: str) -> str:
    return name.removeprefix("hallulab.")


def _names(node: ast.expr) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _iterate_in_order(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the parts of statements as they run: what a call is given comes before the call."""

    def visit(node: ast.AST) -> Iterator[ast.AST]:
        match node:
            case ast.For() | ast.AsyncFor():
                yield from visit(node.iter)
                yield node  # its target is bound before its body runs
                for statement in (*node.body, *node.orelse):
                    yield from visit(statement)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                for loop in node.generators:
                    yield from visit(loop)
                parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
                for part in parts:
                    yield from visit(part)
                yield node
            case _:
                for inner in ast.iter_child_nodes(node):
                    yield from visit(inner)
                yield node

    for first in body:
        yield from visit(first)


def _list_bindings(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets that a statement binds, each with the expression that it gets."""
    match node:
        case ast.Assign(targets=targets, value=source):
            for target in targets:
                yield target, source
        case ast.AnnAssign(target=target, value=ast.expr() as source) | ast.NamedExpr(target, source):
            yield target, source
        case ast.withitem(context_expr=source, optional_vars=ast.expr() as target):
            yield target, source
        case ast.For(target=target, iter=source) | ast.AsyncFor(target=target, iter=source):
            yield target, source
        case ast.comprehension(target=target, iter=source):
            yield target, source


if __name__ == "__main__":
    raise SystemExit(main())
