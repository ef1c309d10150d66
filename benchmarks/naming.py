"""Measure names: `python -m benchmarks.naming`.

The first table has, for each floor, the functions whose names begin with a verb; properties, overloads and
dunder methods are left out. A verb is a word of verbs.txt. `--others FLOOR` lists the functions that do not.
Below stand the class names that several classes have, private ones included. The programs of
`detectors/peers/workers` and `chatbots/bot_worker.py` all have a class `Worker`, which their main loop asks
for.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command import build_parser, format_head, format_row

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ("scenarios", "agents", "detectors", "chatbots", "simulator")

VERBS = frozenset((ROOT / "benchmarks" / "verbs.txt").read_text(encoding="utf-8").split())


@dataclass(frozen=True)
class Function:
    """A function, and where it stands."""

    name: str
    file: Path
    line: int

    @property
    def begins_with_verb(self) -> bool:
        """Whether the first word of the name is a verb."""
        return self.name.lstrip("_").partition("_")[0] in VERBS


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; return the exit code."""
    parser = build_parser("naming", __doc__)
    parser.add_argument("--others", choices=FLOORS, metavar="FLOOR", help="list functions without a verb")
    given = parser.parse_args(arguments)
    if given.others is not None:
        for one in find_functions(ROOT / given.others):
            if not one.begins_with_verb:
                print(f"{one.file.relative_to(ROOT)}:{one.line} {one.name}")
        return 0
    print("| floor | functions | begin with a verb |\n|---|---:|---:|")
    for floor in FLOORS:
        functions = list(find_functions(ROOT / floor))
        print(format_row([floor, str(len(functions)), f"{compute_verb_share(functions):.0%}"]))
    print("", *format_head(["class name", "in"]), sep="\n")
    for name, files in find_shared_class_names([ROOT / floor for floor in FLOORS]).items():
        print(format_row([name, ", ".join(str(file.relative_to(ROOT)) for file in files)]))
    return 0


def find_functions(folder: Path) -> Iterator[Function]:
    """Yield the functions and methods of a folder that count."""
    for file, node in _walk_nodes(folder):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _counts(node):
            yield Function(node.name, file, node.lineno)


def compute_verb_share(functions: Sequence[Function]) -> float:
    """Return the share of functions that begin with a verb; not a number where there is none."""
    if not functions:
        return float("nan")
    return sum(one.begins_with_verb for one in functions) / len(functions)


def find_shared_class_names(folders: Sequence[Path]) -> Mapping[str, list[Path]]:
    """Return the names that several classes have, without leading underscores, with their files."""
    found: dict[str, list[Path]] = defaultdict(list)
    for folder in folders:
        for file, node in _walk_nodes(folder):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(file)
    return {name: files for name, files in sorted(found.items()) if len(files) > 1}


def _walk_nodes(folder: Path) -> Iterator[tuple[Path, ast.AST]]:
    """Yield every node of the syntax trees of a folder, with its file."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            yield file, node


def _counts(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    return not node.name.startswith("__") and not any(
        "property" in decorator or "overload" in decorator for decorator in decorators
    )


if __name__ == "__main__":
    sys.exit(main())
