"""The main loop of workers."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from tests.places import ROOT


def test_a_worker_that_has_just_answered_ends_as_programs_do() -> None:
    program = """
        import atexit, time
        from hallulab.agents.machine.worker_loop import Line
        line = Line()
        atexit.register(lambda: line.say(ended=True))
        line.say(id="1")
        time.sleep(0.5)
        assert line.hear() is None
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b'{"id": "1"}\n'
        process.stdin.close()
        assert process.stdout.read() == b'{"ended": true}\n'
    assert process.returncode == 0
