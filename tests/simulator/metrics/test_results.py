from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Call, Conversation, Verdict
from hallulab.simulator.metrics.hallucinations import Row
from hallulab.simulator.metrics.results import build_rows
from hallulab.simulator.metrics.spending import sum_known
from tests.builders import branched, call, conversation, scored, unscored
from tests.simulator.counted import empty_row, tally_all


def one_row(conversations: list[Conversation], verdicts: list[Verdict]) -> Row:
    return build_rows(tally_all(conversations, verdicts, ["vanilla"], ["d"]).rows)[0]


FOUR_WORDS = conversation("a", ["one two three four", "five six"], calls=[call("chatbot.x"), call("user.y")])
TEN_WORDS = conversation("b", ["1 2 3 4 5 6 7 8 9 10"], persona="dev", calls=[call("chatbot.x")] * 4)
TWO_CHATS = one_row(
    [FOUR_WORDS, TEN_WORDS],
    [
        scored("a", 0, [(0, 7), None], calls=[call("d.s", 100, 7, 1.25)]),
        scored("a", 1, [(0, 4)], calls=[call("d.s", 100, 7, 0.5)]),
        scored("b", 0, calls=[call("d.s", None, None, 0.25)]),
    ],
)
"""4 words and 2 words in one chat, 10 words in the other; 3 hallucinations and none."""


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("hallucinations unlocated hpt_1 hpt_2", (3, 1, 1.0, 0.75)),
        ("tokens tokacc_1 tokacc_2", (16, 0.8125, 0.75)),
        ("hallucinated_chats calls_per_reply", (0.5, 2.0)),
        ("calls prompt_tokens completion_tokens seconds", (3, 200, 14, 2.0)),
    ],
)
def test_numbers_over_the_set_and_over_conversations(fields: str, expected: tuple[float, ...]) -> None:
    assert tuple(getattr(TWO_CHATS, field) for field in fields.split()) == expected


def answering(prompt: int, written: int | None, cached: int = 0) -> Call:
    return call("chatbot.generate", prompt, written).model_copy(update={"cached_tokens": cached})


def test_tokens_a_reply_are_of_the_chatbots_calls_and_whoever_filled_the_cache_pays_no_more() -> None:
    chats = [
        conversation("a", ["x", "y"], calls=[answering(100, 10), answering(20, 5), call("user.message")]),
        conversation("b", ["x"], calls=[answering(100, 2, cached=96)]),
    ]
    assert one_row(chats, []).tokens_per_reply == 124.0


def test_tokens_a_reply_are_unknown_if_those_of_one_answered_call_are() -> None:
    failed = answering(30, None).model_copy(update={"error": "time-out"})
    chats = [conversation("a", ["x"], calls=[answering(100, 10), failed])]
    assert one_row(chats, []).tokens_per_reply == 110
    chats.append(conversation("b", ["x"], calls=[answering(30, None)]))
    assert one_row(chats, []).tokens_per_reply is None


def test_only_scored_and_localised_turns_count() -> None:
    chat = conversation("a", ["one"] * 5)
    verdicts = [
        scored("a", 0, [(0, 3)]),
        unscored("a", 1, "failed"),
        unscored("a", 2, "abstained"),
        scored("a", 3, None),
    ]
    result = one_row([chat], verdicts)
    assert (result.turns, result.scored_turns, result.coverage) == (5, 1, 0.2)
    assert (result.failed, result.abstained, result.not_localised, result.missing) == (1, 1, 1, 1)
    assert (result.hpt_1, result.tokacc_1, result.tokens) == (1.0, 0.0, 1)


def test_a_flagged_turn_without_a_span_is_not_localised() -> None:
    nowhere = scored("a", 0).model_copy(update={"score": 0.9, "flagged": True})
    result = one_row([conversation("a", ["one", "two"])], [nowhere, scored("a", 1)])
    assert (result.scored_turns, result.not_localised, result.coverage) == (1, 1, 0.5)
    assert (result.hpt_1, result.tokens) == (0.0, 1)


