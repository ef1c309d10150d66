"""Thirty turns are labelled by keys in a real browser, over a real server that is killed in between."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from hallulab.scenarios.datasets.annotations import read_annotations
from hallulab.scenarios.transcript import Span
from hallulab.simulator.annotate.desk import read_drawn
from hallulab.simulator.metrics.corrected import CorrectedSection
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.write import report_of
from tests.builders import conversation, scored
from tests.simulator.viewer.browsing import check_form, needs_chromium, opened_as, without_problems
from tests.simulator.viewer.serving import Served, append, serving
from tests.simulator.viewer.test_pages import hostile_run, id_of

pytestmark = needs_chromium

REPLY = "The fee is Rs 500. It takes 3 days."
TURNS = 5


def make_run(folder: Path) -> RunFolder:
    """Twelve personas with five turns each. Every other reply is flagged, every third of these wrongly."""
    run = RunFolder(folder)
    for number in range(12):
        name = f"c{number}"
        append(run.conversations, [conversation(name, [REPLY] * TURNS, persona=name)])
        verdicts = []
        for turn in range(TURNS):
            spans = [Span(start=11, end=17, text="Rs 500", severity=4, reason="It is Rs 200.")]
            spans = spans if is_flagged(name, turn) else []
            fields = {"spans": tuple(spans), "flagged": bool(spans), "score": 0.9 if spans else 0.1}
            verdicts.append(scored(name, turn).model_copy(update=fields))
        append(run.verdicts, verdicts)
    return run


def count(name: str, turn: int) -> int:
    return int(name[1:]) * TURNS + turn


def is_flagged(name: str, turn: int) -> bool:
    return count(name, turn) % 2 == 0


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "runs").mkdir()
    make_run(tmp_path / "runs" / "made")
    with serving([tmp_path / "runs"], tmp_path / "indices") as viewer:
        yield viewer


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    found = context.new_page()
    # Chromium tells of a server that was killed, and of keys that were refused.
    with without_problems(found, "ERR_", "status of 400"):
        yield found
    context.close()


class Server:
    """`hallulab view` as a process of its own."""

    def __init__(self, folder: Path, cache: Path) -> None:
        view = ("view", str(folder), "--no-browser", "--annotator", "Asha")
        command = [sys.executable, "-m", "hallulab", *view]
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert self.address.startswith("http://127.0.0.1:"), self.address

    @property
    def base(self) -> str:
        return self.address.split("/?")[0]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def open_desk(page: Page, server: Server) -> None:
    page.goto(server.address)
    page.click("tbody th a")
    page.goto(page.url + "/conversations/c0")
    expect(page.locator("#desk-numbers")).to_contain_text("HPT-1 by d")


def go_next(page: Page) -> tuple[str, int]:
    """Press `l`, and return where that leads."""
    link = page.locator("#desk-next")
    expect(link).to_be_visible()
    target = link.get_attribute("href") or ""
    page.keyboard.press("l")
    page.wait_for_url(re.compile(re.escape(target) + "$"))
    expect(page.locator(".turn:focus")).to_have_count(1)
    expect(page.locator("#desk-next")).to_have_attribute("href", target)
    chat, turn = target.split("/")[-1].split("#turn-")
    return chat, int(turn)


def label(page: Page, chat: str, turn: int) -> list[dict[str, Any]]:
    """Label the turn in focus by keys; return the spans that are expected of it."""
    number = count(chat, turn)
    article = page.locator(f"#turn-{turn}")
    if is_flagged(chat, turn):
        right = number % 6 != 0
        page.keyboard.press("y" if right else "n")
        spans = [{"quote": "Rs 500", "severity": 4, "reason": "It is Rs 200."}] if right else []
    elif number % 5 == 0:
        select(page, turn, 28, 34)
        page.keyboard.press("a")
        page.keyboard.press("4")
        page.keyboard.press("Tab")
        page.keyboard.type("It takes a week.")
        page.keyboard.press("Enter")
        expect(article.locator(".marking li")).to_have_text("added: “3 days”")
        page.keyboard.press("Enter")
        spans = [{"quote": "3 days", "severity": 4, "reason": "It takes a week."}]
    else:
        page.keyboard.press("c")
        spans = []
    said = "Saved: 1 hallucination" if spans else "Saved: clean"
    expect(article.locator(".marking .saved")).to_have_text(said)
    return spans


def select(page: Page, turn: int, start: int, end: int) -> None:
    """Select characters of a reply without a flag."""
    page.evaluate(
        """([turn, start, end]) => {
            const text = document.querySelector(`#turn-${turn} .reply`).firstChild;
            document.getSelection().setBaseAndExtent(text, start, text, end);
        }""",
        [turn, start, end],
    )


def read_interval(page: Page) -> tuple[float, float]:
    found = re.search(r"would give ([0-9.]+) to ([0-9.]+)", page.locator("#desk-numbers").inner_text())
    assert found is not None, page.locator("#desk-numbers").inner_text()
    return float(found[1]), float(found[2])


def wait_for_numbers(page: Page, labelled: int) -> None:
    expect(page.locator("#desk-numbers")).to_contain_text(f"; {labelled} of 60 turns labelled")


@pytest.mark.slow
def test_thirty_turns_are_labelled_by_keys_although_the_server_is_killed(page: Page, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    run = make_run(tmp_path / "runs" / "made")
    server = Server(run.path.parent, tmp_path / "cache")
    open_desk(page, server)
    page.click("#desk-draw")
    expected: list[tuple[str, int, list[dict[str, Any]]]] = []

    def label_next(number: int) -> None:
        for _ in range(number):
            chat, turn = go_next(page)
            expected.append((chat, turn, label(page, chat, turn)))
        wait_for_numbers(page, len(expected))

    label_next(12)
    before = read_interval(page)
    label_next(3)

    kept = run.annotations.read_bytes()
    chat, turn = go_next(page)
    page.keyboard.press("c")  # the key under way
    server.kill()
    assert run.annotations.read_bytes().startswith(kept)
    whole = [line for line in run.annotations.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    assert 15 <= len(whole) <= 16

    server = Server(run.path.parent, tmp_path / "cache")
    try:
        open_desk(page, server)
        if len(whole) == 16:
            expected.append((chat, turn, []))
        label_next(20 - len(expected))
        page.click("#desk-draw")
        label_next(10)
        after = read_interval(page)
    finally:
        server.kill()

    drawn = read_drawn(run)
    lines = [json.loads(line) for line in run.annotations.read_text().splitlines()]
    assert [line.pop("time") is not None for line in lines] == [True] * 30
    assert lines == [
        {
            "conversation": chat,
            "turn": turn,
            "key": f"{chat}-{turn}",
            "spans": spans,
            "claims": True,
            "annotator": "person:Asha",
            **dict(zip(("draw", "stratum", "propensity"), drawn[chat, turn].drawn or (), strict=True)),
        }
        for chat, turn, spans in expected
    ]
    assert {line["draw"] for line in lines} == {1, 2}
    assert after[1] - after[0] < before[1] - before[0]
    row = report_of(run, run.read_journals()).of(CorrectedSection).corrected[-1]
    assert row.all_labelled_ci95 is not None
    assert after == tuple(round(end, 2) for end in row.all_labelled_ci95)


def start(page: Page, served: Served, path: str, name: str = "made") -> RunFolder:
    page.goto(served.listening.address)
    page.goto(f"{served.base}/runs/{id_of(served, name)}/conversations/{path}")
    expect(page.locator(".marking").first).to_contain_text("Not labelled")
    return next(run.folder for run in served.runs.list() if run.name == name)


def test_undo_and_unknown_and_a_severity(page: Page, served: Served) -> None:
    run = start(page, served, "c0#turn-0")
    marking = page.locator("#turn-0 .marking")
    for key, told in (
        ("2", "Saved: 1 hallucination"),
        ("u", "Saved: cannot tell"),
        ("z", "Saved: 1 hallucination"),
        ("z", "Not labelled"),
        ("u", "Saved: cannot tell"),
    ):
        page.keyboard.press(key)
        expect(marking).to_contain_text(told)
    assert [(line.unknown, line.spans) for _, line in read_annotations(run.annotations)] == [(True, ())]


def test_the_flag_in_focus_is_marked_by_keys_alone(page: Page, served: Served) -> None:
    start(page, served, "c0#turn-2")
    page.locator("#turn-2 mark").focus()
    page.keyboard.press("n")
    expect(page.locator("#turn-2 .verdict button[aria-pressed=true]")).to_have_text("wrong")
    expect(page.locator("#turn-2 .marking .saved")).to_have_text("Saved: clean")


def test_a_name_on_the_page_says_who_labels_and_is_remembered(page: Page, served: Served) -> None:
    run = start(page, served, "c0#turn-1")
    page.click("#desk-more summary")
    page.fill("#desk-name", "Ben")
    page.locator("#desk-name").blur()
    page.locator("#turn-1").focus()
    page.keyboard.press("c")
    expect(page.locator("#turn-1 .marking .saved")).to_have_text("Saved: clean")
    assert [line.annotator for _, line in read_annotations(run.annotations)] == ["person:Ben"]
    page.reload()
    expect(page.locator("#turn-1 .marking .saved")).to_have_text("Saved: clean")


def test_what_is_refused_is_told(page: Page, served: Served) -> None:
    run = start(page, served, "c0#turn-1")
    page.keyboard.press("y")
    expect(page.locator("#desk-said")).to_have_text("No flag of this turn is without a mark.")
    page.keyboard.press("a")
    expect(page.locator("#desk-said")).to_have_text("Select some words of this reply first.")
    run.annotations.write_text("nonsense\n")
    page.keyboard.press("c")
    expect(page.locator("#desk-said")).to_have_text(
        re.compile(r"^Not saved: .*annotations\.jsonl, line 1: not valid JSON")
    )


def test_a_key_on_a_flag_that_the_turn_has_no_more_is_refused(page: Page, served: Served) -> None:
    run = start(page, served, "c0#turn-0")
    page.evaluate("document.querySelector('#turn-0 .finding').dataset.flag = 'of an older version'")
    page.keyboard.press("y")
    said = "Not saved: Load the page again: this turn does not have that flag any more."
    expect(page.locator("#desk-said")).to_have_text(said)
    assert not run.annotations.exists()


def test_hostile_words_are_added_as_text(page: Page, served: Served, tmp_path: Path) -> None:
    hostile_run(tmp_path / "runs" / "hostile")
    run = start(page, served, "c0#turn-0", "hostile")
    page.evaluate("document.getSelection().selectAllChildren(document.querySelector('#turn-0 .reply'))")
    page.keyboard.press("a")
    page.keyboard.press("Tab")
    page.keyboard.type("<img src=x onerror='window.hit = 1'>")
    page.keyboard.press("Enter")
    expect(page.locator("#turn-0 .marking li")).to_contain_text("<script>window.hit = 1</script>")
    page.keyboard.press("Enter")
    expect(page.locator("#turn-0 .marking .saved")).to_have_text("Saved: 1 hallucination")
    assert page.evaluate("window.hit") is None
    assert page.locator("main img").count() == 0
    [(_, line)] = read_annotations(run.annotations)
    assert line.spans[0].quote.startswith("<script>window.hit = 1</script>")
    assert line.spans[0].reason == "<img src=x onerror='window.hit = 1'>"


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_desk_fits_and_has_no_serious_violation(
    browser: Browser, served: Served, width: int, scheme: Any
) -> None:
    with opened_as(browser, served, width, scheme) as page:
        start(page, served, "c0#turn-0")
        page.click("#desk-more summary")
        page.keyboard.press("Escape")
        page.locator("#turn-0").focus()
        page.keyboard.press("y")
        expect(page.locator("#turn-0 .marking .saved")).to_be_visible()
        check_form(page, width)
        page.goto(f"{served.base}/runs/{id_of(served, 'made')}/labels")
        check_form(page, width)
