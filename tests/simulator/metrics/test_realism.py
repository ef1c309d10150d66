"""Simulated users' messages beside people's, with a noise floor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from hallulab.simulator.metrics.message_sample import MEASURES, MessageSample
from hallulab.simulator.metrics.messages import CountedMessages, Messages
from hallulab.simulator.metrics.realism import (
    PeopleCompared,
    RealismRow,
    Side,
    compare_messages,
    compute_distributions,
    compute_sample_distances,
    summarize_reference,
)
from hallulab.simulator.report.people import read_human_turns


def said(*texts: str, persona: str = "p", seed: int = 0, facts: Sequence[str] = ()) -> Messages:
    return Messages(("s", persona, seed), texts, tuple(facts))


def sample(*held: Messages) -> MessageSample:
    """The messages, with a vector of its own for each first message."""
    texts = sorted({one.texts[0] for one in held if one.texts})
    return MessageSample(held, dict(zip(texts, np.eye(16), strict=False)))


def users(*lengths: int) -> MessageSample:
    """A user for each length: a first message of so many words and a follow-up of one."""
    return sample(
        *(said(" ".join(["w"] * length), "ok", persona=str(place)) for place, length in enumerate(lengths))
    )


def rows(run: MessageSample, people: MessageSample) -> dict[str, RealismRow]:
    return {row.measure: row for row in compare_messages(run, [people])[1]}


def compared(run: MessageSample, people: MessageSample) -> dict[str, PeopleCompared]:
    return {field: row.comparisons[0] for field, row in rows(run, people).items()}


def test_medians_quartiles_and_their_distance() -> None:
    row = rows(users(2, 4, 6, 8), users(1, 3, 5, 7))["first_words"]
    assert (row.run.value, row.run.quartiles, row.by) == (4.0, (2.0, 6.0), "Wasserstein-1")
    assert (row.comparisons[0].people.value, row.comparisons[0].distance) == (3.0, 1.0)
    assert (row.run.messages, row.run.users) == (4, 4)


def test_of_users_who_write_another_language_what_rules_for_english_measure_has_no_number() -> None:
    german = sample(
        *(
            said("Was kostet die Karte und wer ist für sie da?", "Danke, das ist alles.", persona=one)
            for one in "ab"
        )
    )
    found = rows(german, users(1, 2))
    assert (found["thanks"].run.value, found["thanks"].run.reason) == (None, "rules read English only")
    assert (found["facts_given"].run.reason, found["questions"].run.value) == ("rules read English only", 0.5)


def test_words_of_a_language_without_spaces_are_not_counted() -> None:
    chinese = sample(*(said("费用是多少？", "谢谢", persona=one) for one in "ab"))
    found = rows(chinese, users(1, 2))
    assert (found["first_words"].run.value, found["turns"].run.value) == (None, 2.0)
    assert found["follow_up_words"].run.reason == "words without spaces between them are not counted"


def test_equal_messages_have_no_dispersion() -> None:
    vector = np.append(np.full(3, 1 / np.sqrt(3)), np.zeros(13))
    held = MessageSample([said("Hi", persona=one) for one in "abc"], {"Hi": vector})
    value = rows(held, users(1, 2))["dispersion"].run.value
    assert (value, np.signbit(value)) == (0.0, False)


def test_an_interval_needs_six_persons() -> None:
    few, enough = (
        rows(users(*range(1, 6)), users(*range(1, 9))),
        rows(users(*range(1, 9)), users(*range(1, 9))),
    )
    assert few["first_words"].run.ci95 is None
    assert few["first_words"].run.reason == "5 persons; 6 needed for an interval"
    assert few["first_words"].comparisons[0].distance_ci95 is None
    low, high = enough["first_words"].run.ci95 or (0, 0)
    assert low <= 4 <= high
    assert enough["first_words"].comparisons[0].distance_ci95 is not None


def test_shares_have_the_jensen_shannon_distance() -> None:
    polite, curt = said("Hi", "Thanks"), said("Hi", "ok")
    row = rows(
        sample(polite, said("Ho", "Thanks", persona="q")), sample(curt, said("Ho", "ok", persona="q"))
    )["thanks"]
    (found,) = row.comparisons
    assert (row.run.value, found.people.value, found.distance) == (0.5, 0.0, 0.557923)
    assert found.people.reason == "2 persons; 6 needed for an interval"


def test_a_share_of_no_message_is_bounded_by_the_personas() -> None:
    # 1 - 0.025^(1/7)
    row = rows(users(*range(1, 8)), users(*range(1, 8)))["thanks"]
    assert (row.run.value, row.run.ci95, row.run.reason) == (0.0, (0.0, 0.409616), None)
    assert (row.comparisons[0].distance, row.comparisons[0].distance_ci95) == (0.0, None)


def test_a_users_first_message_counts_once_and_follow_ups_each() -> None:
    run = sample(said("Hi there", "one two"), said("Hi there", "three"), said("Hello", persona="q"))
    found = rows(run, sample())
    assert (found["first_words"].run.messages, found["follow_up_words"].run.messages) == (2, 2)
    assert found["near_duplicates"].run.value == 0.0


def test_facts_in_the_first_message() -> None:
    run = sample(
        said("I live in Pune", facts=["He lives in Pune", "The fee was 200 rupees"]),
        said("Hello", persona="q", facts=["He lives in Pune"]),
    )
    row = rows(run, users(1, 2))["facts_given"]
    (found,) = row.comparisons
    assert (row.run.value, found.distance) == (0.25, None)
    assert (found.people.value, found.people.reason) == (None, "no persona's facts are known")


@pytest.mark.parametrize("empty", [(), (said(),)])
def test_without_messages_nothing_has_a_number(empty: Sequence[Messages]) -> None:
    count, found = compare_messages(sample(*empty), [sample()])
    assert count is None
    assert {row.run.reason for row in found} == {"0 messages; 2 needed"}
    assert {
        (row.run.value, one.people.value, one.distance, one.floor) for row in found for one in row.comparisons
    } == {(None,) * 4}
    assert {(bars.run, bars.people) for bars in compute_distributions(sample(*empty), [sample()])} == {
        (None, (None,))
    }


def test_one_message_has_no_number() -> None:
    found = rows(sample(said("Thanks")), users(1, 2, 3))
    assert {row.run.value for row in found.values()} == {None}
    assert found["thanks"].run.reason == "1 message; 2 needed"
    assert found["follow_up_words"].run.reason == "0 messages; 2 needed"
    assert {row.comparisons[0].distance for row in found.values()} == {None}


def test_an_empty_reference_leaves_the_runs_numbers() -> None:
    found = rows(users(1, 3), sample())
    assert found["first_words"].run.value == 1.0
    assert found["first_words"].comparisons[0].people.reason == "0 messages; 2 needed"
    assert {row.comparisons[0].distance for row in found.values()} == {None}


def test_dispersion_is_the_mean_distance_of_two_users() -> None:
    texts = {"a": np.array([1.0, 0.0]), "b": np.array([0.6, 0.8]), "c": np.array([0.0, 1.0])}
    run = MessageSample([said(text, persona=text) for text in texts], texts)
    assert rows(run, sample())["dispersion"].run.value == pytest.approx((0.4 + 1 + 0.2) / 3)


def test_without_an_embedding_there_is_no_dispersion() -> None:
    found = rows(MessageSample([said("a"), said("b", persona="q")], None), sample())
    assert {found[name].run.reason for name in ("dispersion", "near_duplicates")} == {"no embedding model"}


def test_the_noise_floor_is_of_exchanged_personas() -> None:
    """Of two against two users, 4 of 6 exchanges give a distance of 1 and 2 give one of 3."""
    row = compared(users(1, 2), users(4, 5))["first_words"]
    assert (row.distance, row.floor) == (3.0, 3.0)
    assert row.p_value == pytest.approx(1 / 3, abs=0.05)


def test_seeds_of_a_persona_are_exchanged_together() -> None:
    run = sample(*(said("w", persona="p", seed=seed) for seed in range(5)))
    row = compared(run, users(9, 9))["first_words"]
    assert row.p_value == pytest.approx(1 / 3, abs=0.05)


def test_who_takes_the_place_of_a_user_has_as_many_messages() -> None:
    """Three messages, each a question or not by the toss of a coin, are all alike in a quarter of draws."""
    people = sample(*(said("Why?", "ok", "Why?", "ok", persona=str(place)) for place in range(99)))
    row = compared(sample(*(said("Why?", persona=one) for one in "abc")), people)["questions"]
    assert row.distance == 0.5
    assert row.p_value == pytest.approx(1 / 4, abs=0.05)


def test_numbers_of_samples_have_no_noise_floor() -> None:
    found = compared(users(1, 2, 3), users(1, 2, 3))
    assert found["distinct_1"].distance == 0.0
    assert (found["distinct_1"].floor, found["distinct_1"].p_value) == (None, None)


def test_diversity_is_measured_in_samples_of_one_size() -> None:
    assert compare_messages(users(1, 2, 3), [users(*range(1, 9))])[0] == 3


def test_bars_are_shares_of_messages() -> None:
    bars = compute_distributions(users(3, 5, 6, 60), [sample()])[0]
    assert bars.bins == ("0–5", "6–10", "11–15", "16–20", "21–30", "31–50", "51+")
    assert bars.run == (0.5, 0.25, 0.0, 0.0, 0.0, 0.0, 0.25)


@settings(max_examples=10)
@given(st.lists(st.integers(1, 30), min_size=2, max_size=8))
def test_a_run_is_at_distance_0_from_itself(lengths: list[int]) -> None:
    found = compared(users(*lengths), users(*lengths))
    assert {found[measure.field].distance for measure in MEASURES} <= {0.0, None}


def test_halves_of_people_are_below_the_noise_floor() -> None:
    people = read_human_turns()
    found = compared(MessageSample(people[::2], None), MessageSample(people[1::2], None))
    for name in ("first_words", "follow_up_words", "turns", "questions", "pronoun_only"):
        assert (found[name].distance or 1) < (found[name].floor or 0)


def test_seeds_of_one_persona_are_several_users_and_one_person() -> None:
    run = sample(*(said("w " * seed, "ok", persona="p", seed=seed) for seed in range(1, 9)))
    row = rows(run, users(*range(1, 9)))["first_words"]
    assert (row.run.users, row.run.ci95, row.comparisons[0].distance_ci95) == (8, None, None)
    assert row.run.reason == "1 person; 6 needed for an interval"


def test_seeds_that_say_the_same_make_no_interval_narrower() -> None:
    once = sample(*(said("w " * words, persona=str(words)) for words in range(1, 9)))
    often = sample(*(said("w " * w, persona=str(w), seed=seed) for w in range(1, 9) for seed in range(3)))
    first, second = (rows(run, once)["first_words"].run.ci95 for run in (once, often))
    assert first == second is not None


def test_turns_are_of_conversations_and_those_that_failed_have_none() -> None:
    run = sample(
        said("a", "b", "c"), said("a", "b", persona="q"), Messages(("s", "r", 0), ("a",), failed=True)
    )
    row = rows(run, sample(*(said(*"abcde", persona=str(number)) for number in range(2))))["turns"]
    assert (row.run.value, row.run.messages) == (2.0, 2)
    assert (row.comparisons[0].people.value, row.comparisons[0].distance) == (5.0, 2.5)


def test_a_persona_has_turns_with_every_chatbot() -> None:
    run = sample(said("a", "b", "c"), said("a"))
    assert rows(run, sample())["turns"].run.quartiles == (1.0, 3.0)


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=6),
)
def test_the_distance_of_lengths_is_scipys(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    """Lengths and weights of users."""
    sides = users(*(length for length, _ in one)), users(*(length for length, _ in other))
    drawn = [np.array([[float(weight) for _, weight in side]]) for side in (one, other)]
    (found,) = compute_sample_distances(MEASURES[0], sides, (drawn[0], drawn[1]), 2)
    if drawn[0].any() and drawn[1].any():
        lengths = [[length for length, _ in side] for side in (one, other)]
        assert found == pytest.approx(wasserstein_distance(*lengths, drawn[0][0], drawn[1][0]))
    else:
        assert np.isnan(found)


def counted(*held: Messages) -> MessageSample:
    """The same messages, of which counts alone are known."""
    return MessageSample([CountedMessages(one.user, one.counts) for one in held], {})


PEOPLE = [
    said(*["How is it made?"] * number, "Thanks", persona=str(number)) for number in range(1, 9)
]  # fmt: skip


def test_counts_have_the_numbers_of_their_texts() -> None:
    run = users(*range(2, 10))
    by_text, by_count = compared(run, sample(*PEOPLE)), compared(run, counted(*PEOPLE))
    same = [field for field in by_text if by_text[field] == by_count[field]]
    assert same == [
        *("first_words", "follow_up_words", "turns", "questions", "facts_given", "pronoun_only"),
        *("thanks", "endings", "assistants_part"),
    ]
    assert by_count["turns"].people.value == 5.0


def test_counts_have_no_diversity() -> None:
    found = compared(users(*range(2, 10)), counted(*PEOPLE))
    for field in ("near_duplicates", "distinct_1", "distinct_2", "self_bleu", "dispersion"):
        assert (found[field].people.value, found[field].distance, found[field].people.messages) == (
            None,
            None,
            0,
        )
        assert found[field].people.reason == "only counts are kept of these messages"


def test_a_reference_of_counts_leaves_the_runs_diversity() -> None:
    size, found = compare_messages(users(*range(2, 10)), [counted(*PEOPLE[:3]), sample(*PEOPLE[:4])])
    row = next(row for row in found if row.measure == "distinct_1")
    assert size == 4
    assert row.run.value is not None
    assert [one.distance is None for one in row.comparisons] == [True, False]


def test_each_reference_is_compared_alone() -> None:
    run, near, far = users(1, 3), users(2, 3), users(8, 9)
    both = compare_messages(run, [near, far])[1][0]
    assert [one.distance for one in both.comparisons] == [0.5, 6.5]
    assert both.comparisons[1] == compared(run, far)["first_words"]


def measured(distance: float | None, floor: float | None, p_value: float | None) -> PeopleCompared:
    side = Side(messages=9, users=9, value=1.0, ci95=None, quartiles=None, reason=None)
    return PeopleCompared(people=side, distance=distance, distance_ci95=None, floor=floor, p_value=p_value)


def test_measures_above_the_floor_are_counted_the_worst_first() -> None:
    found = summarize_reference(
        "people",
        "people.jsonl",
        {
            "first_words": measured(4.0, 2.0, 0.01),
            "questions": measured(0.9, 0.1, 0.001),
            "thanks": measured(0.2, 0.19, 0.06),
            "endings": measured(0.1, 0.0, 0.001),
            "turns": measured(1.0, 3.0, 0.4),
            "distinct_1": measured(0.3, None, None),
            "facts_given": measured(None, None, None),
        },
    )
    assert (found.tested, found.within) == (5, 2)
    assert found.above == ("endings", "questions", "first_words")
