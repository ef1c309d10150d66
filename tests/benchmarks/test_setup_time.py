"""The times of set-ups, on a repository whose set-up takes no time."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from benchmarks import setup_time

SET_UP = """setup:
\tmkdir -p .venv/bin
\tprintf '#!/bin/sh\\necho $$@ >> $(CURDIR)/../asked; test {code} = 0' > .venv/bin/hallulab
\tchmod +x .venv/bin/hallulab
"""


def repository(folder: Path, code: int) -> Path:
    folder.mkdir()
    (folder / "Makefile").write_text(SET_UP.format(code=code))
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for command in (("init", "-q", "-b", "main"), ("add", "Makefile"), (*who, "commit", "-qm", "a")):
        subprocess.run(("git", "-C", str(folder), *command), check=True)
    return folder


def test_each_revision_is_set_up_and_compared_with_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter([0.0, 10.0, 10.0, 40.0, 0.0, 5.0, 5.0, 20.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    source = repository(tmp_path / "source", 0)
    assert setup_time.main(["main", "main", "--repository", str(source)]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[2:] == ["| main | 10 | 30 | 40 | 1.00 |", "| main | 5 | 15 | 20 | 0.50 |"]


def test_a_step_that_fails_is_named(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", 1)
    told = "error: `.venv/bin/hallulab serve toy --prepare` ended with exit code 1."
    with pytest.raises(SystemExit, match=rf"^{re.escape(told)}$"):
        setup_time.main(["main", "--repository", str(source), "--model", "toy"])
