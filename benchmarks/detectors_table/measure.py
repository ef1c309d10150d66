"""Measure one detector on one data set; those that learn keep their judgements in a recording.

Learning from every four fifths of four data sets takes a forest minutes, but a replay must take seconds. Kept
judgements count as long as the detector's version and its training data are the same. Else they are made
anew, with the same result on any machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.command import open_recording
from benchmarks.detectors_table.samples import (
    CHOSEN_ON,
    LEARNT_FROM,
    PARTS,
    SEED,
    growing,
    recorded,
    sample_for,
)
from hallulab.agents.models.recording import Recording
from hallulab.detectors.base.protocol import TrainableDetector
from hallulab.scenarios.errors import ReplayMiss, UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Frozen, Judgement
from hallulab.scenarios.turn_views import TurnView
from hallulab.simulator.bench.chats import ChatbotMean, ChatbotRows, build_chatbot_rows
from hallulab.simulator.bench.evaluate import Evaluation, evaluate
from hallulab.simulator.bench.levels import Level, collect_items, group_numbers
from hallulab.simulator.bench.rows import LevelRow, build_level_row
from hallulab.simulator.bench.split import CrossValidation, split_into_folds
from hallulab.simulator.engine.models import RunSettings, open_pool, serve_models
from hallulab.simulator.engine.participants import is_model_needed, make_detectors
from hallulab.simulator.records.choices import ensure_model
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.statistics.detection import leave_out_groups

_LEFT_OUT: Any = {
    "word_scores": True,
    "spans": {"__all__": {"reason", "evidence"}},
    "units": {"__all__": {"details"}},
}
"""Fields of judgements that are not kept."""


class Remembering(TrainableDetector):
    """A detector that learns, and judges in batches, only where the recording lacks the outcome.

    Word scores and reasons are not kept, because the table does not use them.

    Args:
        detector: one that does both.
        recording: where the outcome is looked up and kept.
        learns: whether it learns what the recording lacks; else that is a `ReplayMiss`.
    """

    def __init__(self, detector: TrainableDetector, recording: Recording, learns: bool = True) -> None:
        if not detector.traits.batch:
            raise ValueError(f"{detector.name} does not judge in batches")
        self._detector = detector
        self._recording = recording
        self._learns = learns
        self._lesson: tuple[Sequence[LabelledReply], int] | None = None
        self._learner = detector.version
        self._learnt = self._learner
        self.name = detector.name
        self.version = detector.version
        self.threshold = detector.threshold
        self.threshold_protocol = detector.threshold_protocol
        self.traits = detector.traits
        self.languages = detector.languages

    def fit(self, replies: Sequence[LabelledReply], seed: int = 0) -> None:
        """See `TrainableDetector.fit`."""
        self._learnt = digest([self._learner, seed, [reply.model_dump_json() for reply in replies]])
        self._lesson = (replies, seed)
        known = self._recording.get("lesson", self._learnt)
        if known is None:
            self._learn()
            known = self._recording.put("lesson", self._learnt, {"threshold": self._detector.threshold})
        self.threshold = known["threshold"]

    async def detect(self, view: TurnView) -> Judgement:
        """See `Detector.detect`."""
        return (await self.detect_many([view]))[0]

    async def detect_many(self, views: Sequence[TurnView]) -> list[Judgement]:
        """See `Detector.detect_many`."""
        key = digest([self._learnt, [view.model_dump(mode="json") for view in views]])
        known = self._recording.get("judgements", key)
        if known is None:
            self._learn()
            told = [
                one.model_dump(mode="json", exclude_defaults=True, exclude=_LEFT_OUT)
                for one in await self._detector.detect_many(views)
            ]
            known = self._recording.put("judgements", key, told)
        return [Judgement.model_validate(one) for one in known]

    def _learn(self) -> None:
        """Learn what is not learnt yet.

        Raises:
            ReplayMiss: it must not.
        """
        if self._lesson is not None:
            if not self._learns:
                raise ReplayMiss(f"the recording {self._recording.source} lacks what {self.name} learnt")
            self._detector.fit(*self._lesson)
            self._lesson = None


FOLDS = 5
"""Parts of a data set. Detectors that learn are trained once for each, on the others."""

UNRECORDED = "there is no recording of the model's answers"
STALE = "the recording lacks an answer: it is unfinished, or prompts, options or data have changed since"

LEVELS: tuple[Level, ...] = ("response", "sentence")


@dataclass(frozen=True)
class TableArguments:
    """The command's arguments."""

    data: Path
    """Folder that holds the data sets' folders."""
    recordings: Path
    """Folder of the recordings."""
    limit: int
    """Largest number of replies of a sampled data set."""
    record: bool
    """Whether the served model is asked for missing answers; else they are replayed."""
    base_url: str | None
    """Its address."""
    model: str | None
    """Its name; None: hallulab's default model."""
    learns: bool = True
    """Whether a detector learns again what is not recorded; else the recording is stale."""


class _TableLine(Frozen):
    dataset: str
    detector: str


class Unmeasured(_TableLine):
    """Why nothing was measured, and whether there is a recording that does not fit."""

    missing: str
    stale: bool


