"""Markdown and JUnit: what they show, and that nothing that a model writes has an effect in them."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from hallulab.simulator.compare.gate_document import build_document, describe_turn, render_junit
from hallulab.simulator.compare.gate_result import GateCheck, GateResult
from hallulab.simulator.compare.turns import TurnTexts
from hallulab.simulator.show.markdown import render_markdown
from tests.simulator.compare.gated import judge, run_of
from tests.simulator.compare.made import found

HOSTILE = "x ``` <img src=x onerror=alert(1)> [l](http://e.org) @you | a\n\n# b \x00\x1b[2J\u202e\ud800 `y`"
"""A text with what Markdown, HTML, XML and a terminal would obey."""


def blocked(text: str = "Rs 500") -> GateResult:
    """The answer on six personas that all got worse; the first one's turn is quoted."""
    result = judge(run_of(*[1] * 6, reply="two three"), run_of(*[0] * 6, name="before"))
    first, *others = result.changed
    quoted = first.model_copy(update={"texts": TurnTexts(user="Hi", spans_after=(text,))})
    return result.model_copy(update={"changed": (quoted, *others)})


def test_the_comment_has_verdict_changes_and_numbers_in_this_order() -> None:
    text = render_markdown(build_document(blocked()))
    assert text.splitlines()[:11] == [
        "### hallulab gate: ❌ Blocked: now against the baseline before.",
        "",
        "- bot by d: HPT-1 0.00 → 1.00 on 6 personas, p = 0.016; below 0.025 blocks",
        "",
        "**New hallucinations (6)**",
        "",
        "- bot by d, p0, turn 1: 0 → 1 hallucinations",
        "  - flagged: Rs 500",
        "- bot by d, p1, turn 1: 0 → 1 hallucinations",
        "- bot by d, p2, turn 1: 0 → 1 hallucinations",
        "- bot by d, p3, turn 1: 0 → 1 hallucinations",
    ]
    assert (
        "| bot | d | 6 | 0.00 | 1.00 | 1.00 | 0.016 | 100% | 100% | 100% | 100% | 1.000 |"
        in text.splitlines()
    )


def test_a_turn_that_was_not_judged_before_is_no_change_of_mind() -> None:
    result = judge(run_of(1, 0), run_of(None, 1, name="before"))
    assert [describe_turn(turn) for turn in result.changed] == [
        "bot by d, p0, turn 1, failed → 1 hallucination (the reply is the same)",
        "bot by d, p1, turn 1, 1 → 0 hallucinations (the reply is the same: the detector changed its mind)",
    ]


def test_personas_of_one_run_alone_are_no_pairs() -> None:
    others = found({"bot": {(f"q{number}", 0): [0] for number in range(5)} | {("p0", 0): [0]}}, "before")
    [warning] = judge(run_of(*[0] * 6, reply="two three"), others).warnings[:1]
    assert warning.startswith(
        "not enough personas to detect a regression: no persona to pair with one of the baseline, 6 needed."
    )


def test_more_than_ten_turns_are_counted() -> None:
    result = judge(run_of(*[1] * 12, reply="two three"), run_of(*[0] * 12, name="before"))
    text = render_markdown(build_document(result))
    assert text.count("0 → 1 hallucinations") == 10
    assert "- … and 2 more\n" in text


def test_a_blind_gate_says_so_above_everything_else() -> None:
    text = render_markdown(build_document(judge(run_of(0), run_of(0, name="before"))))
    assert text.splitlines()[2].startswith(
        "> **Warning:** not enough personas to detect a regression: 1 persona"
    )


def test_a_hostile_quotation_stays_in_its_line() -> None:
    text = render_markdown(build_document(blocked(HOSTILE)))
    [line] = [line for line in text.splitlines() if "onerror" in line]
    assert line.startswith("  - flagged: x &#96;&#96;&#96; &#60;img src=x onerror=alert(1)&#62; &#91;l&#93;")
    assert not set("`<>[]@|\x00\x1b\u202e") & set(line)


def test_junit_has_a_testcase_for_each_line_and_rule() -> None:
    result = judge(run_of(2), run_of(1, name="before"), max_hpt=1.0, min_coverage=1.0)
    root = ElementTree.fromstring(render_junit(result))
    [suite] = root
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6",
        "failures": "1",
        "errors": "0",
        "skipped": "3",
    }
    assert [
        (case.get("classname"), case.get("name"), [child.tag for child in case])
        for case in suite.iter("testcase")
    ] == [
        ("hallulab.gate.comparable", "the run", []),
        ("hallulab.gate.worse", "bot by d", ["skipped"]),
        ("hallulab.gate.answered", "bot", ["skipped"]),
        ("hallulab.gate.severe", "the run", ["skipped"]),
        ("hallulab.gate.max-hpt", "bot by d", ["failure"]),
        ("hallulab.gate.min-coverage", "bot by d", []),
    ]
    assert (suite.findtext("system-out") or "").startswith("Blocked: now against the baseline before.\n")


def test_junit_calls_what_cannot_be_compared_an_error() -> None:
    result = judge(run_of(0, scenario="tea"), run_of(0, name="before", scenario="coffee"))
    [suite] = ElementTree.fromstring(render_junit(result))
    [error] = suite.iter("error")
    assert (suite.get("errors"), error.get("type")) == ("1", "comparable")
    assert (error.get("message") or "").startswith("other scenarios (coffee and tea)")


@pytest.mark.parametrize("letter", ["\x00", "\x1b", "\ufffe", "\ud800", "<", "]]>", "\n", "🙂"])
def test_any_character_leaves_the_xml_valid(letter: str) -> None:
    check = GateCheck(rule="worse", chatbot=letter, outcome="failed", message=f"a{letter}b")
    result = blocked().model_copy(update={"checks": (check,), "warnings": (letter,)})
    [suite] = ElementTree.fromstring(render_junit(result).encode())
    assert [case.tag for case in suite] == ["testcase", "system-out"]
