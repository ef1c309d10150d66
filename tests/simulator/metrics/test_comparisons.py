"""Which chatbot is named as the best: only the one that the paired test tells from every other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.metrics.comparisons import Comparison, compare
from hallulab.simulator.metrics.findings import Finding, build_findings
from hallulab.simulator.metrics.results import build_rows
from hallulab.simulator.metrics.run_sums import RunSums
from tests.builders import branched, conversation, judge
from tests.simulator.counted import tally_all

BOTS = ("vanilla", "editor", "agent")


Held = Sequence[tuple[Conversation, Sequence[int | None]]]
"""Conversations with the hallucinations of each turn; None is a failed verdict."""


def tally(held: Held, chatbots: Sequence[str] = BOTS[:2]) -> RunSums:
    verdicts = [verdict for chat, counts in held for verdict in judge(chat.id, *counts)]
    return tally_all([chat for chat, _ in held], verdicts, chatbots, ["d"])


def talks(found: Mapping[str, Sequence[int | None]]) -> Held:
    """One-turn chats, one with each persona, of chatbots with so many hallucinations."""
    return [
        (conversation(f"{bot}{number}", ["one two"], bot, f"p{number}"), [count])
        for bot, counts in found.items()
        for number, count in enumerate(counts)
    ]


def branches(found: Mapping[str, Mapping[str, Sequence[int | None]]]) -> Held:
    """A branch at each turn of chatbots' conversations with personas."""
    return [
        (branched(f"{bot} {persona} {turn}", "one two", turn, bot, persona=persona), [count])
        for bot, personas in found.items()
        for persona, counts in personas.items()
        for turn, count in enumerate(counts)
    ]


def compared(found: Mapping[str, Sequence[int | None]]) -> dict[tuple[str, str, str], Comparison]:
    lines = compare(tally(talks(found), BOTS), BOTS, ["d"])
    return {(line.metric, line.a, line.b): line for line in lines}


def test_every_pair_is_compared_by_every_metric() -> None:
    assert list(compared({"vanilla": [1]})) == [
        (metric, a, b)
        for metric in ("hpt_1", "tokacc_1", "answered")
        for a, b in (("vanilla", "editor"), ("vanilla", "agent"), ("editor", "agent"))
    ]


def test_difference_is_first_minus_second_and_holm_covers_the_pairs() -> None:
    lines = compared({"vanilla": [1, 1, 1, 1], "editor": [0, 0, 0, 0], "agent": [0, 0, 0, 0]})
    line = lines["hpt_1", "vanilla", "editor"]
    assert (line.pairs, line.difference) == (4, 1.0)
    assert (line.p_value, line.p_holm) == (0.125, 0.375)
    assert lines["tokacc_1", "vanilla", "editor"].difference == -0.5
    assert lines["hpt_1", "editor", "agent"].p_holm == 1.0


def test_a_comparison_of_fewer_than_six_personas_has_the_reason_in_place_of_an_interval() -> None:
    five = compared({"vanilla": [1] * 5, "editor": [0] * 5})["hpt_1", "vanilla", "editor"]
    six = compared({"vanilla": [1, 1, 1, 0, 0, 0], "editor": [0] * 6})["hpt_1", "vanilla", "editor"]
    assert (five.ci95, five.no_interval) == (None, "5 personas; 6 needed for an interval")
    # 0.5 ± 2.570582 · √0.05
    assert (six.ci95, six.no_interval) == ((-0.0748, 1.0748), None)


def test_a_difference_that_is_the_same_with_every_persona_has_the_reason_in_place_of_an_interval() -> None:
    line = compared({"vanilla": [1] * 6, "editor": [0] * 6})["hpt_1", "vanilla", "editor"]
    assert (line.difference, line.ci95) == (1.0, None)
    assert line.no_interval == "every persona has the same difference"


def test_the_noise_floor_is_the_mean_difference_of_each_chatbots_halves_by_seed() -> None:
    held = [
        (conversation(f"{bot}{persona}{seed}", ["one two"], bot, persona, seed), [count])
        for bot, counts in (("vanilla", (2, 0)), ("editor", (1, 0)))
        for persona in ("asha", "ravi")
        for seed, count in enumerate(counts)
    ]
    hpt, tokacc, answered = compare(tally(held), BOTS[:2], ["d"])
    assert (hpt.difference, hpt.floor) == (0.5, 1.5)
    assert (tokacc.floor, answered.floor) == (0.5, 0.0)


def test_without_repeats_there_is_no_noise_floor() -> None:
    assert compared({"vanilla": [1, 0], "editor": [0, 0]})["hpt_1", "vanilla", "editor"].floor is None


