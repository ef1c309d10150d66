"""Free-running and fixed-prefix numbers, computed by hand on a few turns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.metrics.fixed_prefix import describe_fixed_prefix
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.side_by_side import FixedPrefix, collect_places, compare_side_by_side
from hallulab.simulator.records.experiment_json import BranchedFrom
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.report.write import render_report_csv
from tests.builders import branched, conversation, judge
from tests.simulator.counted import browser_data, build_report, render_page
from tests.simulator.report.test_terminal import printed

SOURCE = BranchedFrom(run="runs/demo", chatbot="vanilla", digest="0")
Found = Mapping[str, Sequence[Sequence[int | None]]]
"""Chatbot → for each persona the hallucinations of each turn; None is a failed verdict."""


def freely(found: Found, version: str = "u-1") -> Journals:
    chats, verdicts = [], []
    for chatbot, personas in found.items():
        for number, counts in enumerate(personas):
            id = f"free {chatbot} {number}"
            chats.append(conversation(id, ["one"] * len(counts), chatbot, f"p{number}", version=version))
            verdicts += judge(id, *counts)
    return Journals(chats, verdicts)


def fixedly(found: Found, version: str = "g-1") -> Journals:
    chats, verdicts = [], []
    for chatbot, personas in found.items():
        for number, counts in enumerate(personas):
            for turn, count in enumerate(counts):
                id = f"fixed {chatbot} {number} {turn}"
                chats.append(branched(id, "one", turn, chatbot, persona=f"p{number}", version=version))
                verdicts += judge(id, count)
    return Journals(chats, verdicts)


def beside(free: Journals, fixed: Journals) -> FixedPrefix:
    ran, given = (collect_places(journals, ["d"]) for journals in (free, fixed))
    return compare_side_by_side(SOURCE, ran, given, ["vanilla", "agent"], ["d"])


WORSE = freely({"vanilla": [[n, n] for n in (2, 2, 3, 3, 4, 4)], "agent": [[0, 0]] * 6})
HALF = fixedly({"vanilla": [[n, n] for n in (1, 1, 1, 2, 2, 2)], "agent": [[0, 0]] * 6})


def test_numbers_of_both_runs_stand_side_by_side() -> None:
    found = beside(
        freely({"vanilla": [[1, 1], [1, 1]], "agent": [[0, 3], [0, 1]]}),
        fixedly({"vanilla": [[1, 1], [1, 0]], "agent": [[0, 1], [0, 0]]}),
    )
    vanilla, agent = found.rows
    assert (vanilla.free_hpt_1, vanilla.fixed_hpt_1, vanilla.path) == (1.0, 0.75, 0.25)
    assert (agent.free_hpt_1, agent.fixed_hpt_1, agent.path) == (1.0, 0.25, 0.75)
    assert (agent.branched, agent.free, agent.replies, agent.personas) == (4, 4, 4, 2)
    assert agent.no_interval == "2 personas; 6 needed for an interval"
    [line] = found.comparisons
    assert (line.free_difference, line.fixed_difference, line.path) == (0.0, 0.5, -0.5)
    assert line.remaining is None


def test_the_share_that_remains_is_the_chatbots_own() -> None:
    found = beside(WORSE, HALF)
    [line] = found.comparisons
    assert (line.free_difference, line.fixed_difference, line.path) == (3.0, 1.5, 1.5)
    assert (line.free_p_holm, line.remaining) == (0.03125, 0.5)
    assert line.remaining_ci95 == (0.383532, 0.616468)


def test_of_a_difference_that_is_not_significant_no_share_remains() -> None:
    found = beside(
        freely({"vanilla": [[1, 3]], "agent": [[0, 0]]}), fixedly({"vanilla": [[1, 0]], "agent": [[0, 0]]})
    )
    [line] = found.comparisons
    assert (line.free_difference, line.fixed_difference, line.path) == (2.0, 0.5, 1.5)
    assert (line.remaining, line.remaining_ci95) == (None, None)


def test_the_chatbot_that_is_branched_off_from_is_compared_with_each_other_one() -> None:
    found = freely({name: [[1]] for name in ("agent", "editor", "vanilla")})
    ran = collect_places(found, ["d"])
    pairs = compare_side_by_side(SOURCE, ran, ran, ["agent", "editor", "vanilla"], ["d"]).comparisons
    assert [(line.a, line.b) for line in pairs] == [("vanilla", "agent"), ("vanilla", "editor")]
    assert compare_side_by_side(SOURCE, ran, ran, ["agent", "editor"], ["d"]).comparisons == ()


def test_only_places_that_were_scored_in_all_four_are_compared() -> None:
    found = beside(
        freely({"vanilla": [[1, 2]], "agent": [[0]]}), fixedly({"vanilla": [[None, 1]], "agent": [[0, 0]]})
    )
    vanilla, agent = found.rows
    assert (vanilla.free_hpt_1, vanilla.fixed_hpt_1, vanilla.replies, vanilla.branched) == (2.0, 1.0, 1, 2)
    assert (agent.free, agent.replies, agent.branched) == (1, 1, 2)
    [line] = found.comparisons
    assert (line.replies, line.pairs, line.free_difference, line.remaining) == (0, 0, None, None)


def test_intervals_and_tests_take_a_conversation_with_all_that_branches_off_from_it() -> None:
    found = beside(
        freely({"vanilla": [[2, 2]] * 6, "agent": [[0, 0]] * 6}),
        fixedly({"vanilla": [[1, 1]] * 6, "agent": [[0, 0]] * 6}),
    )
    [line] = found.comparisons
    assert (line.replies, line.pairs) == (12, 6)
    assert (line.free_ci95, line.fixed_ci95, line.path_ci95) == (None, None, None)
    assert line.no_interval == (
        "every persona has the same free-running difference, fixed-prefix difference and path"
    )
    assert (line.free_p_holm, line.fixed_p_holm) == (0.03125, 0.03125)
    assert found.rows[0].path_ci95 is None


def test_a_chatbot_that_did_not_run_freely_has_no_numbers_here() -> None:
    found = beside(freely({"vanilla": [[1]]}), fixedly({"vanilla": [[1]], "agent": [[1]]}))
    agent = found.rows[1]
    assert (agent.branched, agent.free, agent.replies) == (1, 0, 0)
    assert (agent.free_hpt_1, agent.fixed_hpt_1, agent.path, agent.changed) == (None, None, None, None)


@pytest.mark.parametrize(("version", "changed"), [("g-1", False), ("g-2", True), ("", None)])
def test_a_chatbot_that_has_changed_is_known(version: str, changed: bool | None) -> None:
    found = beside(freely({"vanilla": [[1]]}, "u-1"), fixedly({"vanilla": [[1]]}, version))
    assert found.rows[0].changed is changed


def test_two_replies_at_one_place_are_refused() -> None:
    twice: list[Conversation] = [conversation(id, ["x"]) for id in ("a", "b")]
    with pytest.raises(
        UsageError, match="two replies to persona asha, seed 0 at turn 0: conversations a and b"
    ):
        beside(Journals(twice, []), Journals([], []))


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
        "By d, free-running, vanilla does not differ significantly from agent (difference 2.00, path 1.50), "
        "so no share of a difference is given.",
    ]
    assert describe_fixed_prefix(report(WORSE, HALF))[1] == (
        "By d, vanilla and agent differ by 3.00 per turn when they run freely (p = 0.031, Holm) and by 1.50 "
        "with the same histories. The histories explain 1.50 [0.93, 2.07]; of the difference, in percent, 50 "
        "[38, 62] remain."
    )


def test_it_says_what_was_not_judged_in_both_runs() -> None:
    lines = describe_fixed_prefix(report(Journals(FREE.conversations, [])))
    assert lines[1:] == [
        "d: no turn of vanilla, agent was scored in both runs. If it did not judge runs/demo: `hallulab "
        "detect` there, and then `hallulab branch` again."
    ]


def test_it_says_which_chatbots_have_changed() -> None:
    other = fixedly({"vanilla": [[1, 0]], "agent": [[0, 0]]}, "g-2")
    assert describe_fixed_prefix(report(fixed=other))[-1] == (
        "vanilla, agent: changed since the free-running conversations ran, so the two runs do not "
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
    assert [line["path"] for line in written["comparisons"]] == [1.5]


def test_the_page_shows_both_tables() -> None:
    html = render_page(report(WORSE, HALF), HALF.conversations, HALF.verdicts, flaws={}, personas={})
    section = html.split('<section id="fixed-prefix">')[1].split("</section>")[0]
    assert "HPT‑1 free‑running" in section
    assert "of the difference, in percent" in section
    assert "Remains %" in section


def test_a_case_of_the_page_is_a_branch_with_what_was_given() -> None:
    chats = [branched("a", "x", 0), branched("b", "y", 1), branched("c", "z", 1, "agent")]
    cases = browser_data(chats, [], ["vanilla", "agent"], ["d"], {}, {})["cases"]
    assert [(case["turn"], [chat and chat["id"] for chat in case["chats"]]) for case in cases] == [
        (0, ["a", None]),
        (1, ["b", "c"]),
    ]
    assert [case["given"] for case in cases] == [[], [["user", "Hi there"], ["assistant", "Hello."]]]
