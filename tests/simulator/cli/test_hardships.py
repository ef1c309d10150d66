"""Full disks, read-only folders, stopped processes, clocks set back: what a user sees of them."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path
from unittest.mock import patch

import pytest

from hallulab.scenarios.files.json_text import LineWriter, read_lines
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journal_lines import derive_first_try
from tests.fuzz.promises import check_whole
from tests.kit import forked_runs
from tests.kit.faulty_endpoint import FaultyEndpoint, faulty_endpoint
from tests.kit.hard_conditions import spare_handles, without_privileges
from tests.kit.kill_points import AfterReport, InLine, InReport, Lines, Place, is_torn, journal_lines
from tests.kit.recorded_run import make_workspace, record_run
from tests.simulator.command_line import Ended

JOURNALS = ("conversations.jsonl", "verdicts.jsonl", "audit.jsonl")

TIMEOUT_S = 5.0
"""Enough for a busy machine. No request of these runs waits it out."""

STOPPED_S = 3.5 * TIMEOUT_S
"""Seconds for which a run is stopped: longer than all tries of a request may take."""


@dataclass(frozen=True)
class Runs:
    """Runs the same small recorded run, or the live one, in processes of their own."""

    folder: Path
    command: tuple[str, ...]
    driver: ProcessPoolExecutor
    whole: dict[str, Lines]
    """Lines of the journals of an undisturbed run."""

    def __call__(self, out: Path, before: Callable[[], object] = tuple) -> Ended:
        return self.driver.submit(forked_runs.run, self.command, out, before).result()

    def live_command(self, endpoint: FaultyEndpoint) -> tuple[str, ...]:
        """The same run at an endpoint."""
        return (*self.command[:-2], "--base-url", endpoint.url, "--timeout", str(TIMEOUT_S))

    def live(self, endpoint: FaultyEndpoint, out: Path, before: Callable[[], object] = tuple) -> Ended:
        return self.driver.submit(forked_runs.run, self.live_command(endpoint), out, before).result()

    def again(self, out: Path) -> Ended:
        """Resume, and assert that the journals are then those of an undisturbed run."""
        ended = self(out)
        assert ended.code == 0, ended.err
        assert journal_lines(out) == self.whole
        return ended


def import_what_a_search_needs() -> None:
    """Import what takes longer than a live run. lancedb itself has a thread, and that cannot be forked."""
    for name in ("pyarrow.dataset", "lance_namespace"):
        import_module(name)


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    with make_workspace() as folder, forked_runs.driver() as driver:
        command = record_run(folder)
        driver.submit(import_what_a_search_needs).result()
        driver.submit(forked_runs.run_here, command, folder / "whole").result()
        yield Runs(folder, command, driver, journal_lines(folder / "whole"))


def limit_files(size: int) -> None:
    """No file of this process gets longer than so many bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(InLine(0, 0.0, "conversations.jsonl"), marks=pytest.mark.slow),
        InLine(0, 0.5, "conversations.jsonl"),
        pytest.param(InLine(0, 1.0, "conversations.jsonl"), marks=pytest.mark.slow),
        pytest.param(InLine(3, 0.9, "conversations.jsonl"), marks=pytest.mark.slow),
        InLine(5, 1.0, "conversations.jsonl"),
        InLine(0, 0.5, "verdicts.jsonl"),
        pytest.param(InLine(11, 1.0, "verdicts.jsonl"), marks=pytest.mark.slow),
        InLine(7, 0.5, "verdicts.jsonl"),
        pytest.param(InLine(8, 1.0, "verdicts.jsonl"), marks=pytest.mark.slow),
        InReport("report.json", 0.5),
        InReport("report.html", 1.0),
        AfterReport("report.html"),
        pytest.param(AfterReport("concentration.csv"), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_killed_at_any_place_a_run_goes_on_without_loss_or_double(
    runs: Runs, tmp_path: Path, place: Place
) -> None:
    """The first line of a conversation, the last one, and the last report are among the places."""
    out = tmp_path / "run"
    assert runs(out, place.end_there).code == -signal.SIGKILL
    if isinstance(place, InLine):
        held = (out / str(place.journal)).read_bytes()
        assert held.count(b"\n") == place.line + (place.share == 1.0)
        torn = [path.name for path in out.glob("*.jsonl") if is_torn(path)]
        assert torn == [place.journal] * (0.0 < place.share < 1.0)
    assert (out / "report.html").exists() == isinstance(place, AfterReport)
    runs.again(out)
    assert (out / "report.html").exists()


@pytest.mark.parametrize("size", [0, 9_000, 12_000])
def test_a_full_disk_is_one_sentence_and_room_makes_the_run_whole(
    runs: Runs, tmp_path: Path, size: int
) -> None:
    out = tmp_path / "run"
    ended = runs(out, partial(limit_files, size))
    assert ended.code == 1
    if size:
        assert ended.err.startswith(f"error: cannot write {out}/")
        assert ended.err.endswith("Earlier lines are intact; make room and start again to go on.\n")
    for name in JOURNALS:
        held = (out / name).read_bytes() if (out / name).exists() else b""
        assert held == b"" or held.endswith(b"\n")
    runs.again(out)


@pytest.fixture
def read_only() -> Iterator[Callable[[Path], None]]:
    """Makes files and folders read-only, until the test is over."""
    changed: list[tuple[Path, int]] = []

    def make(path: Path) -> None:
        changed.append((path, path.stat().st_mode))
        path.chmod(0o555 if path.is_dir() else 0o444)

    yield make
    for path, mode in reversed(changed):
        path.chmod(mode)


def test_a_read_only_folder_is_one_sentence(
    runs: Runs, tmp_path: Path, read_only: Callable[[Path], None]
) -> None:
    out = tmp_path / "run"
    out.mkdir()
    read_only(out)
    ended = runs(out, without_privileges)
    told = f"error: --out {out}: nothing can be written to {out}. Give another path.\n"
    assert (ended.code, ended.err) == (2, told)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("name", ["conversations.jsonl", "verdicts.jsonl"])
def test_a_read_only_journal_is_one_sentence_and_stays(
    runs: Runs, tmp_path: Path, read_only: Callable[[Path], None], name: str
) -> None:
    out = tmp_path / "run"
    shutil.copytree(runs.folder / "whole", out)
    held = (out / name).read_text()
    read_only(out / name)
    ended = runs(out, without_privileges)
    assert (ended.code, ended.err) == (1, f"error: cannot write {out / name}: Permission denied.\n")
    assert (out / name).read_text() == held


def clock_set_back() -> None:
    """The clock goes back by an hour whenever it is read."""
    hours = count()
    patch.object(time, "time", lambda: 1e9 - 3600.0 * next(hours)).start()


def test_a_clock_that_is_set_back_changes_nothing(runs: Runs, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert runs(out, clock_set_back).code == 0
    assert journal_lines(out) == runs.whole


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system has no /proc")
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=() if number in (4, 7, 12, 15, 20) else pytest.mark.slow)
        for number in range(1, 26)
    ],
)
def test_used_up_file_handles_are_told_and_the_run_goes_on_later(
    runs: Runs, tmp_path: Path, number: int
) -> None:
    """They are used up by the check of the endpoint, the event loop, the vectors, the journals, a search."""
    out = tmp_path / "run"
    with faulty_endpoint(0.0) as endpoint:
        ended = runs.live(endpoint, out, partial(spare_handles, number))
        failed = [held.error for held in RunFolder(out).read_conversations() if held.error]
        assert (ended.code, ended.err.count("\n")) in ((0, 0), (1, 1))
        assert ended.code == 1 or number > 15
        for told in [ended.err] * ended.code + failed:
            assert "too many open files" in told.lower()
        for path in out.glob("*.jsonl"):
            check_whole(path)
        assert runs.live(endpoint, out).code == 0
    assert texts(out) == texts(runs.folder / "whole")


