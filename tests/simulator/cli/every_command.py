"""Every command that writes, on a workspace of a few kilobytes, to be killed or hindered."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import yaml

from hallulab.testing.endpoint import MODEL, serve_stub
from hallulab.testing.scripted import completion
from hallulab.testing.tiny_pack import HashedWords
from tests.disk_faults import DiskFault
from tests.kit import forked_runs
from tests.kit.faulty_endpoint import faulty_endpoint
from tests.kit.forked_runs import Ended
from tests.kit.kill_points import lines_of
from tests.kit.recorded_run import record_run, work_in
from tests.simulator.cli.pack_writer import Writer, twelve_documents, without_weights

COMMANDS: Mapping[str, str] = {
    "run": "run -c {fixed}/recorded.yaml --repeats 2 --quiet --replay {fixed}/recorded.jsonl --out new",
    "simulate": "run --no-judge -c {fixed}/recorded.yaml --repeats 2 --quiet --replay {fixed}/recorded.jsonl "
    "--out new",
    "detect": "detect held --detectors lexical,halludetect --quiet --replay {fixed}/recorded.jsonl",
    "branch": "branch run --chatbots vanilla --quiet --replay {fixed}/branch.jsonl --out branched",
    "report": "report stale",
    "annotate-next": "annotate run --next 4 --guideline {fixed}/guideline.md",
    "annotate-add": "annotate run --add to-annotate.yaml",
    "export": "export run --detector lexical --out exported.jsonl",
    "export-hf": "export run --format hf --out exported-hf",
    "export-csv": "export run --format csv --out exported.csv",
    "export-ragtruth": "export run --format ragtruth --detector lexical --out exported-ragtruth",
    "export-parquet": "export run --format parquet --out exported.parquet",
    "compact": "export run --format tables",
    "import": "import {fixed}/chats.jsonl --out imported --documents {fixed}/pack/documents",
    "bench": "bench labelled.jsonl --detectors lexical --json b.json --csv b.csv --html b.html",
    "plant": "make-data planted {fixed}/documents --count 4 --kinds number --out planted",
    "calibrate": "calibrate {fixed}/documents --detectors lexical --count 40 --quiet",
    "compare": "compare run run2 --json c.json --markdown c.md --html c.html",
    "baseline": "compare run --save base2.json",
    "gate": "gate run --against base.json --json g.json --markdown g.md --junit g.xml",
    "realism": "realism run --reference {fixed}/people.jsonl --out realism.html",
    "init": "init-scenario made",
    "init-documents": "init-scenario written --documents {fixed}/documents --personas 2 --quiet "
    "--model stub --replay {fixed}/written.jsonl",
    "build": "make-data audit-corpus --out corpus.jsonl",
}
"""Name → the command line. What it writes is below the working directory or in the cache, which is there,
too; {fixed} is a folder that no command writes to."""

SEARCHING = ("import", "init-documents")
"""Those that use lancedb, which has threads that are not forked."""


@dataclass(frozen=True)
class Workshop:
    """Runs commands in processes forked from one that has run each of them before."""

    fixed: Path
    """What all commands read."""
    start: Path
    """What a working directory holds at the beginning."""
    driver: ProcessPoolExecutor

    def arguments(self, name: str) -> list[str]:
        """The arguments of a command."""
        return COMMANDS[name].format(fixed=self.fixed).split()

    def new(self, place: Path) -> Path:
        """Make a working directory."""
        shutil.copytree(self.start, place)
        return place

    def undisturbed(self, name: str, place: Path) -> tuple[list[str], State]:
        """Run a command in a new working directory; return its steps on the disk, and what is there then."""
        self.new(place)
        seen = place.with_suffix(".seen")
        ended = self(name, place, DiskFault(sys.maxsize, place, seen).meet)
        assert (ended.code, "Traceback" in ended.err) == (0, False), ended
        return seen.read_text().splitlines(), state_of(place)

    def __call__(self, name: str, place: Path, before: Callable[[], object] = tuple) -> Ended:
        """Run a command in a working directory; `before` is called in the process first."""
        return self.run(self.arguments(name), place, before)

    def run(self, arguments: list[str], place: Path, before: Callable[[], object] = tuple) -> Ended:
        """Run a command that is given by its arguments."""
        return self.driver.submit(_fork, [arguments], place, self._printed, before).result()[0]

    def at_once(self, first: list[str], second: list[str], place: Path) -> list[Ended]:
        """Run two commands in a working directory at once."""
        return self.driver.submit(_fork, [first, second], place, self._printed, tuple).result()

    def kill(self, name: str, place: Path, share: float) -> None:
        """Kill a command when that share of its usual time has gone by."""
        self.driver.submit(_kill, self.arguments(name), place, self._printed, share).result()

    @property
    def _printed(self) -> Path:
        return self.fixed.parent / "printed"


State = dict[str, Any]
"""Name of a file → what it holds, alike for all runs of a command. What lancedb writes is left out."""

_UNLIKE = re.compile(rb"[0-9.]+")
"""What differs in the files of `bench`: how long it took."""


def state_of(place: Path) -> State:
    """Return what a working directory holds; lines of journals in any order, torn ones left out."""
    found: State = {}
    for path in sorted(one for one in place.rglob("*") if one.is_file()):
        name = str(path.relative_to(place))
        if path.suffix == ".jsonl":
            found[name] = lines_of(path)
        elif not name.startswith("cache/knowledge/"):
            held = path.read_bytes().replace(bytes(place), b"")
            found[name] = _UNLIKE.sub(b"0", held) if name.startswith("b.") else held
    return found


def enter(place: Path, before: Callable[[], object]) -> None:
    """Have this process work in a working directory, with its cache and without weights."""
    os.chdir(place)
    os.environ["HALLULAB_CACHE"] = str(place / "cache")
    for module in ("simulator.authoring.packs", "agents.retrieval.embeddings"):
        patch(f"hallulab.{module}.SentenceEmbedder", lambda *_: HashedWords()).start()
    before()


def _fork(commands: list[list[str]], place: Path, printed: Path, before: Callable[[], object]) -> list[Ended]:
    places = [printed.with_name(f"{printed.name}{number}") for number in range(len(commands))]
    work = partial(enter, place, before)
    processes = [forked_runs.fork(*both, work) for both in zip(commands, places, strict=True)]
    return [forked_runs.wait(*both) for both in zip(processes, places, strict=True)]


def _kill(arguments: list[str], place: Path, printed: Path, share: float) -> None:
    usual = place.with_name(f"{place.name}-usual")
    shutil.copytree(place, usual)
    started = time.perf_counter()
    _fork([arguments], usual, printed, tuple)
    seconds = time.perf_counter() - started
    shutil.rmtree(usual)
    process = forked_runs.fork(arguments, printed, partial(enter, place, tuple))
    process.join(share * seconds)
    process.kill()
    process.join()


def _run_all(fixed: Path, start: Path, place: Path) -> list[tuple[str, Ended]]:
    """Run each command in this process, so that forks have what they import. lancedb cannot be forked."""
    for module in ("pyarrow.dataset", "lance_namespace"):
        import_module(module)
    shutil.copytree(start, place)
    enter(place, tuple)
    workshop = Workshop(fixed, start, None)  # type: ignore[arg-type]
    return [
        (name, forked_runs.end_here(workshop.arguments(name), place))
        for name in COMMANDS
        if name not in SEARCHING
    ]


@contextmanager
def open_workshop() -> Iterator[Workshop]:
    """Make the workspace and the process to fork from. Behind that, nothing of this process is changed."""
    with TemporaryDirectory() as directory, forked_runs.driver() as driver:
        folder = Path(directory)
        fixed, start = folder / "fixed", folder / "start"
        fixed.mkdir()
        start.mkdir()
        with work_in(folder):
            _fill(folder, fixed, start)
            for name, ended in driver.submit(_run_all, fixed, start, folder / "first").result():
                assert ended.code == 0, (name, ended)
        yield Workshop(fixed, start, driver)


def _fill(folder: Path, fixed: Path, start: Path) -> None:
    (folder / "pack").rename(fixed / "pack")
    shutil.copytree(fixed / "pack", folder / "pack")
    command = record_run(folder)
    for name in ("recorded.yaml", "recorded.jsonl"):
        text = (folder / name).read_text().replace(str(folder / "pack"), str(fixed / "pack"))
        (fixed / name).write_text(text)
    here = partial(_run_here, folder)
    replay = [one.replace(str(folder), str(fixed)) for one in command]
    here(*replay, "--out", start / "run")
    here("run", "--no-judge", *replay[1:], "--out", start / "held")
    shutil.copytree(start / "run", start / "run2")
    shutil.copytree(start / "run", start / "stale")
    verdicts = (start / "run" / "verdicts.jsonl").read_text()
    (start / "stale" / "verdicts.jsonl").write_text(verdicts[: verdicts[:-1].rindex("\n") + 1])
    here("report", start / "stale")
    (start / "stale" / "verdicts.jsonl").write_text(verdicts)
    with faulty_endpoint(0.0) as endpoint:
        url = endpoint.url
        branch = ("branch", start / "run", "--chatbots", "vanilla", "--base-url", url, "--quiet")
        here(*branch, "--record", fixed / "branch.jsonl", "--out", folder / "b")
    (fixed / "guideline.md").write_text("Count what the documents contradict.\n")
    here("annotate", start / "run2", "--next", 4)
    sheet = yaml.safe_load((start / "run2" / "to-annotate-1.yaml").read_text())
    for turn in sheet["turns"]:
        turn["spans"] = []
    (start / "to-annotate.yaml").write_text(yaml.safe_dump(sheet))
    said = [{"role": "user", "content": "How long?"}, {"role": "assistant", "content": "Three minutes."}]
    (fixed / "chats.jsonl").write_text(f"{json.dumps({'messages': said})}\n" * 2)
    (fixed / "people.jsonl").write_text(f"{json.dumps({'user_turns': ['Is it hot?', 'Thanks']})}\n" * 2)
    reply = {"reply": "It takes five hours.", "passages": ["A kettle takes three minutes."], "label": True}
    (start / "labelled.jsonl").write_text(f"{json.dumps(reply)}\n{json.dumps(reply | {'label': False})}\n")
    shutil.copytree(start / "run", start / "half")
    for name, kept in (("conversations.jsonl", -1), ("verdicts.jsonl", 6)):
        lines = (start / "half" / name).read_text().splitlines(keepends=True)
        (start / "half" / name).write_text("".join(lines[:kept]))
    here("compare", start / "run", "--save", start / "base.json")
    twelve_documents(fixed / "documents")
    _record_pack(folder, fixed)


def _record_pack(folder: Path, fixed: Path) -> None:
    writer = Writer()

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        return completion(writer(request), MODEL)

    with serve_stub(answer) as url, without_weights():
        _run_here(
            folder,
            *("init-scenario", folder / "written", "--documents", fixed / "documents"),
            *("--personas", "2", "--quiet"),
            *("--base-url", url, "--model", MODEL, "--record", fixed / "written.jsonl"),
        )


def _run_here(folder: Path, *arguments: str | Path | int) -> None:
    ended = forked_runs.end_here([*map(str, arguments)], folder / "printed")
    assert ended.code == 0, (arguments, ended)
