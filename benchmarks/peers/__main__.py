"""hallulab beside other simulators: `python -m benchmarks.peers [--docs docs/studies/side-by-side.md]`.

Each tool has the same number of conversations of three turns, sixteen at once, with an endpoint that answers
at once (`benchmarks.peers.stub`), in a process and an environment of its own (`--environments`). Each round
measures all tools, in another order. Processor time is compared with that of a bare loop of the openai client
in the same round, because a busy machine slows all down. The medians of the rounds are printed.

Then each tool is killed (SIGKILL) when half of its calls are answered, by an endpoint that takes about 0.1
seconds for each, and started again with the same folder. A call is lost if it was paid before and is paid
again.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from benchmarks.command import build_parser, format_table, get_exit_code, write_between
from benchmarks.orchestration import stub
from benchmarks.peers.converse import TOOLS, TURNS, count_calls
from benchmarks.peers.environments import list_variables, make_environment, name_version
from hallulab.scenarios.errors import OperationalError, UsageError

BARE, STUB, SECONDS, LONGEST_S = "bare", "benchmarks.peers.stub", 0.1, 1800
BEGINS, ENDS = "<!-- peers: begin -->\n", "<!-- peers: end -->\n"
COLUMNS = (
    "Tool",
    "CPU ms a call",
    "of a bare client's",
    "Calls a conversation",
    "Calls a second",
    "Memory MB",
    "Paid calls lost",
)


@dataclass(frozen=True)
class Measured:
    """The cost of the conversations of one tool in one round."""

    turns: int
    calls: int
    seconds: float
    cpu: float
    """Processor seconds of all its processes."""
    megabytes: float
    """Largest memory of its process, and of the largest one that it started."""

    @property
    def cpu_ms(self) -> float:
        """Processor milliseconds a call."""
        return self.cpu / self.calls * 1000


class PeerTool:
    """A tool in its environment, with the conversations that it is asked for.

    Args:
        name: in `TOOLS`.
        environments: the folder of all environments.
        conversations: how many it has.
    """

    def __init__(self, name: str, environments: Path, conversations: int) -> None:
        self.name, self._conversations = name, conversations
        self._python = make_environment(name, environments)

    def start(self, url: str, folder: Path, *more: str) -> subprocess.Popen[str]:
        """Start it; its processes are a group of their own."""
        folder.mkdir(parents=True, exist_ok=True)
        script = Path(__file__).with_name("converse.py")
        command = [
            str(self._python),
            str(script),
            self.name,
            url,
            str(self._conversations),
            str(folder),
            *more,
        ]
        variables, pipe = list_variables(self.name) | {"PEER_URL": url}, subprocess.PIPE
        return subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            stdout=pipe,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def finish(self, process: subprocess.Popen[str]) -> Measured:
        """Wait for it, and return what it measured.

        Raises:
            OperationalError: it failed, or has fewer turns than it was asked for.
        """
        try:
            said, _ = process.communicate(timeout=LONGEST_S)
        except subprocess.TimeoutExpired as error:
            os.killpg(process.pid, signal.SIGKILL)
            raise OperationalError(f"{self.name}: not done after {LONGEST_S} seconds.") from error
        last = said.strip().rpartition("\n")[2]
        if process.returncode or not last.startswith("{"):
            raise OperationalError(f"{self.name}: failed; its last words: {said[-600:].strip()}")
        found = Measured(**json.loads(last))
        if found.turns != self._conversations * TURNS:
            raise OperationalError(f"{self.name}: {found.turns} of {self._conversations * TURNS} turns.")
        return found

    def measure(self, url: str) -> Measured:
        """Measure its conversations."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            return self.finish(self.start(url, Path(folder)))

    def count_lost(self, url: str) -> tuple[int, int]:
        """Kill it in the middle and start it again; return the calls that are lost, and those before."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
            whole, killed = Path(directory) / "whole", Path(directory) / "killed"
            before = count_calls(url)
            self.finish(self.start(url, whole, "cold"))
            needed = count_calls(url) - before
            process = self.start(url, killed, "cold")
            while count_calls(url) - before < 1.5 * needed and process.poll() is None:
                time.sleep(0.02)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            paid = count_calls(url) - before - needed
            self.finish(self.start(url, killed, "cold"))
            return count_calls(url) - before - 2 * needed, paid


Rounds = dict[str, list[Measured]]
Result = TypeVar("Result")


def measure_rounds(tools: Sequence[PeerTool], rounds: int) -> Rounds:
    """Measure all tools in each round; one that fails once is left out of the result."""
    found: Rounds = {tool.name: [] for tool in tools}
    with stub(0.0, STUB) as url:
        for number in range(rounds):
            for tool in [*tools[number % len(tools) :], *tools[: number % len(tools)]]:
                if len(found[tool.name]) == number:
                    found[tool.name] += _try(partial(tool.measure, url), f"round {number + 1}, {tool.name}")
    return {name: measured for name, measured in found.items() if len(measured) == rounds}


def count_all_lost(tools: Sequence[PeerTool]) -> dict[str, tuple[int, int]]:
    """Return the calls that each tool loses, and those before it was killed."""
    with stub(SECONDS, STUB) as url:
        found = {one.name: _try(partial(one.count_lost, url), f"killed, {one.name}") for one in tools}
    return {name: lost[0] for name, lost in found.items() if lost}


def _try(work: Callable[[], Result], about: str) -> list[Result]:
    """Return a result, or none if the tool fails; tell of both."""
    try:
        found = [work()]
    except OperationalError as error:
        found = []
        print(f"{about}: {error}", file=sys.stderr, flush=True)
    else:
        print(f"{about}: {found[0]}", file=sys.stderr, flush=True)
    return found


def format_results(found: Rounds, lost: dict[str, tuple[int, int]], conversations: int) -> str:
    """Return the table: medians over the rounds, least processor time a call first."""

    def take_median(name: str, number: Callable[[Measured], float]) -> float:
        return statistics.median(map(number, found[name]))

    rows = []
    for name in sorted(found, key=lambda name: take_median(name, lambda one: one.cpu_ms)):
        ratios = [own.cpu_ms / bare.cpu_ms for own, bare in zip(found[name], found[BARE], strict=True)]
        cells = [
            f"{take_median(name, lambda one: one.cpu_ms):.1f}",
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
            f"{take_median(name, lambda one: one.calls) / conversations:.1f}",
            f"{take_median(name, lambda one: one.calls / one.seconds):.0f}",
            f"{take_median(name, lambda one: one.megabytes):.0f}",
            "{} of {}".format(*lost[name]) if name in lost else "–",
        ]
        rows.append([name_version(name), *cells])
    return format_table(COLUMNS, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; return the exit code."""
    parser = build_parser("peers", __doc__)
    parser.add_argument("--conversations", type=int, default=200, help="of each tool in each round")
    parser.add_argument(
        "--killed", type=int, default=64, help="conversations of a tool that is killed; 0: none is"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=list(TOOLS), metavar="TOOL")
    parser.add_argument("--environments", type=Path, default=Path(tempfile.gettempdir()) / "hallulab-peers")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="page whose table is written")
    given = parser.parse_args(arguments)

    def run() -> None:
        if BARE not in given.tools:
            raise UsageError(f"--tools: {BARE} must be among them, because the others are compared with it.")
        place = given.environments.absolute()
        found = measure_rounds(
            [PeerTool(name, place, given.conversations) for name in given.tools], given.rounds
        )
        if BARE not in found:
            raise OperationalError(f"{BARE}: failed, so nothing can be compared with it.")
        lost = (
            count_all_lost([PeerTool(name, place, given.killed) for name in given.tools])
            if given.killed
            else {}
        )
        table = format_results(found, lost, given.conversations)
        print(table)
        if given.docs is not None:
            about = (
                f"{given.conversations} conversations, {given.rounds} rounds; {given.killed} where killed."
            )
            write_between(given.docs, BEGINS, ENDS, f"\n{about}\n\n{table}\n\n")

    return get_exit_code(run)


if __name__ == "__main__":
    sys.exit(main())
