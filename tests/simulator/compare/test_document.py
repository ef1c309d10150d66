"""A comparison as a document, and what page and Markdown show of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from selenium import webdriver

from hallulab.simulator.compare.document import build_document
from hallulab.simulator.compare.runs import compare_runs
from hallulab.simulator.compare.summary import RunSummary, summarize_run
from hallulab.simulator.compare.texts import add_texts
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.show.document import ShownDocument
from hallulab.simulator.show.html import render_page
from hallulab.simulator.show.markdown import LONGEST, render_markdown
from tests.simulator.compare.made import Found, found
from tests.simulator.report.test_page import CHROMIUM, DRIVER, FLAGS, in_browser

SIX = [f"p{number}" for number in range(6)]
HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'


def text_of(page: str) -> str:
    """The page without what stands in tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


def document_of(*folders: RunFolder) -> ShownDocument:
    return build_document(add_texts(compare_runs([summarize_run(one) for one in folders]), folders))


def page_of(*runs: RunSummary) -> str:
    return render_page(build_document(compare_runs(runs)))


def test_names_from_elsewhere_are_text_wherever_they_stand() -> None:
    before = found({HOSTILE: {(HOSTILE, 0): [0]}}, HOSTILE, scenario=HOSTILE, documents={HOSTILE: HOSTILE})
    after = found({HOSTILE: {(HOSTILE, 0): [1]}}, HOSTILE, scenario=HOSTILE, documents={HOSTILE: "2"})
    page = page_of(before, after, found({"bot": {("asha", 0): [1]}}, HOSTILE))
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("&lt;script&gt;") > 10


def test_sections_stand_in_their_order(demo_replay: RunFolder, changed_demo: RunFolder) -> None:
    page = render_page(document_of(demo_replay, changed_demo))
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert headings == [
        "Changed turns",
        "Differences",
        "Turns of 10 conversations that both runs have",
        "Coverage",
        "Cost of a conversation",
        "Changes",
    ]
    assert text_of(page).index("No difference found in hallucinations") < text_of(page).rindex(
        "Changed turns"
    )
    assert page.count('<article class="cell">') == 3
    assert page.count("the detector&#39;s noise</p>") == 1


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


def test_a_dot_has_the_numbers_of_its_line_and_names_are_escaped() -> None:
    before = found({"a": {(one, 0): [0] for one in SIX}, "b <i>": {("p0", 0): [0]}, "c": {("p0", 0): [None]}})
    twos: Found = {(one, 0): [number % 2 * 2] for number, one in enumerate(SIX)}
    after = found({"a": twos, "b <i>": {("p0", 0): [0]}, "c": {("p0", 0): [0]}})
    page = page_of(before, after)
    assert "<title>a, d: 0.00 → 1.00 a turn, +1.00 [-0.15, +2.15], p = 0.5</title>" in page
    assert page.count("<circle") == 2
    assert "<i>" not in page


def test_a_comment_has_sentences_changed_turns_and_folded_tables(
    demo_replay: RunFolder, changed_demo: RunFolder
) -> None:
    text = render_markdown(document_of(demo_replay, changed_demo))
    lines = text.splitlines()
    assert lines[0] == "### hallulab compare: B (after) beside A (demo)"
    assert lines[3] == (
        "- Hallucinated turns: 1 new, 2 gone, 0 worse, 0 better, of 40 verdicts on turns judged in both runs."
    )
    assert "- Changed between the runs: prompt chatbots/generation of chatbot vanilla." in lines
    assert "**gone (2)**" in lines
    assert (
        "  - after: I do not know. &#60;b&#62;Ask&#60;/b&#62; &#64;&#8288;somebody &#124; at "
        "www&#46;example.org." in lines
    )
    assert lines.index("**gone (2)**") < lines.index("<details><summary>Differences</summary>")
    assert "| vanilla | halludetect | 2 | paired | 1.00 | 0.25 | -0.75 | 1 | – |" in text


def test_a_long_comment_is_cut() -> None:
    bots = {f"bot{number:04}": {("asha", 0): [1]} for number in range(900)}
    run = found(bots)
    text = render_markdown(build_document(compare_runs([run, run])))
    assert len(text) < LONGEST + 200
    assert text.endswith("The rest is left out: a comment has no room for it. `--json` writes all.\n")


def test_several_runs_have_headings() -> None:
    run = found({"bot": {("asha", 0): [1]}})
    lines = render_markdown(build_document(compare_runs([run, run, run]))).splitlines()
    assert [line for line in lines if line.startswith("#")] == [
        "### hallulab compare: B (run), C (run) beside A (run)",
        "#### B (run)",
        "#### C (run)",
    ]


@pytest.mark.slow
@in_browser
def test_it_fits_a_telephone(demo_replay: RunFolder, changed_demo: RunFolder, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    page = render_page(document_of(demo_replay, changed_demo))
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
