"""Where the browser is, and what axe says of a page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.simulator.viewer.serving import Served

CHROMIUM = shutil.which("chromium")
IN_TWO_FORMS = [pytest.param(1280, "light", marks=pytest.mark.slow), (400, "dark")]
"""Width and colours in which a page is looked at. A telephone's finds more."""

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")


@contextmanager
def opened_as(browser: Browser, served: Served, width: int, scheme: Any, height: int = 800) -> Iterator[Page]:
    """A tab of a width, light or dark, at the page of all runs. The policy would forbid axe's script, too."""
    size: Any = {"width": width, "height": height}
    context = browser.new_context(viewport=size, color_scheme=scheme, bypass_csp=True)
    try:
        page = context.new_page()
        page.goto(served.listening.address)
        yield page
    finally:
        context.close()


@contextmanager
def without_problems(page: Page, *expected: str) -> Iterator[None]:
    """Nothing is printed to the console while the block runs, but for lines with expected words."""
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append("dialog"))
    yield
    page.goto("about:blank")
    assert [one for one in problems if not any(word in one for word in expected)] == []


def check_form(page: Page, width: int) -> None:
    """The page fits, and axe finds nothing serious."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert find_violations(page) == []


def find_violations(page: Page) -> list[tuple[str, Any]]:
    """What axe calls serious or critical."""
    page.evaluate(files("axe_core_python").joinpath("axe.min.js").read_text())
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
