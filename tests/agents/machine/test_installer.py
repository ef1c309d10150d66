"""Which program installs packages, and what it is told of pip's configuration."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hallulab.agents.machine import installer
from hallulab.agents.machine.cache import StepProgress
from hallulab.agents.machine.environments import python_environment
from hallulab.agents.machine.installer import installers, pip_settings, uv_variables
from hallulab.scenarios.errors import OperationalError
from tests.wheels import make_wheel, only_wheels_from


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "index"
    make_wheel(folder, "toy", {"toy.py": b""})
    only_wheels_from(folder, monkeypatch)
    return folder


@pytest.fixture
def fake_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A uv that writes down how it is called, says what uv says, and ends with the exit code in `code`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "uv"
    program.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        "here = os.path.dirname(__file__)\n"
        "variables = {key: value for key, value in os.environ.items() if key.startswith('UV_')}\n"
        "json.dump([sys.argv[1:], variables], open(here + '/called', 'w'))\n"
        "print('Resolved 2 packages in 1ms', 'Downloading toy (1.0MiB)', ' Downloaded toy', sep='\\n')\n"
        "print('Prepared 2 packages in 1ms')\n"
        "sys.exit(int(open(here + '/code').read()))\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (folder / "code").write_text("0")
    monkeypatch.setattr(installer.shutil, "which", lambda name, path=None: str(program))
    return folder


def made(tmp_path: Path, heard: list[StepProgress]) -> Path:
    return python_environment(
        tmp_path / "env", "toy==1.0", ["toy==1.0"], owner="the toy", total=None, on_progress=heard.append
    )


def test_settings_of_files_are_read_and_variables_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://one\ntimeout = 5\n[install]\ntimeout = 7\nextra-index-url = a\n  b\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_INDEX_URL", "https://two")
    told = pip_settings()
    assert {key: told[key].split() for key in ("index-url", "timeout", "extra-index-url")} == {
        "index-url": ["https://two"],
        "timeout": ["7"],
        "extra-index-url": ["a", "b"],
    }


def test_pips_settings_become_uvs_variables_and_the_users_own_win() -> None:
    settings = {"index-url": "https://i", "extra-index-url": "\na\nb", "find-links": "c d", "cert": "/c.pem"}
    assert uv_variables(settings, {"UV_INDEX": "mine", "HOME": "/h"}) == {
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_DEFAULT_INDEX": "https://i",
        "UV_INDEX": "mine",
        "UV_FIND_LINKS": "c,d",
        "SSL_CERT_FILE": "/c.pem",
        "HOME": "/h",
    }


def test_uv_installs_where_it_is_there(index: Path, fake_uv: Path, tmp_path: Path) -> None:
    heard: list[StepProgress] = []
    python = made(tmp_path, heard)
    arguments, variables = json.loads((fake_uv / "called").read_text())
    assert arguments == ["pip", "install", "--python", str(python), "--no-index", "toy==1.0"]
    assert variables["UV_FIND_LINKS"] == str(index)
    steps = [(news.step, news.done) for news in heard]
    assert steps == [("downloading the toy", 0), ("unpacking the toy", 1)]


def test_where_uv_fails_pip_installs(index: Path, fake_uv: Path, tmp_path: Path) -> None:
    (fake_uv / "code").write_text("2")
    python = made(tmp_path, [])
    subprocess.run([str(python), "-c", "import toy"], check=True)


def test_where_both_fail_pips_reason_is_told(index: Path, fake_uv: Path, tmp_path: Path) -> None:
    (fake_uv / "code").write_text("2")
    (index / "toy-1.0-py3-none-any.whl").unlink()
    with pytest.raises(OperationalError, match=r"No matching distribution found for toy==1\.0"):
        made(tmp_path, [])


def test_passwords_of_indexes_are_not_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://user:canary@index")
    assert all("canary" not in repr(one) for one in installers(tmp_path / "python"))
