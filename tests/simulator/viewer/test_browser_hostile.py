"""Hostile texts in every field of a run folder, in a real browser: nothing of them runs, on no page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page

from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.write import write_reports
from tests.simulator.hostile_texts import TEXTS, write_hostile_run
from tests.simulator.viewer.browsing import needs_chromium
from tests.simulator.viewer.serving import Served, serving

pytestmark = needs_chromium

WORST = f"\"'></script>{TEXTS[1]}"
"""A way out of attributes and scripts, for the quick test."""

FIND = """() => {
    const found = [...document.querySelectorAll("canary, [data-canary]")];
    for (const element of document.querySelectorAll("*")) {
        for (const {name, value} of element.attributes) {
            const leads = ["href", "src", "action", "formaction"].includes(name);
            if (name.startsWith("on") || leads && /^\\s*(javascript|vbscript|data):/i.test(value)) {
                found.push(element);
            }
        }
    }
    return found.map((element) => element.outerHTML.slice(0, 200));
}"""
"""Elements of theirs, handlers, and addresses that run."""

USE = """() => {
    document.addEventListener("submit", (event) => event.preventDefault(), true);
    const all = document.querySelectorAll("mark, summary, button, [tabindex], [data-flag]");
    for (const element of [...all].filter((one) => one.checkVisibility())) {
        for (const kind of ["mouseover", "focus", "click"]) {
            element.dispatchEvent(new MouseEvent(kind, {bubbles: true}));
        }
    }
    for (const element of document.querySelectorAll("details")) {
        element.open = true;
    }
}"""
"""Opens and presses what can be, so that scripts show what they know."""


@contextmanager
def watched(browser: Browser, home: str) -> Iterator[tuple[Page, list[str]]]:
    """A tab without the page's policy, which would hide what ran, and what was noticed in it."""
    noticed: list[str] = []
    context = browser.new_context(bypass_csp=True, reduced_motion="reduce")
    try:
        context.expose_binding("ran", lambda source, *given: noticed.append(f"ran at {source['page'].url}"))
        page = context.new_page()
        page.on("dialog", lambda dialog: (noticed.append(f"dialog: {dialog.message}"), dialog.dismiss())[0])
        page.on("pageerror", lambda error: noticed.append(f"error: {error}"))
        page.on("popup", lambda popup: noticed.append(f"window: {popup.url}"))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((home, "file:///")) else noticed.append(request.url)
            ),
        )
        yield page, noticed
    finally:
        context.close()


def look(page: Page, address: str) -> list[str]:
    """Open a page, use it, and return what of a hostile text is an element or runs there."""
    page.goto(address)
    before = page.evaluate(FIND)
    page.evaluate(USE)
    page.wait_for_load_state()  # a button may lead to another page
    return [f"{address}: {one}" for one in (*before, *page.evaluate(FIND))]


def list_pages(served: Served, id: str, chats: Sequence[str], text: str) -> list[str]:
    """The addresses of a run, those of its conversations, and those that repeat what they are asked."""
    asked = quote(text, safe="")
    chat, *others = (quote(one, safe="") for one in chats)
    run = f"{served.base}/runs/{id}"
    return [
        run,
        f"{run}/live",
        f"{run}/conversations",
        f"{run}/conversations?persona={asked}&chatbot={asked}&page={asked}",
        f"{run}/conversations/{chat}",
        f"{run}/conversations/{chat}?annotator={asked}",
        f"{run}/conversations/{others[-1]}",
        f"{run}/labels",
        f"{run}/settle/{chat}/0",
        f"{run}/beside/{chat}?bot={asked}",
        f"{run}/numbers?detector={asked}",
        f"{run}/{asked}",
        f"{served.base}/beside?run={id}&chat={chat}&run={id}&chat={others[0]}",
        f"{served.base}/compare?reference={id}&run={asked}",
        f"{served.base}/start?run={id}",
        f"{served.base}/start?run={asked}",
    ]


def find_what_ran(browser: Browser, folder: Path, texts: Sequence[str]) -> list[str]:
    """Everything that ran or came through of hostile texts, in the static report and in the viewer."""
    runs = []
    for number, text in enumerate(texts):
        name = text.replace("/", "∕").replace("\x00", "")[:60]
        runs.append(write_hostile_run(folder / f"{number}{name}", text))
    found: list[str] = []
    with serving([folder], folder / "indices") as served, watched(browser, served.base) as (page, noticed):
        found += look(page, served.listening.address)
        found += look(page, f"{served.base}/start")
        found += look(page, f"{served.base}/talk")
        shown = {run.folder.path: run.id for run in served.runs.list()}
        for run, text in zip(runs, texts, strict=True):
            chats = [chat.id for chat in run.read_conversations()]
            for address in list_pages(served, shown[run.path], chats, text):
                found += look(page, address)
            write_static_page(run)
            found += look(page, run.page.resolve().as_uri())
        first, *others = shown.values()
        if others:
            found += look(page, f"{served.base}/compare?reference={first}&run={others[0]}")
    return found + noticed


def write_static_page(run: RunFolder) -> None:
    """Write report.html."""
    write_reports(run, run.read_journals())


def test_nothing_of_a_hostile_text_runs(browser: Browser, tmp_path: Path) -> None:
    run = write_hostile_run(tmp_path / "run", WORST)
    write_static_page(run)
    with (
        serving([run.path], tmp_path / "indices") as served,
        watched(browser, served.base) as (page, noticed),
    ):
        found = look(page, served.listening.address)
        shown = f"{served.base}/runs/{served.runs.list()[0].id}"
        found += look(page, f"{shown}/conversations/{quote(f'{WORST}0', safe='')}")
        found += look(page, run.page.as_uri())
    assert found + noticed == []


@pytest.mark.slow
def test_nothing_of_forty_hostile_texts_runs(browser: Browser, tmp_path: Path) -> None:
    assert len(TEXTS) == 40
    assert find_what_ran(browser, tmp_path, TEXTS) == []


@pytest.mark.parametrize("text", [TEXTS[0], TEXTS[1], TEXTS[9], TEXTS[11]])
def test_what_would_run_is_noticed(browser: Browser, tmp_path: Path, text: str) -> None:
    """The test of the tests: a page that shows texts as they are."""
    (tmp_path / "bad.html").write_text(f"<!doctype html><p>{text}</p>", encoding="utf-8")
    with watched(browser, "http://none.invalid") as (page, noticed):
        found = look(page, (tmp_path / "bad.html").as_uri())
    assert found + noticed != []
