"""Manners: what the model is told, and slips made by rule."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.agents.users.personas import (
    DEFAULT_MANNERS,
    OWN,
    StyleProfile,
    draw_manner,
    find_manner,
    load_manners,
    slipped,
    speaking,
)
from hallulab.scenarios.packs.pack_files import load_scenario

TEXT = "The refrigerator cost Rs 46,990 in a shop. Can I get the money back?"


def test_these_manners_there_are() -> None:
    assert list(load_manners()) == [
        *("own", "plain", "terse", "rambling", "impatient", "second-language", "misspelling"),
        *("changes-subject", "asked-only", "pushes-back", "pronouns", "people", "asks", "commands", "topic"),
        *("tells", "two-in-one", "pastes", "answers", "goes-on", "corrects", "misunderstands"),
        "thanks-and-returns",
    ]


def test_a_mixture_has_the_texts_of_all_and_the_tightest_limit() -> None:
    mixed = find_manner("impatient+terse+misspelling")
    assert (mixed.tokens, mixed.misspelt, mixed.without_articles) == (24, 0.2, 0.0)
    assert mixed.text == f"{load_manners()['impatient'].text} {load_manners()['terse'].text}"


def test_ones_own_manner_changes_nothing() -> None:
    assert find_manner(OWN) == StyleProfile()


def test_most_messages_are_short_by_default_and_all_users_talk_like_people() -> None:
    manners = [find_manner(name) for name in DEFAULT_MANNERS]
    assert [manner.short for manner in manners] == [True, True, True, False, True, True]
    assert all(manner.acts == find_manner("people").acts for manner in manners)


def test_a_persona_keeps_its_manner_where_the_model_is_told_nothing() -> None:
    persona = load_scenario("pregnancy-medication").personas[0]
    assert speaking(persona, find_manner("misspelling")) == persona
    assert speaking(persona, find_manner("pronouns")).manner == load_manners()["pronouns"].text


@pytest.mark.parametrize(
    ("manner", "said"),
    [
        (StyleProfile(), TEXT),
        (StyleProfile(without_articles=1.0), "Refrigerator cost Rs 46,990 in shop. Can I get money back?"),
    ],
)
def test_slips_are_those_of_the_manner(manner: StyleProfile, said: str) -> None:
    assert slipped(TEXT, manner, 0) == said


def test_each_long_word_gets_one_slip_and_numbers_and_short_words_none() -> None:
    words = slipped(TEXT, StyleProfile(misspelt=1.0), 0).split()
    changed = [word for word, before in zip(words, TEXT.split(), strict=True) if word != before]
    assert len(changed) == 2
    assert re.fullmatch(r"r\w{9,12}r", changed[0])
    assert slipped(TEXT, StyleProfile(misspelt=1.0), 0).split() == words


@given(st.text(), st.integers(0, 99))
def test_slips_never_change_digits_and_same_seeds_slip_alike(text: str, seed: int) -> None:
    manner = StyleProfile(misspelt=1.0, without_articles=1.0)
    found = slipped(text, manner, seed)
    assert [letter for letter in found if letter.isdigit()] == [one for one in text if one.isdigit()]
    assert found == slipped(text, manner, seed)


def test_a_user_draws_its_manner_by_persona_and_seed_whichever_the_chatbot() -> None:
    names = ("terse", "rambling", "pronouns")
    found = [draw_manner(names, "ann", seed) for seed in range(30)]
    assert set(found) == set(names)
    assert found == [draw_manner(names, "ann", seed) for seed in range(30)]
    assert draw_manner((), "ann", 0) is None