def test_only_personas_that_both_have_scored_are_paired() -> None:
    lines = compared({"vanilla": [5, 1, 0], "editor": [None, 0, 0], "agent": [1]})
    assert lines["hpt_1", "vanilla", "editor"].pairs == 2
    assert lines["hpt_1", "vanilla", "editor"].difference == 0.5
    assert lines["hpt_1", "editor", "agent"].pairs == 0
    assert lines["hpt_1", "editor", "agent"].p_holm is None


def test_two_conversations_with_the_same_persona_and_seed_are_an_error() -> None:
    held = [(conversation(id, ["one"]), [0]) for id in ("a", "b")]
    with pytest.raises(UsageError, match="share persona asha, seed 0"):
        compare(tally(held), BOTS[:2], ["d"])


def test_branches_are_paired_by_turn_and_exchanged_by_conversation() -> None:
    """Of persona p1, turn 1 was not scored of the editor; so only turn 0 of both counts there."""
    held = branches({"vanilla": {"p0": [3, 1], "p1": [1, 5]}, "editor": {"p0": [0, 0], "p1": [0, None]}})
    lines = compare(tally(held), BOTS[:2], ["d"])
    [line] = [line for line in lines if line.metric == "hpt_1"]
    assert (line.pairs, line.difference, line.p_value) == (2, pytest.approx(5 / 3), 0.5)


def test_all_conversations_of_a_persona_are_exchanged_together() -> None:
    """Five personas with four seeds each: of 2^5 exchanges two are as far apart, of 2^20 hardly any were."""
    held = [
        (conversation(f"{bot} {persona} {seed}", ["one two"], bot, f"p{persona}", seed), [count])
        for bot, count in (("vanilla", 1), ("editor", 0))
        for persona in range(5)
        for seed in range(4)
    ]
    [line, *_] = compare(tally(held), BOTS[:2], ["d"])
    assert (line.pairs, line.difference, line.p_value, line.ci95) == (5, 1.0, 2 / 32, None)
    assert line.no_interval == "5 personas; 6 needed for an interval"


def test_branches_of_one_seed_are_no_seeds() -> None:
    held = branches(
        {bot: {"p0": counts, "p1": counts} for bot, counts in (("vanilla", [3, 1]), ("editor", [0, 0]))}
    )
    [line, *_] = compare(tally(held), BOTS[:2], ["d"])
    assert (line.pairs, line.seed_share) == (2, None)


def find(held: Held, bots: Sequence[str], margin: float = 0.2) -> Finding:
    tallies = tally(held, bots)
    [only] = build_findings(tallies, build_rows(tallies.rows), compare(tallies, bots, ["d"]), margin)
    return only


def finding(**found: Sequence[int | None]) -> Finding:
    return find(talks(found), [name for name in BOTS if name in found])


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


def test_what_would_be_needed_is_planned_for_the_two_lowest() -> None:
    # Differences of editor and agent are 1 and 0 by turns: sd 0.548, at most 0.800 (80%); 0.2 is 0.25 of it.
    found = finding(vanilla=[2] * 6, editor=[2, 1, 2, 1, 2, 1], agent=[1] * 6)
    assert (found.undecided, found.pairs, found.difference) == (("editor", "agent"), 6, 0.5)
    assert (found.margin, found.personas_needed, found.not_planned) == (0.2, 128, None)


def test_half_the_margin_needs_four_times_the_personas() -> None:
    held = talks({"editor": [2, 1, 2, 1, 2, 1], "agent": [1] * 6})
    plans = [find(held, ["editor", "agent"], margin) for margin in (0.4, 0.2, 0.1)]
    assert [(plan.margin, plan.personas_needed) for plan in plans] == [(0.4, 34), (0.2, 128), (0.1, 505)]


def test_no_fewer_are_needed_than_the_test_can_do_with() -> None:
    # The plan alone would say 6, but with three tests 7 personas are the fewest.
    found = finding(vanilla=[1] + [0] * 99, editor=[0] * 99 + [1], agent=[0] * 100)
    assert (found.personas_needed, found.least_personas) == (7, 7)


def test_without_spread_or_with_few_personas_there_is_no_plan() -> None:
    found = finding(vanilla=[1] * 6, editor=[2] * 6, agent=[0] * 6)
    assert (found.undecided, found.personas_needed) == (("vanilla", "agent"), None)
    assert found.not_planned == (
        "they differ by the same with every persona, so nothing says how much pairs vary"
    )
    few = finding(vanilla=[1, 0], agent=[0, 0])
    assert (few.personas_needed, few.least_personas) == (None, 6)
    assert few.not_planned == "fewer than 6 personas say too little of how much pairs vary"


def test_a_tie_is_planned_like_any_other_pair() -> None:
    # Differences 1 and -1 by turns: sd 1.095, at most 1.600; 0.2 is 0.125 of it.
    found = finding(vanilla=[1, 0] * 3, editor=[0, 1] * 3, agent=[2] * 6)
    assert (found.undecided, found.difference, found.personas_needed) == (("vanilla", "editor"), 0.0, 505)


