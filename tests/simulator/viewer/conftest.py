"""What the browser tests of the viewer share: one browser a module, and a tab that tells of problems."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.simulator.viewer.browsing import CHROMIUM, without_problems
from tests.simulator.viewer.serving import Served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. Of a module, because its loop must not run beside those of other tests."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=60_000)  # milliseconds; its own 5 seconds fail a test on a busy machine
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Page]:
    """A tab at the page of all runs, of which the console must stay empty."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    found = context.new_page()
    with without_problems(found):
        found.goto(served.listening.address)
        yield found
    context.close()
