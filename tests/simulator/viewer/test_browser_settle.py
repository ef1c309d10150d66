"""Two annotators differ, and a third settles it by keys in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from hallulab.scenarios.datasets.annotations import read_annotations
from tests.simulator.viewer.browsing import IN_TWO_FORMS, check_form, needs_chromium, opened_as
from tests.simulator.viewer.serving import Served
from tests.simulator.viewer.test_label_page import folder_of
from tests.simulator.viewer.test_labels import serving_conflicts
from tests.simulator.viewer.test_pages import id_of

pytestmark = needs_chromium


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving_conflicts(tmp_path, "Ben") as viewer:
        yield viewer


def open_conflict(page: Page, served: Served) -> None:
    """Go from the page of the labels to the first conflict, as Cora."""
    page.evaluate("localStorage.setItem('hallulab-annotator', 'Cora')")
    page.goto(f"{served.base}/runs/{id_of(served, 'small')}/labels")
    page.click("a:has-text('c0, turn 1')")
    expect(page.locator(".marking")).to_contain_text("Not settled")


def read_decisions(served: Served) -> list[tuple[str, list[tuple[str, int, str]]]]:
    return [
        (line.annotator, [(span.quote, span.severity, span.reason) for span in line.spans])
        for _, line in read_annotations(folder_of(served).annotations)
        if line.adjudicates
    ]


def test_conflicts_are_settled_by_keys_one_after_the_other(page: Page, served: Served) -> None:
    open_conflict(page, served)
    lanes = page.locator(".lane h3")
    expect(lanes).to_have_text(["person:Asha 1 hallucination", "person:Ben clean"])
    saved = page.locator(".marking .saved")
    page.keyboard.press("1")
    expect(saved).to_have_text("Settled by person:Cora: 1 hallucination")
    page.keyboard.press("2")
    expect(saved).to_have_text("Settled by person:Cora: clean")
    assert read_decisions(served) == [("person:Cora", [])]
    expect(page.locator("#desk-next")).to_have_text("Settle next (1 open conflict left)")
    page.keyboard.press("l")
    page.wait_for_url("**/settle/c1/0")
    expect(page.locator(".marking")).to_contain_text("Not settled")
    page.keyboard.press("l")
    expect(page.locator("#desk-said")).to_have_text("No other conflict is open.")
    page.goto(f"{served.base}/runs/{id_of(served, 'small')}/labels")
    expect(page.locator("#labels")).to_contain_text("1 conflict open, 1 settled.")


def test_a_turn_is_marked_anew_by_keys(page: Page, served: Served) -> None:
    open_conflict(page, served)
    page.evaluate(
        """() => {
            const text = document.querySelector(".lane[data-annotator='person:Ben'] .reply").firstChild;
            document.getSelection().setBaseAndExtent(text, 22, text, 28);
        }"""
    )
    page.keyboard.press("a")
    expect(page.locator("#desk-quote")).to_have_text("3 days")
    page.keyboard.press("4")
    page.keyboard.press("Tab")
    page.keyboard.type("It takes a week.")
    page.keyboard.press("Enter")
    expect(page.locator(".marking li")).to_have_text("added: “3 days”")
    assert read_decisions(served) == []
    page.keyboard.press("Enter")
    expect(page.locator(".marking .saved")).to_have_text("Settled by person:Cora: 1 hallucination")
    assert read_decisions(served) == [("person:Cora", [("3 days", 4, "It takes a week.")])]


def test_a_decision_is_taken_back_by_a_key(page: Page, served: Served) -> None:
    open_conflict(page, served)
    page.keyboard.press("c")
    expect(page.locator(".marking .saved")).to_have_text("Settled by person:Cora: clean")
    page.keyboard.press("z")
    expect(page.locator(".marking")).to_contain_text("Not settled")
    expect(page.locator("#desk-said")).to_have_text("Taken back: clean, turn 1")
    assert read_decisions(served) == []


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("u", "Here, take somebody’s labels, or mark the turn yourself."),
        ("3", "There is no annotator 3."),
        ("z", "There is nothing to take back."),
    ],
)
def test_keys_that_settle_nothing_are_told(page: Page, served: Served, key: str, told: str) -> None:
    open_conflict(page, served)
    page.keyboard.press(key)
    expect(page.locator("#desk-said")).to_have_text(told)
    assert read_decisions(served) == []


@pytest.mark.parametrize(("width", "scheme"), IN_TWO_FORMS)
def test_the_page_fits_and_has_no_serious_violation(
    browser: Browser, served: Served, width: int, scheme: Any
) -> None:
    with opened_as(browser, served, width, scheme) as page:
        open_conflict(page, served)
        page.click("#desk-more summary")
        check_form(page, width)
