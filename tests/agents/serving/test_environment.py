from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hallulab.agents.machine.cache import StepProgress
from hallulab.agents.serving.prepare import ServerEnvironment, server_environment
from hallulab.scenarios.errors import OperationalError
from tests.wheels import make_wheel, only_wheels_from


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "index"
    make_wheel(folder, "toy", {"toy.py": b"print('toy')"})
    only_wheels_from(folder, monkeypatch)
    (tmp_path / "requirements.txt").write_text("# pinned\ntoy==1.0\n")
    return folder


def made(tmp_path: Path, news: list[StepProgress] | None = None) -> ServerEnvironment:
    heard: list[StepProgress] = [] if news is None else news
    return server_environment(
        kind="cpu", requirements=tmp_path / "requirements.txt", cache=tmp_path, on_progress=heard.append
    )


def test_it_is_made_once_apart_from_ours_and_reused(index: Path, tmp_path: Path) -> None:
    environment = made(tmp_path)
    run = [str(environment.python), "-c", "import toy, sys; print(sys.prefix)"]
    printed = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == ["toy", str(environment.python.parent.parent)]
    shutil.rmtree(index)
    assert made(tmp_path) == environment


@pytest.mark.parametrize("uv", [False, True])
def test_progress_is_told_by_either_installer(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uv: bool
) -> None:
    program = shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv and program is None:
        pytest.skip("there is no uv")
    monkeypatch.setattr(shutil, "which", lambda *_, **__: program if uv else None)
    news: list[StepProgress] = []
    made(tmp_path, news)
    # uv names only large packages while it downloads them.
    downloading = [] if uv else [("downloading the model server", 0, 1)]
    assert [(n.step, n.done, n.total) for n in news] == [
        *downloading,
        ("unpacking the model server", 1, 1),
    ]


def test_a_half_made_one_is_made_again_from_nothing(index: Path, tmp_path: Path) -> None:
    folder = made(tmp_path).python.parent.parent
    (folder / "complete").unlink()
    (folder / "rest").touch()
    made(tmp_path)
    assert (folder / "complete").exists()
    assert not (folder / "rest").exists()


def test_other_requirements_make_another_one(index: Path, tmp_path: Path) -> None:
    first = made(tmp_path)
    (tmp_path / "requirements.txt").write_text("toy\n")
    assert made(tmp_path).python != first.python


def test_a_package_that_pip_cannot_get_is_one_sentence_with_a_remedy(index: Path, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("missing==1.0\n")
    with pytest.raises(OperationalError) as error:
        made(tmp_path)
    assert str(error.value) == (
        "cannot make the model server's environment: No matching distribution found for missing==1.0. "
        "Check the network, the disk and pip's configuration, and start again."
    )
