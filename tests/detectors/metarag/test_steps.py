"""MetaRAG's steps: factoids and their places in the reply, and the scores (Table 1, equations 1 and 2)."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.models.prompt import load_prompt
from hallulab.detectors.metarag.steps import (
    PENALTIES,
    Decision,
    Decomposition,
    Relation,
    compute_expected_penalty,
    decompose,
    parse_factoids,
    score_factoid,
    score_response,
)
from hallulab.scenarios.text.spans import split_sentences
from hallulab.testing.scripted import Script, completion, last_user, scripted_pool

REPLY = "Hello! The pool opens at 6. Is that fine? It costs 9 euros, and it costs 5 for children."
LAST = "It costs 9 euros, and it costs 5 for children."


async def decomposed(script: Script) -> tuple[Decomposition, list[dict[str, Any]]]:
    pool, transport = scripted_pool(script)
    prompt = load_prompt("hallulab.detectors.metarag", "decomposition")
    found = await decompose(
        pool.session("metarag"), prompt, "When does it open?", REPLY, temperature=0.0, limit=24
    )
    return found, transport.requests


def factoids(answer: str, limit: int = 24) -> list[tuple[str, str]]:
    regions = split_sentences(REPLY)
    parsed = parse_factoids(answer, REPLY, regions, limit)
    return [(factoid.text, factoid.region.of(REPLY)) for factoid in parsed.factoids]


async def test_only_sentences_that_claim_something_are_numbered_and_asked_about() -> None:
    found, [request] = await decomposed(lambda _: "1: The pool opens at 6.\n2: The pool costs 9 euros.")
    assert last_user(request).endswith(
        "Answer:\n1. The pool opens at 6.\n2. It costs 9 euros, and it costs 5 for children."
    )
    assert [factoid.text for factoid in found.factoids] == ["The pool opens at 6.", "The pool costs 9 euros."]
    assert not found.cut_off


async def test_the_torn_last_line_of_a_cut_answer_is_dropped_and_the_cut_marked() -> None:
    async def cut(answer: str) -> Decomposition:
        body = completion(answer)
        body["choices"][0]["finish_reason"] = "length"
        return (await decomposed(lambda _: httpx2.Response(200, json=body)))[0]

    found = await cut("1: The pool opens at 6.\n2: The pool cos")
    assert ([factoid.text for factoid in found.factoids], found.cut_off) == (["The pool opens at 6."], True)
    with pytest.raises(UnparseableAnswer, match="no numbered facts"):
        await cut("1: The pool op")


@pytest.mark.parametrize("line", ["2: A fact.", "2. A fact.", "- [2] : A fact.", "  2) A fact.  "])
def test_a_fact_stands_after_the_number_of_its_sentence(line: str) -> None:
    assert [text for text, _ in factoids(line)] == ["A fact."]


def test_other_lines_numbers_that_do_not_exist_and_repetitions_are_passed_over() -> None:
    answer = "Here are the facts:\n2: It opens.\n9: It flies.\n0: It sinks.\n2: it OPENS.\n3: ..."
    assert [text for text, _ in factoids(answer)] == ["It opens."]


@pytest.mark.parametrize(
    ("number", "fact", "placed"),
    [
        # verbatim: where it stands nearest to its sentence
        (4, "it costs 5 for children.", "it costs 5 for children"),
        # reworded: on the sentence that shares most words
        (1, "Children may swim if 5 is paid as the entrance costs.", LAST),
        # where no sentence shares more: on the numbered one
        (3, "Zzz.", "Is that fine?"),
    ],
)
def test_a_fact_is_placed_where_the_reply_makes_it(number: int, fact: str, placed: str) -> None:
    assert factoids(f"{number}: {fact}") == [(fact, placed)]


def test_beyond_the_limit_the_decomposition_is_marked() -> None:
    parsed = parse_factoids("2: One.\n2: Two.\n2: Three.", REPLY, split_sentences(REPLY), 2)
    assert ([factoid.text for factoid in parsed.factoids], parsed.cut_off) == (["One.", "Two."], True)


@pytest.mark.parametrize(
    ("answer", "limit", "expected"),
    [
        ("2: The pool opens at 6.", 24, ["Hello!", "Is that fine?", LAST]),
        # facts past the limit are cut off, and their sentences not skipped
        ("2: The pool opens at 6.\n4: It costs 9 euros.", 1, ["Hello!", "Is that fine?"]),
    ],
)
def test_numbered_sentences_in_which_no_fact_stands_are_skipped(
    answer: str, limit: int, expected: list[str]
) -> None:
    parsed = parse_factoids(answer, REPLY, split_sentences(REPLY), limit)
    assert [region.of(REPLY) for region in parsed.skipped] == expected


def test_a_repeated_fact_states_each_of_its_sentences() -> None:
    reply = "It is free. It is far. It is free."
    parsed = parse_factoids("1: It is free.\n3: It is free.", reply, split_sentences(reply), 24)
    assert [factoid.text for factoid in parsed.factoids] == ["It is free."]
    assert [region.of(reply) for region in parsed.skipped] == ["It is far."]


async def test_sentences_that_were_not_numbered_are_not_skipped() -> None:
    found, _ = await decomposed(lambda _: "1: The pool opens at 6.")
    assert [region.of(REPLY) for region in found.skipped] == [LAST]


SHARES = st.floats(0.0, 1.0)


@pytest.mark.parametrize(
    ("relation", "decision", "penalty"),
    [
        ("synonym", "YES", 0.0),
        ("synonym", "NOT SURE", 0.5),
        ("synonym", "NO", 1.0),
        ("antonym", "YES", 1.0),
        ("antonym", "NOT SURE", 0.5),
        ("antonym", "NO", 0.0),
    ],
)
def test_penalties_are_those_of_table_1(relation: Relation, decision: Decision, penalty: float) -> None:
    assert PENALTIES[relation][decision] == penalty
    assert compute_expected_penalty(relation, {decision: 1.0}) == penalty


def test_equation_1_is_the_mean_over_both_relations() -> None:
    assert score_factoid([0.0, 0.5], [1.0, 0.5]) == 0.5
    assert score_factoid([1.0], [0.0]) == 0.5


@pytest.mark.parametrize(("synonyms", "antonyms"), [([], []), ([0.5], [])])
def test_equation_1_needs_n_variants_of_each_kind(synonyms: list[float], antonyms: list[float]) -> None:
    with pytest.raises(ValueError, match="N of each"):
        score_factoid(synonyms, antonyms)


def test_equation_2_is_the_maximum() -> None:
    assert score_response([0.2, 0.7, 0.4]) == 0.7


def test_an_expected_penalty_weighs_the_decisions() -> None:
    decisions: dict[Decision, float] = {"YES": 0.5, "NO": 0.25, "NOT SURE": 0.25}
    assert compute_expected_penalty("synonym", decisions) == 0.375
    assert compute_expected_penalty("antonym", decisions) == 0.625


@given(SHARES, SHARES)
def test_penalties_of_both_kinds_complement(s: float, c: float) -> None:
    decisions: dict[Decision, float] = {"YES": s, "NO": (1 - s) * c, "NOT SURE": (1 - s) * (1 - c)}
    both = compute_expected_penalty("synonym", decisions) + compute_expected_penalty("antonym", decisions)
    assert both == pytest.approx(1.0)