def test_all_that_tie_next_to_the_lowest_are_named() -> None:
    found = finding(vanilla=[1, 1], editor=[2, 0], agent=[0, 0])
    assert (found.lowest, found.nearest) == (("agent",), ("vanilla", "editor"))


def test_of_those_that_tie_the_number_is_for_the_one_that_needs_most() -> None:
    # Differences to agent: vanilla's are 1, 1, 1, 1, 2, 0 (sd 0.63), editor's 2, 0, 2, 0, 2, 0 (sd 1.10).
    found = finding(vanilla=[1, 1, 1, 1, 2, 0], editor=[2, 0, 2, 0, 2, 0], agent=[0] * 6)
    assert (found.nearest, found.undecided) == (("vanilla", "editor"), ("editor", "agent"))
    assert found.personas_needed == 505


def test_the_nearest_is_one_that_the_test_does_not_tell_from_the_lowest() -> None:
    # Editor has fewer than vanilla, and is told from agent; vanilla is not.
    found = finding(vanilla=[9] + [0] * 8, editor=[1] * 7 + [0] * 2, agent=[0] * 9)
    assert (found.lowest, found.nearest, found.undecided) == (("agent",), ("vanilla",), ("vanilla", "agent"))


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
    held = [
        (conversation(f"{bot}{number}", ["one two"], bot, f"p{number % 2}", number), [count])
        for bot, count in (("vanilla", 1), ("agent", 0))
        for number in range(20)
    ]
    found = find(held, ["vanilla", "agent"])
    assert (found.best, found.pairs, found.least_personas) == (None, 2, 6)


ANSWER, DECLINE = "The fee is 5 rupees.", "I cannot find that. Please contact the help desk."
COURTESY = "You're welcome!"


def find_saying(
    said: Mapping[str, Sequence[str]], counts: Mapping[str, Sequence[int]], personas: int = 9
) -> Finding:
    """Chatbots that say the same to each persona, with so many hallucinations in each reply."""
    held = [
        (conversation(f"{bot}{number}", replies, bot, f"p{number}"), counts[bot])
        for bot, replies in said.items()
        for number in range(personas)
    ]
    return find(held, list(said))


def test_a_chatbot_that_declines_everything_is_set_aside_and_another_one_is_best() -> None:
    found = find_saying(
        {"idk": [DECLINE], "vanilla": [ANSWER], "editor": [ANSWER]},
        {"idk": [0], "vanilla": [2], "editor": [1]},
    )
    assert (found.best, found.set_aside, found.compared) == ("editor", ("idk",), 3)


@pytest.mark.parametrize(("declined", "best"), [(1, "agent"), (2, None)])
def test_up_to_five_points_fewer_answers_are_as_many(declined: int, best: str | None) -> None:
    replies = [*[ANSWER] * (20 - declined), *[DECLINE] * declined]
    found = find_saying(
        {"agent": replies, "vanilla": [ANSWER] * 20}, {"agent": [0] * 20, "vanilla": [1] * 20}
    )
    assert (found.best, found.set_aside) == (best, () if best else ("agent",))


def test_of_two_without_hallucinations_the_one_that_answers_is_ranked() -> None:
    said = {"vanilla": [ANSWER], "idk": [DECLINE], "agent": [ANSWER]}
    found = find_saying(said, {"vanilla": [0], "idk": [0], "agent": [1]})
    assert (found.best, found.set_aside) == ("vanilla", ("idk",))


def test_a_chatbot_that_neither_answers_nor_declines_is_not_best() -> None:
    found = find_saying({"thankful": [COURTESY], "vanilla": [ANSWER]}, {"thankful": [0], "vanilla": [1]})
    assert (found.best, found.set_aside) == (None, ("thankful",))


def test_where_no_reply_is_read_hallucinations_alone_rank() -> None:
    found = find_saying({"agent": [COURTESY], "vanilla": [COURTESY]}, {"agent": [0], "vanilla": [1]})
    assert (found.best, found.set_aside) == ("agent", ())


def test_a_chatbot_that_answers_less_and_hallucinates_more_is_ranked() -> None:
    found = find_saying({"half": [ANSWER, DECLINE], "agent": [ANSWER] * 2}, {"half": [2, 0], "agent": [0, 0]})
    assert (found.best, found.set_aside) == ("agent", ())


def test_shares_of_answered_replies_are_compared_by_the_paired_test() -> None:
    held = [
        (conversation(f"{bot}{number}", replies, bot, f"p{number}"), [0, 0])
        for bot, replies in (("vanilla", [ANSWER, ANSWER]), ("editor", [ANSWER, DECLINE]))
        for number in range(6)
    ]
    *_, line = compare(tally(held), BOTS[:2], ["d"])
    assert (line.metric, line.pairs, line.difference, line.p_value) == ("answered", 6, 0.5, 2 / 64)
