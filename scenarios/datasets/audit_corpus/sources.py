"""The sources of the audit corpus: blueprints with values drawn for their slots."""

from __future__ import annotations

import random
from dataclasses import dataclass

from hallulab.scenarios.datasets.audit_corpus.plan import (
    Blueprint,
    CorpusPlan,
    Split,
    read_blueprints,
    read_pools,
)
from hallulab.scenarios.datasets.audit_corpus.templates import Forms, fill, fill_tree
from hallulab.scenarios.datasets.business import Business, render_business_chunks
from hallulab.scenarios.transcript import Passage


@dataclass(frozen=True)
class Source:
    """A source, with its blueprint and values."""

    id: str
    """Identifier, such as `yelp-07`."""
    collection: str
    """Name of its collection."""
    split: Split
    """The split of all responses to it."""
    blueprint: Blueprint
    """Its pattern."""
    values: dict[str, Forms]
    """Slot → the true value."""
    question: str
    """The question, or empty."""
    passages: tuple[Passage, ...]
    """The evidence."""

    @property
    def text(self) -> str:
        """All passages."""
        return "\n".join(passage.text for passage in self.passages)


def make_sources(plan: CorpusPlan, rng: random.Random) -> list[Source]:
    """Make the sources of all collections: each with shuffled splits, and with the blueprints in turn."""
    sources = []
    for name, collection in plan.collections.items():
        blueprints = read_blueprints(collection.file)
        splits = [split for split, count in collection.sources.items() for _ in range(count)]
        rng.shuffle(splits)
        for number, split in enumerate(splits):
            identifier = f"{name.lower().replace('/', '-').replace(' ', '-')}-{number + 1:02}"
            sources.append(_build_source(identifier, name, split, blueprints[number % len(blueprints)], rng))
    return sources


def _build_source(
    identifier: str, collection: str, split: Split, blueprint: Blueprint, rng: random.Random
) -> Source:
    values = _draw_values(blueprint, rng)
    return Source(
        id=identifier,
        collection=collection,
        split=split,
        blueprint=blueprint,
        values=values,
        question=fill(blueprint.question, values).text,
        passages=tuple(
            Passage(id=f"{identifier}#{name}", document=identifier, text=text)
            for name, text in _build_chunks(blueprint, values)
        ),
    )


def _draw_values(blueprint: Blueprint, rng: random.Random) -> dict[str, Forms]:
    """Draw values for all slots, different ones for slots of the same kind."""
    pools = read_pools()
    values: dict[str, Forms] = {}
    for kind in dict.fromkeys(blueprint.slots.values()):
        slots = [slot for slot, its_kind in blueprint.slots.items() if its_kind == kind]
        values.update(zip(slots, rng.sample(pools[kind].all_forms(), len(slots)), strict=True))
    return values


def _build_chunks(blueprint: Blueprint, values: dict[str, Forms]) -> list[tuple[str, str]]:
    if blueprint.record is not None:
        return list(render_business_chunks(Business.model_validate(fill_tree(blueprint.record, values))))
    return [(str(number), fill(text, values).text) for number, text in enumerate(blueprint.passages)]
