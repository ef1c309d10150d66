"""A disk that takes nothing more, at each step of every command: one sentence, and nothing is lost."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.disk_faults import DiskFault
from tests.fuzz.promises import check_whole
from tests.kit.forked_runs import Ended
from tests.simulator.cli.every_command import COMMANDS, State, Workshop, state_of
from tests.simulator.cli.two_bots import write_two_bots
from tests.simulator.command_line import CommandLine

REASONS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS)
"""What a disk may say."""

ALIKE = {"simulate": "run", "export-csv": "export", "export-ragtruth": "export-hf", "baseline": "export"}
ALIKE |= {"realism": "export", "build": "export", "compare": "bench", "init-documents": "import"}
ALIKE |= {"calibrate": "export"}
"""Commands whose steps are like another one's, or that take long: random steps of these are tried."""

GROWING = [f"{one}.jsonl" for one in ("conversations", "verdicts", "turns", "audit", "annotations")]
GROWING += ["annotation-marks.jsonl"]


def check_told(ended: Ended, reason: int) -> None:
    """It ended with one sentence that names a file and the reason, after its warnings and steps."""
    told = ended.last_line
    assert ended.code == 1, ended
    assert told.startswith("error: cannot write "), ended
    assert f"{os.strerror(reason)}" in told, ended
    assert ".part/" not in told, ended


def check_kept(place: Path, before: State, after: State, whole: State) -> None:
    """Each file is the one of before, or a whole new one, or has more lines; nothing is left beside."""
    assert before.keys() <= after.keys()
    assert [*place.rglob("*.part")] == []
    for name, held in after.items():
        if name in before and held == before[name]:
            continue
        check_whole(place / name)
        if Path(name).name in GROWING:
            assert before.get(name, held) <= held, name
        else:
            assert held == whole[name], name


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_at_each_step_is_one_sentence_and_loses_nothing(
    workshop: Workshop, tmp_path: Path, name: str
) -> None:
    steps, whole = workshop.undisturbed(name, tmp_path / "whole")
    before, chance = state_of(workshop.start), random.Random(name)
    if name in ALIKE:
        faults = [(chance.randrange(len(steps)), number, False) for number in REASONS]
    else:
        faults = [(step, errno.ENOSPC, False) for step in range(len(steps))]
        faults += [(chance.randrange(len(steps)), number, False) for number in REASONS[1:]]
    faults += [(step, errno.ENOSPC, True) for step, told in enumerate(steps) if told.startswith("write")][-2:]
    for number, (step, reason, short) in enumerate(faults):
        place = workshop.new(tmp_path / str(number))
        fault = DiskFault(step, place, tmp_path / "seen", reason, short)
        check_told(workshop(name, place, fault.meet), reason)
        after = state_of(place)
        check_kept(place, before, after, whole)
        if after != before and number % 6 == 0:
            ended = workshop(name, place)
            assert ended.code == 0, (steps[step], ended)
            assert state_of(place) == whole, steps[step]
        shutil.rmtree(place)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MiB that the system itself keeps."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if mount is None:
        pytest.skip("there is no `mount` to make a small disk with")
    made = subprocess.run([mount, "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True)
    if made.returncode:
        pytest.skip(f"no small disk can be made: {made.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def leave_free(disk: Path, pages: int) -> None:
    """Fill a disk, but for so many pages."""
    (disk / "padding").unlink(missing_ok=True)
    state = os.statvfs(disk)
    (disk / "padding").write_bytes(bytes(state.f_bsize * (state.f_bavail - pages)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["export-parquet", "export-hf", "compact", "import", "init-documents", "run", "annotate-add"]
)
def test_a_disk_that_is_full_indeed_is_one_sentence_and_loses_nothing(
    workshop: Workshop, tmp_path: Path, small_disk: Path, name: str
) -> None:
    """Files that libraries in other languages write are among these."""
    _, whole = workshop.undisturbed(name, tmp_path / "whole")
    before = state_of(workshop.start)
    place = workshop.new(small_disk / "here")
    for pages in (0, 1, 2, 3, 5, 8, 13):
        leave_free(small_disk, pages)
        ended = workshop(name, place)
        if ended.code == 0:
            break
        check_told(ended, errno.ENOSPC)
        check_kept(place, before, state_of(place), whole)
    else:
        (small_disk / "padding").unlink()
        assert workshop(name, place).code == 0
    assert state_of(place) == whole


@pytest.fixture
def read_only(workshop: Workshop, tmp_path: Path) -> Iterator[Path]:
    """A working directory on a disk that is mounted to be read only."""
    place = workshop.new(tmp_path / "here")
    mount = shutil.which("mount")
    if mount is None:
        pytest.skip("there is no `mount` to mount a folder with")
    for options in (["--bind", place, place], ["-o", "remount,ro,bind", place]):
        made = subprocess.run([mount, *options], capture_output=True)
        if made.returncode:
            subprocess.run(["umount", "--lazy", place], capture_output=True)
            pytest.skip(f"nothing can be mounted to be read only: {made.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.mark.slow
def test_a_read_only_disk_is_one_sentence(workshop: Workshop, read_only: Path) -> None:
    before = state_of(read_only)
    for name in COMMANDS:
        ended = workshop(name, read_only)
        told = ended.last_line
        assert ended.code in (1, 2), (name, ended)
        assert told.startswith("error: "), (name, ended)
        assert "Read-only file system" in told or "nothing can be written to" in told, (name, ended)
        assert state_of(read_only) == before


STEPS_OF_A_SHEET = 8
STEPS_OF_A_PACK = 13


@pytest.mark.parametrize("step", range(STEPS_OF_A_SHEET))
def test_a_sheet_comes_with_its_guideline_or_not_at_all(
    hallulab: CommandLine, tmp_path: Path, step: int
) -> None:
    run = write_two_bots(tmp_path / "run", "It is: Rs 500.", "Rs 500")
    (tmp_path / "guideline.md").write_text("Count what the documents contradict.")
    command = ("annotate", run.path, "--next", 4, "--guideline", tmp_path / "guideline.md")
    with DiskFault(step, tmp_path, tmp_path.with_suffix(".seen")).met():
        check_told(hallulab(*map(str, command)), errno.ENOSPC)
    assert not (run.path / "to-annotate-1.yaml").exists()
    assert hallulab(*map(str, command)).code == 0


@pytest.mark.parametrize("step", range(STEPS_OF_A_PACK))
def test_a_pack_comes_whole_or_not_at_all(hallulab: CommandLine, tmp_path: Path, step: int) -> None:
    with DiskFault(step, tmp_path, tmp_path.with_suffix(".seen"), short=True).met():
        check_told(hallulab("init-scenario", tmp_path / "pack"), errno.ENOSPC)
    assert [*tmp_path.iterdir()] == []
    assert hallulab("init-scenario", tmp_path / "pack").code == 0
