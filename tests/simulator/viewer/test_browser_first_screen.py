"""The first screen of a run, on its page and in the viewer: a flagged reply beside its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from hallulab.scenarios.transcript import Passage, Span, Turn
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.write import write_reports
from tests.builders import conversation, scored
from tests.simulator.viewer.browsing import find_violations, needs_chromium, opened_as
from tests.simulator.viewer.serving import Served, append, serving
from tests.simulator.viewer.test_pages import id_of

pytestmark = needs_chromium

EVIDENCE = Passage(
    id="fees#0",
    document="fees-of-the-commission",
    text="Title: Fees\nA complaint about goods worth up to five lakh rupees costs nothing. "
    "The fee for a copy of the order is Rs 200, which is paid at the counter.",
)
LONG = (
    "To get a copy of the order you should write to the registry first and wait for its answer. " * 4
    + "\n\n**The fee for a copy is Rs 500**, and it is paid by demand draft. "
    + "- If you need it sooner, ask for an urgent copy, which costs twice as much and takes one week. " * 3
)
TRICKY = (
    "[pay](javascript:window.hit=1) ![x](https://e.example/x.png) <img src=x onerror=window.hit=1> "
    "**<script>window.hit = 1</script>** Rs 900"
)
SIZES = [(1280, 900), (400, 800)]


def mark(reply: str, words: str) -> Span:
    start = reply.index(words)
    return Span(
        start=start,
        end=start + len(words),
        text=words,
        severity=4,
        reason='"Rs 500" is not in the evidence, which has only "Rs 200".',
    )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base = tmp_path_factory.mktemp("first")
    run = RunFolder(base / "runs" / "plain")
    run.path.mkdir(parents=True)
    replies = [
        ("a", LONG, "The fee for a copy is Rs 500", 0.9),
        ("b", TRICKY, "Rs 900", 0.8),
        ("c", "Hi.", "", 0),
    ]
    for id, reply, words, score in replies:
        turns = (Turn(index=0, user="What does a copy cost?", reply=reply, passages=(EVIDENCE,)),)
        chat = conversation(id, [], f"bot-{id}", f"persona-{id}").model_copy(update={"turns": turns})
        spans = (mark(reply, words),) if words else ()
        found = scored(id, 0).model_copy(update={"spans": spans, "flagged": bool(words), "score": score})
        append(run.conversations, [chat])
        append(run.verdicts, [found])
    write_reports(run)
    with serving([base / "runs"], base / "indices") as viewer:
        yield viewer


def find_pages(served: Served) -> list[str]:
    """The addresses of the run's page in the viewer, and of the file."""
    run = next(run for run in served.runs.list() if run.name == "plain")
    return [f"{served.base}/runs/{run.id}", run.folder.page.as_uri()]


@pytest.mark.parametrize("place", [0, 1], ids=["viewer", "file"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_flagged_reply_and_its_evidence_are_seen_without_scrolling(
    browser: Browser, served: Served, width: int, height: int, scheme: Any, place: int
) -> None:
    with opened_as(browser, served, width, scheme, height) as page:
        page.goto(find_pages(served)[place])
        first = page.locator(".marked .cell").first
        expect(first.locator("mark")).to_have_text("The fee for a copy is Rs 500")
        expect(first.locator("blockquote")).to_have_text(
            "The fee for a copy of the order is Rs 200, which is paid at the counter."
        )
        for part in ("mark", "blockquote"):
            box = first.locator(part).bounding_box()
            assert box is not None
            assert box["y"] > 0
            assert box["y"] + box["height"] < height
        assert page.evaluate("window.scrollY") == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert find_violations(page) == []


@pytest.mark.parametrize("link", [".marked .cell:nth-of-type(2) a", "#reader tbody tr:nth-child(2) a"])
def test_links_of_the_file_lead_to_the_reply_in_its_reader(page: Page, served: Served, link: str) -> None:
    page.goto(find_pages(served)[1])
    expect(page.locator("#case b")).to_have_text("persona-a")
    page.click(link)
    expect(page.locator("#case b")).to_have_text("persona-b")
    expect(page.locator("#reply-1-0 mark")).to_be_in_viewport()
    page.goto(f"{find_pages(served)[1]}#chat-c-0")
    page.reload()
    expect(page.locator("#case b")).to_have_text("persona-c")


def test_links_of_the_viewer_lead_to_the_turn(page: Page, served: Served) -> None:
    page.goto(find_pages(served)[0])
    page.click(".marked a >> nth=0")
    page.wait_for_url(f"**/runs/{id_of(served, 'plain')}/conversations/a#turn-0")


def test_all_columns_open_without_a_script(browser: Browser, served: Served) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(find_pages(served)[1])
    all_columns = page.locator("#results details table")
    expect(page.locator("#results > .scroll th[scope=col]")).to_have_count(5)
    expect(all_columns).to_be_hidden()
    page.click("text=All columns and charts")
    expect(all_columns).to_be_visible()
    context.close()


@pytest.mark.parametrize("place", [0, 1], ids=["viewer", "file"])
def test_markdown_of_a_reply_makes_no_link_picture_or_script(page: Page, served: Served, place: int) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(find_pages(served)[place] + "#chat-b-0" * place)
    shown = "pay(javascript:window.hit=1) x(https://e.example/x.png) <img src=x onerror=window.hit=1> "
    shown += "<script>window.hit = 1</script> Rs 900"
    for where in (".marked", "#lanes")[: 1 + place]:
        reply = page.locator(f"{where} .reply", has_text="pay(")
        expect(reply).to_have_text(shown)
        expect(reply.locator("b")).to_have_text("<script>window.hit = 1</script>")
        expect(reply.locator("a, img, script")).to_have_count(0)
    assert page.evaluate("window.hit") is None
    assert not [url for url in asked if "e.example" in url]


@pytest.mark.parametrize("place", [0, 1], ids=["viewer", "file"])
def test_paper_has_the_light_colours(browser: Browser, served: Served, place: int) -> None:
    ink = "getComputedStyle(document.body).color"
    with opened_as(browser, served, 1280, "light") as page:
        page.goto(find_pages(served)[place])
        light = page.evaluate(ink)
    with opened_as(browser, served, 1280, "dark") as page:
        page.goto(find_pages(served)[place])
        dark = page.evaluate(ink)
        page.emulate_media(media="print", color_scheme="dark")
        assert (page.evaluate(ink) == light, dark == light) == (True, False)
