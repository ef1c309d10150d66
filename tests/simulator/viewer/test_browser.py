"""The viewer in a real browser: keys, citations, a run that grows, hostile texts, accessibility."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from hallulab.scenarios.transcript import Passage, Span
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.viewer import runs_page
from hallulab.simulator.viewer.runs import ShownRun
from tests.builders import conversation, scored
from tests.simulator.viewer.browsing import IN_TWO_FORMS, check_form, needs_chromium, opened_as
from tests.simulator.viewer.serving import Served, append, serving
from tests.simulator.viewer.test_pages import HOSTILE, hostile_run, id_of

pytestmark = needs_chromium

EVIDENCE = Passage(
    id="fees#0", document="fees", text="A complaint costs nothing. " * 40 + "The fee is Rs 200."
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base = tmp_path_factory.mktemp("viewer")
    run = RunFolder(base / "runs" / "plain")
    run.path.mkdir(parents=True)
    for name in "abc":
        chat = conversation(
            name, ["The fee is Rs 500 in all.", "You are welcome."], persona=f"persona-{name}"
        )
        turns = [turn.model_copy(update={"passages": (EVIDENCE,)}) for turn in chat.turns]
        append(run.conversations, [chat.model_copy(update={"turns": tuple(turns)})])
        span = Span(start=11, end=17, text="Rs 500", severity=4, reason='It has "The fee is Rs 200."')
        wrong = scored(name, 0).model_copy(update={"spans": (span,), "flagged": True, "score": 0.9})
        append(run.verdicts, [wrong if name != "b" else scored(name, 0), scored(name, 1)])
    hostile_run(base / "runs" / "hostile")
    with serving([base / "runs"], base / "indices") as viewer:
        yield viewer


def go(page: Page, served: Served, path: str) -> None:
    page.goto(served.base + path)


def test_the_address_with_the_token_opens_the_runs_and_loses_the_token(page: Page, served: Served) -> None:
    assert page.url == f"{served.base}/"
    assert sorted(page.locator("tbody th").all_inner_texts()) == ["hostile", "plain"]


def test_runs_are_filtered_and_sorted(page: Page) -> None:
    page.fill("#filter", "PLAIN")
    assert page.locator("tbody tr:visible th").all_inner_texts() == ["plain"]
    page.fill("#filter", "")
    page.click("thead button:has-text('Conversations')")
    assert page.locator("tbody th").all_inner_texts() == ["plain", "hostile"]
    page.click("thead button:has-text('Conversations')")
    assert page.locator("tbody th").all_inner_texts() == ["hostile", "plain"]


def test_a_click_on_a_flag_scrolls_to_the_sentence_of_the_passage(page: Page, served: Served) -> None:
    go(page, served, f"/runs/{id_of(served, 'plain')}/conversations/a")
    cited = page.locator("span.cited")
    assert cited.count() == 0
    page.locator("mark").first.click()
    assert cited.all_inner_texts() == ["The fee is Rs 200."]
    box = cited.bounding_box()
    assert box is not None
    assert 0 < box["y"] < 800


def test_j_and_k_go_through_flagged_turns_of_all_conversations(page: Page, served: Served) -> None:
    base = f"/runs/{id_of(served, 'plain')}/conversations"
    go(page, served, f"{base}/a")
    for key, place in zip("jjkj", ["/a#turn-0", "/c#turn-0", "/a#turn-0", "/c#turn-0"], strict=True):
        page.keyboard.press(key)
        page.wait_for_url(served.base + base + place)
        expect(page.locator(".turn:focus")).to_have_count(1)


def test_j_at_the_last_flagged_turn_and_k_at_the_first_say_so(page: Page, served: Served) -> None:
    go(page, served, f"/runs/{id_of(served, 'plain')}/conversations/c#turn-0")
    said = page.locator("[aria-live]")
    page.keyboard.press("j")
    page.wait_for_url("**/c#end")
    expect(said).to_have_text("No further flagged turn.")
    go(page, served, f"/runs/{id_of(served, 'plain')}/conversations/a")
    page.keyboard.press("j")
    expect(said).to_be_empty()
    page.keyboard.press("k")
    expect(said).to_have_text("No flagged turn before this one.")
    page.wait_for_url("**/a#turn-0")
    page.keyboard.press("j")
    page.wait_for_url("**/c#turn-0")


def test_a_flag_is_reached_and_opened_by_keys_alone(page: Page, served: Served) -> None:
    go(page, served, f"/runs/{id_of(served, 'plain')}/conversations/a#turn-0")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "MARK"
    page.keyboard.press("Enter")
    assert page.locator("span.cited").all_inner_texts() == ["The fee is Rs 200."]
    page.keyboard.press("Escape")
    assert page.locator("span.cited").count() == 0


def watch_plain(served: Served, monkeypatch: pytest.MonkeyPatch) -> tuple[ShownRun, int]:
    """Let pages look often; return the run `plain`, and how many conversations it has."""
    monkeypatch.setattr(runs_page, "LOOK_S", 0.1)
    run = next(run for run in served.runs.list() if run.name == "plain")
    return run, len(run.folder.read_conversations())


def test_a_run_grows_while_its_page_is_open(
    page: Page, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, held = watch_plain(served, monkeypatch)
    go(page, served, f"/runs/{run.id}")
    expect(page.locator("#counts li").first).to_have_text(f"{held} conversations")
    append(run.folder.conversations, [conversation(f"d{held}", ["x"], persona="persona-d")])
    expect(page.locator("#counts li").first).to_have_text(f"{held + 1} conversations", timeout=60_000)


def test_a_run_that_grows_before_its_page_listens_is_shown_as_it_is(
    page: Page, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, held = watch_plain(served, monkeypatch)

    def grow_first(route: Route) -> None:
        append(run.folder.conversations, [conversation(f"late{held}", ["x"], persona="persona-late")])
        route.continue_()

    page.route("**/events", grow_first, times=1)
    go(page, served, f"/runs/{run.id}")
    expect(page.locator("#counts li").first).to_have_text(f"{held + 1} conversations", timeout=60_000)


@pytest.mark.parametrize(
    "path", ["", "/conversations", *(f"/conversations/c{n}" for n in range(len(HOSTILE)))]
)
def test_nothing_of_a_hostile_run_is_executed(page: Page, served: Served, path: str) -> None:
    go(page, served, f"/runs/{id_of(served, 'hostile')}{path}")
    for mark in page.locator("mark").all()[:1]:
        mark.click()
    assert page.evaluate("window.hit") is None
    assert page.locator("main img").count() == 0


@pytest.mark.parametrize(("width", "scheme"), IN_TWO_FORMS)
@pytest.mark.parametrize("path", ["/", "{run}", "{run}/conversations", "{run}/conversations/a"])
def test_pages_fit_and_have_no_serious_violation(
    browser: Browser, served: Served, path: str, width: int, scheme: Any
) -> None:
    with opened_as(browser, served, width, scheme) as page:
        go(page, served, path.replace("{run}", f"/runs/{id_of(served, 'plain')}"))
        check_form(page, width)
