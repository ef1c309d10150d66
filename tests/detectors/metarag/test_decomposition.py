"""MetaRAG's factoids and their places in the reply."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.models.prompt import load_prompt
from hallulab.detectors.metarag.steps import Decomposition, decompose, parse_factoids
from hallulab.scenarios.text.spans import split_sentences
from tests.scripted import Script, completion, last_user, scripted_pool

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
    body = completion("1: The pool opens at 6.\n2: The pool cos")
    body["choices"][0]["finish_reason"] = "length"
    found, _ = await decomposed(lambda _: httpx2.Response(200, json=body))
    assert ([factoid.text for factoid in found.factoids], found.cut_off) == (["The pool opens at 6."], True)


async def test_an_answer_cut_in_its_first_line_holds_no_facts() -> None:
    body = completion("1: The pool op")
    body["choices"][0]["finish_reason"] = "length"
    with pytest.raises(UnparseableAnswer, match="no numbered facts"):
        await decomposed(lambda _: httpx2.Response(200, json=body))


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
