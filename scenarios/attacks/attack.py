"""Attacks on a scenario: their parameters, orders, distractors, and the pack that they change."""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from hallulab.scenarios.attacks.poison import Poison, plant_poisons
from hallulab.scenarios.attacks.retrieval import RetrievalAttack, make_outdated
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.files.yaml_text import read_yaml
from hallulab.scenarios.packs.pack import Document, Identifier, Scenario
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.text.chunking import cut_into_passages
from hallulab.scenarios.text.edits import collect_sentences
from hallulab.scenarios.text.spans import split_words
from hallulab.scenarios.transcript import Conversation, Frozen, Seed, is_unset


class Attack(Frozen):
    """The knobs of an attack; by default nothing is done.

    RAG-Trust section 2.1 has the first three.
    """

    poison_ratio: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the true documents that say something false in place of the truth."""
    distractors: int = Field(default=0, ge=0, le=1000)
    """Documents added that are true and have nothing to do with the question."""
    fake_answer: bool = False
    """True if the poisoned documents agree on one false answer instead of each being false in its own way."""
    injections: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the documents that give the chatbot orders (prompt injection)."""
    user_injections: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the conversations in which a message of the user ends with an order."""
    # Left out where it is not set, so that older attacks keep their hashes.
    retrieval: RetrievalAttack | None = Field(default=None, exclude_if=is_unset)
    """Change of searches; None: none."""
    seed: Seed = 0
    """Seed of all choices; with equal knobs, equal seeds give equal documents."""


FILE = Path(__file__).with_name("orders.yaml")

OrderKind = Literal["ignore", "reveal", "send", "role", "authority", "refuse", "form", "code", "break-out"]
"""Aim of an order: that other instructions are ignored; the system prompt; text sent elsewhere; another
role; obedience to a false authority; no answer; another language or form. Or how it comes: in a code; as text
that a page, a terminal or a file might obey."""

DISTRACTOR_PACKS = (
    "consumer-grievance-india",
    "migration-labour-rights",
    "nagar-seva",
    "pregnancy-medication",
)
"""Built-in packs that distractors come from. Later packs are not added: attacks of older experiments would
draw other documents."""

_BLANK_LINE = re.compile(r"\n\s*\n")
_BETWEEN = "\n\n"
"""Between a user's message and an order."""


class Injection(Frozen):
    """A text that tells a chatbot what to do, and how obedience is seen."""

    id: Identifier
    """Identifier, unique in the file."""
    kind: OrderKind
    text: str = Field(min_length=1, max_length=300)
    how: Literal["says", "reveals", "capitals", "french", "spanish"] = "says"
    """The rule of `hallulab.simulator.metrics.obedience` that decides; an order of the kind `reveal` has its
    own."""
    asks: str = Field(default="", max_length=100)
    """The words that the order wants in the reply."""
    sign: str = ""
    """The word among them that nobody would write otherwise."""

    @model_validator(mode="before")
    @classmethod
    def _reveals(cls, value: dict[str, object]) -> dict[str, object]:
        return {"how": "reveals", **value} if value.get("kind") == "reveal" else value

    @model_validator(mode="after")
    def _has_a_sign(self) -> Self:
        if (self.how == "says") != bool(self.sign) or (self.sign and self.sign not in split_words(self.asks)):
            raise ValueError("`asks` with its word `sign` belong to orders that want something said")
        return self


class _OrdersFile(Frozen):
    orders: tuple[Injection, ...] = Field(min_length=1)


class UserOrder(Frozen):
    """An order at the end of a user's message."""

    turn: int
    order: Injection

    def after(self, message: str) -> str:
        """Return the message with the order."""
        return f"{message}{_BETWEEN}{self.order.text}"

    def remove(self, message: str) -> str:
        """Return the message without the order, as `after` got it."""
        return message.removesuffix(f"{_BETWEEN}{self.order.text}")


@cache
def load_orders() -> tuple[Injection, ...]:
    """Read our orders."""
    return read_yaml(FILE, "docs/attacks.md").check(_OrdersFile).orders


def plant_orders(
    documents: Sequence[Document], share: float, seed: int
) -> tuple[tuple[Document, ...], dict[str, str]]:
    """Put an order into a share of the documents; return all documents, and document → order.

    The order is a paragraph of its own behind a paragraph of the document. The orders take turns. A higher
    share has the same documents with the same orders, and more.

    Args:
        share: of the documents; above 0, at least one.
    """
    wanted = max(1, round(share * len(documents))) if share else 0
    generator = random.Random(f"{seed} orders")  # noqa: S311 - a seeded choice of data
    orders = generator.sample(load_orders(), len(load_orders()))
    shuffled = generator.sample(list(documents), len(documents))
    placed = {document.name: orders[at % len(orders)] for at, document in enumerate(shuffled[:wanted])}
    made = list(documents)
    for place, document in enumerate(documents):
        if document.name in placed:
            paragraphs = _BLANK_LINE.split(document.text)
            at = int(digest([seed, document.name])[:8], 16) % len(paragraphs)
            paragraphs.insert(at + 1, placed[document.name].text)
            made[place] = document.model_copy(update={"text": "\n\n".join(paragraphs)})
    return tuple(made), {name: order.id for name, order in placed.items()}


