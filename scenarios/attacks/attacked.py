"""A scenario under attack, and the record of what was done to it."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from hallulab.scenarios.attacks.attack import Attack
from hallulab.scenarios.attacks.distractors import choose_distractors
from hallulab.scenarios.attacks.orders import Injection, load_orders, plant_orders
from hallulab.scenarios.attacks.poison import Poison, plant_poisons
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.digest import digest
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.text.library import collect_sentences
from hallulab.scenarios.transcript import Frozen


class AttackRecord(Frozen):
    """What an attack put into a scenario: `planted` in `experiment.json`. Reports read it, chatbots never."""

    documents: int
    """Documents of the pack."""
    poisons: tuple[Poison, ...] = ()
    """The false statements."""
    distractors: tuple[str, ...] = ()
    """Names of the documents that were added."""
    ordering: dict[str, str] = Field(default_factory=dict)
    """Document → identifier of the order in it."""
    orders: tuple[Injection, ...] = ()
    """The orders that documents or users may give."""
    by_users: bool = False
    """Whether users may give orders."""
    instructions: dict[str, tuple[str, ...] | None] = Field(default_factory=dict)
    """Chatbot → the texts of its own instructions; None: not known."""

    @model_validator(mode="after")
    def _orders_are_there(self) -> Self:
        unknown = sorted(set(self.ordering.values()) - {order.id for order in self.orders})
        if unknown:
            raise ValueError(f"`ordering` names the order {unknown[0]!r}, which is not among `orders`")
        return self

    @property
    def poisoned(self) -> int:
        """Number of documents with a false statement."""
        return len({poison.document for poison in self.poisons})


def apply_attack(scenario: Scenario, attack: Attack) -> tuple[Scenario, AttackRecord]:
    """Return the scenario with its documents attacked, and what was planted; equal arguments, equal results.

    Poison and orders go into the pack's own documents; one may get both. Distractors stay as they are.

    Raises:
        UsageError: there are not enough distractors, or no document can be poisoned.
    """
    false, poisons = plant_poisons(
        scenario.documents,
        attack.poison_ratio,
        collect_sentences(scenario.documents),
        attack.seed,
        attack.fake_answer,
    )
    if attack.poison_ratio and not poisons:
        raise UsageError(
            f"{scenario.name}: no document has an amount, a date, a name or a reference in a whole sentence, "
            "so none can be poisoned. Set `attack.poison_ratio` to 0."
        )
    ordering_documents, ordering = plant_orders(false, attack.injections, attack.seed)
    added = choose_distractors(scenario, attack.distractors, attack.seed)
    planted = AttackRecord(
        documents=len(scenario.documents),
        poisons=poisons,
        distractors=tuple(document.name for document in added),
        ordering=ordering,
        orders=tuple(
            order for order in load_orders() if attack.user_injections or order.id in ordering.values()
        ),
        by_users=attack.user_injections > 0,
    )
    return scenario.model_copy(update={"documents": (*ordering_documents, *added)}), planted


def hash_attack(attack: Attack | None) -> str | None:
    """Hash the knobs and the orders; None without an attack."""
    if attack is None:
        return None
    return digest([attack.model_dump(mode="json"), [order.model_dump() for order in load_orders()]])[:16]