class DetectorNumbers(_TableLine):
    """The numbers of a detector on a data set."""

    missing: None = None
    """Nothing is missing."""
    stale: Literal[False] = False
    """The recording is not stale."""
    learnt: Literal["folds", "shipped"]
    """Source of the detector's model."""
    chosen_here: bool
    """Whether the shipped model or threshold was chosen on this data set, so that the numbers flatter."""
    part: int | None = None
    """Number of replies, if it was measured on some of them; see `samples.PARTS`."""
    rows: dict[Level, LevelRow]
    """The response level, and the sentence level where the data has spans."""
    chatbots: ChatbotRows | None
    """The rows of `hallulab.simulator.bench.chats`."""

    @property
    def hpt_error(self) -> float | None:
        """Difference of hallucinations per turn from the labels', mean over chatbots."""
        means = [row.error for row in self.chatbots or () if isinstance(row, ChatbotMean)]
        return means[0] if means else None


Line = DetectorNumbers | Unmeasured


def measure_one(dataset: str, detector: str, asked: TableArguments) -> Line:
    """Measure a detector on a data set, or say why not.

    Raises:
        UsageError: data, detector or model are wrong.
        OperationalError: the model does not answer, or a recording cannot be written.
    """
    return asyncio.run(_measured(dataset, detector, asked))


async def variant_of(detector: str, asked: TableArguments) -> str:
    """Return the variant of its method that a detector runs with the table's model; empty: there is one.

    Raises:
        UsageError: it cannot be made.
    """
    experiment = _experiment(detector, asked)
    async with open_pool(experiment, Recording()) as pool:
        [made] = make_detectors(experiment, pool, {})
        whose = "the paper's" if made.as_published else "ours"
        return f"{made.variant} ({whose})" if made.variant else ""


async def asks(detector: str, asked: TableArguments) -> bool:
    """Return whether the detector asks the served model.

    Raises:
        UsageError: it cannot be made.
    """
    experiment = _experiment(detector, asked)
    async with open_pool(experiment, Recording()) as pool:
        return is_model_needed(make_detectors(experiment, pool, {}))


def made_by(detector: str, asked: TableArguments) -> list[Any]:
    """Return what a detector is made by: kind, name, options, models and seed.

    Raises:
        UsageError: there is no such detector.
    """
    experiment = ensure_model(_experiment(detector, asked))
    [chosen] = experiment.detectors
    role = experiment.roles.get("detector")
    return [chosen.kind, chosen.name, chosen.options, experiment.model, role, experiment.seed]


def _experiment(detector: str, asked: TableArguments) -> Experiment:
    flags = {"detectors": [detector], "model": asked.model, "base_url": asked.base_url, "seed": SEED}
    return load_experiment(None, flags)


async def _measured(dataset: str, detector: str, asked: TableArguments) -> Line:
    replies = sample_for(detector, dataset, asked.data, asked.limit)
    known = recorded(asked.recordings, dataset, detector)
    try:
        evaluation, learnt = await _judged(dataset, detector, asked, replies)
    except ReplayMiss:
        missing = UNRECORDED if known is None else STALE
        return Unmeasured(dataset=dataset, detector=detector, missing=missing, stale=known is not None)
    return DetectorNumbers(
        dataset=dataset,
        detector=detector,
        learnt=learnt,
        chosen_here=learnt == "shipped"
        and any(dataset in seen.get(detector, ()) for seen in (LEARNT_FROM, CHOSEN_ON)),
        part=PARTS.get((dataset, detector)),
        rows=rows(evaluation, dataset),
        chatbots=build_chatbot_rows([evaluation]),
    )


async def _judged(
    dataset: str, name: str, asked: TableArguments, replies: Sequence[LabelledReply]
) -> tuple[Evaluation, Literal["folds", "shipped"]]:
    """Judge by the shipped model, or by folds where that model has learnt from the data.

    Folds learn from the sample alone. With the rest of the data, recording would take an hour.
    """
    experiment = _experiment(name, asked)
    needed = asked.record and await asks(name, asked)
    learns = dataset in LEARNT_FROM.get(name, ())
    path = growing(asked.recordings, dataset, name)
    recording = open_recording(path, grows=needed or (asked.record and learns))
    async with open_pool(experiment, recording) as pool, serve_models(pool, RunSettings(quiet=True), needed):
        if learns:
            [detector] = make_detectors(experiment, pool, {})
            if isinstance(detector, TrainableDetector):
                remembering = Remembering(detector, recording, asked.learns)
                evaluation = await _by_folds(remembering, replies, experiment.measured_at_once)
                if evaluation is not None:
                    return evaluation, "folds"
        [detector] = make_detectors(experiment, pool, {})
        return await evaluate(detector, replies, experiment.measured_at_once), "shipped"


async def _by_folds(
    detector: Remembering, replies: Sequence[LabelledReply], concurrency: int
) -> Evaluation | None:
    """Judge each fold after learning from the others; None where these cannot teach the detector."""
    try:
        validation = CrossValidation(split_into_folds(replies, FOLDS, SEED), replies, concurrency, quiet=True)
        [evaluation] = await validation.evaluate([detector], SEED)
    except UsageError:
        return None
    return None if validation.not_trained else evaluation


def rows(evaluation: Evaluation, dataset: str) -> dict[Level, LevelRow]:
    """Return the numbers by level; sentences only where the data says which are hallucinated."""
    groups = group_numbers(evaluation.replies)
    found: dict[Level, LevelRow] = {}
    for level in LEVELS:
        items = collect_items(evaluation, level, groups)
        if level == "response" or items.gold.any():
            left_out = leave_out_groups(items.sample)
            found[level] = build_level_row(evaluation, dataset, level, items, left_out, len(groups))
    return found