def test_nothing_scored_gives_none_and_never_clean() -> None:
    result = one_row([conversation("a", ["one"])], [unscored("a", 0)])
    assert result.coverage == 0.0
    assert result.hpt_1 is result.hpt_2 is result.tokacc_1 is result.tokacc_2 is None
    assert result.hallucinated_chats is result.hpt_1_ci95 is None


def test_no_conversations_give_none() -> None:
    result = empty_row("vanilla", "d")
    assert result.coverage is result.calls_per_reply is result.hpt_1 is None
    assert (result.turns, result.calls, result.prompt_tokens) == (0, 0, 0)


def test_an_empty_reply_counts_as_a_turn_and_has_no_token_accuracy() -> None:
    result = one_row([conversation("a", [""])], [scored("a", 0)])
    assert (result.hpt_1, result.tokacc_1, result.tokacc_2) == (0.0, None, None)


def test_one_conversation_has_no_interval() -> None:
    result = one_row([conversation("a", ["one", "two"])], [scored("a", 0), scored("a", 1, [(0, 3)])])
    assert (result.hpt_1, result.hpt_1_ci95, result.tokacc_1_ci95) == (0.5, None, None)


def of_chats(number: int, unscored_too: int = 0) -> Row:
    """A row of so many scored chats of two words, every other one with the first word flagged."""
    ids = [str(n) for n in range(number + unscored_too)]
    return one_row(
        [conversation(id, ["one two"], persona=id) for id in ids],
        [scored(id, 0, [(0, 3)] * (n % 2)) for n, id in enumerate(ids[:number])],
    )


def test_six_personas_have_intervals_and_fewer_the_reason() -> None:
    five, six = of_chats(5), of_chats(6)
    assert (five.hpt_1, five.hpt_1_ci95, five.tokacc_1_ci95) == (0.4, None, None)
    assert five.no_interval == "5 personas; 6 needed for an interval"
    assert (six.hpt_1, six.hpt_1_ci95) == (0.5, (0.158382, 1.578464))
    assert (six.tokacc_1, six.tokacc_1_ci95) == (0.75, (0.393127, 0.932856))
    assert six.no_interval is None


def test_where_only_one_number_is_the_same_for_all_the_reason_names_it() -> None:
    """Each persona has one hallucination in its turn, of one or of two words."""
    ids = [str(n) for n in range(6)]
    row = one_row(
        [conversation(id, ["one two"], persona=id) for id in ids],
        [scored(id, 0, [(0, 3 if n % 2 else 7)]) for n, id in enumerate(ids)],
    )
    assert (row.hpt_1, row.hpt_1_ci95, row.tokacc_1_ci95 is None) == (1.0, None, False)
    assert row.no_interval == "every persona has the same HPT-1"


def test_only_personas_that_were_scored_are_counted_for_an_interval() -> None:
    row = of_chats(2, unscored_too=9)
    assert (row.conversations, row.scored_conversations, row.personas) == (11, 2, 2)
    assert row.no_interval == "2 personas; 6 needed for an interval"


def test_unknown_token_counts_stay_unknown() -> None:
    assert sum_known([None, None]) is None
    assert sum_known([None, 3]) == 3
    assert sum_known([]) == 0


@pytest.mark.parametrize(
    ("turns", "complaint"),
    [
        ((0, 0), "turn 0 of conversation a has two verdicts of d"),
        ((3,), "turn 3 of conversation a, which has 1 turns"),
    ],
)
def test_two_verdicts_on_a_turn_or_one_on_none_are_an_error(turns: tuple[int, ...], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        one_row([conversation("a", ["one"])], [scored("a", turn) for turn in turns])


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[Conversation], list[Verdict]]:
    chats, verdicts = [], []
    for number in range(draw(st.integers(0, 4))):
        replies = draw(st.lists(st.sampled_from(["", "a", "a b, c", "ten words or so."]), max_size=3))
        chats.append(conversation(f"c{number}", replies, persona=f"p{number}"))
        for turn, reply in enumerate(replies):
            kind = draw(st.sampled_from(["scored", "failed", "missing"]))
            if kind == "failed":
                verdicts.append(unscored(f"c{number}", turn))
            if kind == "scored":
                inside = st.integers(0, max(0, len(reply) - 1)).map(lambda start: (start, start + 2))
                places = draw(st.lists(st.one_of(st.none(), inside), max_size=3))
                verdicts.append(scored(f"c{number}", turn, places, calls=[call("d.x", seconds=0.1)] * 3))
    return chats, verdicts


