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

from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.simulator.options.groups import ModelOptions
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.viewer.launching import FILE, Launcher
from hallulab.simulator.viewer.offers import load_start_source
from hallulab.testing.tiny_pack import make_pack
from tests.simulator.viewer.browsing import find_violations, needs_chromium, opened_as
from tests.simulator.viewer.launched import COMMAND, GATE, MODEL, URL, wait_for
from tests.simulator.viewer.serving import Served, serving

pytestmark = needs_chromium

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
CHECKED_MS = 60_000
RUN_MS = 120_000


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("start")


@pytest.fixture(scope="module")
def launcher(base: Path) -> Iterator[Launcher]:
    """Starts runs on a scripted model; the experiment file has a pack with hostile names."""
    (base / "runs").mkdir()
    pack = make_pack(base / HOSTILE.replace("/", ""))
    people = [
        {
            "id": f"person-{number}",
            "name": HOSTILE,
            "grievance": HOSTILE,
            "goals": ["x"],
            "manner": "x",
            "summary": "x",
        }
        for number in range(2)
    ]
    (pack / "personas.yaml").write_text(yaml.safe_dump({"personas": people}))
    file = base / "experiment.yaml"
    file.write_text(yaml.safe_dump({"scenario": str(pack), "model": MODEL, "base_url": URL}))
    made = Launcher(load_start_source(ModelOptions(config=file), [base / "runs"]), COMMAND)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(os.environ, GATE, str(base / "gate"))
        yield made
        made.close()


@pytest.fixture(scope="module")
def served(base: Path, launcher: Launcher) -> Iterator[Served]:
    with serving([base / "runs"], base / "indices", launcher=launcher) as viewer:
        yield viewer


@pytest.fixture
def form(page: Page, served: Served) -> Page:
    """The page with the form, once it was checked."""
    page.goto(f"{served.base}/start")
    expect(page.locator("#sentences li")).to_have_count(3, timeout=CHECKED_MS)
    return page


def reach(page: Page, id: str) -> None:
    """Press Tab until the focus is there."""
    for _ in range(90):
        if page.evaluate("document.activeElement.id") == id:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {id}")


def expect_yaml(page: Page, *lines: str) -> None:
    """The YAML has these lines, once the form was checked again."""
    for line in lines:
        expect(page.locator("#yaml")).to_have_value(
            re.compile(f"^{re.escape(line)}$", re.M), timeout=CHECKED_MS
        )


def open_all(page: Page) -> None:
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")


def test_the_form_begins_with_the_experiment_file_and_hostile_names_are_text(form: Page) -> None:
    assert form.locator("#field-model").input_value() == MODEL
    assert (form.locator("#personas").text_content() or "").count(HOSTILE) == 4
    assert form.locator("main img, main script").count() == 0
    assert HOSTILE.replace("/", "") in form.locator("#field-scenario").inner_text()


def read_shown(page: Page, file: Path) -> Experiment:
    """The experiment of the file that the page shows."""
    file.write_text(page.locator("#yaml").input_value())
    return load_experiment(file, {})


def test_what_is_chosen_stands_in_the_experiment_file(form: Page, tmp_path: Path) -> None:
    open_all(form)
    form.select_option("#field-scenario", "pregnancy-medication")
    expect(form.locator("#personas input")).to_have_count(10)
    form.locator("#personas input").nth(1).check()
    form.uncheck("input[name=chatbots][value=agent]")
    form.check("input[name=detectors][value=lexical]")
    form.fill("#field-chatbots-more", "- {name: short, kind: vanilla, options: {max_tokens: 50}}")
    form.fill("#field-detectors-more", "- {name: second, kind: lexical}")
    form.uncheck("#field-timed")
    expect_yaml(form, "timed: false")
    made = read_shown(form, tmp_path / "shown.yaml")
    assert [bot.name for bot in made.chatbots][-2:] == ["fact-checker", "short"]
    assert [one.name for one in made.detectors] == ["halludetect", "metarag", "lexical", "second"]
    second = load_scenario("pregnancy-medication").personas[1].id
    assert (made.scenario, made.personas, made.timed) == ("pregnancy-medication", (second,), False)


TEXTS = {
    "model": "other",
    "base_url": "http://127.0.0.1:9/v1",
    "api_key_env": "PATH",
    "limit": "1",
    "endpoint_limits": "{requests: 2}",
    "models": "{big: {model: b}}",
    "roles": "{detector: big}",
    "user": "{models: [big, default]}",
    "repeats": "2",
    "seed": "5",
    "manners": "terse",
    "min_turns": "1",
    "max_turns": "3",
    "reply_tokens": "60",
    "top_k": "5",
    "attack": "{distractors: 1}",
    "embedding_model": "bge-small-en-v1.5",
    "concurrency": "auto",
    "timeout": "20",
    "decision_samples": "3",
    "until_decided": "{margin: 0.3}",
}
"""Fields, and what is typed into them. Those that exclude each other have a test of their own."""


def test_what_is_typed_stands_in_the_experiment_file(form: Page, tmp_path: Path) -> None:
    open_all(form)
    for name, text in TEXTS.items():
        form.fill(f"#field-{name}", text)
    expect_yaml(form, "decision_samples: 3", "  margin: 0.3")
    found = read_shown(form, tmp_path / "shown.yaml").model_dump(mode="json", exclude_unset=True)
    assert {name: found[name] for name in TEXTS} == {
        **{name: yaml.safe_load(text) for name, text in TEXTS.items()},
        "manners": ["terse"],
    }


