"""The pictures of the viewer: pages over a recorded run, and what axe says of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from benchmarks.viewer_screenshots import PICTURES, Form, name_picture, open_page, show
from hallulab.simulator.viewer.app import Listening
from hallulab.simulator.viewer.runs import ShownRuns
from tests.places import ROOT
from tests.simulator.viewer.browsing import CHROMIUM, find_violations, needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ShownRuns, Listening]]:
    with show(tmp_path_factory.mktemp("pictures")) as found:
        yield found


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("form", PICTURES)
def test_pages_of_a_recorded_run_fit_and_have_no_serious_violation(
    form: Form, shown: tuple[ShownRuns, Listening], browser: Browser
) -> None:
    with open_page(browser, shown, form, bypass_csp=True) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= form[1]
        assert find_violations(page) == []


def test_the_docs_have_each_picture() -> None:
    wanted = {name_picture(form) for form in PICTURES}
    text = (ROOT / "docs" / "viewer.md").read_text(encoding="utf-8")
    assert set(re.findall(r"assets/(viewer-[\w.-]+)", text)) == wanted
    assert {path.name for path in (ROOT / "docs" / "assets").glob("viewer-*")} == wanted
