"""Conversations and runs side by side, in a real browser: citations, detectors, keys, small screens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from hallulab.scenarios.transcript import Passage, Span
from hallulab.simulator.records.folder import RunFolder
from tests.builders import conversation, scored
from tests.simulator.viewer.browsing import IN_TWO_FORMS, check_form, needs_chromium, opened_as
from tests.simulator.viewer.serving import Served, append, serving
from tests.simulator.viewer.test_pages import id_of

pytestmark = needs_chromium

BOTS = ("vanilla", "editor", "agent")
EVIDENCE = Passage(
    id="fees#0", document="fees", text="A complaint costs nothing. " * 20 + "The fee is Rs 200."
)


def write_run(folder: RunFolder, wrong: set[str]) -> None:
    """Write a run in which the detector `d` flags the first turn of some chatbots; `e` the third of one."""
    folder.path.mkdir(parents=True)
    for bot in BOTS:
        turns = 2 if bot == "agent" else 3
        chat = conversation(bot, ["The fee is Rs 500.", "You are welcome.", "Goodbye, Sir."][:turns], bot)
        told = [turn.model_copy(update={"passages": (EVIDENCE,)}) for turn in chat.turns]
        append(folder.conversations, [chat.model_copy(update={"turns": tuple(told)})])
        span = Span(start=11, end=17, text="Rs 500", reason='It has "The fee is Rs 200."')
        found = [scored(bot, turn, detector=name) for turn in range(turns) for name in "de"]
        if bot in wrong:
            found[0] = found[0].model_copy(update={"spans": (span,), "flagged": True})
        if bot == "editor":
            sir = Span(start=9, end=12, text="Sir", reason="Nobody says so.")
            found[5] = found[5].model_copy(update={"spans": (sir,), "flagged": True})
        append(folder.verdicts, found)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base = tmp_path_factory.mktemp("beside")
    write_run(RunFolder(base / "runs" / "before"), {"vanilla"})
    write_run(RunFolder(base / "runs" / "after"), {"editor"})
    with serving([base / "runs"], base / "indices") as viewer:
        yield viewer


def open_case(page: Page, served: Served, more: str = "") -> None:
    page.goto(f"{served.base}/runs/{id_of(served, 'before')}/beside/vanilla{more}")


def test_a_conversation_leads_to_all_chatbots_side_by_side(page: Page, served: Served) -> None:
    page.goto(f"{served.base}/runs/{id_of(served, 'before')}/conversations/editor")
    page.click("text=side by side")
    assert page.locator(".head a").all_inner_texts() == [*BOTS]
    assert page.locator("#turn-2 .cell").all_inner_texts()[2] == "There is no such turn."
    page.click(".head a:has-text('agent')")
    page.wait_for_url("**/conversations/agent")


def test_chatbots_are_chosen(page: Page, served: Served) -> None:
    open_case(page, served)
    page.uncheck("input[value=editor]")
    page.click("button:has-text('Show')")
    assert page.locator(".head a").all_inner_texts() == ["vanilla", "agent"]
    assert not page.is_checked("input[value=editor]")


def test_a_click_on_a_flag_opens_the_passage_of_its_own_column(page: Page, served: Served) -> None:
    open_case(page, served)
    page.locator("mark").first.click()
    cited = page.locator("span.cited")
    assert cited.all_inner_texts() == ["The fee is Rs 200."]
    assert cited.evaluate("one => one.closest('.lane').getAttribute('aria-label')") == "vanilla"
    page.keyboard.press("Escape")
    assert cited.count() == 0


def test_keys_go_through_flagged_turns_and_hide_detectors(page: Page, served: Served) -> None:
    open_case(page, served)

    def press(keys: str) -> list[str]:
        places = []
        for key in keys:
            page.keyboard.press(key)
            # The page knows at once where it is; `page.url` learns it a moment later.
            places.append(page.evaluate("location.hash.slice(1)"))
        return places

    assert press("jjjkk") == ["turn-0", "turn-2", "turn-2", "turn-0", "turn-0"]
    expect(page.locator(".turn:focus")).to_have_count(1)
    expect(page.locator("#said")).to_have_text("No flagged turn before this one.")
    press("1")  # the first detector, which flags the first turn, is hidden
    assert not page.is_checked("#detectors input >> nth=0")
    assert page.locator("mark[role=button]").all_inner_texts() == ["Sir"]
    assert page.locator(".finding:visible").count() == 1
    assert press("j") == ["turn-2"]
    expect(page.locator("#said")).to_be_empty()
    assert press("j") == ["turn-2"]
    expect(page.locator("#said")).to_have_text("No further flagged turn.")
    assert press("k") == ["turn-2"]
    expect(page.locator("#said")).to_have_text("No flagged turn before this one.")
    press("1")
    assert page.locator("mark[role=button]").all_inner_texts() == ["Rs 500", "Sir"]


def test_a_flag_is_reached_and_opened_by_keys_alone(page: Page, served: Served) -> None:
    open_case(page, served, "#turn-0")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "MARK"
    page.keyboard.press("Enter")
    assert page.locator("span.cited").all_inner_texts() == ["The fee is Rs 200."]


def test_two_runs_are_chosen_and_a_changed_turn_leads_to_both_replies(page: Page, served: Served) -> None:
    page.check(f"input[name=reference][value={id_of(served, 'before')}]")
    page.check(f"input[name=run][value={id_of(served, 'after')}]")
    page.click("button:has-text('Compare')")
    assert page.locator("h1").inner_text() == "B (after) beside A (before)"
    kinds = page.locator("h3:has(+ .changes)").all_inner_texts()
    assert [kind.split()[0] for kind in kinds] == ["new", "gone"]
    assert "editor, asha, seed 0, turn 1, by d" in page.locator("article").first.inner_text()
    page.locator("text=Both conversations side by side").first.click()
    assert page.url.endswith("#turn-0")
    assert page.locator(".head a").all_inner_texts() == ["editor", "editor"]
    assert page.locator(".head p").all_inner_texts() == [
        "before, ended: max turns",
        "after, ended: max turns",
    ]
    first = page.locator("#turn-0 .lane")
    assert [lane.locator("mark").all_inner_texts() for lane in first.all()] == [[], ["Rs 500"]]


def test_nothing_to_compare_is_told(page: Page, served: Served) -> None:
    page.click("button:has-text('Compare')")
    assert "Choose a reference" in page.locator("main .note").inner_text()


@pytest.mark.parametrize(("width", "scheme"), IN_TWO_FORMS)
@pytest.mark.parametrize("path", ["/runs/{a}/beside/vanilla", "/compare?reference={a}&run={b}"])
def test_pages_fit_and_have_no_serious_violation(
    browser: Browser, served: Served, path: str, width: int, scheme: Any
) -> None:
    with opened_as(browser, served, width, scheme) as page:
        page.goto(served.base + path.format(a=id_of(served, "before"), b=id_of(served, "after")))
        check_form(page, width)
