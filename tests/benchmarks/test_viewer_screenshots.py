"""The pictures of the viewer: every page over recorded runs, and what axe says of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from benchmarks.viewer_screenshots import FORMS, PAGES, Form, Gallery, name_picture, open_page, show
from tests.places import ROOT
from tests.simulator.viewer.browsing import CHROMIUM, find_violations, needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Gallery]]:
    with show(tmp_path_factory.mktemp("pictures")) as found:
        yield found


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("form", [(1280, "dark"), (400, "light")])  # the others: tests/simulator/viewer
@pytest.mark.parametrize("name", PAGES)
def test_every_page_of_recorded_runs_fits_and_has_no_serious_violation(
    name: str, form: Form, shown: tuple[str, Gallery], browser: Browser
) -> None:
    with open_page(browser, *shown, name, form, bypass_csp=True) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= form[0]
        assert find_violations(page) == []


def test_the_docs_have_a_picture_of_every_page_in_every_form() -> None:
    docs = ROOT / "docs"
    text = (docs / "viewer-pictures.md").read_text(encoding="utf-8")
    wanted = {name_picture(name, form) for name in PAGES for form in FORMS}
    assert set(re.findall(r"assets/(viewer-[\w.-]+)", text)) == wanted
    assert {path.name for path in (docs / "assets").glob("viewer-*")} == wanted


def test_all_pictures_together_are_small() -> None:
    assert sum(path.stat().st_size for path in Path(ROOT / "docs" / "assets").glob("viewer-*")) < 2_500_000
