"""What the report of a branched run says, in words, on the page, in CSV and JSON."""

from __future__ import annotations

import json

from hallulab.simulator.metrics.fixed_prefix import describe_fixed_prefix
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.report.write import render_report_csv
from tests.builders import branched, conversation
from tests.simulator.counted import browser_data, build_report, render_page
from tests.simulator.metrics.test_fixed_prefix import SOURCE, fixedly, freely
from tests.simulator.report.test_terminal import printed

FREE = freely({"vanilla": [[1, 3]], "agent": [[0, 0]]})
FIXED = fixedly({"vanilla": [[1, 0]], "agent": [[0, 0]]})


def report(free: Journals = FREE, fixed: Journals = FIXED) -> RunReport:
    return build_report(
        fixed.conversations,
        fixed.verdicts,
        chatbots=["vanilla", "agent"],
        detectors=["d"],
        flaws={},
        branched_from=SOURCE,
        free=free,
    )


def test_it_says_how_much_of_the_difference_remains() -> None:
    assert describe_fixed_prefix(report()) == [
        "Fixed prefixes: all chatbots answer the same messages after the same histories, those of vanilla in "
        "runs/demo.",
        "By d, vanilla and agent differ most when they run freely: by 2.00 per turn over 2 replies. With the "
        "same histories they differ by 0.50: 25% of it remains.",
    ]


def test_it_says_what_was_not_judged_in_both_runs() -> None:
    lines = describe_fixed_prefix(report(Journals(FREE.conversations, [])))
    assert lines[1:] == [
        "d: no turn of vanilla, agent was scored in both runs. If it did not judge runs/demo: `hallulab "
        "detect` there, and then `hallulab branch` again."
    ]


def test_it_says_which_chatbots_have_changed() -> None:
    other = fixedly({"vanilla": [[1, 0]], "agent": [[0, 0]]}, "g-2")
    assert describe_fixed_prefix(report(fixed=other))[-1] == (
        "vanilla, agent: changed since the free-running conversations were held, so the two runs do not "
        "differ in the history alone."
    )


def test_other_runs_say_nothing_of_it() -> None:
    chats = [conversation("a", ["x"])]
    plain = build_report(chats, [], chatbots=["vanilla"], detectors=["d"], flaws={})
    assert plain.fixed_prefix is None
    assert describe_fixed_prefix(plain) == []
    html = render_page(plain, chats, [], flaws={}, personas={})
    assert 'id="fixed-prefix"' not in html


def test_the_terminal_has_both_numbers_side_by_side() -> None:
    lines = printed(report(), 100)
    start = next(number for number, line in enumerate(lines) if "free-running" in line)
    assert [line.split() for line in lines[start : start + 4 : 2]] == [
        ["Chatbot", "Detector", "Replies", "of", "free-running", "fixed-prefix", "Path"],
        ["vanilla", "d", "2", "2", "2.00", "0.50", "1.50"],
    ]


def test_csv_has_them_in_the_row_of_the_chatbot() -> None:
    head, *rows = (line.split(",") for line in render_report_csv(report()).splitlines())
    at = [
        head.index(name) for name in ("chatbot", "hpt_1", "free_hpt_1", "fixed_hpt_1", "replies", "branched")
    ]
    assert [[row[place] for place in at] for row in rows] == [
        ["vanilla", "0.5", "2.0", "0.5", "2", "2"],
        ["agent", "0.0", "0.0", "0.0", "2", "2"],
    ]


def test_json_has_rows_comparisons_and_the_run() -> None:
    written = json.loads(report().text())["fixed_prefix"]
    assert written["branched_from"] == {"run": "runs/demo", "chatbot": "vanilla", "digest": "0"}
    assert [row["fixed_hpt_1"] for row in written["rows"]] == [0.5, 0.0]
    assert [line["remaining"] for line in written["comparisons"]] == [0.25]


def test_the_page_shows_both_tables() -> None:
    html = render_page(report(), FIXED.conversations, FIXED.verdicts, flaws={}, personas={})
    section = html.split('<section id="fixed-prefix">')[1].split("</section>")[0]
    assert "HPT‑1 free‑running" in section
    assert "25% of it remains" in section
    assert "Remains %" in section


def test_a_case_of_the_page_is_a_branch_with_what_was_given() -> None:
    chats = [branched("a", "x", 0), branched("b", "y", 1), branched("c", "z", 1, "agent")]
    cases = browser_data(chats, [], ["vanilla", "agent"], ["d"], {}, {})["cases"]
    assert [(case["turn"], [chat and chat["id"] for chat in case["chats"]]) for case in cases] == [
        (0, ["a", None]),
        (1, ["b", "c"]),
    ]
    assert [case["given"] for case in cases] == [[], [["user", "Hi there"], ["assistant", "Hello."]]]
