"""Searches under attack."""

from __future__ import annotations

import asyncio

import pytest

from hallulab.scenarios.attacks.attack import Attack, AttackRecord, apply_attack, hash_attack
from hallulab.scenarios.attacks.retrieval import (
    AttackedRetriever,
    RetrievalAttack,
    draw_search_fate,
    make_outdated,
    read_search_fates,
)
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.transcript import Passage, Step

FEES = Passage(
    id="fees#0",
    document="fees",
    text="Title: Fees of 2024\nA complaint to the office costs 200 rupees. "
    "It must be filed within two years of the sale.",
    score=0.5,
)
CALL = Passage(id="call#0", document="call", text="Title: Help\nThe office of the city helps.", score=0.25)


class Shelf:
    """Finds the same passages whatever is asked, and keeps how many were asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def search(self, query: str, k: int) -> tuple[Passage, ...]:
        self.asked.append(k)
        return (FEES, CALL)[:k]


def searched(knobs: RetrievalAttack, query: str = "fee?", k: int = 4) -> tuple[Passage, ...]:
    return asyncio.run(AttackedRetriever(Shelf(), knobs, 0, "ann").search(query, k))


def test_without_a_knob_everything_is_found() -> None:
    assert searched(RetrievalAttack()) == (FEES, CALL)


def test_a_search_returns_no_more_than_top_k() -> None:
    shelf = Shelf()
    attacked = AttackedRetriever(shelf, RetrievalAttack(top_k=2), 0, "ann")
    asyncio.run(attacked.search("fee?", 4))
    asyncio.run(attacked.search("fee?", 1))
    assert shelf.asked == [2, 1]


def test_an_empty_search_finds_nothing() -> None:
    assert searched(RetrievalAttack(empty_ratio=1.0, stale_ratio=1.0)) == ()


def test_an_outdated_passage_has_other_amounts_and_the_same_title_place_and_score() -> None:
    old, same = searched(RetrievalAttack(stale_ratio=1.0))
    title, body = old.text.split("\n")
    assert (old.id, old.document, old.score, title) == ("fees#0", "fees", 0.5, "Title: Fees of 2024")
    assert body.split(". ")[0] in {
        f"A complaint to the office costs {amount} rupees" for amount in (300, 400, 600)
    }
    assert body.split(". ")[1] != "It must be filed within two years of the sale."
    assert same == CALL


def test_what_an_outdated_passage_says_is_known_with_the_truth() -> None:
    made = make_outdated(FEES.model_copy(update={"score": None}), 0)
    assert [(one.document, one.true) for one in made.statements] == [
        ("fees", "A complaint to the office costs 200 rupees."),
        ("fees", "It must be filed within two years of the sale."),
    ]
    assert all(one.false in made.passage.text for one in made.statements)


def test_the_turn_is_told_what_was_done_to_each_search_once() -> None:
    attacked = AttackedRetriever(Shelf(), RetrievalAttack(empty_ratio=1.0), 0, "ann")
    asyncio.run(attacked.search("fee?", 4))
    steps = attacked.take_steps()
    assert steps == (Step(name="attacked search", text="empty: fee?"),)
    assert read_search_fates((Step(name="draft", text="empty: x"), *steps)) == {"empty"}
    assert attacked.take_steps() == ()


def fates(knobs: RetrievalAttack, seed: int = 0, persona: str = "ann") -> list[str]:
    return [draw_search_fate(knobs, seed, persona, f"query {number}") for number in range(400)]


def test_the_shares_are_those_that_were_asked_for() -> None:
    found = fates(RetrievalAttack(empty_ratio=0.5, stale_ratio=0.5))
    assert [found.count(fate) for fate in ("whole", "empty", "outdated")] == [117, 191, 92]


def test_higher_shares_hold_the_same_searches_and_more() -> None:
    for knob, fate in (("empty_ratio", "empty"), ("stale_ratio", "outdated")):
        few, many = (fates(RetrievalAttack.model_validate({knob: share})) for share in (0.2, 0.6))
        assert all(more == fate for less, more in zip(few, many, strict=True) if less == fate)


def test_seed_and_persona_draw_others() -> None:
    knobs = RetrievalAttack(empty_ratio=0.5)
    assert fates(knobs) == fates(knobs)
    assert len({tuple(fates(knobs, *more)) for more in ((0, "ann"), (1, "ann"), (0, "bob"))}) == 3


PACK = load_scenario("migration-labour-rights")


def test_documents_stay_and_the_record_says_what_is_outdated() -> None:
    attack = Attack(retrieval=RetrievalAttack(stale_ratio=0.5))
    made, planted = apply_attack(PACK, attack)
    assert made == PACK
    assert planted.retrieval == attack.retrieval
    texts = {document.name: document.text for document in PACK.documents}
    assert planted.outdated
    assert all(
        one.true in texts[one.document] and one.false not in texts[one.document] for one in planted.outdated
    )


def test_a_pack_without_amounts_cannot_be_outdated() -> None:
    bare = [
        one.model_copy(update={"text": "Ask at the office, where people help you."}) for one in PACK.documents
    ]
    pack = PACK.model_copy(update={"documents": tuple(bare)})
    with pytest.raises(UsageError, match=r"outdated\. Set `attack.retrieval.stale_ratio` to 0"):
        apply_attack(pack, Attack(retrieval=RetrievalAttack(stale_ratio=0.1)))


def test_attacks_without_the_knob_keep_their_hashes_and_records() -> None:
    assert hash_attack(Attack()) == "b14058a5197bac95"
    assert hash_attack(Attack(poison_ratio=0.2, seed=3)) == "b571c11b5a8edc61"
    assert "retrieval" not in Attack().model_dump()
    assert not {"retrieval", "outdated"} & AttackRecord(documents=1).model_dump().keys()


def test_attacks_on_searches_are_told_apart() -> None:
    knobs = (RetrievalAttack(), RetrievalAttack(top_k=1), RetrievalAttack(empty_ratio=0.1))
    assert len({hash_attack(Attack(retrieval=one)) for one in knobs} | {hash_attack(Attack())}) == 4


def test_an_attack_on_searches_is_read_back() -> None:
    attack = Attack(retrieval=RetrievalAttack(top_k=1, stale_ratio=0.5))
    assert Attack.model_validate_json(attack.model_dump_json()) == attack
