"""Simulated users' messages beside people's, with a noise floor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hallulab.simulator.metrics.messages import MEASURES, Messages, MessageSample
from hallulab.simulator.metrics.realism import (
    RealismRow,
    compare_messages,
    compute_distributions,
)
from hallulab.simulator.report.realism import read_reference


def said(*texts: str, persona: str = "p", seed: int = 0, facts: Sequence[str] = ()) -> Messages:
    return Messages(("s", persona, seed), texts, tuple(facts))


def sample(*held: Messages) -> MessageSample:
    """The messages, with a vector of its own for each first message."""
    texts = sorted({one.texts[0] for one in held if one.texts})
    return MessageSample(held, dict(zip(texts, np.eye(len(texts)), strict=True)))


def users(*lengths: int) -> MessageSample:
    """A user for each length: a first message of so many words and a follow-up of one."""
    return sample(
        *(said(" ".join(["w"] * length), "ok", persona=str(place)) for place, length in enumerate(lengths))
    )


def rows(run: MessageSample, people: MessageSample) -> dict[str, RealismRow]:
    return {row.measure: row for row in compare_messages(run, people)[1]}


def test_medians_quartiles_and_their_distance() -> None:
    row = rows(users(2, 4, 6, 8), users(1, 3, 5, 7))["first_words"]
    assert (row.run.value, row.run.quartiles) == (4.0, (2.0, 6.0))
    assert (row.reference.value, row.by, row.distance) == (3.0, "Wasserstein-1", 1.0)
    assert (row.run.messages, row.run.users) == (4, 4)


def test_an_interval_needs_six_persons() -> None:
    few, enough = (
        rows(users(*range(1, 6)), users(*range(1, 9))),
        rows(users(*range(1, 9)), users(*range(1, 9))),
    )
    assert few["first_words"].run.ci95 is None
    assert few["first_words"].run.reason == "5 persons; 6 needed for an interval"
    assert few["first_words"].distance_ci95 is None
    low, high = enough["first_words"].run.ci95 or (0, 0)
    assert low <= 4 <= high
    assert enough["first_words"].distance_ci95 is not None


def test_shares_have_the_jensen_shannon_distance() -> None:
    polite, curt = said("Hi", "Thanks"), said("Hi", "ok")
    row = rows(
        sample(polite, said("Ho", "Thanks", persona="q")), sample(curt, said("Ho", "ok", persona="q"))
    )["thanks"]
    assert (row.run.value, row.reference.value) == (0.5, 0.0)
    assert row.distance == pytest.approx(0.557922, abs=1e-6)
    assert row.reference.reason == "2 persons; 6 needed for an interval"


def test_a_share_of_no_message_is_bounded_by_the_personas() -> None:
    # 1 - 0.025^(1/7)
    row = rows(users(*range(1, 8)), users(*range(1, 8)))["thanks"]
    assert (row.run.value, row.run.ci95, row.run.reason) == (0.0, (0.0, 0.409616), None)
    assert (row.distance, row.distance_ci95) == (0.0, None)


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
    assert (row.run.value, row.distance) == (0.25, None)
    assert (row.reference.value, row.reference.reason) == (None, "no persona's facts are known")


@pytest.mark.parametrize("empty", [(), (said(),)])
def test_without_messages_nothing_has_a_number(empty: Sequence[Messages]) -> None:
    count, found = compare_messages(sample(*empty), sample())
    assert count is None
    assert {row.run.reason for row in found} == {"0 messages; 2 needed"}
    assert {(row.run.value, row.reference.value, row.distance, row.floor) for row in found} == {(None,) * 4}
    assert {(bars.run, bars.reference) for bars in compute_distributions(sample(*empty), sample())} == {
        (None, None)
    }


def test_one_message_has_no_number() -> None:
    found = rows(sample(said("Thanks")), users(1, 2, 3))
    assert {row.run.value for row in found.values()} == {None}
    assert found["thanks"].run.reason == "1 message; 2 needed"
    assert found["follow_up_words"].run.reason == "0 messages; 2 needed"
    assert {row.distance for row in found.values()} == {None}


def test_an_empty_reference_leaves_the_runs_numbers() -> None:
    found = rows(users(1, 3), sample())
    assert found["first_words"].run.value == 1.0
    assert found["first_words"].reference.reason == "0 messages; 2 needed"
    assert {row.distance for row in found.values()} == {None}


def test_dispersion_is_the_mean_distance_of_two_users() -> None:
    texts = {"a": np.array([1.0, 0.0]), "b": np.array([0.6, 0.8]), "c": np.array([0.0, 1.0])}
    run = MessageSample([said(text, persona=text) for text in texts], texts)
    assert rows(run, sample())["dispersion"].run.value == pytest.approx((0.4 + 1 + 0.2) / 3)


def test_without_an_embedding_there_is_no_dispersion() -> None:
    found = rows(MessageSample([said("a"), said("b", persona="q")], None), sample())
    assert {found[name].run.reason for name in ("dispersion", "near_duplicates")} == {"no embedding model"}


def test_the_noise_floor_is_of_exchanged_personas() -> None:
    """Of two against two users, 4 of 6 exchanges give a distance of 1 and 2 give one of 3."""
    row = rows(users(1, 2), users(4, 5))["first_words"]
    assert (row.distance, row.floor) == (3.0, 3.0)
    assert row.p_value == pytest.approx(1 / 3, abs=0.05)


def test_seeds_of_a_persona_are_exchanged_together() -> None:
    run = sample(*(said("w", persona="p", seed=seed) for seed in range(5)))
    row = rows(run, users(9, 9))["first_words"]
    assert row.p_value == pytest.approx(1 / 3, abs=0.05)


def test_numbers_of_samples_have_no_noise_floor() -> None:
    found = rows(users(1, 2, 3), users(1, 2, 3))
    assert found["distinct_1"].distance == 0.0
    assert (found["distinct_1"].floor, found["distinct_1"].p_value) == (None, None)


def test_diversity_is_measured_in_samples_of_one_size() -> None:
    assert compare_messages(users(1, 2, 3), users(*range(1, 9)))[0] == 3


def test_bars_are_shares_of_messages() -> None:
    bars = compute_distributions(users(3, 5, 6, 60), sample())[0]
    assert bars.bins == ("0–5", "6–10", "11–15", "16–20", "21–30", "31–50", "51+")
    assert bars.run == (0.5, 0.25, 0.0, 0.0, 0.0, 0.0, 0.25)


@settings(max_examples=10)
@given(st.lists(st.integers(1, 30), min_size=2, max_size=8))
def test_a_run_is_at_distance_0_from_itself(lengths: list[int]) -> None:
    found = rows(users(*lengths), users(*lengths))
    assert {found[measure.field].distance for measure in MEASURES} <= {0.0, None}


def test_halves_of_people_are_below_the_noise_floor() -> None:
    people = read_reference(None)
    found = rows(MessageSample(people[::2], None), MessageSample(people[1::2], None))
    for name in ("first_words", "follow_up_words", "questions", "pronoun_only"):
        assert (found[name].distance or 1) < (found[name].floor or 0)


def test_seeds_of_one_persona_are_several_users_and_one_person() -> None:
    run = sample(*(said("w " * seed, "ok", persona="p", seed=seed) for seed in range(1, 9)))
    row = rows(run, users(*range(1, 9)))["first_words"]
    assert (row.run.users, row.run.ci95, row.distance_ci95) == (8, None, None)
    assert row.run.reason == "1 person; 6 needed for an interval"


def test_seeds_that_say_the_same_make_no_interval_narrower() -> None:
    once = sample(*(said("w " * words, persona=str(words)) for words in range(1, 9)))
    often = sample(*(said("w " * w, persona=str(w), seed=seed) for w in range(1, 9) for seed in range(3)))
    first, second = (rows(run, once)["first_words"].run.ci95 for run in (once, often))
    assert first == second is not None
