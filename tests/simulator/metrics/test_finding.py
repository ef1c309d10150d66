"""Which chatbot is named as the best: only the one that the paired test tells from every other."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.simulator.metrics.comparison import Finding, build_findings, compare
from hallulab.simulator.metrics.rows import build_rows
from tests.builders import conversation, scored, unscored
from tests.simulator.counted import tally_all

BOTS = ("vanilla", "editor", "agent")


def finding(**found: Sequence[int | None]) -> Finding:
    """What is found of chatbots by hallucinations of their one-turn chats; None is a failed verdict."""
    chats, verdicts = [], []
    for chatbot, counts in found.items():
        for number, count in enumerate(counts):
            id = f"{chatbot}{number}"
            chats.append(conversation(id, ["one two"], chatbot, f"p{number}"))
            verdicts.append(unscored(id, 0) if count is None else scored(id, 0, [(0, 3)] * count))
    bots = [name for name in BOTS if name in found]
    tallies = tally_all(chats, verdicts, bots, ["d"])
    [only] = build_findings(tallies, build_rows(tallies), compare(tallies, bots, ["d"]))
    return only


def test_a_best_chatbot_is_below_every_other_one_by_the_test() -> None:
    found = finding(vanilla=[1] * 9, editor=[2] * 9, agent=[0] * 9)
    assert (found.best, found.undecided, found.personas_needed) == ("agent", (), None)


def test_six_personas_are_enough_for_two_chatbots() -> None:
    assert finding(vanilla=[1] * 6, agent=[0] * 6).best == "agent"
    assert finding(vanilla=[1] * 5, agent=[0] * 5).best is None


def test_below_one_of_two_others_is_not_the_best() -> None:
    found = finding(vanilla=[3] * 9, editor=[1, 0, 0, 1, 0, 0, 1, 0, 0], agent=[0] * 9)
    assert found.best is None
    assert found.undecided == ("editor", "agent")


def test_what_would_be_needed_is_estimated_for_the_two_lowest() -> None:
    # Differences of editor and agent are 0, 0, 1: mean 1/3, sd 0.5774; 7.8489 · 3 = 23.55.
    found = finding(vanilla=[2, 2, 2], editor=[1, 1, 1], agent=[1, 1, 0])
    assert (found.undecided, found.pairs, found.difference) == (("editor", "agent"), 3, 0.333333)
    assert (found.personas_needed, found.not_estimated) == (24, None)


def test_no_fewer_are_needed_than_the_test_can_do_with() -> None:
    # Differences 9, 8: the formula alone would say 1; a single test needs 6 pairs, three need 7.
    assert finding(vanilla=[9, 8], agent=[0, 0]).personas_needed == 6
    found = finding(vanilla=[9, 8], editor=[9, 9], agent=[0, 0])
    assert (found.personas_needed, found.least_personas) == (7, 7)


def test_more_are_needed_than_were_not_enough() -> None:
    # The formula says 8, but of 8 personas the test has p = 0.0625.
    found = finding(vanilla=[1, 1, 1, 1, 1, 0, 0, 0], agent=[0] * 8)
    assert (found.best, found.pairs, found.personas_needed) == (None, 8, 9)


def test_without_spread_there_is_no_estimate() -> None:
    found = finding(vanilla=[1, 1], agent=[0, 0])
    assert (found.personas_needed, found.least_personas) == (None, 6)
    assert found.not_estimated == "they differ by the same with every persona, so there is no spread to go by"


def test_a_tie_has_no_estimate() -> None:
    found = finding(vanilla=[1, 0], editor=[0, 1], agent=[2, 2])
    assert (found.undecided, found.not_estimated) == (
        ("vanilla", "editor"),
        "on average they do not differ at all",
    )


def test_all_that_tie_at_the_lowest_are_named() -> None:
    found = finding(vanilla=[1, 0], editor=[0, 1], agent=[2, 2])
    assert (found.lowest, found.nearest) == (("vanilla", "editor"), ())


def test_all_that_tie_next_to_the_lowest_are_named() -> None:
    found = finding(vanilla=[1, 1], editor=[2, 0], agent=[0, 0])
    assert (found.lowest, found.nearest) == (("agent",), ("vanilla", "editor"))


def test_of_those_that_tie_the_number_is_for_the_one_that_needs_most() -> None:
    # Differences to agent: vanilla's are 1, 1, 1, 1, 2, 0 (sd 0.63), editor's 2, 0, 2, 0, 2, 0 (sd 1.10).
    found = finding(vanilla=[1, 1, 1, 1, 2, 0], editor=[2, 0, 2, 0, 2, 0], agent=[0] * 6)
    assert (found.nearest, found.undecided) == (("vanilla", "editor"), ("editor", "agent"))
    assert found.personas_needed == 10


def test_the_nearest_is_one_that_the_test_does_not_tell_from_the_lowest() -> None:
    # Editor has fewer than vanilla, and is told from agent; vanilla is not.
    found = finding(vanilla=[9] + [0] * 8, editor=[1] * 7 + [0] * 2, agent=[0] * 9)
    assert (found.lowest, found.nearest, found.undecided) == (("agent",), ("vanilla",), ("vanilla", "agent"))


def test_equal_totals_have_no_estimate_whatever_the_personas_means() -> None:
    chats, verdicts = [], []
    for chatbot, turns in (("vanilla", [[2], [0, 0]]), ("agent", [[0], [2, 0]])):
        for number, counts in enumerate(turns):
            id = f"{chatbot}{number}"
            chats.append(conversation(id, ["one two"] * len(counts), chatbot, f"p{number}"))
            verdicts += [scored(id, turn, [(0, 3)] * count) for turn, count in enumerate(counts)]
    tallies = tally_all(chats, verdicts, ["vanilla", "agent"], ["d"])
    comparisons = compare(tallies, ["vanilla", "agent"], ["d"])
    [found] = build_findings(tallies, build_rows(tallies), comparisons)
    assert (found.difference, found.not_estimated) == (0.0, "on average they do not differ at all")


def test_where_a_chatbot_was_not_scored_none_is_the_best() -> None:
    found = finding(vanilla=[1] * 9, editor=[None] * 9, agent=[0] * 9)
    assert (found.compared, found.not_scored) == (2, ("editor",))
    assert (found.best, found.undecided) == (None, ())


def test_one_chatbot_alone_is_not_the_best() -> None:
    found = finding(agent=[0] * 9)
    assert (found.compared, found.best, found.undecided) == (1, None, ())


def test_low_on_all_conversations_and_high_on_the_common_ones_is_not_the_best() -> None:
    # Agent's rate is the lower one by three personas that vanilla lacks; on the common ones it is higher.
    found = finding(vanilla=[1] * 9, agent=[2] * 9 + [0] * 20)
    assert found.best is None


def test_two_personas_name_no_best_chatbot_however_many_seeds() -> None:
    chats, verdicts = [], []
    for chatbot, count in (("vanilla", 1), ("agent", 0)):
        for number in range(20):
            id = f"{chatbot}{number}"
            chats.append(conversation(id, ["one two"], chatbot, f"p{number % 2}", number))
            verdicts.append(scored(id, 0, [(0, 3)] * count))
    bots = ["vanilla", "agent"]
    tallies = tally_all(chats, verdicts, bots, ["d"])
    [found] = build_findings(tallies, build_rows(tallies), compare(tallies, bots, ["d"]))
    assert (found.best, found.pairs, found.least_personas) == (None, 2, 6)
