"""Times the set-up of revisions of this repository: `python -m benchmarks.setup_time OLD NEW`.

Each gets a clone of its own and empty caches, as on a fresh machine. Two steps are timed: the Python
environment (`make setup`); the model server's, the weights and their conversion (`hallulab serve --prepare`).
Times depend on the network and the machine; their ratio is told, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import build_parser, format_head, format_row

STEPS = {
    "environment": ("make", "setup"),
    "model server": (".venv/bin/hallulab", "serve", "{model}", "--prepare"),
}

_STDERR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Set up every revision and print a table; return the exit code."""
    parser = build_parser("setup_time", __doc__)
    parser.add_argument("revisions", nargs="+", metavar="REVISION", help="what `git checkout` takes")
    parser.add_argument("--repository", type=Path, default=Path.cwd(), help="default: the folder here")
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    given = parser.parse_args(arguments)
    whole: list[float] = []
    print(*format_head(["revision", *STEPS, "together, seconds", "of the first"]), sep="\n")
    for revision in given.revisions:
        with tempfile.TemporaryDirectory(prefix="setup-") as folder:
            times = seconds(given.repository, revision, given.model, Path(folder))
        whole.append(sum(times))
        cells = [f"{taken:.0f}" for taken in (*times, whole[-1])]
        print(format_row([revision, *cells, f"{whole[-1] / whole[0]:.2f}"]), flush=True)
    return 0


def seconds(repository: Path, revision: str, model: str, folder: Path) -> list[float]:
    """Return the wall time of each step in an empty folder.

    Raises:
        SystemExit: a step fails; its output is on stderr.
    """
    clone = folder / "clone"
    _run(("git", "clone", "--quiet", "--no-checkout", str(repository.absolute()), str(clone)), folder, {})
    _run(("git", "checkout", "--quiet", revision), clone, {})
    fresh = {"XDG_CACHE_HOME": str(folder / "cache"), "HALLULAB_CACHE": str(folder / "cache" / "hallulab")}
    taken = []
    for command in STEPS.values():
        start = time.perf_counter()
        _run([part.format(model=model) for part in command], clone, fresh)
        taken.append(time.perf_counter() - start)
    return taken


def _run(command: Sequence[str], folder: Path, variables: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=folder, env=os.environ | variables, stdout=_STDERR, check=False)
    if done.returncode != 0:
        sys.exit(f"error: `{' '.join(command)}` ended with exit code {done.returncode}.")


if __name__ == "__main__":
    sys.exit(main())
