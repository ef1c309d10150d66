"""The wheel, as a user installs it: alone, in a new environment, from a package registry."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hallulab.agents.machine.installer import installers
from tests.extras import EXTRAS, list_modules
from tests.places import ROOT

LARGEST = 400_000_000
"""Bytes of the base installation at most, without bytecode."""

UV = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv") or ""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.registry,
    pytest.mark.skipif(not UV, reason="there is no uv, and pip takes minutes"),
]

CHAT = {
    "messages": [
        {"role": "user", "content": "What is the fee?"},
        {"role": "assistant", "content": "The fee is 999 rupees.", "context": "The fee is 200 rupees."},
    ]
}


def call(*command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command as a user would: with the settings of pip, and without our sources or cache."""
    [uv, *_] = installers(Path(sys.executable))
    environ = {name: value for name, value in uv.environ.items() if name != "PYTHONPATH"}
    if cwd is not None:
        environ["HALLULAB_CACHE"] = str(cwd / "cache")
    return subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel that was built from it."""
    out = tmp_path_factory.mktemp("built")
    made = call(UV, "build", "--quiet", "--out-dir", out, ROOT)
    assert made.returncode == 0, made.stderr
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    [found] = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment in which the wheel was installed alone."""
    folder = tmp_path_factory.mktemp("base") / "venv"
    assert call(UV, "venv", "--quiet", "--python", sys.executable, folder).returncode == 0
    python = folder / "bin" / "python"
    install = (UV, "pip", "install", "--quiet", "--link-mode", "copy", "--python", python)
    installed = call(*install, "--constraint", ROOT / "constraints.txt", wheel)
    assert installed.returncode == 0, installed.stderr
    return folder


def test_a_registry_accepts_both_distributions(built: Path) -> None:
    checked = call(UV, "tool", "run", "twine", "check", "--strict", *sorted(built.glob("hallulab-*")))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_wheel_has_every_file_of_the_packages(wheel: Path) -> None:
    folders = ("agents", "chatbots", "detectors", "scenarios", "simulator")
    tracked = call("git", "ls-files", *folders, "examples", cwd=ROOT).stdout.split()
    expected = {f"hallulab/{name}" for name in tracked if not name.startswith("examples/")}
    expected |= {f"hallulab/shipped/{name}" for name in tracked if name.startswith("examples/")}
    with zipfile.ZipFile(wheel) as archive:
        assert {*expected, "hallulab/shipped/demo.jsonl.gz"} - set(archive.namelist()) == set()


def test_the_base_is_small_and_has_no_package_of_an_extra(base: Path) -> None:
    [packages] = base.glob("lib/*/site-packages")
    files = [path for path in packages.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert sum(path.stat().st_size for path in files) <= LARGEST
    there = {path.name for path in packages.iterdir()}
    assert there & set().union(*map(list_modules, EXTRAS)) == set()


def test_its_commands_judge_saved_chats(base: Path, tmp_path: Path) -> None:
    hallulab = base / "bin" / "hallulab"
    (tmp_path / "chats.jsonl").write_text(json.dumps(CHAT) + "\n")
    assert call(hallulab, "--help", cwd=tmp_path).returncode == 0
    assert call(hallulab, "import", "chats.jsonl", "--out", "run", cwd=tmp_path).returncode == 0
    judged = call(hallulab, "detect", "run", "--detectors", "lexical", "--quiet", cwd=tmp_path)
    assert judged.returncode == 0, judged.stderr
    assert (tmp_path / "run" / "report.html").is_file()
    refused = call(hallulab, "export", "run", "--format", "tables", cwd=tmp_path)
    assert (refused.returncode, refused.stderr) == (
        2,
        "error: Parquet needs pyarrow, which is not installed: pip install 'hallulab[tables]'\n",
    )


def test_the_demo_is_replayed_from_what_the_wheel_holds(base: Path, tmp_path: Path) -> None:
    ended = call(base / "bin" / "hallulab", "demo", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("5 of 20 replies are flagged by both detectors")
    assert "\nreport: runs/demo/report.html\n" in ended.stdout
    assert "5 of 20 replies are flagged" in (tmp_path / "runs" / "demo" / "report.html").read_text()


def test_schemas_are_made_from_the_installed_sources(base: Path, tmp_path: Path) -> None:
    script = "from hallulab.simulator.cli.schemas import render_schema\nprint(render_schema('experiment'))"
    made = json.loads(call(base / "bin" / "python", "-c", script, cwd=tmp_path).stdout)
    assert made["properties"]["top_k"]["description"].startswith("Passages retrieved for a query")