class Stoppable:
    """A run at an endpoint, in the driver's process; its functions are called there."""

    process: forked_runs.ForkProcess | None = None

    @classmethod
    def start(cls, command: Sequence[str], out: Path, before: Callable[[], object]) -> int:
        cls.process = forked_runs.start(command, out, before)
        assert cls.process.pid is not None
        return cls.process.pid

    @classmethod
    def wait(cls, out: Path) -> Ended:
        assert cls.process is not None
        return forked_runs.wait(cls.process, out)


def jump_when_continued() -> None:
    """Once this process is continued, its clocks say that it was stopped for `STOPPED_S`."""
    now = {"stopped": 0.0}

    def jump(*_: object) -> None:
        now["stopped"] += STOPPED_S

    for name in ("monotonic", "perf_counter"):
        clock = getattr(time, name)
        patch.object(time, name, lambda clock=clock: clock() + now["stopped"]).start()
    signal.signal(signal.SIGCONT, jump)


@pytest.mark.parametrize(
    ("before", "seconds"),
    [(jump_when_continued, 0.0), pytest.param(tuple, STOPPED_S, marks=pytest.mark.slow)],
    ids=["clocks that jump", "seconds that pass"],
)
def test_a_stopped_run_keeps_its_folder_and_goes_on_where_it_was(
    runs: Runs, tmp_path: Path, before: Callable[[], object], seconds: float
) -> None:
    out, link = tmp_path / "run", tmp_path / "link"
    link.symlink_to(out)
    with faulty_endpoint(0.0) as endpoint:
        endpoint.pause_s = 0.05
        pid = runs.driver.submit(Stoppable.start, runs.live_command(endpoint), out, before).result()
        while endpoint.given["healthy"] < 10:
            time.sleep(0.01)
        os.kill(pid, signal.SIGSTOP)
        second = runs(link)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)
        first = runs.driver.submit(Stoppable.wait, out).result()
    told = f"error: another run is writing to {link}. Wait until it ends, or use another folder.\n"
    assert (second.code, second.err) == (2, told)
    assert (first.code, first.err) == (0, "")
    assert texts(out) == texts(runs.folder / "whole")


