"""Counts the planted faults that tests catch: `python -m benchmarks.planted_faults --coverage FILE`.

The faults stand in `benchmarks/planted_faults.json`: 40 changes of one place each, eight a floor. They were
drawn with seed 31 from the changes that cosmic-ray 8.7 makes: places first, then one of a place's changes.
One of `chatbots` was drawn again, among its conditions, when the code of the first was removed.
None is in an annotation, none exchanges for `is`, none renames a variable. Each is made in a copy of the
repository, where the tests that reach the changed lines run until one fails. Coverage tells which these are:

    python -m pytest --cov --cov-branch --cov-context=test

A line that only an import reaches gets the tests that reach its file; a file that no test reaches gets all.
First all tests must pass without a fault. It takes half an hour on two cores.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from pathlib import Path

from coverage import CoverageData
from pydantic import BaseModel

from benchmarks.command import build_parser

FAULTS = Path(__file__).with_suffix(".json")

PROCESSES = "logical"
"""How many run tests: pytest's -n."""

LONGEST_S = 1800.0
"""Seconds after which tests count as caught up in the fault: it may make them go on for ever."""

NOT_BY_CODE = ("tests/benchmarks/test_real_table.py", "tests/benchmarks/test_planted_faults.py")
"""Tests that a change of code fails whatever it does; they are not counted."""


class Fault(BaseModel):
    """A change of one place."""

    file: str
    """Path in the repository."""
    line: int
    """Where it stood when it was drawn, from 1; the same lines elsewhere in the file are found, too."""
    operator: str
    """Cosmic-ray's name of the change."""
    before: list[str]
    """Lines that are changed."""
    after: list[str]
    """Lines that take their place."""


def read_faults(path: Path = FAULTS) -> list[Fault]:
    """Return the faults of a file."""
    return [Fault.model_validate(value) for value in json.loads(path.read_text(encoding="utf-8"))]


def find_lines(fault: Fault, text: str) -> range:
    """Return the numbers of the changed lines, from 0: of equal places the nearest to where it was drawn.

    Raises:
        ValueError: the file has no such lines.
    """
    lines, count = text.splitlines(), len(fault.before)
    starts = [start for start in range(len(lines)) if lines[start : start + count] == fault.before]
    if not starts:
        raise ValueError(
            f"{fault.file} has no lines {fault.before}; draw another fault, or name the new lines"
        )
    start = min(starts, key=lambda start: abs(start - (fault.line - 1)))
    return range(start, start + count)


def apply_fault(fault: Fault, text: str) -> str:
    """Return the text of a file with the fault in it."""
    lines, place = text.splitlines(), find_lines(fault, text)
    lines[place.start : place.stop] = fault.after
    return "\n".join(lines) + "\n"


def find_reaching_tests(data: CoverageData, path: Path, lines: range) -> set[str]:
    """Return the tests that reach lines of a file; the whole file where only its import reaches them."""
    by_line = data.contexts_by_lineno(str(path))
    reached = {line + 1 for line in lines}
    for numbers in (reached, by_line.keys()):
        tests = {context.partition("|")[0] for number in numbers for context in by_line.get(number, [])}
        if tests - {""}:
            return tests - {""}
    return set()


def run_tests(folder: Path, tests: Set[str], tier: str) -> str | None:
    """Run tests until one fails; return its name, or None where all pass. No tests: all of the tier.

    Args:
        folder: a copy of the repository.
        tests: their names.
        tier: `default`, or `slow` for both tiers.

    Raises:
        RuntimeError: pytest does not know a test, or fails itself.
    """
    chosen = folder / "chosen.txt"
    chosen.write_text("\n".join(sorted(tests) or ["tests"]), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", "--tb=no"]
    command += ["-n", PROCESSES, "--dist", "worksteal", "--timeout", "300"]
    command += ["-m", "not live"] if tier == "slow" else []
    command += [f"--deselect={name}" for name in NOT_BY_CODE]
    try:
        ended = subprocess.run(
            [*command, f"@{chosen}"],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "no test ended in time"
    if ended.returncode in (0, 5):  # all passed, or none was chosen
        return None
    if "ERROR: not found" in ended.stderr or "INTERNALERROR" in ended.stdout:
        raise RuntimeError(ended.stderr.strip() or ended.stdout)
    failed = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].partition(" - ")[0] if failed else f"pytest ended with exit code {ended.returncode}"


def catch(fault: Fault, folder: Path, tests: Set[str], tier: str) -> str | None:
    """Return the test that fails with the fault; None where none does. Tests of the same room come first."""
    path = folder / fault.file
    sound = path.read_text(encoding="utf-8")
    room = f"tests/{Path(fault.file).parent}/"
    near = {test for test in tests if test.startswith(room)}
    path.write_text(apply_fault(fault, sound), encoding="utf-8")
    try:
        caught = run_tests(folder, near, tier) if near else None
        if caught is None and (tests - near or not tests):
            caught = run_tests(folder, tests - near, tier)
    finally:
        path.write_text(sound, encoding="utf-8")
    return caught


@contextmanager
def copied(tree: Path) -> Iterator[Path]:
    """Copy the files of a repository that git knows or would take up."""
    command = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    listed = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        for name in filter(None, listed.split("\0")):
            if (tree / name).is_file() or (tree / name).is_symlink():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(tree / name, Path(folder) / name, follow_symlinks=False)
        yield Path(folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try every fault and print a row each; return the exit code."""
    parser = build_parser("planted_faults", __doc__)
    parser.add_argument("--coverage", type=Path, required=True, help="data of a run with --cov-context=test")
    parser.add_argument("--tier", choices=("default", "slow"), default="default", help="slow: both tiers")
    parser.add_argument("--tree", type=Path, default=Path.cwd(), help="repository; default: the folder here")
    parser.add_argument("--only", type=int, nargs="*", metavar="N", help="numbers of faults, from 1")
    given = parser.parse_args(arguments)
    data = CoverageData(str(given.coverage))
    data.read()
    caught = 0
    faults = read_faults()
    numbers = given.only or range(1, len(faults) + 1)
    with copied(given.tree) as folder:
        failed = run_tests(folder, set(), given.tier)
        if failed is not None:
            sys.exit(f"error: without a fault: {failed}")
        for number in numbers:
            fault = faults[number - 1]
            text = (given.tree / fault.file).read_text(encoding="utf-8")
            tests = find_reaching_tests(data, given.tree.absolute() / fault.file, find_lines(fault, text))
            by = catch(fault, folder, tests, given.tier)
            caught += by is not None
            print(
                f"| {number} | {fault.file}:{fault.line} | {fault.operator} | {by or 'nobody'} |", flush=True
            )
    print(f"caught: {caught} of {len(numbers)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
