"""The five steps of docs/viewer.md from an installation on, as somebody takes them who has nothing yet.

`python -m pytest -m slow -n 0 -s tests/simulator/viewer/test_five_steps.py` prints how long each step takes.
The package and what it needs come from the package index, and so do the weights that find passages.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import textwrap
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from hallulab.agents.machine.cache import CACHE_VARIABLE
from hallulab.agents.machine.installer import installers
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.endpoint import MODEL, completion, serve_stub
from tests.places import ROOT
from tests.simulator.viewer.browsing import needs_chromium

pytestmark = needs_chromium

SOURCES = ("agents", "chatbots", "detectors", "hallulab", "scenarios", "simulator")
LONGEST_S = 600


@contextmanager
def timed(step: str, times: dict[str, float]) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    times[step] = time.perf_counter() - begin


def install(folder: Path) -> Path:
    """Install a copy of the source into a new environment, as a user does; return its folder of programs."""
    source, environment = folder / "source", folder / "environment"
    for name in SOURCES:
        shutil.copytree(
            ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "shipped")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    venv.create(environment, with_pip=True)
    installer = installers(environment / "bin" / "python")[0]
    command = [*installer.command, "--constraint", str(ROOT / "constraints.txt"), f"{source}[local]"]
    subprocess.run(command, env=installer.environ, check=True)
    return environment / "bin"


def read_experiment(url: str) -> str:
    """Return the file of the docs' second step, with an endpoint that answers."""
    docs = (ROOT / "docs" / "viewer.md").read_text(encoding="utf-8")
    [file] = re.findall(r"```yaml\n( +scenario.*?)```", docs, re.DOTALL)
    text = textwrap.dedent(file)
    assert "model: my-model\nbase_url: http://127.0.0.1:8000/v1\n" in text
    return text.replace("my-model", MODEL).replace("http://127.0.0.1:8000/v1", url)


@contextmanager
def viewing(programs: Path, folder: Path) -> Iterator[str]:
    """Start the viewer of an environment in a folder; its address."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    process = subprocess.Popen(
        [programs / "hallulab", "view", "--experiment", "my-experiment.yaml", "--no-browser"],
        cwd=folder,
        env={**ours, CACHE_VARIABLE: str(folder / "cache")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_from_the_installation_to_a_judged_conversation(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    times: dict[str, float] = {}
    with timed("1 install", times):
        programs = install(tmp_path)
    assert not [*(programs.parent / "lib").rglob("playwright")]
    work = tmp_path / "work"
    work.mkdir()
    with serve_stub(completion) as url:
        with timed("2 write the file", times):
            (work / "my-experiment.yaml").write_text(read_experiment(url))
        begin = time.perf_counter()
        with viewing(programs, work) as address:
            page.goto(address)
            page.click("text=Talk to a bot")
            page.locator("#message").wait_for()
            times["3 start the viewer, and open its page"] = time.perf_counter() - begin
            with timed("4 ask, until the reply is judged", times):
                page.fill("#message", "Where do I complain?")
                page.keyboard.press("Enter")
                page.locator("#turn-0 mark").first.wait_for(timeout=1000 * LONGEST_S)
            with timed("5 click a marked place", times):
                page.locator("#turn-0 mark").first.click()
                expect(page.locator("#turn-0 .finding.open")).to_have_count(1)
    page.close()
    print("\n".join(f"{step}: {seconds:.1f} s" for step, seconds in times.items()))
    [run] = (work / "runs").iterdir()
    assert [verdict.flagged for verdict in RunFolder(run).read_journals().verdicts] == [True]
