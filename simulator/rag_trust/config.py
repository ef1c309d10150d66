"""The stress file: questions, attacks, strategies, chatbots and models; and the cells of its table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from hallulab.agents.models.endpoints import BaseUrl
from hallulab.agents.models.model import DEFAULT_MODEL
from hallulab.chatbots.pipeline import STRATEGIES, Strategy, is_refusal
from hallulab.scenarios.attacks.attack import Attack
from hallulab.scenarios.attacks.questions import Composition, assemble_passages
from hallulab.scenarios.datasets.hotpotqa import HotpotQuestion
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import expand_home
from hallulab.scenarios.files.yaml_text import read_yaml
from hallulab.scenarios.transcript import Call, Count, Frozen, Number, Seed
from hallulab.simulator.records.experiment import (
    ALL_CHATBOTS,
    Component,
    Concurrency,
    Experiment,
    ModelSettings,
    choose_concurrency,
)
from hallulab.simulator.records.experiment_file import place_error
from hallulab.simulator.records.recipients import UserWords, find_run_folder, list_recipients

Dimension = Literal["factuality", "robustness", "accountability"]

DIMENSIONS: tuple[Dimension, ...] = ("factuality", "robustness", "accountability")
"""In the paper's order."""

_SCHEMA = "docs/rag-trust.md"

_Share = Annotated[float, Field(ge=0.0, le=1.0)]
_Count = Annotated[int, Field(ge=0, le=1000)]


