"""Confirming who gets a key, in a real browser: a box names address and variable, and nothing goes else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.viewer.launching import Launcher
from hallulab.simulator.viewer.offers import StartSource
from tests.simulator.cli.test_strangers_addresses import FAR, strangers_run
from tests.simulator.recording_endpoint import KEY, VARIABLE
from tests.simulator.viewer.browsing import find_violations, needs_chromium
from tests.simulator.viewer.serving import Served, serving
from tests.simulator.viewer.test_confirming import NOTING, read_noted

pytestmark = [needs_chromium, pytest.mark.slow]  # test_confirming.py tells what the server checks

SENTENCE = f"{FAR} gets texts and the key in {VARIABLE}"
SHOWN_MS = 20_000


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("confirm") / "runs"
    strangers_run(folder / "theirs", base_url=FAR, api_key_env=VARIABLE)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(os.environ, VARIABLE, KEY)
        yield folder


@pytest.fixture(scope="module")
def served(runs: Path) -> Iterator[Served]:
    launcher = Launcher(StartSource(Experiment(), runs), NOTING)
    with serving([runs], runs.parent / "indices", launcher=launcher) as viewer:
        yield viewer
    launcher.close()


def test_a_run_is_resumed_once_its_box_is_ticked(page: Page, served: Served, runs: Path) -> None:
    [run] = [one for one in served.runs.list() if one.name == "theirs"]
    page.goto(f"{served.base}/runs/{run.id}")
    box = page.get_by_label(SENTENCE)
    assert find_violations(page) == []
    page.locator("#resume-run").click()
    expect(box).to_be_focused()  # the browser asks for it
    assert not (run.folder.path / "noted").exists()
    box.check()
    page.locator("#resume-run").click()
    assert read_noted(run.folder)["api_key_env"] == VARIABLE


def test_a_run_is_started_once_its_box_is_ticked(browser: Browser, served: Served, runs: Path) -> None:
    page = browser.new_page()  # its console tells of the refusal
    before = set(runs.iterdir())
    page.goto(served.listening.address)
    page.goto(f"{served.base}/start")
    for field, text in (("model", "m"), ("base_url", FAR), ("api_key_env", VARIABLE)):
        page.locator(f"#field-{field}").fill(text)
    box = page.get_by_label(SENTENCE)
    expect(box).to_be_visible(timeout=SHOWN_MS)
    page.locator("#start-run").click()
    expect(page.locator("#error-confirmed")).to_contain_text(f"Confirm first that {SENTENCE}")
    assert set(runs.iterdir()) == before
    assert find_violations(page) == []
    box.check()
    page.locator("#start-run").click()
    page.wait_for_url("**/runs/*", timeout=SHOWN_MS)
    [started] = set(runs.iterdir()) - before
    assert read_noted(RunFolder(started))["base_url"] == FAR
    page.close()
