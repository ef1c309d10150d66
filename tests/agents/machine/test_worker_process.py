from __future__ import annotations

import sys

from hallulab.agents.machine.supervised import worker_variables
from hallulab.agents.machine.worker_process import WorkerProcess


def test_a_worker_may_keep_what_it_compiles() -> None:
    assert worker_variables({"PYTHONDONTWRITEBYTECODE": "1", "PATH": "/bin"}) == {"PATH": "/bin"}


def test_a_worker_process_has_no_such_variable() -> None:
    tells = "import os; print(os.environ.get('PYTHONDONTWRITEBYTECODE', 'unset'), flush=True); input()"
    worker = WorkerProcess([sys.executable, "-c", tells], {"PYTHONDONTWRITEBYTECODE": "1"})
    try:
        assert worker.receive(30.0) == b"unset\n"
    finally:
        worker.stop()