def test_what_excludes_other_fields_is_typed_without_them(form: Page) -> None:
    open_all(form)
    form.fill("#field-base_url", "")
    form.fill("#field-base_urls", "http://127.0.0.1:9/v1\nhttp://127.0.0.1:8/v1")
    form.fill("#field-count", "4")
    expect_yaml(form, "count: 4", "- http://127.0.0.1:8/v1")


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("limit", "0", "Input should be greater than or equal to 1."),
        ("base_url", "ftp://x", "'ftp://x' is no address"),
        ("model", "../../etc", None),
        ("attack", HOSTILE, "Must be keys with values"),
        (
            "api_key_env",
            "sk-abc",
            "This is no name of an environment variable. Give its name, never the key.",
        ),
    ],
)
def test_an_error_stands_beside_its_field(form: Page, name: str, text: str, sentence: str | None) -> None:
    if sentence is None:  # a folder is one only where hallulab serves the model
        form.fill("#field-base_url", "")
        sentence = "This page loads no model from a folder, '../../etc'."
    open_all(form)
    form.fill(f"#field-{name}", text)
    expect(form.locator(f"#error-{name}")).to_contain_text(sentence, timeout=CHECKED_MS)
    expect(form.locator(f"#field-{name}")).to_have_attribute("aria-invalid", "true")
    assert form.locator("#yaml").input_value() == ""
    form.fill(f"#field-{name}", "")


def test_starting_a_wrong_form_leads_to_the_field(browser: Browser, served: Served) -> None:
    page = browser.new_page()
    page.goto(served.listening.address)
    page.goto(f"{served.base}/start")
    before = len(served.runs.list())
    page.evaluate("document.getElementById('field-top_k').value = 'many'")
    page.focus("#start-run")
    page.keyboard.press("Enter")
    expect(page.locator("#field-top_k")).to_be_focused(timeout=CHECKED_MS)
    assert len(served.runs.list()) == before
    page.close()


def test_the_file_is_copied(page: Page, served: Served) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=served.base)
    page.goto(f"{served.base}/start")
    expect(page.locator("#sentences li")).to_have_count(3, timeout=CHECKED_MS)
    page.click("#copy-yaml")
    expect(page.locator("#copied")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#yaml").input_value()


@pytest.mark.slow
def test_a_run_by_keyboard_alone_is_started_stopped_and_resumed(
    page: Page, served: Served, launcher: Launcher, base: Path
) -> None:
    page.locator("a", has_text="Start a run").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/start")
    expect(page.locator("#sentences li")).to_have_count(3, timeout=CHECKED_MS)
    reach(page, "field-scenario")
    page.keyboard.type("pregnancy")
    expect(page.locator("#personas input")).to_have_count(10)
    for name in ("prompt-engineered", "editor", "fact-checker", "agent", "halludetect", "metarag", "lexical"):
        while page.evaluate("document.activeElement.value") != name:
            page.keyboard.press("Tab")
        page.keyboard.press("Space")
    reach(page, "field-limit")
    page.keyboard.type("4")
    page.evaluate("document.getElementById('more').querySelector('summary').id = 'more-head'")
    reach(page, "more-head")
    page.keyboard.press("Enter")
    reach(page, "field-concurrency")
    page.keyboard.type("1")
    expect(page.locator("#sentences")).to_contain_text("4 conversations of 1 chatbot", timeout=CHECKED_MS)
    expect_yaml(page, "concurrency: 1", "limit: 4", "scenario: pregnancy-medication")
    text = page.locator("#yaml").input_value()
    reach(page, "start-run")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/*", timeout=CHECKED_MS)
    [run] = served.runs.list()
    assert (run.folder.path / FILE).read_text() == text
    expect(page.locator("#standing")).to_contain_text("0 of 4 conversations")
    wait_for(lambda: run.folder.has_journal and run.folder.read_conversations(), 120)
    expect(page.locator("#standing")).to_contain_text(re.compile("[123] of 4 conversations"), timeout=RUN_MS)
    reach(page, "stop-run")
    page.keyboard.press("Enter")
    expect(page.locator("#standing")).to_contain_text("Stopped. What was finished is kept.", timeout=RUN_MS)
    (base / "gate").touch()
    reach(page, "resume-run")
    page.keyboard.press("Enter")
    expect(page.locator("#standing")).to_contain_text("The run has ended.", timeout=RUN_MS)
    expect(page.locator("#standing")).to_contain_text("4 of 4 conversations")
    saved = run.folder.read_experiment()
    assert saved is not None
    asked = load_experiment(run.folder.path / FILE, {})
    assert asked.model_dump() == saved.experiment.model_dump()
    assert page.locator("#results").count() == 1


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_pages_fit_and_have_no_serious_violation(
    browser: Browser, served: Served, launcher: Launcher, width: int, scheme: Any
) -> None:
    with opened_as(browser, served, width, scheme, 900) as page:
        page.goto(f"{served.base}/start")
        expect(page.locator("#sentences li")).to_have_count(3, timeout=CHECKED_MS)
        open_all(page)
        page.fill("#field-limit", "0")
        expect(page.locator("#error-limit")).to_be_visible(timeout=CHECKED_MS)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert find_violations(page) == []
        page.fill("#field-limit", "1")
        expect(page.locator("#error-limit")).to_be_hidden(timeout=CHECKED_MS)
        page.click("#start-run")
        page.wait_for_url("**/runs/*", timeout=CHECKED_MS)
        expect(page.locator("#stop-run")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert find_violations(page) == []
        page.click("#stop-run")
        expect(page.locator("#resume-run")).to_be_visible(timeout=RUN_MS)
        assert find_violations(page) == []