def texts(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """What is said in each conversation of a run, whichever try it is; in none was a failure."""
    held = RunFolder(folder).read_conversations()
    assert [one.error for one in held] == [None] * len(held)
    return {derive_first_try(one.id): [(turn.user, turn.reply) for turn in one.turns] for one in held}


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [*JOURNALS, "recorded.jsonl"])
def test_a_last_line_that_is_torn_anywhere_costs_that_line_alone(
    runs: Runs, tmp_path: Path, name: str, step: int
) -> None:
    """No process is needed: a kill leaves some of the bytes of the line that was being written.

    That every beginning of an object is known to be one is tested in tests/scenarios/files/test_json_text.py.
    """
    path = tmp_path / name
    held = (runs.folder if name == "recorded.jsonl" else runs.folder / "whole") / name
    # The two shortest lines are enough.
    before, last = sorted(held.read_bytes().splitlines(keepends=True), key=len)[1::-1]
    values = [json.loads(line) for line in (before, last)]
    for kept in sorted({*range(0, len(last), step), len(last) - 2, len(last) - 1}):
        path.write_bytes(before + last[:kept])
        whole = kept == len(last) - 1
        expected = values if whole else values[:-1]
        assert [value for _, value in read_lines(path)] == expected
        with LineWriter(path) as writer:
            writer.append("{}")
        assert path.read_bytes() == before + (last if whole else b"") + b"{}\n"


@pytest.mark.parametrize("name", JOURNALS)
@pytest.mark.parametrize(
    "share", [pytest.param(0.0, marks=pytest.mark.slow), pytest.param(0.5, marks=pytest.mark.slow), 1.0]
)
def test_a_run_with_a_torn_last_line_goes_on_to_the_same_journals(
    runs: Runs, tmp_path: Path, name: str, share: float
) -> None:
    out = tmp_path / "run"
    shutil.copytree(runs.folder / "whole", out)
    *before, last = (out / name).read_bytes().splitlines(keepends=True)
    (out / name).write_bytes(b"".join(before) + last[: int(share * (len(last) - 1))])
    if name == "conversations.jsonl":  # nothing is said of a conversation before it is written
        lost = json.loads(last)["id"]
        for other in JOURNALS[1:]:
            lines = (out / other).read_text().splitlines(keepends=True)
            (out / other).write_text("".join(one for one in lines if json.loads(one)["conversation"] != lost))
    runs.again(out)
