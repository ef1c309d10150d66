"""The page in a real browser: Chromium, headless, without network."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from hallulab.agents.served_model import ClaimCheck, ClaimChecks
from hallulab.scenarios.attacks.attack import AttackRecord, UserOrder, load_orders
from hallulab.scenarios.transcript import Passage, Span, Turn, Unit
from tests.builders import conversation, scored
from tests.simulator.counted import build_report, render_page
from tests.simulator.example_run import CHATBOTS, example_run

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--window-size=1500,1000",
)


in_browser = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="chromium and chromedriver are not installed (Debian: apt-get install chromium chromium-driver)",
)


@cache
def page(twins: int = 1, hostile: bool = False, seeds: int = 1) -> str:
    run = example_run(twins, hostile, seeds)
    shown = {"flaws": run.flaws, "personas": run.personas, "experiment": run.experiment}
    return render_page(run.report(), run.conversations, run.verdicts, **shown)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    yield driver
    driver.quit()


def show(chromium: webdriver.Chrome, tmp_path: Path, html: str) -> None:
    (tmp_path / "report.html").write_text(html, encoding="utf-8")
    chromium.get_log("browser")
    address = (tmp_path / "report.html").as_uri()
    chromium.get(address)
    # On a busy machine the first page of a browser may be there before its script has run.
    ready = "return document.readyState === 'complete' && location.href === arguments[0]"
    WebDriverWait(chromium, 120).until(lambda browser: browser.execute_script(ready, address))


def find(chromium: webdriver.Chrome, selector: str) -> list[webdriver.remote.webelement.WebElement]:
    return chromium.find_elements(By.CSS_SELECTOR, selector)


def toggle(chromium: webdriver.Chrome, group: str, name: str) -> None:
    box = chromium.find_element(By.XPATH, f"//*[@id='{group}']//label[contains(., '{name}')]/input")
    box.click()


def test_the_page_says_which_chatbots_failed_and_trusts_no_error() -> None:
    chat = conversation("a", []).model_copy(update={"stop_reason": "error", "error": "<b>oops</b>"})
    report = build_report([chat], [], chatbots=["vanilla"], detectors=["d"], flaws={})
    made = render_page(report, [chat], [], flaws={}, personas={})
    note = "vanilla: 1 of 1 conversation failed: &lt;b&gt;oops&lt;/b&gt;"
    assert f'<p class="note">{note}</p>' in made


@in_browser
def test_a_flagged_span_is_clicked_and_gives_its_reason(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    show(chromium, tmp_path, page())
    toggle(chromium, "detector-toggles", "metarag")
    mark = find(chromium, "#lanes mark")[0]
    assert mark.text == "The seller must answer your notice within 7 days under section 12A of the Act."
    mark.click()
    panel = find(chromium, "#finding")[0]
    assert panel.is_displayed()
    assert find(chromium, "#finding .reason")[0].text == "None of the retrieved documents says this."
    assert find(chromium, "#finding .evidence")[0].text == "consumer-protection-act-2019#4"
    assert "severity 5 of 5" in panel.text


@in_browser
def test_words_are_coloured_by_their_scores_and_sentences_have_their_evidence(
    chromium: webdriver.Chrome, tmp_path: Path
) -> None:
    passage = Passage(id="a#0", document="a", text="The pool <b>opens</b> at 7.")
    chat = conversation("a", ["It opens at 9."])
    chat = chat.model_copy(update={"turns": (chat.turns[0].model_copy(update={"passages": (passage,)}),)})
    unit = Unit(kind="sentence", text="It opens at 9.", score=0.4, details={"passage": "a#0"})
    span = Span(start=12, end=14, text="9.", probability=0.9, reason="Not said.")
    verdict = scored("a", 0).model_copy(
        update={"word_scores": (0.0, 0.25, 0.0, 1.0), "units": (unit,), "spans": (span,), "flagged": True}
    )
    report = build_report([chat], [verdict], chatbots=["vanilla"], detectors=["d"], flaws={})
    show(chromium, tmp_path, render_page(report, [chat], [verdict], flaws={}, personas={}))
    [opener] = [one for one in find(chromium, "summary") if one.text == "Words and evidence by d"]
    opener.click()
    WebDriverWait(chromium, 120).until(lambda browser: find(browser, ".heat span"))  # drawn after the click
    colours = [one.value_of_css_property("background-color") for one in find(chromium, ".heat span")]
    assert [one.text for one in find(chromium, ".heat span")] == ["It ", "opens ", "at ", "9."]
    assert colours[0] == colours[2]
    assert len({colours[0], colours[1], colours[3]}) == 3
    shown = find(chromium, ".cell details[open]")[0].text
    assert "Best passage, a#0: The pool <b>opens</b> at 7." in shown
    find(chromium, "#lanes mark")[0].click()
    assert "unsupported with probability 0.9" in find(chromium, "#finding")[0].text
    assert chromium.get_log("browser") == []


@in_browser
def test_the_keyboard_opens_and_closes_a_finding(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    show(chromium, tmp_path, page())
    for _ in range(60):
        chromium.switch_to.active_element.send_keys(Keys.TAB)
        if chromium.switch_to.active_element.tag_name == "mark":
            break
    assert find(chromium, "#finding")[0].is_displayed()
    chromium.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not find(chromium, "#finding")[0].is_displayed()


@in_browser
def test_a_detector_can_be_switched_off(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    show(chromium, tmp_path, page())
    both = len(find(chromium, "#lanes mark"))
    toggle(chromium, "detector-toggles", "metarag")
    one = len(find(chromium, "#lanes mark"))
    toggle(chromium, "detector-toggles", "halludetect")
    assert both > one > 0
    assert find(chromium, "#lanes mark") == []


@in_browser
def test_where_two_detectors_agree_the_panel_shows_both(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    show(chromium, tmp_path, page())
    overlap = next(item for item in find(chromium, "#lanes mark") if "\n" in str(item.get_attribute("title")))
    overlap.click()
    assert [item.text for item in find(chromium, "#finding h3")] == [
        "halludetect\nseverity 5 of 5",
        "metarag\nscore 0.62",
    ]


@in_browser
def test_replies_on_which_the_detectors_disagree_are_read_first(
    chromium: webdriver.Chrome, tmp_path: Path
) -> None:
    chats = [conversation("a", ["Fine."]), conversation("b", ["Fine.", "Odd."], persona="dev")]
    verdicts = [
        *(scored("a", 0, [], detector=name) for name in ("d", "e")),
        *(scored("b", 0, [], detector=name) for name in ("d", "e")),
        scored("b", 1, [None], detector="d"),
        scored("b", 1, [], detector="e"),
    ]
    report = build_report(chats, verdicts, chatbots=["vanilla"], detectors=["d", "e"], flaws={})
    show(chromium, tmp_path, render_page(report, chats, verdicts, flaws={}, personas={}))
    assert find(chromium, "#disputes")[0].text == (
        "The detectors disagree on 1 reply. Read it first:\ndev, vanilla, turn 2 flagged by d only"
    )
    assert [cell.get_attribute("id") for cell in find(chromium, ".cell.disputed")] == ["reply-0-1"]
    find(chromium, "#previous")[0].click()
    assert find(chromium, ".cell.disputed") == []
    find(chromium, "#disputes button")[0].click()
    assert len(find(chromium, ".cell.disputed")) == 1


@in_browser
def test_chatbots_stand_side_by_side(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    show(chromium, tmp_path, page(seeds=2))
    heads = find(chromium, ".cell.head h3")
    assert [item.text for item in heads] == list(CHATBOTS)
    assert len({item.location["y"] for item in heads}) == 1
    Select(find(chromium, "#persona-select")[0]).select_by_index(2)
    Select(find(chromium, "#seed-select")[0]).select_by_visible_text("1")
    assert find(chromium, "#case b")[0].text == "Meera Iyer"


@in_browser
def test_unlocated_and_unjudged_are_shown_as_such(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    show(chromium, tmp_path, page())
    unlocated = find(chromium, "button.unlocated")[0]
    assert unlocated.text.endswith("The office is open on Sundays.")
    unlocated.click()
    assert find(chromium, "#finding .reason")[0].text == "Opening hours appear in no document."
    failed = find(chromium, ".verdicts li.failed")[0].text
    assert failed == "metarag failed, not judged: the model did not answer in 300 s"


@in_browser
def test_markup_in_any_text_is_shown_as_text(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    show(chromium, tmp_path, page(hostile=True))
    first, *others = find(chromium, ".cell summary")
    first.click()
    chromium.execute_script("for (const closed of arguments[0]) closed.click()", others)
    assert len(find(chromium, ".cell details[open]")) == 1 + len(others) > 1
    find(chromium, "#lanes mark")[0].click()
    assert find(chromium, "#lanes .reply")[0].text == (
        "See <script>alert(1)</script> and <img src=x onerror=alert(2)> </script><!-- & more 😀 here."
    )
    assert find(chromium, "#lanes mark")[0].text.strip() == "😀"
    assert "<img src=x onerror=alert(2)> is no fact" in find(chromium, "#finding .reason")[0].text
    assert find(chromium, "img, #lanes script, #finding script") == []
    with pytest.raises(NoAlertPresentException):
        _ = chromium.switch_to.alert.text
    assert chromium.get_log("browser") == []


@in_browser
def test_markup_that_came_through_could_not_run(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    show(chromium, tmp_path, page().replace("</main>", "<script>document.title = 'taken'</script></main>"))
    assert chromium.title == "hallulab report: consumer-grievance-india"
    assert any("Content Security Policy" in entry["message"] for entry in chromium.get_log("browser"))


@in_browser
def test_the_page_raises_no_error_and_does_not_scroll_sideways(
    chromium: webdriver.Chrome, tmp_path: Path
) -> None:
    show(chromium, tmp_path, page())
    sideways = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert chromium.execute_script(sideways) is False
    assert chromium.get_log("browser") == []


def test_the_page_refers_to_nothing_outside() -> None:
    html = page(hostile=True)
    assert re.findall(r"""(?:src|href)\s*=\s*["']?(?!#|x onerror)[^"'>\s]+""", html) == []
    assert "http" not in html.replace("http-equiv", "")
    assert html.count("<script") == 2


def test_equal_journals_give_the_same_page() -> None:
    assert page.__wrapped__() == page()


def test_an_empty_run_has_a_page() -> None:
    report = build_report([], [], chatbots=["vanilla"], detectors=["d"], flaws={})
    html = render_page(report, [], [], flaws={}, personas={})
    assert "By d: nothing was scored." in html
    assert "nan" not in html.lower().replace("finance", "")


def facts(html: str) -> list[str]:
    """What the page's head counts."""
    return re.findall(r"<li><b>(.*?)</b> (.*?)</li>", html)


def test_the_head_counts_one_as_one() -> None:
    chats = [conversation("a", ["x"])]
    report = build_report(chats, [], chatbots=["vanilla"], detectors=["d"], flaws={})
    html = render_page(report, chats, [], flaws={}, personas={})
    nouns = ("chatbot", "detector", "persona", "conversation", "turn")
    assert facts(html) == [("m", "model"), *(("1", noun) for noun in nouns)]
    assert "<p>The audit found no flaw in 1 conversation.</p>" in html
    assert [noun for _, noun in facts(page())] == ["model", *(f"{noun}s" for noun in nouns)]


def hint(html: str) -> list[str]:
    return re.findall(r'<p class="hint">(Each chatbot.*?)</p>', html)


def test_three_personas_have_no_interval_anywhere_but_the_reason() -> None:
    html = page()
    assert hint(html) == []
    assert "Too few personas (3) to rank the chatbots. Intervals need 6" in html
    assert not re.search("95% (bootstrap|CI|interval)", html)
    assert 'class="whisker"' not in html
    assert 'class="ci">[' not in html
    assert "With fewer than 6 personas, or where all have the same number, there is no interval." in html


def test_six_personas_have_intervals() -> None:
    html = page(twins=2)
    assert hint(html) == []
    sections = {part.split('"', 2)[1]: part for part in html.split("<section")[1:]}
    columns = {name: part.count('<span class="ci">[95% CI]</span>') for name, part in sections.items()}
    # Five rows in the first chart, ten in the folded ones, and 15 turns of chatbots under detectors; at 2,
    # all have the same number.
    assert sections["results"].count('class="whisker"') == 5 + 3 * 10
    assert sections["depth"].count('class="whisker"') == 13
    expected = {"results": 1 + 2, "concentration": 1, "comparisons": 6, "audit": 4}
    assert {name: columns[name] for name in expected} == expected
    assert "line: 95% interval over personas" in html
    assert "there is no interval." not in html


def test_the_first_sentence_says_what_was_found() -> None:
    first = re.findall(r'<p class="finding-line">(.*?)</p>', page())[0]
    assert first.startswith("21 of 38 replies are flagged by both detectors")


def test_a_chatbot_that_is_judged_by_its_own_verifier_has_a_sign_with_the_reason() -> None:
    run = example_run()
    checks = ClaimChecks(
        chatbots={"fact-checker": ClaimCheck(models=("<b>m</b>",))},
        detectors={"metarag": ClaimCheck(models=("<b>m</b>",))},
    )
    report = run.report(claim_checks=checks)
    html = render_page(report, run.conversations, run.verdicts, flaws=run.flaws, personas=run.personas)
    reason = "fact-checker verifies its claims with &lt;b&gt;m&lt;/b&gt;, by which metarag judges, too"
    assert html.count(f'<th scope="row">fact-checker<abbr title="{reason}">†</abbr></th>') == 3
    assert '<p class="note">† The model by which metarag judges also verifies what fact-checker says' in html
    assert html.count("<abbr") == 3
    assert "†" not in page()


@in_browser
def test_orders_that_were_obeyed_are_shown_and_do_nothing(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    orders = load_orders()
    turns = tuple(
        Turn(index=at, user=UserOrder(turn=at, order=order).after("Hi"), reply=order.asks or "No.")
        for at, order in enumerate(orders)
    )
    chat = conversation("a", []).model_copy(update={"turns": turns})
    planted = AttackRecord(documents=1, orders=orders, by_users=True, instructions={"vanilla": ()})
    report = build_report([chat], [], chatbots=["vanilla"], detectors=["d"], flaws={}, planted=planted)
    show(chromium, tmp_path, render_page(report, [chat], [], flaws={}, personas={}, planted=planted))
    with pytest.raises(NoAlertPresentException):
        _ = chromium.switch_to.alert
    lines = [line.text for line in find(chromium, "p.planted")]
    assert lines[0] == f"order, user obeyed: “{orders[0].text}”"
    assert sum("obeyed: " in line and "not obeyed" not in line for line in lines) == 34
    assert (len(lines), len(find(chromium, "#attacks tbody tr"))) == (41, 10)
    assert find(chromium, "img, iframe, #lanes script") == []
    assert chromium.get_log("browser") == []
