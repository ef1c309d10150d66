"""The documentation as a site: it builds without a warning, needs no network, and has what the code says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from benchmarks.docs_site import render_commands
from benchmarks.golden import find_commands
from tests.places import ROOT
from tests.simulator.command_line import CommandLine
from tests.simulator.report.test_page import CHROMIUM, DRIVER, FLAGS, in_browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as `make docs` builds it. A warning is an error, which `--quiet` would hide."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=True,
    )
    return folder


def test_every_page_is_in_the_site(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if not (site / page).is_file()] == []


def test_a_page_loads_nothing_from_elsewhere(site: Path) -> None:
    loaded = {
        address
        for page in site.rglob("*.html")
        for address in re.findall(
            r"<(?:script|img|iframe|link)\b[^>]*(?:src|href)=\"?([^\s\">]+)", page.read_text(encoding="utf-8")
        )
    }
    assert any(address.endswith(".css") for address in loaded)
    assert {address for address in loaded if re.match(r"(?:\w+:)?//", address)} == set()


@pytest.fixture(scope="module")
def shown(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """A page of the site in a browser, opened as a file."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    driver.get((site / "experiment.html").as_uri())
    yield driver
    driver.quit()


@in_browser
def test_the_search_finds_a_word_in_brackets_without_a_server(shown: webdriver.Chrome) -> None:
    field = shown.find_element(By.CSS_SELECTOR, "input.md-search__input")
    field.click()
    field.send_keys("jackknife")
    WebDriverWait(shown, 120).until(
        lambda page: page.find_elements(By.CSS_SELECTOR, '.md-search-result__link[href*="corrected-numbers"]')
    )


def test_the_index_for_language_models_has_each_page_with_its_first_sentence(site: Path) -> None:
    lines = (site / "llms.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# hallulab"
    assert (
        "- [Scenario packs](scenario-packs.html): A pack contains the chatbots' knowledge and their users."
        in lines
    )
    linked = {found for line in lines for found in re.findall(r"\]\(([^)]*)\):", line)}
    assert linked == {
        page.relative_to(site).as_posix()
        for page in site.rglob("*.html")
        if page.name not in {"404.html", "index.html"}
    }


def test_the_page_of_commands_has_all_that_help_names(hallulab: CommandLine) -> None:
    page = render_commands()
    names = find_commands(hallulab("--help").out)
    headings = re.findall(r"^## hallulab ([\w-]+)", page, re.MULTILINE)
    assert list(dict.fromkeys(headings)) == names
    assert "| `--out <path>` | Run folder; by default runs/ and the time. |" in page
