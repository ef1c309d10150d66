"""Talking to a bot on the page, by keyboard alone, in a real browser."""

from __future__ import annotations

import asyncio
import re
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from hallulab.simulator.options.groups import ModelOptions
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.viewer.launcher import Launcher
from hallulab.simulator.viewer.offer import load_offer
from hallulab.testing.scripted import ScriptedModel
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.places import ROOT
from tests.simulator.chat.talking import REPLY, EndlessModel, answer, is_about
from tests.simulator.viewer.browsing import check_form, needs_chromium, opened_as, without_problems
from tests.simulator.viewer.serving import Served, serving

pytestmark = needs_chromium

MAY_END = threading.Event()
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script> \u202ereversed \x1b[31m </p></article>"


class Talker(EndlessModel):
    """Repeats hostile words, and answers all else as `EndlessModel` does.

    Asked `Slowly?`, it gives three words, and the rest when `MAY_END` is set.
    """

    def __init__(self) -> None:
        super().__init__()
        self._script = lambda request: HOSTILE if "Attack" in str(request["messages"][-1]) else REPLY

    async def wait_for_piece(self, body: dict[str, Any], number: int) -> None:
        """See `ScriptedTransport`."""
        replies = "[1]" in str(body["messages"][0])  # with passages; else it looks for what to search
        if number > 3 and replies and is_about(body, "Slowly?"):
            await asyncio.to_thread(MAY_END.wait, 60)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base = tmp_path_factory.mktemp("talk")
    (base / "runs").mkdir()
    file = base / "experiment.yaml"
    with words_for_vectors(), Talker() as model:
        file.write_text(
            f"scenario: {make_pack(base / 'pack')}\nchatbots: [vanilla, editor]\ndetectors: [lexical]\n"
            f"model: {model.name}\nbase_url: {model.base_url}\n"
        )
        launcher = Launcher(load_offer(ModelOptions(config=file), [base / "runs"]))
        with serving([base / "runs"], base / "indices", launcher) as viewer:
            yield viewer


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Page:
    return browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")


@pytest.fixture
def page(tab: Page, served: Served) -> Iterator[Page]:
    with without_problems(tab):
        tab.goto(served.listening.address)
        tab.goto(f"{served.base}/talk")
        yield tab


def folder_of(served: Served) -> RunFolder:
    """The run that changed last."""
    return served.runs.list()[0].folder


@pytest.mark.slow
def test_a_conversation_by_keyboard_alone_is_judged_and_saved(page: Page, served: Served) -> None:
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "chatbot":
            break
    page.keyboard.press("ArrowDown")
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "message":
            break
    page.keyboard.type("How hot is it?")
    page.keyboard.press("Enter")
    expect(page.locator("#turn-0 .reply")).to_have_text(REPLY, timeout=60_000)
    expect(page.locator("#turn-0 mark")).to_have_text("The teapot costs 500 rupees.")
    expect(page.locator("#turn-0 .lane h3")).to_contain_text(
        "flagged, share of words that the evidence lacks 0.4, threshold 0.25"
    )
    assert page.evaluate("document.activeElement.id") == "message"
    page.keyboard.type("And the pot?")
    page.keyboard.press("Enter")
    expect(page.locator("#turn-1 mark")).to_have_count(1)
    [chat] = folder_of(served).read_conversations()
    assert [(turn.user, turn.reply) for turn in chat.turns] == [
        ("How hot is it?", REPLY),
        ("And the pot?", REPLY),
    ]
    assert (chat.chatbot, chat.persona) == ("editor", "person-1")
    saved = folder_of(served).read_experiment()
    assert saved is not None
    assert saved.live is not None
    assert saved.live.at == "hallulab view"
    for _ in range(3):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "end":
            break
    page.keyboard.press("Enter")
    expect(page.locator("#state")).to_contain_text("The conversation has ended.")
    page.locator("#saved").press("Enter")
    page.wait_for_url(re.compile("/runs/.*/conversations"))
    expect(page.locator("tbody tr")).to_have_count(1)


def test_stop_ends_the_reply_and_the_message_comes_back(page: Page, served: Served) -> None:
    page.locator("#message").fill("How hot is it?")
    page.keyboard.press("Enter")
    expect(page.locator("#turn-0 mark")).to_have_count(1, timeout=60_000)
    page.keyboard.type("Endless?")
    page.keyboard.press("Enter")
    expect(page.locator("#state")).to_have_text("Searching the documents…")
    expect(page.locator(".draft .asked")).to_have_text("Endless?")
    page.keyboard.press("Escape")
    expect(page.locator("#state")).to_have_text("Stopped. This message has no reply and is not kept.")
    assert page.locator("#message").input_value() == "Endless?"
    expect(page.locator(".draft")).to_have_count(0)
    page.locator("#message").fill("And now?")
    page.keyboard.press("Enter")
    expect(page.locator("#turn-1 mark")).to_have_count(1)
    [chat] = folder_of(served).read_conversations()
    assert [turn.user for turn in chat.turns] == ["How hot is it?", "And now?"]


def test_a_reply_is_shown_while_it_is_written(page: Page) -> None:
    MAY_END.clear()
    page.locator("#message").fill("Slowly?")
    page.keyboard.press("Enter")
    expect(page.locator(".draft .reply")).to_have_text("Water boils at", timeout=60_000)
    expect(page.locator("#turn-0")).to_have_count(0)
    MAY_END.set()
    expect(page.locator("#turn-0 .reply")).to_have_text(REPLY)
    expect(page.locator(".draft")).to_have_count(0)


def test_a_hostile_reply_is_text(page: Page) -> None:
    page.locator("#message").fill("Attack <b>me</b>")
    page.keyboard.press("Enter")
    expect(page.locator("#turn-0 .lane h3")).to_contain_text("threshold", timeout=60_000)
    assert "<script>alert(2)</script>" in page.locator("#turn-0 .reply").inner_text()
    assert page.locator("#talk img, #talk script, #talk b").count() == 0
    expect(page.locator("#turn-0 .said")).to_contain_text("Attack <b>me</b>")


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_page_fits_and_has_no_serious_violation(
    tab: Page, served: Served, width: int, scheme: Any
) -> None:
    browser = tab.context.browser
    assert browser is not None
    with opened_as(browser, served, width, scheme, 900) as page:
        page.goto(f"{served.base}/talk")
        page.locator("#message").fill("How hot is it?")
        page.keyboard.press("Enter")
        expect(page.locator("#turn-0 mark")).to_have_count(1, timeout=60_000)
        check_form(page, width)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": None, "x-hallulab": None}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"x-hallulab": None}, 403),
        ({}, 400),
    ],
)
def test_only_the_page_itself_begins_a_conversation(
    served: Served, headers: dict[str, str | None], status: int
) -> None:
    body = b'{"scenario": "/etc", "chatbot": "vanilla", "detectors": []}'
    assert served.post("/talk", body, **headers)[0] == status


