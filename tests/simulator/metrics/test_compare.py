from __future__ import annotations

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.metrics.comparison import Comparison, compare
from tests.builders import branched, conversation, scored, unscored
from tests.simulator.counted import tally_all

BOTS = ["vanilla", "editor", "agent"]


def compared(found: dict[str, list[int | None]]) -> dict[tuple[str, str, str], Comparison]:
    """Compare chatbots by hallucinations of one-turn chats; None is a failed verdict."""
    chats, verdicts = [], []
    for chatbot, hallucinations in found.items():
        for number, count in enumerate(hallucinations):
            id = f"{chatbot}{number}"
            chats.append(conversation(id, ["one two"], chatbot, f"p{number}"))
            verdicts.append(unscored(id, 0) if count is None else scored(id, 0, [(0, 3)] * count))
    lines = compare(tally_all(chats, verdicts, BOTS, ["d"]), BOTS, ["d"])
    return {(line.metric, line.a, line.b): line for line in lines}


def test_every_pair_is_compared_by_both_metrics() -> None:
    assert list(compared({"vanilla": [1]})) == [
        (metric, a, b)
        for metric in ("hpt_1", "tokacc_1")
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
    assert (six.ci95, six.no_interval) == ((0.166667, 0.833333), None)


def test_a_difference_that_is_the_same_with_every_persona_has_the_reason_in_place_of_an_interval() -> None:
    line = compared({"vanilla": [1] * 6, "editor": [0] * 6})["hpt_1", "vanilla", "editor"]
    assert (line.difference, line.ci95) == (1.0, None)
    assert line.no_interval == "all personas have the same difference, so nothing tells how far it may be off"


def test_the_noise_floor_is_the_mean_difference_of_each_chatbots_halves_by_seed() -> None:
    counts = {"vanilla": {0: 2, 1: 0}, "editor": {0: 1, 1: 0}}
    chats = [
        conversation(f"{bot}{persona}{seed}", ["one two"], bot, persona, seed)
        for bot in counts
        for persona in ("asha", "ravi")
        for seed in (0, 1)
    ]
    verdicts = [scored(one.id, 0, [(0, 3)] * counts[one.chatbot][one.seed]) for one in chats]
    hpt, tokacc = compare(tally_all(chats, verdicts, BOTS[:2], ["d"]), BOTS[:2], ["d"])
    assert (hpt.difference, hpt.floor) == (0.5, 1.5)
    assert tokacc.floor == 0.5


def test_without_repeats_there_is_no_noise_floor() -> None:
    assert compared({"vanilla": [1, 0], "editor": [0, 0]})["hpt_1", "vanilla", "editor"].floor is None


def test_only_personas_that_both_have_scored_are_paired() -> None:
    lines = compared({"vanilla": [5, 1, 0], "editor": [None, 0, 0], "agent": [1]})
    assert lines["hpt_1", "vanilla", "editor"].pairs == 2
    assert lines["hpt_1", "vanilla", "editor"].difference == 0.5
    assert lines["hpt_1", "editor", "agent"].pairs == 0
    assert lines["hpt_1", "editor", "agent"].p_holm is None


def test_two_conversations_with_the_same_persona_and_seed_are_an_error() -> None:
    chats = [conversation("a", ["one"]), conversation("b", ["one"])]
    verdicts = [scored("a", 0), scored("b", 0)]
    with pytest.raises(UsageError, match="share persona asha, seed 0"):
        compare(tally_all(chats, verdicts, ["vanilla", "editor"], ["d"]), ["vanilla", "editor"], ["d"])


def test_branches_are_paired_by_turn_and_exchanged_by_conversation() -> None:
    """Of persona p1, turn 1 was not scored of the editor; so only turn 0 of both counts there."""
    found = {"vanilla": {"p0": [3, 1], "p1": [1, 5]}, "editor": {"p0": [0, 0], "p1": [0, None]}}
    chats, verdicts = [], []
    for chatbot, personas in found.items():
        for persona, counts in personas.items():
            for turn, count in enumerate(counts):
                id = f"{chatbot} {persona} {turn}"
                chats.append(branched(id, "one two", turn, chatbot, persona=persona))
                verdicts.append(unscored(id, 0) if count is None else scored(id, 0, [(0, 3)] * count))
    lines = compare(tally_all(chats, verdicts, BOTS[:2], ["d"]), BOTS[:2], ["d"])
    [line] = [line for line in lines if line.metric == "hpt_1"]
    assert line.pairs == 2
    assert line.difference == pytest.approx(5 / 3)
    assert line.p_value == 0.5


def test_all_conversations_of_a_persona_are_exchanged_together() -> None:
    """Five personas with four seeds each: of 2^5 exchanges two are as far apart, of 2^20 hardly any were."""
    chats, verdicts = [], []
    for chatbot, count in (("vanilla", 1), ("editor", 0)):
        for persona in range(5):
            for seed in range(4):
                id = f"{chatbot} {persona} {seed}"
                chats.append(conversation(id, ["one two"], chatbot, f"p{persona}", seed))
                verdicts.append(scored(id, 0, [(0, 3)] * count))
    [line, _] = compare(tally_all(chats, verdicts, BOTS[:2], ["d"]), BOTS[:2], ["d"])
    assert (line.pairs, line.difference, line.p_value, line.ci95) == (5, 1.0, 2 / 32, None)
    assert line.no_interval == "5 personas; 6 needed for an interval"


def test_branches_of_one_seed_are_no_seeds() -> None:
    chats, verdicts = [], []
    for chatbot, counts in (("vanilla", [3, 1]), ("editor", [0, 0])):
        for persona in ("p0", "p1"):
            for turn, count in enumerate(counts):
                id = f"{chatbot} {persona} {turn}"
                chats.append(branched(id, "one two", turn, chatbot, persona=persona))
                verdicts.append(scored(id, 0, [(0, 3)] * count))
    [line, _] = compare(tally_all(chats, verdicts, BOTS[:2], ["d"]), BOTS[:2], ["d"])
    assert (line.pairs, line.seed_share) == (2, None)
