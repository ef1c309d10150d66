"""Entry point of the `hallulab` command: check that Python finds our packages, and import them then.

Other distributions and projects have packages called `agents` or `simulator`, too. Where Python finds such a
package first, none of ours could be imported. So this module imports none of them at the top.
"""

from __future__ import annotations

import ast
import sys
from importlib.util import find_spec
from pathlib import Path

NAMES = ("scenarios", "agents", "detectors", "chatbots", "simulator")
"""Our packages."""


def main() -> None:
    """Run a command and exit, see `simulator.cli.main`. Exit code 2: a package of ours is not found."""
    taken = taken_packages()
    if taken:
        name, place = taken[0]
        print(
            f"error: Python finds another package `{name}` in the place of hallulab's, {place!a}. "
            "Take its folder off PYTHONPATH, or install hallulab in an environment of its own.",
            file=sys.stderr,
        )
        sys.exit(2)
    from simulator.cli.main import main as command

    command()


def taken_packages() -> list[tuple[str, str]]:
    """Find packages of ours that Python does not find, and what it finds instead. Nothing is imported."""
    found = [(name, _place(name)) for name in NAMES]
    return [(name, place) for name, place in found if not _is_ours(name, place)]


def _place(name: str) -> str:
    spec = find_spec(name)
    if spec is None:
        return "nothing"
    return str(spec.origin or next(iter(spec.submodule_search_locations or ()), "nothing"))


def _is_ours(name: str, place: str) -> bool:
    """Return whether the file is our package's `__init__.py`. Ours hold a docstring and nothing else."""
    own = Path(__file__).resolve().parent.with_name(name) / "__init__.py"
    try:
        return Path(place).resolve() == own and len(ast.parse(own.read_bytes()).body) == 1
    except (OSError, ValueError, SyntaxError):
        return False


if __name__ == "__main__":
    main()
