"""How fast the viewer is on a big run, and what it needs: `python -m benchmarks.viewer_scale`.

The output stands in docs/studies/viewer.md. Runs are made up (`benchmarks.scale.made_run`): one with a
file for each journal, and one with journals in shards and ten conversations a persona. `hallulab view`
serves each in a process of its own: first without an index, while pages are asked for all the time, then
again with it. Give `--run` to measure a run folder that is there.
"""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command import build_parser, format_table
from benchmarks.scale.made_run import make, shape_of
from hallulab.agents.machine.cache import CACHE_VARIABLE

CHATS = 20
"""Conversations that are opened."""
BUILDING = "is being built"
"""What a page says while the index is being built."""
LONGEST_S = 1800


@dataclass(frozen=True)
class Viewer:
    """A viewer that serves."""

    base: str
    """Its address."""
    token: str
    """What lets requests in."""
    process: int
    """Its process."""

    def get(self, path: str) -> tuple[float, str]:
        """Return the seconds that an answer took, and the answer."""
        port = self.base.rsplit(":", 1)[-1]
        request = urllib.request.Request(
            f"{self.base}{path}", headers={"Cookie": f"hallulab-{port}={self.token}"}
        )
        begin = time.perf_counter()
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read().decode()
        return time.perf_counter() - begin, text

    def measure_memory(self) -> float:
        """Return the most memory that the process had so far, in MB."""
        status = Path(f"/proc/{self.process}/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024


@dataclass(frozen=True)
class Opened:
    """What was measured: seconds, but for `memory`."""

    built: float
    """Until the index was built."""
    runs_meanwhile: float
    """The slowest page of all runs meanwhile."""
    run_meanwhile: float
    """The slowest page of the run meanwhile, the first one included."""
    list_meanwhile: float
    """The slowest list of conversations meanwhile."""
    runs: float
    """The page of all runs, as the first one of a new process."""
    run: float
    """The page of the run, as the first one of a new process."""
    last: float
    """The last page of the list of conversations."""
    flagged: float
    """The list of conversations with a flagged turn."""
    chat: float
    """A conversation: the median of some."""
    slowest_chat: float
    """The slowest of them."""
    beside: float
    """A conversation beside that of the other chatbot."""
    memory: float
    """The most memory of the server while it built the index, or after, in MB."""

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield what was measured, with how much it was."""
        yield "index built, while pages are asked for", f"{self.built:.0f} s"
        yield "the page of all runs meanwhile, slowest", f"{1000 * self.runs_meanwhile:.0f} ms"
        yield "the run meanwhile, slowest", f"{1000 * self.run_meanwhile:.0f} ms"
        yield "the list of conversations meanwhile, slowest", f"{1000 * self.list_meanwhile:.0f} ms"
        yield "the page of all runs, first of a new process", f"{1000 * self.runs:.0f} ms"
        yield "the run, first of a new process", f"{1000 * self.run:.0f} ms"
        yield "the last page of the list", f"{1000 * self.last:.0f} ms"
        yield "the list of conversations with a flagged turn", f"{1000 * self.flagged:.0f} ms"
        yield (
            "a conversation, median and slowest",
            f"{1000 * self.chat:.0f}, {1000 * self.slowest_chat:.0f} ms",
        )
        yield "two chatbots side by side", f"{1000 * self.beside:.0f} ms"
        yield "memory of the server, most", f"{self.memory:.0f} MB"


@contextlib.contextmanager
def view(run: Path, cache: Path) -> Iterator[Viewer]:
    """Serve a run in a process of its own while the block runs."""
    command = [sys.executable, "-m", "hallulab", "view", str(run), "--no-browser"]
    environment = {**os.environ, CACHE_VARIABLE: str(cache)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    assert process.stdout is not None
    try:
        base, token = process.stdout.readline().strip().split("/?token=")
        yield Viewer(base, token, process.pid)
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def measure(run: Path, cache: Path) -> Opened:
    """Measure the viewer on a run folder.

    Args:
        run: it.
        cache: an empty folder for the index.
    """
    with view(run, cache) as viewer:
        address = _find_address(viewer)
        meanwhile: dict[str, list[float]] = {"/": [], address: [], f"{address}/conversations": []}
        begin = time.perf_counter()
        while time.perf_counter() - begin < LONGEST_S:
            found = {path: viewer.get(path) for path in meanwhile}
            for path, (seconds, _) in found.items():
                meanwhile[path].append(seconds)
            if BUILDING not in found[address][1]:
                break
            time.sleep(0.5)
        built = time.perf_counter() - begin
        first = viewer.measure_memory()
    with view(run, cache) as viewer:
        runs, _ = viewer.get("/")
    with view(run, cache) as viewer:
        opened, _ = viewer.get(address)
        _, page = viewer.get(f"{address}/conversations")
        pages = int(next(iter(re.findall(r"page 1 of (\d+)", page)), 1))
        last, page = viewer.get(f"{address}/conversations?page={pages}")
        flagged, _ = viewer.get(f"{address}/conversations?flagged=1")
        chats = [
            viewer.get(path)[0] for path in re.findall(f'"({address}/conversations/[^"?]+)"', page)[:CHATS]
        ]
        one = re.findall(f'"{address}/conversations/([^"?]+)"', page)[0]
        beside, _ = viewer.get(f"{address}/beside/{one}")
        memory = max(first, viewer.measure_memory())
    runs_meanwhile, run_meanwhile, list_meanwhile = map(max, meanwhile.values())
    return Opened(
        built=built,
        runs_meanwhile=runs_meanwhile,
        run_meanwhile=run_meanwhile,
        list_meanwhile=list_meanwhile,
        runs=runs,
        run=opened,
        last=last,
        flagged=flagged,
        chat=statistics.median(chats),
        slowest_chat=max(chats),
        beside=beside,
        memory=memory,
    )


def _find_address(viewer: Viewer) -> str:
    """Return the address of the only run; its page is asked for soon, but is not asked for here."""
    _, page = viewer.get("/")
    return str(re.findall(r'href="(/runs/[^"]+)"', page)[0])


def main(tell: Callable[[str], object] = print) -> None:
    """Measure, and print the table."""
    parser = build_parser("viewer_scale", __doc__)
    parser.add_argument("--conversations", type=int, default=100_000, help="of each run that is made")
    parser.add_argument("--run", type=Path, help="a run folder; else two are made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = {"measured": options.run} if options.run else make_both(options.conversations, Path(folder))
        tell(make_table({name: measure(run, Path(folder) / "cache" / name) for name, run in runs.items()}))


def make_both(number: int, folder: Path) -> dict[str, Path]:
    """Make runs of so many conversations in a folder; return their paths by what their journals are."""
    runs = {"one file": folder / "one-file", "shards": folder / "shards"}
    make(number, runs["one file"])
    make(number, runs["shards"], shape_of(3, 3, max(6, number // 10)), in_shards=True)
    return runs


def make_table(found: Mapping[str, Opened]) -> str:
    """Return what was measured of each run, by its name, as a table."""
    columns = [dict(one.lines()) for one in found.values()]
    return format_table(["what", *found], [(what, *(one[what] for one in columns)) for what in columns[0]])


if __name__ == "__main__":
    main()