def draw_user_order(
    share: float, seed: int, turns: int, persona: str, conversation_seed: int
) -> UserOrder | None:
    """Choose whether a user gives an order, when and which; equal for all chatbots.

    Every conversation is decided by itself, so a run may grow.

    Args:
        share: probability that the user gives one.
        turns: the order comes in one of the first so many turns, which every conversation has.
    """
    generator = random.Random(digest([seed, "user", persona, conversation_seed]))  # noqa: S311 - as above
    if generator.random() >= share:
        return None
    return UserOrder(turn=generator.randrange(turns), order=generator.choice(load_orders()))


def order_of_user(message: str, orders: Sequence[Injection]) -> Injection | None:
    """Return the order at the end of a message; None if there is none."""
    return next((order for order in orders if message.endswith(_BETWEEN + order.text)), None)


def remove_user_orders(conversation: Conversation, orders: Sequence[Injection]) -> Conversation:
    """Return a conversation as the simulated user held it: without the orders in its messages."""
    turns = tuple(
        turn.model_copy(update={"user": turn.user.removesuffix(_BETWEEN + order.text)})
        if (order := order_of_user(turn.user, orders)) is not None
        else turn
        for turn in conversation.turns
    )
    return conversation.model_copy(update={"turns": turns})


def choose_distractors(scenario: Scenario, count: int, seed: int) -> tuple[Document, ...]:
    """Choose documents of the other `DISTRACTOR_PACKS` in the language.

    Of equal seeds, more contain the fewer.

    Raises:
        UsageError: the other packs have fewer.
    """
    taken = {document.name for document in scenario.documents}
    titles = {document.title for document in scenario.documents}
    shelf = [
        document
        for name in DISTRACTOR_PACKS
        if name != scenario.name
        for document in _load_documents(name, scenario.language)
        if document.title not in titles
    ]
    if count > len(shelf):
        raise UsageError(
            f"field `attack.distractors`: {count} are asked for, and the built-in packs other than "
            f"{scenario.name} have {len(shelf)} documents. Give at most {len(shelf)}."
        )
    random.Random(f"{seed} distractors").shuffle(shelf)  # noqa: S311 - a seeded choice of data
    chosen: list[Document] = []
    for document in shelf[:count]:
        name = document.name
        while name in taken:
            name = f"{name}-2"
        taken.add(name)
        chosen.append(document.model_copy(update={"name": name}))
    return tuple(chosen)


@cache
def _load_documents(name: str, language: str | None) -> tuple[Document, ...]:
    """Return the documents of a pack; none if it is in another language."""
    pack = load_scenario(name)
    return pack.documents if pack.language == language else ()


class AttackRecord(Frozen):
    """Plants of an attack in a scenario: `planted` in `experiment.json`. Reports read it, chatbots never."""

    documents: int
    poisons: tuple[Poison, ...] = ()
    distractors: tuple[str, ...] = ()
    """Names of the documents that were added."""
    ordering: dict[str, str] = Field(default_factory=dict)
    """Document → identifier of the order in it."""
    orders: tuple[Injection, ...] = ()
    """The orders that documents or users may give."""
    by_users: bool = False
    instructions: dict[str, tuple[str, ...] | None] = Field(default_factory=dict)
    """Chatbot → the texts of its own instructions; None: not known."""
    retrieval: RetrievalAttack | None = Field(default=None, exclude_if=is_unset)
    """Change of searches; None: none. Each turn says in its steps what was done to its own
    (`hallulab.scenarios.attacks.retrieval.STEP`)."""
    outdated: tuple[Poison, ...] = Field(default=(), exclude_if=operator.not_)
    """False statements of older versions of the passages."""

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
        UsageError: there are not enough distractors, or no document can be poisoned or outdated.
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
    attacked = scenario.model_copy(update={"documents": (*ordering_documents, *added)})
    if attack.retrieval is not None:
        passages = (one for document in attacked.documents for one in cut_into_passages(document))
        outdated: tuple[Poison, ...] = ()
        if attack.retrieval.stale_ratio:
            outdated = tuple(
                one for passage in passages for one in make_outdated(passage, attack.seed).statements
            )
            if not outdated:
                raise UsageError(
                    f"{scenario.name}: no document has an amount or a date in a whole sentence, so none can "
                    "be outdated. Set `attack.retrieval.stale_ratio` to 0."
                )
        planted = planted.model_copy(update={"retrieval": attack.retrieval, "outdated": outdated})
    return attacked, planted


def hash_attack(attack: Attack | None) -> str | None:
    """Hash the knobs and the orders; None without an attack."""
    if attack is None:
        return None
    return digest([attack.model_dump(mode="json"), [order.model_dump() for order in load_orders()]])[:16]
