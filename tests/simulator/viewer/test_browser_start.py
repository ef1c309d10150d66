"""Starting, stopping and resuming a run on the page, by keyboard alone, in a real browser."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import Browser, Page, expect

from hallulab.simulator.options.groups import ModelOptions
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.recipients import VIEW_FILE
from hallulab.simulator.viewer.launcher import Launcher
from hallulab.simulator.viewer.offer import load_offer
from hallulab.testing.tiny_pack import make_pack
from tests.simulator.cli.test_strangers_addresses import FAR
from tests.simulator.recording_endpoint import KEY, VARIABLE
from tests.simulator.viewer.browsing import check_form, needs_chromium, opened_as
from tests.simulator.viewer.launched import COMMAND, GATE, MODEL, URL, wait_for, write_text
from tests.simulator.viewer.serving import Served, serving

pytestmark = needs_chromium

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script></textarea>"
SENTENCE = f"{FAR} gets texts and the key in {VARIABLE}"
SHOWN_MS = 60_000
RUN_MS = 120_000


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("start")


@pytest.fixture(scope="module")
def launcher(base: Path) -> Iterator[Launcher]:
    """Starts runs on a scripted model; the experiment file has a pack with a hostile name."""
    (base / "runs").mkdir()
    pack = make_pack(base / HOSTILE.replace("/", ""))
    file = base / "experiment.yaml"
    file.write_text(yaml.safe_dump({"scenario": str(pack), "model": MODEL, "base_url": URL}))
    made = Launcher(load_offer(ModelOptions(config=file), [base / "runs"]), COMMAND)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(os.environ, GATE, str(base / "gate"))
        patched.setitem(os.environ, VARIABLE, KEY)
        yield made
        made.close()


@pytest.fixture(scope="module")
def served(base: Path, launcher: Launcher) -> Iterator[Served]:
    with serving([base / "runs"], base / "indices", launcher=launcher) as viewer:
        yield viewer


def reach(page: Page, id: str) -> None:
    """Press Tab until the focus is there."""
    for _ in range(30):
        if page.evaluate("document.activeElement.id") == id:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {id}")


def show_plan(page: Page, text: str) -> None:
    page.locator("#yaml").fill(text)
    page.locator("#show-plan").click()


def test_the_field_begins_with_the_command_lines_experiment_and_hostile_names_are_text(
    page: Page, served: Served
) -> None:
    page.goto(f"{served.base}/start")
    text = page.locator("#yaml").input_value()
    assert HOSTILE.replace("/", "") in yaml.safe_load(text)["scenario"]
    expect(page.locator("#plan li").nth(1)).to_contain_text("5 conversations, about ", timeout=SHOWN_MS)
    show_plan(page, text)
    expect(page.locator("#plan li").first).to_contain_text("5 conversations of 5 chatbots", timeout=SHOWN_MS)
    assert page.locator("main img, main script").count() == 0


def test_a_mistake_stands_below_the_field_as_text(page: Page, served: Served) -> None:
    page.goto(f"{served.base}/start")
    show_plan(page, f"scenario: pregnancy-medication\nlimit: '{HOSTILE}'\n")
    expect(page.locator("#plan .note")).to_contain_text("experiment.yaml, line 2: limit: ", timeout=SHOWN_MS)
    show_plan(page, f"scenario: '{HOSTILE}'\n")
    expect(page.locator("#plan .note")).to_contain_text("line 1: there is no such scenario", timeout=SHOWN_MS)
    assert page.locator("main img, main script").count() == 0


def test_a_refusal_stands_below_the_field(page: Page, served: Served, base: Path) -> None:
    page.goto(f"{served.base}/start")
    before = set((base / "runs").iterdir())
    page.locator("#yaml").fill(write_text(model="m", base_url=FAR, api_key_env=VARIABLE))
    page.locator("#start-run").click()
    expect(page.locator("#plan .note")).to_contain_text(f"in which {SENTENCE}", timeout=SHOWN_MS)
    assert set((base / "runs").iterdir()) == before


@pytest.mark.slow
def test_a_run_by_keyboard_alone_is_started_stopped_and_resumed(
    page: Page, served: Served, base: Path
) -> None:
    before = {run.id for run in served.runs.list()}
    page.locator("a", has_text="Start a run").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/start")
    text = write_text(scenario="pregnancy-medication", limit=4, concurrency=1)
    reach(page, "yaml")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)
    reach(page, "show-plan")
    page.keyboard.press("Enter")
    expect(page.locator("#plan")).to_contain_text("4 conversations of 1 chatbot", timeout=SHOWN_MS)
    reach(page, "start-run")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/*", timeout=SHOWN_MS)
    [run] = [one for one in served.runs.list() if one.id not in before]
    status = page.locator("#status")
    expect(status).to_contain_text("0 of 4 conversations")
    wait_for(lambda: run.folder.has_journal and run.folder.read_conversations(), 120)
    expect(status).to_contain_text(re.compile("[123] of 4 conversations"), timeout=RUN_MS)
    reach(page, "stop-run")
    page.keyboard.press("Enter")
    expect(status).to_contain_text("Stopped. What was finished is kept.", timeout=RUN_MS)
    (base / "gate").touch()
    reach(page, "resume-run")
    page.keyboard.press("Enter")
    expect(status).to_contain_text("The run has ended.", timeout=RUN_MS)
    expect(status).to_contain_text("4 of 4 conversations")
    saved = RunFolder(run.folder.path).read_experiment()
    assert saved is not None
    assert load_experiment(run.folder.path / VIEW_FILE, {}).model_dump() == saved.experiment.model_dump()
    assert page.locator("#results").count() == 1


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_pages_fit_and_have_no_serious_violation(
    browser: Browser, served: Served, width: int, scheme: Any
) -> None:
    with opened_as(browser, served, width, scheme, 900) as page:
        page.goto(f"{served.base}/start")
        show_plan(page, "limit: 0\n")
        expect(page.locator("#plan .note")).to_be_visible(timeout=SHOWN_MS)
        show_plan(page, write_text(model="m", base_url=FAR, api_key_env=VARIABLE))
        expect(page.locator("#plan .note")).to_contain_text(SENTENCE, timeout=SHOWN_MS)
        check_form(page, width)
        page.locator("#yaml").fill(write_text(scenario="pregnancy-medication", limit=1))
        page.locator("#start-run").click()
        page.wait_for_url("**/runs/*", timeout=SHOWN_MS)
        expect(page.locator("#status")).to_be_visible()
        check_form(page, width)
