"""Runs that the viewer has started, each as a process of its own.

The processes end with the viewer, however that ends: as at Ctrl-C, what is finished is on disk, and the same
command goes on.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import TemporaryFile

from hallulab.agents.machine.supervised import start_supervised
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.scenarios.files.opening import open_file
from hallulab.scenarios.text.wording import clean_for_terminal
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.recipients import VIEW_FILE
from hallulab.simulator.viewer.offer import Offer
from hallulab.simulator.viewer.runs import ShownRun

MOST_RUNS = 3
LOG = "view-run.log"
"""File of the run folder with all that the command printed."""
HALLULAB = (sys.executable, "-m", "hallulab")
_GIVEN = "/dev/stdin"  # where the command reads the experiment file


@dataclass
class Launch:
    """A run that was started."""

    folder: RunFolder
    experiment: Experiment
    process: Popen[bytes]
    is_stopped: bool = False

    @property
    def code(self) -> int | None:
        """The exit code; None: it is under way."""
        code = self.process.poll()
        if code is not None and self.process.stdin is not None:
            self.process.stdin.close()
        return code

    def stop(self) -> None:
        """Stop it as Ctrl-C does; its supervisor kills what does not end within seconds."""
        self.is_stopped = True
        if self.process.stdin is not None:
            self.process.stdin.close()

    def read_last_line(self) -> str:
        """Return the last line that the command printed; empty: it printed none."""
        try:
            with open_file(self.folder.path / LOG) as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - 4096))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return clean_for_terminal(last.replace(_GIVEN, VIEW_FILE))


class Launcher:
    """Starts runs that the command line allows, and knows those that it started."""

    def __init__(self, offer: Offer, command: Sequence[str] = HALLULAB) -> None:
        self.offer = offer
        self._command = command
        self._launches: dict[Path, Launch] = {}
        """The last one of each run folder."""
        self._starting = threading.Lock()

    def get(self, folder: RunFolder) -> Launch | None:
        """Return the last run that was started in a folder; None: there was none."""
        return self._launches.get(folder.path.resolve())

    def start(self, experiment: Experiment, text: str, folder: RunFolder | None = None) -> RunFolder:
        """Start a run, or go on with one, and return its folder.

        Args:
            text: its experiment file.
            folder: that of the run to go on with; None: a new one is made.

        Raises:
            UsageError: the offer does not allow it, `MOST_RUNS` are under way, or somebody writes the folder.
            OperationalError: the folder cannot be written.
        """
        with self._starting:
            self.offer.require_allowed(experiment)
            running = self._list_running()
            if folder is not None and (folder.is_claimed or self.get(folder) in running):
                raise UsageError("This run is being written by another process. Wait until that has ended.")
            if len(running) >= MOST_RUNS:
                raise UsageError(f"{len(running)} runs are under way. Wait until one has ended, or stop one.")
            folder = folder or self.offer.make_folder()
            launch = Launch(folder, experiment, _start(self._command, folder.path, text))
            self._launches[folder.path.resolve()] = launch
        return folder

    def close(self) -> list[RunFolder]:
        """Stop all runs as Ctrl-C does, wait until they have ended, and return their folders."""
        running = self._list_running()
        for launch in running:
            launch.stop()
        for launch in running:
            launch.process.wait()
        return [launch.folder for launch in running]

    def _list_running(self) -> list[Launch]:
        return [launch for launch in self._launches.values() if launch.code is None]

    def find_experiment(self, run: ShownRun) -> Experiment | None:
        """Return what a run runs; None: it was not planned, such as one that was imported, or is not known.

        Raises:
            UsageError: experiment.json is damaged.
        """
        launch, saved = self.get(run.folder), run.folder.read_experiment()
        if saved is None:
            return None if launch is None else launch.experiment
        return None if saved.lacks_simulated_user or saved.branched_from is not None else saved.experiment


def _start(command: Sequence[str], folder: Path, text: str) -> Popen[bytes]:
    try:
        for name in (VIEW_FILE, LOG):
            (folder / name).unlink(missing_ok=True)  # in a stranger's folder it may be a link to elsewhere
        write_atomically(folder / VIEW_FILE, text)
        # The command reads a file without a name: anybody may change the one in the folder meanwhile.
        linux = sys.platform == "linux"
        with (
            os.fdopen(os.memfd_create(VIEW_FILE), "w+b") if linux else TemporaryFile() as given,
            (folder / LOG).open("xb") as log,
        ):
            given.write(text.encode())
            # The process inherits the place, too, and would begin to read at the end.
            given.seek(0)
            arguments = [*command, "run", "-c", _GIVEN, "--out", str(folder)]
            return start_supervised(arguments, output=DEVNULL, errors=log.fileno(), reads=given.fileno())
    except OSError as error:
        raise OperationalError(f"cannot write {folder}: {error.strerror}.") from error
