from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from hallulab.agents.machine.supervised import run_supervised, start_supervised, stop_supervised

TREE = """
    import os, subprocess, sys
    # A grandchild that left its parents' process group and session.
    child = subprocess.Popen([sys.executable, "-c", {grandchild!r}], start_new_session=True)
    child.wait()
"""

WAITS = "import signal\nprint('ready', flush=True)\nwhile True:\n    signal.pause()\n"

DEAF = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAITS

PARENT = """
    import signal, sys
    from hallulab.agents.machine.supervised import start_supervised
    started = start_supervised([sys.executable, "-c", {command!r}], output=sys.stdout.fileno(), grace=0.3)
    signal.pause()
"""


def tree(grandchild: str) -> str:
    return textwrap.dedent(TREE).format(grandchild=grandchild)


@pytest.mark.parametrize("grandchild", [WAITS, DEAF], ids=["obedient", "deaf"])
def test_a_detached_grandchild_ends_when_our_process_is_killed(grandchild: str) -> None:
    script = textwrap.dedent(PARENT).format(command=tree(grandchild))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        parent.send_signal(signal.SIGKILL)
        # The pipe ends when the last process that could write to it, the grandchild, has ended.
        assert parent.communicate(timeout=120)[0] == b""


@contextmanager
def ready(command: str) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """A supervised command that has said that it is ready, and its output."""
    process = start_supervised([sys.executable, "-c", command], output=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"ready\n"
        yield process, process.stdout


def test_stopping_ends_command_and_grandchild() -> None:
    with ready(tree(WAITS)) as (process, output):
        assert stop_supervised(process) == 128 + signal.SIGTERM
        assert output.read() == b""


def test_the_command_ends_when_its_supervisor_is_killed() -> None:
    with ready(WAITS) as (process, _):
        process.kill()
        # The pipe ends when the command has ended.
        assert process.communicate(timeout=120)[0] == b""


def test_the_command_is_told_before_its_children_so_that_it_does_not_end_by_itself() -> None:
    program = (
        "import os, subprocess\n"
        "for _ in range(150): subprocess.Popen(['sleep', '60'])\n"
        "print('ready', flush=True)\nos.wait()\nos._exit(0)"
    )
    with ready(program) as (process, _):
        assert stop_supervised(process) == 128 + signal.SIGTERM


def test_what_a_command_leaves_behind_ends_with_it() -> None:
    leaves = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {WAITS!r}], stdout=subprocess.PIPE, "
        "start_new_session=True)\n"
        "child.stdout.readline()\nprint(child.pid, flush=True)\nimport os\nos._exit(7)"
    )
    ended = run_supervised([sys.executable, "-c", leaves], on_line=lambda line: None)
    assert ended.code == 7
    with pytest.raises(ProcessLookupError):
        os.kill(int(ended.lines[0]), 0)


def test_lines_come_as_they_are_printed_and_the_exit_code_is_passed_on() -> None:
    lines: list[str] = []
    ended = run_supervised(
        [sys.executable, "-c", "import sys; print('a'); print('b', file=sys.stderr); sys.exit(5)"],
        on_line=lines.append,
    )
    assert ended.code == 5
    assert sorted(lines) == ["a", "b"]
    assert ended.lines == tuple(lines)


def test_an_interrupted_caller_leaves_nothing_running() -> None:
    def interrupt(line: str) -> None:
        raise KeyboardInterrupt(line)

    with pytest.raises(KeyboardInterrupt, match="ready"):
        run_supervised([sys.executable, "-c", tree(WAITS)], on_line=interrupt)