@pytest.mark.slow
def test_the_five_steps_of_the_docs_lead_to_a_judged_conversation(
    tab: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = (ROOT / "docs" / "viewer.md").read_text(encoding="utf-8")
    steps = docs.split("## Five steps to your first conversation")[1].split("\n## ")[0]
    assert re.findall(r"^(\d)\.", steps, re.MULTILINE) == ["1", "2", "3", "4", "5"]
    [file] = re.findall(r"```yaml\n(.*?)```", steps, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("my-experiment.yaml").write_text(textwrap.dedent(f"    {file.strip()}"))
    with words_for_vectors(), ScriptedModel(answer, "first") as model:
        theirs = ModelOptions(config="my-experiment.yaml", model=model.name, base_url=model.base_url)
        launcher = Launcher(load_offer(theirs, [Path("runs")]))
        with serving([Path("runs")], tmp_path / "indices", launcher) as viewer:
            tab.goto(viewer.listening.address)
            tab.click("text=Talk to a bot")
            tab.fill("#message", "Where do I complain?")
            tab.keyboard.press("Enter")
            tab.locator("#turn-0 mark").first.click(timeout=60_000)
            expect(tab.locator("#turn-0 .finding.open")).to_have_count(1)
            [run] = viewer.runs.list()
            assert [verdict.flagged for verdict in run.folder.read_journals().verdicts] == [True]
            tab.goto("about:blank")


def test_without_an_experiment_the_page_says_how(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    with serving([tmp_path / "runs"], tmp_path / "indices") as viewer:
        status, body = viewer.get("/talk")
    assert (status, "hallulab view --experiment" in body, "<textarea" in body) == (200, True, False)
