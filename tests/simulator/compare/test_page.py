from __future__ import annotations

import re
from pathlib import Path

import pytest
from selenium import webdriver

from hallulab.simulator.compare.page import render_page
from hallulab.simulator.compare.runs import compare_runs
from hallulab.simulator.compare.summary import RunSummary, summarize_run
from hallulab.simulator.compare.texts import add_texts
from hallulab.simulator.records.folder import RunFolder
from tests.simulator.compare.made import found
from tests.simulator.report.test_page import CHROMIUM, DRIVER, FLAGS, in_browser

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'


def text_of(page: str) -> str:
    """The page without what stands in tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


def page_of(*runs: RunSummary) -> str:
    return render_page(compare_runs(runs))


def test_names_from_elsewhere_are_text_wherever_they_stand() -> None:
    before = found({HOSTILE: {(HOSTILE, 0): [0]}}, HOSTILE, scenario=HOSTILE, documents={HOSTILE: HOSTILE})
    after = found({HOSTILE: {(HOSTILE, 0): [1]}}, HOSTILE, scenario=HOSTILE, documents={HOSTILE: "2"})
    page = page_of(before, after, found({"bot": {("asha", 0): [1]}}, HOSTILE))
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("&lt;script&gt;") > 10


def test_sections_stand_in_their_order(demo_replay: RunFolder, changed_demo: RunFolder) -> None:
    folders = [demo_replay, changed_demo]
    page = render_page(add_texts(compare_runs([summarize_run(one) for one in folders]), folders))
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert headings == [
        "Changed turns",
        "Differences",
        "Coverage",
        "Cost of a conversation",
        "What was changed",
    ]
    assert text_of(page).index("Not told apart in hallucinations") < text_of(page).index("Changed turns")
    assert page.count('<article class="cell">') == 3
    assert page.count("this is the detector's noise.") == 1


def test_a_run_that_cannot_be_compared_has_its_reason_and_no_tables() -> None:
    page = page_of(found({"bot": {("asha", 0): [1]}}), found({"bat": {("asha", 0): [1]}}))
    assert "no common chatbot (bot in one, bat in the other)" in page
    assert "<table" not in page


def test_only_the_first_changed_turns_are_shown() -> None:
    before = {(f"p{number:03}", 0): [0] for number in range(60)}
    after = {user: [1] for user in before}
    page = page_of(found({"bot": before}), found({"bot": after}))
    assert page.count('<article class="cell">') == 50
    assert "10 more are in the JSON." in page


@pytest.mark.slow
@in_browser
def test_it_fits_a_telephone(demo_replay: RunFolder, changed_demo: RunFolder, tmp_path: Path) -> None:
    folders = [demo_replay, changed_demo]
    file = tmp_path / "page.html"
    page = render_page(add_texts(compare_runs([summarize_run(one) for one in folders]), folders))
    file.write_text(page, encoding="utf-8")
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in FLAGS[:-1]:
        options.add_argument(flag)
    options.add_experimental_option("mobileEmulation", {"deviceMetrics": {"width": 400, "height": 900}})
    with webdriver.Chrome(options, webdriver.ChromeService(str(DRIVER))) as browser:
        browser.get(file.as_uri())
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
        assert browser.execute_script("return document.querySelectorAll('svg circle').length") == 10
        assert browser.execute_script("return getComputedStyle(document.body).margin") == "0px"