@given(runs(), st.randoms(use_true_random=False))
def test_the_order_of_the_journals_does_not_matter(
    run: tuple[list[Conversation], list[Verdict]], chance: random.Random
) -> None:
    chats, verdicts = run
    before = one_row(chats, verdicts)
    chance.shuffle(chats)
    chance.shuffle(verdicts)
    assert one_row(chats, verdicts) == before


@given(runs())
def test_shares_are_shares(run: tuple[list[Conversation], list[Verdict]]) -> None:
    result = one_row(*run)
    for share in (result.tokacc_1, result.tokacc_2, result.coverage, result.hallucinated_chats):
        assert share is None or 0 <= share <= 1
    outcomes = result.scored_turns + result.failed + result.abstained + result.not_localised + result.missing
    assert outcomes == result.turns


def test_branches_of_a_conversation_count_as_one_conversation() -> None:
    chats = [
        branched("a", "one two", 0, persona="p"),
        branched("b", "one two", 1, persona="p"),
        branched("c", "one two", 1, persona="q"),
    ]
    verdicts = [scored("a", 0, [(0, 3), (4, 7)]), scored("b", 0), scored("c", 0)]
    [found] = build_rows(tally_all(chats, verdicts, ["vanilla"], ["d"]).rows)
    assert (found.conversations, found.turns, found.scored_turns) == (2, 3, 3)
    assert (found.hpt_1, found.hpt_2) == (0.666667, 0.5)
    assert (found.tokacc_1, found.tokacc_2) == (0.666667, 0.75)
    assert found.hallucinated_chats == 0.5
    assert found.no_interval == "2 personas; 6 needed for an interval"


def test_what_was_given_is_neither_counted_nor_billed() -> None:
    chat = branched("a", "one two", 5, calls=[call("chatbot.generate")])
    [found] = build_rows(tally_all([chat], [scored("a", 0, [(0, 3)])], ["vanilla"], ["d"]).rows)
    assert (found.turns, found.hallucinations, found.tokens, found.calls_per_reply) == (1, 1, 2, 1.0)


def with_seeds(personas: int, seeds: int, spans: list[int]) -> Row:
    """One-turn chats of so many personas and seeds; hallucinations in this order, over and over."""
    chats = [
        conversation(f"{persona}/{seed}", ["one two"], persona=f"p{persona}", seed=seed)
        for persona in range(personas)
        for seed in range(seeds)
    ]
    counts = [spans[number % len(spans)] for number in range(len(chats))]
    verdicts = [scored(chat.id, 0, [(0, 3)] * count) for chat, count in zip(chats, counts, strict=True)]
    [row] = build_rows(tally_all(chats, verdicts, ["vanilla"], ["d"]).rows)
    return row


def test_ten_seeds_of_one_persona_have_no_interval() -> None:
    row = with_seeds(1, 10, [0, 1])
    assert (row.conversations, row.personas, row.hpt_1, row.hpt_1_ci95) == (10, 1, 0.5, None)
    assert row.no_interval == "1 persona; 6 needed for an interval"


def test_seeds_that_say_the_same_make_no_interval_narrower() -> None:
    once, often = with_seeds(8, 1, [0, 1]), with_seeds(8, 5, [0] * 5 + [1] * 5)
    assert once.hpt_1_ci95 == often.hpt_1_ci95 == (0.204561, 1.222132)


def test_what_more_seeds_can_remove_is_told_where_a_persona_has_two() -> None:
    assert with_seeds(6, 1, [0, 1]).seed_share is None
    assert with_seeds(6, 2, [0, 1]).seed_share == 1.0
    assert with_seeds(6, 2, [0, 0, 1, 1]).seed_share == 0.0
