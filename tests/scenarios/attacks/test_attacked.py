"""A scenario under attack."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hallulab.scenarios.attacks.attack import Attack, AttackRecord, apply_attack, hash_attack, load_orders
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack_files import load_scenario

PACK = load_scenario("migration-labour-rights")


def test_an_attack_of_nothing_changes_nothing() -> None:
    assert apply_attack(PACK, Attack()) == (PACK, AttackRecord(documents=23))


def test_everything_planted_is_in_the_documents() -> None:
    made, planted = apply_attack(PACK, Attack(poison_ratio=0.2, distractors=3, injections=0.2))
    texts = {document.name: document.text for document in made.documents}
    orders = {order.id: order for order in planted.orders}
    assert (planted.documents, len(made.documents), planted.poisoned) == (23, 26, 5)
    assert list(texts)[23:] == list(planted.distractors)
    assert all(poison.false in texts[poison.document] for poison in planted.poisons)
    assert not any(poison.true in texts[poison.document] for poison in planted.poisons)
    assert len(planted.ordering) == len(orders) == 5
    assert all(orders[order].text in texts[name] for name, order in planted.ordering.items())
    assert made.model_copy(update={"documents": PACK.documents}) == PACK


def test_users_may_give_every_order() -> None:
    made, planted = apply_attack(PACK, Attack(user_injections=0.5))
    assert (made, planted.orders, planted.by_users) == (PACK, load_orders(), True)


def test_a_pack_without_values_cannot_be_poisoned() -> None:
    bare = [
        one.model_copy(update={"text": "Ask at the office, where people help you."}) for one in PACK.documents
    ]
    with pytest.raises(UsageError, match=r"none can be poisoned\. Set `attack.poison_ratio` to 0"):
        apply_attack(PACK.model_copy(update={"documents": tuple(bare)}), Attack(poison_ratio=0.1))


def test_the_version_tells_attacks_apart() -> None:
    versions = [hash_attack(one) for one in (None, Attack(), Attack(seed=1), Attack(user_injections=0.1))]
    assert versions[0] is None
    assert len(set(versions)) == 4


def test_an_order_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValidationError, match="names the order 'x', which is not among"):
        AttackRecord(documents=1, ordering={"d": "x"})