class Grid(Frozen):
    """The attacks under which a dimension is scored: each ratio with each number."""

    poison: tuple[_Share, ...] = Field(default=(0.0,), min_length=1)
    """Shares of the documents that matter that are false."""
    distractors: tuple[_Count, ...] = Field(default=(0,), min_length=1)
    """Numbers of documents that are true and beside the point."""

    @field_validator("poison", "distractors")
    @classmethod
    def _check_order(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        if list(values) != sorted(set(values)):
            raise ValueError("give each value once, from low to high")
        return values

    @property
    def attacks(self) -> tuple[Attack, ...]:
        """One attack a cell."""
        return tuple(
            Attack(poison_ratio=poison, distractors=distractors, fake_answer=True)
            for poison in self.poison
            for distractors in self.distractors
        )


class _ScoreWeights(Frozen):
    @model_validator(mode="after")
    def _check_sum(self) -> Self:
        total = sum(dict(self).values())
        if abs(total - 1) > 1e-9:
            raise ValueError(f"the weights add up to {total:g}; they have to add up to 1")
        return self


class FactualityWeights(_ScoreWeights):
    """Weights of factuality's parts (RAG-Trust section 5.1)."""

    judge: _Share = 0.5
    fake_overlap: _Share = 0.2
    """Of the fake answer's absence."""
    meteor: _Share = 0.3


class RobustnessWeights(_ScoreWeights):
    """Weights of robustness's parts (RAG-Trust section 5.2)."""

    judge: _Share = 0.6
    similarity: _Share = 0.2
    """Of the similarity of the embeddings."""
    f1: _Share = 0.2
    """Of token F1."""


class Weights(Frozen):
    """Weights of the parts of a score."""

    factuality: FactualityWeights = FactualityWeights()
    robustness: RobustnessWeights = RobustnessWeights()
    """Weights of robustness; accountability is citation F1 alone."""


class RagTrustConfig(Frozen):
    """A stress test, resolved. The defaults are the paper's grid."""

    data: str | None = None
    """Folder of HotpotQA; in a stress file a relative path begins at the file's folder."""
    questions: int | None = Field(default=None, ge=1)
    """At most this many questions, from the first; all of the data serve for fakes and distractors."""
    chatbots: tuple[Component, ...] = Field(
        default=(Component(name="vanilla", kind="vanilla"),), min_length=1
    )
    """Chatbots under test, of our five."""
    strategies: tuple[Strategy, ...] = Field(default=STRATEGIES, min_length=1)
    factuality: Grid = Grid(poison=(0.0, 0.3))
    """Where factuality is scored (the paper's Table 1)."""
    robustness: Grid = Grid(distractors=(0, 8, 20))
    """Where robustness is scored."""
    accountability: Grid = Grid(distractors=(0, 8, 20))
    """Where accountability is scored."""
    weights: Weights = Weights()
    """Weights of the scores' parts."""
    reply_tokens: int = Field(default=200, ge=1)
    """Limit of a draft in tokens, the steps of `verify` included."""
    model: str | None = None
    """The model of chatbots and, without `judge`, of the judge."""
    base_url: BaseUrl | None = None
    """Where it is served; None: hallulab serves it itself."""
    api_key_env: str | None = None
    """Environment variable with the endpoint's key."""
    models: dict[str, ModelSettings] = Field(default_factory=dict)
    answering: tuple[str, ...] = Field(default=(DEFAULT_MODEL,), min_length=1)
    """The models that answer, each in rows of its own: names under `models`, or `default` for `model`."""
    judge: str | None = None
    """Name under `models` of the judge; None: `model`, which the report says."""
    seed: Seed = 0
    """Seed of fakes, distractors, the documents' order and sampled answers."""
    concurrency: Concurrency = Field(default_factory=lambda known: choose_concurrency(known))
    """Model requests, and questions, under way at once; `auto` by default where `base_url` is elsewhere."""
    timeout: float = Field(default=300.0, gt=0, le=1e9)
    """Seconds of all tries of a model request and the pauses between them, at most."""
    decision_samples: int = Field(default=1, ge=1, le=100)
    """How often the judge is asked if its endpoint gives no log-probabilities."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        if len(set(self.strategies)) < len(self.strategies):
            raise ValueError("`strategies`: each may stand once")
        if len(set(self.answering)) < len(self.answering):
            raise ValueError("`answering`: each may stand once")
        for name in self.answering:
            if name != DEFAULT_MODEL and name not in self.models:
                raise ValueError(f"`answering` names the model {name!r}, which is not under `models`")
        if self.judge is not None and self.judge not in self.models:
            raise ValueError(f"`judge` names the model {self.judge!r}, which is not under `models`")
        for bot in self.chatbots:
            if bot.kind not in ALL_CHATBOTS:
                raise ValueError(
                    f"`chatbots`: {bot.name} takes no prompt strategy; there are {', '.join(ALL_CHATBOTS)}"
                )
            if bot.options.keys() & {"strategy", "cite"}:
                raise ValueError(f"`chatbots`: {bot.name}: the stress test sets `strategy` and `cite` itself")
        return self

    @property
    def experiment(self) -> Experiment:
        """Its models and chatbots, as an experiment."""
        return Experiment(
            chatbots=self.chatbots,
            model=self.model,
            base_url=self.base_url,
            api_key_env=self.api_key_env,
            models=self.models,
            seed=self.seed,
            concurrency=self.concurrency,
            timeout=self.timeout,
            decision_samples=self.decision_samples,
            reply_tokens=self.reply_tokens,
        )

    def get_grid(self, dimension: Dimension) -> Grid:
        """Return where a dimension is scored."""
        grids: dict[str, Grid] = {name: getattr(self, name) for name in DIMENSIONS}
        return grids[dimension]


def load_config(path: Path | None, flags: Mapping[str, Any]) -> RagTrustConfig:
    """Read a stress file and put the flags that were given (not None) over it.

    Raises:
        UsageError: the file is missing, malformed or has a wrong field; or it lies in a run folder, and the
            user does not agree to whom it names.
    """
    text = None if path is None else read_yaml(path, _SCHEMA, given=True)
    given = {name: value for name, value in flags.items() if value is not None}
    values = {**(text.data if text else {}), **given}
    try:
        config = RagTrustConfig.model_validate(values)
    except ValidationError as error:
        raise place_error(error, text, path, given, _SCHEMA, RagTrustConfig) from error
    if path is not None and find_run_folder(path) is not None:
        named = RagTrustConfig.model_validate(given).experiment
        UserWords(named, path).require(config.experiment, list_recipients(config.experiment))
    if config.data is None:
        raise UsageError("no data: give HotpotQA's folder with --data, or as `data` in the stress file.")
    folder = expand_home(config.data)
    beside = path.parent if path is not None and "data" not in given else Path()
    return config.model_copy(update={"data": str(folder if folder.is_absolute() else beside / folder)})


@dataclass(frozen=True)
class Task:
    """An answer to be had."""

    question: HotpotQuestion
    composition: Composition
    attack: Attack
    chatbot: Component
    model: str
    strategy: Strategy
    dimensions: tuple[Dimension, ...]


class MeasuredAnswer(Frozen):
    """An answer and what was measured on it: a line of `answers.jsonl`."""

    id: str
    """Hash of everything that decides it; the key for resuming."""
    question_id: str
    question: str
    expected: str
    fake: str
    chatbot: str
    model: str = DEFAULT_MODEL
    strategy: Strategy
    poison: Number
    distractors: Count
    titles: tuple[str, ...]
    """The documents in their order; [1] cites the first."""
    gold: tuple[Count, ...]
    """Numbers of the true documents that matter."""
    reply: str | None
    """None: the chatbot failed."""
    factual: Number | None = None
    """Judge: P(the reply is factually correct), given the question; None: not asked, or it failed."""
    matching: Number | None = None
    """Judge: P(the reply matches the right answer without noise); None likewise."""
    similarity: Number | None = None
    """Cosine similarity of reply and right answer, at least 0; None: not asked for."""
    error: str | None = None
    calls: tuple[Call, ...] = ()

    @property
    def refused(self) -> bool:
        """True if the reply is a refusal."""
        return self.reply is not None and is_refusal(self.reply)


def list_tasks(
    config: RagTrustConfig, questions: Sequence[HotpotQuestion], everything: Sequence[HotpotQuestion]
) -> Iterator[Task]:
    """Yield the answers to be had. Those that share documents follow each other, for the server's cache.

    Raises:
        UsageError: the data set is too small for the attacks.
    """
    wanted: dict[Attack, list[Dimension]] = {}
    for dimension in DIMENSIONS:
        for attack in config.get_grid(dimension).attacks:
            wanted.setdefault(attack, []).append(dimension)
    for question in questions:
        for attack, dimensions in wanted.items():
            composition = assemble_passages(question, everything, attack, config.seed)
            for model, chatbot, strategy in product(config.answering, config.chatbots, config.strategies):
                yield Task(question, composition, attack, chatbot, model, strategy, tuple(dimensions))
