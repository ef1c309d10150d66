"""Sources of the audit corpus, the plan of its documents, and its templates.

Fill sentences with slots, such as `It opened in {year}.`, and find the places of the values.
`{name}` is the first form of a slot's value, `{name/1}` the second (the last one if there are fewer).
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, Field, RootModel

from hallulab.scenarios.datasets.ragtruth import Business, render_business_chunks
from hallulab.scenarios.files.yaml_text import read_yaml
from hallulab.scenarios.transcript import Frozen, Passage

Split = Literal["train", "calibration", "test"]
"""The paper's partition by source; its "dev" is `calibration`."""

Model = TypeVar("Model", bound=BaseModel)


class Collection(Frozen):
    """A kind of source and the responses to it."""

    task: Literal["data2txt", "qa", "summary"]
    file: str
    sentences: int
    """Sentences of each response."""
    sources: dict[Split, int]


class CorpusPlan(Frozen):
    """The numbers of the corpus (`plan.yaml`)."""

    collections: dict[str, Collection]
    """By name, in order of generation."""
    hallucinated: dict[str, dict[str, int]]
    """Generator → collection → number of responses with a hallucination."""
    hallucinated_sentences: dict[Split, int]
    temperatures: tuple[float, ...]
    """Decoding temperatures, equally often for each generator."""
    elsewhere: float = Field(ge=0.0, le=1.0)
    """Share of replacements from elsewhere in the source."""


class Pool(Frozen):
    """Values of one kind (`pools.yaml`)."""

    values: tuple[str, ...] = ()
    """The values, with their forms separated by bars; empty if there is a range."""
    between: tuple[int, int] | None = None
    """First and last whole number."""
    instead: str | None = None
    """The pool of false values; None: this one."""

    def all_forms(self) -> list[tuple[str, ...]]:
        """Return the forms of each value; the first is the source's."""
        if self.between is not None:
            return [(str(number),) for number in range(self.between[0], self.between[1] + 1)]
        return [tuple(value.split("|")) for value in self.values]


class Fact(Frozen):
    """A fact about a source that a response can state in one sentence."""

    evidence: str
    """Name of the passage with the fact: a position, or a chunk of a business record."""
    replace: tuple[str, ...]
    """The slots that a hallucination may replace."""
    also: tuple[str, ...] = ()
    """Slots whose values would also make the sentences true."""
    texts: tuple[str, ...]
    """Sentence templates: copies and paraphrases."""


class Blueprint(Frozen):
    """A pattern of sources."""

    slots: dict[str, str]
    """Slot → kind of its value; slots of one kind get different values."""
    question: str
    """Template of the question, or empty."""
    passages: tuple[str, ...] = ()
    record: dict[str, Any] | None = None
    """A business record instead of passages, with templates as keys and values."""
    facts: tuple[Fact, ...]


class _Pools(RootModel[dict[str, Pool]]):
    """`pools.yaml`."""


class _Blueprints(Frozen):
    """A file of blueprints."""

    blueprints: tuple[Blueprint, ...]
    """Used in turn."""


@cache
def read_plan() -> CorpusPlan:
    """Read the plan."""
    return _read("plan.yaml", CorpusPlan)


@cache
def read_pools() -> dict[str, Pool]:
    """Read the pools, by kind."""
    return _read("pools.yaml", _Pools).root


@cache
def read_blueprints(file: str) -> tuple[Blueprint, ...]:
    """Read the blueprints of a collection."""
    return _read(file, _Blueprints).blueprints


def _read(file: str, model: type[Model]) -> Model:
    path = Path(__file__).with_name(file)
    return read_yaml(path, "scenarios/datasets/audit_corpus/plan.py").check(model)


Forms = tuple[str, ...]
"""A value in all its forms; sources use the first."""

_SLOT = re.compile(r"\{(\w+)(?:/(\d))?\}")


class Filled(NamedTuple):
    """A filled template."""

    text: str
    places: dict[str, list[tuple[int, int]]]
    """Slot → places of its value: [start, end) in characters of the text."""


def fill(template: str, values: Mapping[str, Forms]) -> Filled:
    """Fill `template` with the slots' values; its first letter becomes a capital.

    Raises:
        KeyError: the template has a slot that `values` lacks.
    """
    text, at = "", 0
    places: dict[str, list[tuple[int, int]]] = {}
    for slot in _SLOT.finditer(template):
        text += template[at : slot.start()]
        forms = values[slot[1]]
        value = forms[min(int(slot[2] or 0), len(forms) - 1)]
        places.setdefault(slot[1], []).append((len(text), len(text) + len(value)))
        text += value
        at = slot.end()
    text += template[at:]
    return Filled(text[:1].upper() + text[1:], places)


def fill_tree(tree: Any, values: Mapping[str, Forms]) -> Any:
    """Fill all texts in nested mappings and lists; their case does not change."""
    if isinstance(tree, str):
        return _SLOT.sub(lambda slot: values[slot[1]][0], tree)
    if isinstance(tree, Mapping):
        return {fill_tree(key, values): fill_tree(value, values) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [fill_tree(item, values) for item in tree]
    return tree


def list_slots(template: str) -> list[str]:
    """Return the slots of a template in order, with repetitions."""
    return [slot[1] for slot in _SLOT.finditer(template)]


@dataclass(frozen=True)
class Source:
    """A source, with its blueprint and values."""

    id: str
    """Identifier, such as `yelp-07`."""
    collection: str
    split: Split
    blueprint: Blueprint
    values: dict[str, Forms]
    """Slot → the true value."""
    question: str
    """The question, or empty."""
    passages: tuple[Passage, ...]

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
    if blueprint.record is not None:
        record = Business.model_validate(fill_tree(blueprint.record, values))
        chunks = dict(render_business_chunks(record))
    else:
        chunks = {str(number): fill(text, values).text for number, text in enumerate(blueprint.passages)}
    return Source(
        id=identifier,
        collection=collection,
        split=split,
        blueprint=blueprint,
        values=values,
        question=fill(blueprint.question, values).text,
        passages=tuple(
            Passage(id=f"{identifier}#{name}", document=identifier, text=text)
            for name, text in chunks.items()
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
