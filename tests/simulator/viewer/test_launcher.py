"""Processes of runs: started, stopped, killed, resumed, and never more than one at a folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import write_yaml
from hallulab.simulator.records.experiment_json import SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.recipients import VIEW_FILE
from hallulab.simulator.viewer.launcher import LOG, MOST_RUNS, Launch, Launcher
from hallulab.simulator.viewer.offer import Offer
from hallulab.simulator.viewer.runs import ShownRuns
from hallulab.simulator.viewer.runs_page import RunStatus, read_status
from hallulab.simulator.viewer.start_page import plan_run
from tests.builders import conversation, scored
from tests.places import ROOT
from tests.simulator.cli.test_commands import saved_run
from tests.simulator.viewer.launched import COMMAND, GATE, wait_for, write_text
from tests.simulator.viewer.serving import append

FOREVER = (sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(600)")
STUBBORN = (
    sys.executable,
    "-c",
    "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('ready', file=sys.stderr, flush=True); time.sleep(600)",
)
FAILING = (
    sys.executable,
    "-c",
    "import sys; print('error: the \\x1b[31mdisk is full.', file=sys.stderr); sys.exit(1)",
)
QUIET = (sys.executable, "-c", "")
ASKED = Experiment(), "limit: 1\n"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


@pytest.fixture
def launchers() -> Iterator[list[Launcher]]:
    """Those that are closed at the end."""
    made: list[Launcher] = []
    yield made
    for launcher in made:
        launcher.close()


def launcher_of(runs: Path, command: tuple[str, ...], launchers: list[Launcher]) -> Launcher:
    launchers.append(Launcher(Offer(Experiment(), runs), command))
    return launchers[-1]


def launch_of(launcher: Launcher, folder: RunFolder) -> Launch:
    launch = launcher.get(folder)
    assert launch is not None
    return launch


def status_of(launcher: Launcher, folder: RunFolder) -> RunStatus:
    shown = ShownRuns([folder.path.parent], folder.path.parent.parent / "indices")
    run = shown.add(folder.path)
    run.updater.update()
    status = read_status(run, launcher)
    assert status is not None
    return status


def test_a_run_is_started_in_a_new_folder_with_its_file(runs: Path, launchers: list[Launcher]) -> None:
    launcher = launcher_of(runs, FOREVER, launchers)
    first, second = launcher.start(*ASKED), launcher.start(*ASKED)
    assert first.path != second.path
    assert {first.path.parent, second.path.parent} == {runs}
    assert (first.path / VIEW_FILE).read_text() == "limit: 1\n"
    assert status_of(launcher, first).state == "running"


def test_so_many_runs_are_under_way_at_once_and_no_more(runs: Path, launchers: list[Launcher]) -> None:
    launcher = launcher_of(runs, FOREVER, launchers)
    folders = [launcher.start(*ASKED) for _ in range(MOST_RUNS)]
    with pytest.raises(UsageError, match="3 runs are under way"):
        launcher.start(*ASKED)
    launch_of(launcher, folders[0]).stop()
    wait_for(lambda: launch_of(launcher, folders[0]).code is not None)
    assert launcher.start(*ASKED).path.is_dir()


def test_closing_ends_all_and_says_which(runs: Path, launchers: list[Launcher]) -> None:
    launcher = launcher_of(runs, FOREVER, launchers)
    folder = launcher.start(*ASKED)
    assert [one.path for one in launcher.close()] == [folder.path]
    assert launch_of(launcher, folder).code == 128 + signal.SIGTERM
    assert launcher.close() == []


def test_what_does_not_stop_is_killed(runs: Path, launchers: list[Launcher]) -> None:
    launcher = launcher_of(runs, STUBBORN, launchers)
    launch = launch_of(launcher, launcher.start(*ASKED))
    wait_for(lambda: launch.read_last_line() == "ready")
    launch.stop()
    assert launch.code is None
    assert status_of(launcher, launch.folder).state == "stopping"
    wait_for(lambda: launch.code == 128 + signal.SIGKILL)


def test_an_error_is_told_as_the_terminal_does(runs: Path, launchers: list[Launcher]) -> None:
    launcher = launcher_of(runs, FAILING, launchers)
    folder = launcher.start(*ASKED)
    wait_for(lambda: launch_of(launcher, folder).code is not None)
    status = status_of(launcher, folder)
    assert (status.state, status.error, status.can_resume) == (
        "failed",
        "error: the \ufffd[31mdisk is full.",
        True,
    )


def end_of(launcher: Launcher, conversations: int, **more: Any) -> RunFolder:
    """A run of two conversations that was started and has ended; then a terminal has held so many."""
    given: dict[str, Any] = {"chatbots": ["vanilla"], "detectors": ["lexical"], "limit": 2, **more}
    experiment = Experiment(scenario="pregnancy-medication", **given)
    folder = launcher.start(experiment, "limit: 2\n")
    wait_for(lambda: launch_of(launcher, folder).code is not None)
    folder.write_experiment(SavedExperiment(experiment=experiment, identity={}, detectors={"d": "1"}))
    for number in range(conversations):
        append(folder.conversations, [conversation(f"c{number}", ["x"], persona=f"p{number}")])
        append(folder.verdicts, [scored(f"c{number}", 0)])
    return folder


DECIDED = {"chatbots": ["vanilla", "editor"], "until_decided": {}}


@pytest.mark.parametrize(
    ("command", "conversations", "more", "expected"),
    [
        (FAILING, 2, {}, ("complete", False)),
        (FAILING, 1, {}, ("failed", True)),
        (QUIET, 2, {}, ("ended", False)),
        (QUIET, 1, {}, ("unfinished", True)),
        (QUIET, 1, DECIDED, ("ended", False)),
    ],
)
def test_what_a_terminal_did_since_counts(
    runs: Path,
    launchers: list[Launcher],
    command: tuple[str, ...],
    conversations: int,
    more: dict[str, Any],
    expected: tuple[str, bool],
) -> None:
    launcher = launcher_of(runs, command, launchers)
    status = status_of(launcher, end_of(launcher, conversations, **more))
    assert (status.state, status.can_resume) == expected


def test_a_folder_that_another_process_writes_is_left_alone(runs: Path, launchers: list[Launcher]) -> None:
    launcher, run = launcher_of(runs, FOREVER, launchers), saved_run(runs / "other")
    with run.claimed():
        status = status_of(launcher, run)
        assert (status.state, status.error, status.can_resume) == ("elsewhere", "", False)
        with pytest.raises(UsageError, match="is being written by another process"):
            launcher.start(Experiment(), "", run)
    assert not run.is_claimed
    assert launcher.get(run) is None


def test_resuming_twice_starts_one_process(runs: Path, launchers: list[Launcher]) -> None:
    launcher, run = launcher_of(runs, FOREVER, launchers), saved_run(runs / "other")
    launcher.start(Experiment(limit=3), "limit: 3", run)
    assert "limit: 3" in (run.path / VIEW_FILE).read_text()
    with pytest.raises(UsageError, match="is being written by another process"):
        launcher.start(Experiment(), "", run)


def test_links_of_a_strangers_folder_are_not_followed(
    runs: Path, tmp_path: Path, launchers: list[Launcher]
) -> None:
    run, precious = saved_run(runs / "theirs"), tmp_path / "precious"
    precious.write_text("mine")
    for name in (VIEW_FILE, LOG):
        (run.path / name).symlink_to(precious)
    launcher_of(runs, FAILING, launchers).start(Experiment(), "", run)
    assert precious.read_text() == "mine"
    assert not (run.path / LOG).is_symlink()


def test_a_run_of_the_terminal_is_unfinished_and_can_be_resumed(
    runs: Path, launchers: list[Launcher]
) -> None:
    status = status_of(launcher_of(runs, FOREVER, launchers), saved_run(runs / "other"))
    assert (status.state, status.conversations, status.planned) == ("unfinished", 1, 137)
    assert status.can_resume


def test_a_strangers_run_that_runs_code_is_not_resumed(runs: Path, launchers: list[Launcher]) -> None:
    run = saved_run(runs / "theirs")
    saved = run.read_experiment()
    assert saved is not None
    bot = {"name": "evil", "kind": "callable", "options": {"target": "os:system"}}
    theirs = Experiment.model_validate({**saved.experiment.model_dump(), "chatbots": [bot]})
    run.write_experiment(saved.model_copy(update={"experiment": theirs}))
    status = status_of(launcher_of(runs, FOREVER, launchers), run)
    assert status.error.startswith("evil: no page may start 'callable', which is code")
    assert not status.can_resume


def start_four(launcher: Launcher) -> RunFolder:
    """Start a run of four conversations on the scripted model."""
    text = write_text(scenario="pregnancy-medication", limit=4, concurrency=1)
    return launcher.start(plan_run(launcher.offer, text)[0], text)


@pytest.mark.slow
def test_a_stopped_run_keeps_what_is_finished_and_goes_on(
    runs: Path, tmp_path: Path, launchers: list[Launcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(GATE, str(tmp_path / "gate"))
    launcher = launcher_of(runs, COMMAND, launchers)
    folder = start_four(launcher)
    wait_for(lambda: folder.has_journal and folder.read_conversations(), 120)
    launch_of(launcher, folder).stop()
    wait_for(lambda: launch_of(launcher, folder).code is not None, 120)
    status = status_of(launcher, folder)
    assert (status.state, status.error, status.can_resume) == ("stopped", "", True)
    before = [chat.id for chat in folder.read_conversations()]
    assert 0 < len(before) < 4
    (tmp_path / "gate").touch()
    saved = folder.read_experiment()
    assert saved is not None
    launcher.start(saved.experiment, write_yaml(saved.experiment), folder)
    wait_for(lambda: launch_of(launcher, folder).code is not None, 120)
    after = status_of(launcher, folder)
    assert (after.conversations, after.planned, after.state) == (4, 4, "ended")
    assert [chat.id for chat in folder.read_conversations()][: len(before)] == before
    assert folder.page.is_file()


VIEWER = textwrap.dedent(
    """
    import os, pathlib, signal, sys
    from hallulab.simulator.records.experiment import Experiment
    from hallulab.simulator.viewer.offer import Offer
    from hallulab.simulator.viewer.launcher import Launcher
    from tests.simulator.viewer.launched import COMMAND, wait_for
    from tests.simulator.viewer.test_launcher import start_four
    runs = pathlib.Path(sys.argv[1])
    folder = start_four(Launcher(Offer(Experiment(), runs), COMMAND))
    wait_for(lambda: folder.has_journal and folder.read_conversations(), 120)
    os.kill(os.getpid(), signal.SIGKILL)
    """
)


@pytest.mark.slow
def test_a_killed_viewer_leaves_a_run_that_can_be_resumed(
    runs: Path, tmp_path: Path, launchers: list[Launcher]
) -> None:
    environ = {**os.environ, GATE: str(tmp_path / "gate")}
    ended = subprocess.run([sys.executable, "-c", VIEWER, str(runs)], cwd=ROOT, env=environ, check=False)
    assert ended.returncode == -signal.SIGKILL
    [folder] = [RunFolder(path) for path in runs.iterdir()]
    wait_for(lambda: not folder.is_claimed)  # its processes end with it
    status = status_of(launcher_of(runs, COMMAND, launchers), folder)
    assert (status.state, status.can_resume) == ("unfinished", True)
    assert 0 < status.conversations < 4
