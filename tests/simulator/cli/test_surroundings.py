"""Every command where folders, limits and streams are not as usual: one sentence, and nothing is lost."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hallulab.simulator.cli.main import DELETED, main
from hallulab.testing.tiny_pack import words_for_vectors
from tests.fuzz.promises import check_whole
from tests.kit import forked_runs
from tests.kit.forked_runs import Ended
from tests.kit.hard_conditions import spare_handles, without_privileges
from tests.simulator.cli.every_command import COMMANDS, State, Workshop, enter, state_of
from tests.simulator.cli.test_commands import saved_run

READING = {"help": "--help", "list": "list detectors", "audit": "report run --guards"}
EVERY = {**COMMANDS, **READING}
for _alike in ("simulate", "export-csv", "export-ragtruth", "export-parquet"):
    del EVERY[_alike]

SEARCHING = ("import", "calibrate", "init-documents")
"""Commands that take long, since they write into the cache: tried where its place is odd."""


def check_sentence(name: str, ended: Ended) -> None:
    """It succeeded, or it says in one sentence why not."""
    assert "Traceback" not in ended.err, (name, ended)
    assert ended.code in (0, 1, 2), (name, ended)
    told = ended.last_line
    assert ended.code == 0 or told.startswith("error: "), (name, ended)


def odd_home(home: str, **more: str) -> None:
    """This process's user has another home, and no cache elsewhere."""
    os.environ.pop("HALLULAB_CACHE")
    os.environ.pop("XDG_CACHE_HOME", None)
    os.environ.update(HOME=home, **more)
    tempfile.tempdir = None


def file_as_home(place: Path) -> None:
    """The home is a file, and the folder for temporary files is missing."""
    odd_home("/etc/passwd", TMPDIR=str(place.parent / "missing"))


def missing_home(place: Path) -> None:
    """The home is missing; it can be made, and a cache at a relative path does not count."""
    odd_home(str(place.parent / "missing" / "home"), XDG_CACHE_HOME="relative/cache")


def unwritable_home(place: Path) -> None:
    """The home belongs to nobody who runs this process, and the folder for temporary files is missing."""
    odd_home(str(place.parent / "home"), TMPDIR=str(place.parent / "missing"))
    without_privileges()


def leave_deleted_folder(place: Path) -> None:
    """The working directory is deleted."""
    gone = place / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()


SURROUNDINGS: dict[str, Callable[[Path], object]] = {
    "home is a file": file_as_home,
    "home is missing": missing_home,
    "home is not ours": unwritable_home,
    "folder is deleted": leave_deleted_folder,
    "handles": lambda place: spare_handles(4),
    "64 handles": lambda place: spare_handles(58),
}


@pytest.mark.slow
@pytest.mark.parametrize("surroundings", SURROUNDINGS)
def test_every_command_does_its_work_or_says_why_not(
    workshop: Workshop, tmp_path: Path, surroundings: str
) -> None:
    before = state_of(workshop.start)
    (tmp_path / "home").mkdir(mode=0o555)
    for name, line in EVERY.items():
        if name in SEARCHING and "home" not in surroundings:
            continue
        place = workshop.new(tmp_path / name)
        before_it = partial(_surround, surroundings, place)
        ended = workshop.run(line.format(fixed=workshop.fixed).split(), place, before_it)
        check_sentence(name, ended)
        check_not_lost(before, state_of(place))
        if surroundings == "64 handles":
            assert ended.code == 0, (name, ended)
        if surroundings == "folder is deleted" and ended.code:
            assert ended.err.endswith(f"{DELETED}\n"), (name, ended)
        shutil.rmtree(place)


def _surround(surroundings: str, place: Path) -> None:
    SURROUNDINGS[surroundings](place)


def check_not_lost(before: State, after: State) -> None:
    """Each file of before is there; journals have their lines."""
    assert before.keys() <= after.keys()
    for name, held in before.items():
        if name.endswith(".jsonl"):
            assert held <= after[name], name


def close_output() -> None:
    """Standard output is closed."""
    os.close(1)
    sys.stdout = None  # type: ignore[assignment]


def close_all() -> None:
    """The three streams are closed, as far as this process has them."""
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        os.close(number)
        setattr(sys, name, None)


def break_pipe() -> None:
    """Nobody reads standard output any more."""
    reading, writing = os.pipe()
    os.close(reading)
    sys.stdout = os.fdopen(writing, "w", encoding="utf-8")


def speak_ascii() -> None:
    """Standard output has no letters but those of ASCII, and does not replace others."""
    sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="ascii", errors="strict")


STREAMS: dict[str, tuple[Callable[[], object], tuple[int, ...]]] = {
    "output is closed": (close_output, (0,)),
    "all are closed": (close_all, (0,)),
    "nobody reads": (break_pipe, (0, 1)),
    "ascii": (speak_ascii, (0,)),
}
"""What a command finds, and the codes that it may end with."""


@pytest.mark.slow
@pytest.mark.parametrize("streams", STREAMS)
def test_every_command_does_its_work_whatever_its_streams_are(
    workshop: Workshop, tmp_path: Path, streams: str
) -> None:
    codes = STREAMS[streams][1]
    for name, line in EVERY.items():
        if name in SEARCHING:
            continue
        place = workshop.new(tmp_path / name)
        arguments = line.format(fixed=workshop.fixed).split()
        code = workshop.driver.submit(_run_plainly, arguments, place, streams).result()
        assert code in codes, name
        if name in COMMANDS:
            assert state_of(place).keys() > state_of(workshop.start).keys() or name in IN_PLACE, name
        for path in place.rglob("*"):
            if path.is_file() and "knowledge" not in path.parts:
                check_whole(path)
        shutil.rmtree(place)


IN_PLACE = ("report",)
"""Commands that make no new file."""


def _run_plainly(arguments: list[str], place: Path, streams: str) -> int | None:
    process = forked_runs.FORKING.Process(target=_end, args=(arguments, place, streams))
    process.start()
    process.join()
    return process.exitcode


def _end(arguments: list[str], place: Path, streams: str) -> None:
    enter(place, STREAMS[streams][0])
    sys.argv = ["hallulab", *arguments]
    with words_for_vectors():
        main()


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables", [{"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
def test_files_are_utf_8_in_the_locale_c(tmp_path: Path, variables: dict[str, str]) -> None:
    run = tmp_path / "Läufe"
    saved_run(run)
    line = (run / "conversations.jsonl").read_text(encoding="utf-8")
    (run / "conversations.jsonl").write_text(line.replace("Rs 500", "500 \u20b9"), encoding="utf-8")
    exported = tmp_path / "Sätze.jsonl"
    commands = [["report", run], ["export", run, "--detector", "metarag", "--out", exported]]
    for command in commands:
        ended = subprocess.run(
            [sys.executable, "-m", "hallulab", *map(str, command)],
            env={**os.environ, **variables, "PYTHONIOENCODING": "ascii"},
            capture_output=True,
        )
        assert ended.returncode == 0, ended
        # A busy machine takes long enough that it tells what it does.
        assert re.sub(rb"writing the report .*\n", b"", ended.stderr) == b"", ended
    assert "500 \u20b9" in (run / "report.html").read_text(encoding="utf-8")
    assert "500 \u20b9" in exported.read_text(encoding="utf-8")
