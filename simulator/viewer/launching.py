"""Runs that the viewer has started: each is a process of its own, so that no run harms another or the viewer.

The processes end with the viewer, however that ends: as at Ctrl-C, what is finished is on disk, and the same
command goes on.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import TemporaryFile

import psutil

from hallulab.agents.machine.supervised import start_supervised, stop_supervised
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.scenarios.files.opening import open_file
from hallulab.scenarios.text.wording import clean_for_terminal
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.recipients import VIEW_FILE
from hallulab.simulator.viewer.asked_run import AskedRun, write_yaml
from hallulab.simulator.viewer.offers import StartSource
from hallulab.simulator.viewer.places import name_new_folders

MOST_RUNS = 3

FILE = VIEW_FILE
"""The experiment file in the run folder, for people: the command gets it from us, so no other is read."""

GIVEN = "/dev/stdin"
"""Where the command reads it."""

LOG = "view-run.log"
"""What the command printed, likewise."""

READ_BYTES = 4096
"""Bytes of the log's end that are read."""

HALLULAB = (sys.executable, "-m", "hallulab")
"""How the command is started."""


class Launch:
    """A run that was started.

    Args:
        folder: the run folder, which exists.
        experiment: what is run.
        yaml: it, as an experiment file.
        command: how hallulab is started.

    Raises:
        OperationalError: the folder cannot be written.
    """

    def __init__(self, folder: RunFolder, experiment: Experiment, yaml: str, command: Sequence[str]) -> None:
        self.folder = folder
        self.experiment = experiment
        self.is_stopped = False
        """Whether somebody stopped it."""
        file, self._log = folder.path / FILE, folder.path / LOG
        try:
            for path in (file, self._log):
                path.unlink(missing_ok=True)  # it may be a link to elsewhere
            write_atomically(file, yaml)
            with self._log.open("xb") as log, _open_text(yaml) as given:
                self._process: Popen[bytes] = start_supervised(
                    [*command, "run", "-c", GIVEN, "--out", str(folder.path)],
                    output=DEVNULL,
                    errors=log.fileno(),
                    reads=given,
                )
        except OSError as error:
            raise OperationalError(f"cannot write {folder.path}: {error.strerror}.") from error

    @property
    def code(self) -> int | None:
        """The exit code; None: it is under way."""
        code = self._process.poll()
        if code is not None:
            self._close_pipe()
        return code

    def stop(self) -> None:
        """Stop it as Ctrl-C does; the second time, kill it and all that it started."""
        if not self.is_stopped:
            self.is_stopped = True
            self._close_pipe()
            return
        try:
            for process in psutil.Process(self._process.pid).children(recursive=True):
                process.kill()
        except psutil.NoSuchProcess:
            return

    def wait(self) -> None:
        """Stop it and wait until it has ended."""
        self.is_stopped = True
        stop_supervised(self._process)

    def _close_pipe(self) -> None:
        """Close our end of the pipe, at which the process ends, if it has not."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def read_last_line(self) -> str:
        """Return the last line that it printed; empty: it printed none."""
        try:
            with open_file(self._log) as log:
                log.seek(max(0, self._log.stat().st_size - READ_BYTES))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return clean_for_terminal(last.replace(GIVEN, FILE))


@contextmanager
def _open_text(text: str) -> Iterator[int]:
    """Yield a descriptor of a file with the text, which no folder holds and nobody else can write."""
    with TemporaryFile() if sys.platform != "linux" else os.fdopen(os.memfd_create(FILE), "w+b") as file:
        file.write(text.encode())
        file.seek(0)
        yield file.fileno()


class Launcher:
    """Starts runs, and knows those that it started.

    Args:
        source: what may be started, and where it goes.
        command: how hallulab is started.
    """

    def __init__(self, source: StartSource, command: Sequence[str] = HALLULAB) -> None:
        self.source = source
        self._command = command
        self._launches: dict[Path, Launch] = {}
        """The last one of each run folder."""
        self._starting = threading.Lock()

    def get(self, folder: RunFolder) -> Launch | None:
        """Return the last run that was started in a folder; None: there was none."""
        return self._launches.get(folder.path.resolve())

    def start(self, asked: AskedRun) -> RunFolder:
        """Start a run in a new folder, and return that.

        Raises:
            UsageError: `MOST_RUNS` are under way, or no folder is shown for runs.
            OperationalError: the folder cannot be made.
        """
        with self._starting:
            self._require_room()
            folder = RunFolder(self._make_folder())
            self._launch(folder, asked.experiment, asked.yaml)
        return folder

    def resume(self, folder: RunFolder, experiment: Experiment) -> None:
        """Go on with a run.

        Args:
            folder: its folder.
            experiment: what its experiment.json says.

        Raises:
            UsageError: it is under way, or `MOST_RUNS` are.
            OperationalError: the folder cannot be written.
        """
        with self._starting:
            known = self.get(folder)
            if folder.is_claimed or (known is not None and known.code is None):
                raise UsageError("This run is being written by another process. Wait until that has ended.")
            self._require_room()
            self._launch(folder, experiment, write_yaml(experiment))

    def close(self) -> list[RunFolder]:
        """Stop all runs as Ctrl-C does, wait until they have ended, and return their folders."""
        running = [launch for launch in self._launches.values() if launch.code is None]
        for launch in running:
            if not launch.is_stopped:
                launch.stop()
        for launch in running:
            launch.wait()
        return [launch.folder for launch in running]

    def _launch(self, folder: RunFolder, experiment: Experiment, yaml: str) -> None:
        self._launches[folder.path.resolve()] = Launch(folder, experiment, yaml, self._command)

    def _require_room(self) -> None:
        running = sum(launch.code is None for launch in self._launches.values())
        if running >= MOST_RUNS:
            raise UsageError(f"{running} runs are under way. Wait until one has ended, or stop one.")

    def _make_folder(self) -> Path:
        """Make the run folder, whose name is the time.

        Raises:
            OperationalError: it cannot be made.
        """
        assert self.source.folder is not None
        try:
            for path in name_new_folders(self.source.folder):
                try:
                    path.mkdir()
                except FileExistsError:
                    continue
                return path
        except OSError as error:
            raise OperationalError(f"cannot write {self.source.folder}: {error.strerror}.") from error
        raise OperationalError(f"{self.source.folder} has too many runs of this second. Try again.")
