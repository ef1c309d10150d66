"""The inputs of the audit corpus, read from YAML: the plan, the pools of values and the blueprints."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, RootModel

from hallulab.scenarios.files.yaml_text import read_yaml
from hallulab.scenarios.transcript import Frozen

Split = Literal["train", "calibration", "test"]
"""The paper's partition by source; its "dev" is `calibration`."""

Model = TypeVar("Model", bound=BaseModel)


class Collection(Frozen):
    """A kind of source and the responses to it."""

    task: Literal["data2txt", "qa", "summary"]
    """The task family."""
    file: str
    """The file with the blueprints."""
    sentences: int
    """Sentences of each response."""
    sources: dict[Split, int]
    """Number of sources."""


class CorpusPlan(Frozen):
    """The numbers of the corpus (`plan.yaml`)."""

    collections: dict[str, Collection]
    """By name, in order of generation."""
    hallucinated: dict[str, dict[str, int]]
    """Generator → collection → number of responses with a hallucination."""
    hallucinated_sentences: dict[Split, int]
    """Number of sentences with a hallucination."""
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
    """Templates of the passages."""
    record: dict[str, Any] | None = None
    """A business record instead of passages, with templates as keys and values."""
    facts: tuple[Fact, ...]
    """The facts that responses can state."""


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
