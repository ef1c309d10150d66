"""Judge replies that are given as they are, without a run folder, in this process or by workers."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import AliasChoices, Field, ValidationError, field_validator

from hallulab.agents.models.adaptive import AdaptiveLimits
from hallulab.agents.models.model import ModelPool
from hallulab.detectors.base.protocol import Detector, run_detector
from hallulab.scenarios.chats.reading import AmbiguousNameError, Reading
from hallulab.scenarios.datasets.jsonl import PassageInput, build_input_passages, wrap_texts
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import choose_main_error, explain_error
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Frozen, Judgement, Message, Passage
from hallulab.scenarios.turn_views import Origin, Retriever, TurnView
from hallulab.simulator.engine.executors import SingleEventTask, TaskExecutor, perform_single
from hallulab.simulator.engine.models import RunSettings, open_pool, open_recording, serve_models, warn_of
from hallulab.simulator.engine.participants import is_model_needed, make_detectors
from hallulab.simulator.options.commands import JudgeRepliesOptions
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import load_experiment


@dataclass(frozen=True)
class RepliesJudged:
    """The replies of a task were judged."""

    judgements: tuple[Judgement, ...]
    seconds: float | None
    """Time of judging them where it was done, without the way there; None: no worker could."""


@dataclass(frozen=True)
class ReplyTask(SingleEventTask):
    """Replies that a detector judges at once (a `WorkTask`)."""

    detector: int
    """Its number among the executor's, from 0."""
    views: tuple[TurnView, ...]

    def fail(self, reason: str) -> Iterable[RepliesJudged]:
        """See `WorkTask`."""
        failed = Judgement(outcome="failed", error=reason)
        yield RepliesJudged((failed,) * len(self.views), None)


class ReplyExecutor:
    """Judges replies in this process, as many at once as it is given."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        self._detectors = detectors

    async def perform(self, task: ReplyTask, emit: Callable[[RepliesJudged], None]) -> None:
        """See `TaskExecutor`."""
        started = time.perf_counter()
        judgements = await run_detector(self._detectors[task.detector], task.views)
        emit(RepliesJudged(tuple(judgements), time.perf_counter() - started))


@dataclass(frozen=True)
class ReplyWork:
    """Replies are judged (an `ExecutorMaker`)."""

    experiments: tuple[Experiment, ...]
    """Those whose detectors judge. A task names a detector by its number among those of all."""

    def make_executor(
        self, experiment: Experiment, pool: ModelPool, limits: AdaptiveLimits | None
    ) -> ReplyExecutor:
        """See `ExecutorMaker`."""
        return ReplyExecutor([one for each in self.experiments for one in make_detectors(each, pool, {})])


@dataclass(frozen=True)
class ReplyJudge:
    """Who judges the replies of one detector, and how they are shared out."""

    executor: TaskExecutor
    detector: int = 0
    parts: int = 1
    """Parts that are judged side by side, each by a worker of its own."""

    async def judge(self, views: Sequence[TurnView], part: int, tasks: int) -> RepliesJudged:
        """Judge replies at once.

        Args:
            views: what the detector sees of them.
            part: to which they belong, from 0.
            tasks: how often this is called for that part.
        """
        task = ReplyTask(self.detector, tuple(views), group=part, of_group=tasks)
        return await perform_single(self.executor, task)


async def judge_views(options: JudgeRepliesOptions) -> list[Judgement]:
    """Return a judgement of each reply, in their order.

    Raises:
        UsageError: the replies, the detector, its options or the models are at fault.
        OperationalError: server or endpoint failed.
    """
    fields = {"detectors": [options.detector], "seed": options.seed}
    views = read_views(options.views)
    experiment = load_experiment(options.config_path, {**options.collect_model_fields(), **fields})
    settings = RunSettings.from_options(options)
    async with open_pool(experiment, open_recording(settings)) as pool:
        [detector] = make_detectors(experiment, pool, {})
        if not views:
            return []
        async with serve_models(pool, settings, is_model_needed([detector])):
            warn_of([detector])
            if detector.traits.batch:
                return await run_detector(detector, views)
            places = asyncio.Semaphore(experiment.at_once)

            async def judge_reply(number: int) -> Judgement:
                async with places:
                    [judgement] = await run_detector(detector, [views[number]])
                    return judgement

            return list(await asyncio.gather(*map(judge_reply, range(len(views)))))


_TAKES = (
    "Give a TurnView, or a mapping with `question`, `passages`, `reply` and, if there was a dialogue before, "
    "`history` (docs/python.md)"
)


_FIELDS = {"question": "user", "passages": "passages", "reply": "reply"}
"""Our name → what a reading looks for."""


class MessageInput(Frozen):
    """A message in the form that people write."""

    role: Literal["user", "assistant"]
    text: str = Field(validation_alias=AliasChoices("text", "content"))


class ViewInput(Frozen):
    """A reply in the form that people write; its fields are those of `TurnView`."""

    question: str
    passages: tuple[Passage | PassageInput, ...]
    """The evidence: passages, objects with a `text`, plain texts, or one of them."""
    reply: str
    history: tuple[MessageInput, ...] = ()
    knowledge: Retriever | None = None
    origin: Origin = Origin()

    @field_validator("passages", mode="before")
    @classmethod
    def _a_text_is_a_passage(cls, value: Any) -> Any:
        listed = [value] if isinstance(value, str) else value
        return wrap_texts([*listed] if isinstance(listed, tuple) else listed)

    @field_validator("history", mode="before")
    @classmethod
    def _a_message_is_an_object(cls, value: Any) -> Any:
        listed = isinstance(value, list | tuple)
        return [one.model_dump() if isinstance(one, Message) else one for one in value] if listed else value

    def view(self) -> TurnView:
        """Return what a detector is given of it."""
        # Passages without an identifier get one by position.
        plain = [PassageInput(text="-") if isinstance(one, Passage) else one for one in self.passages]
        numbered = zip(self.passages, build_input_passages(plain), strict=True)
        return TurnView(
            history=tuple(Message(role=one.role, text=one.text) for one in self.history),
            question=self.question,
            passages=tuple(one if isinstance(one, Passage) else made for one, made in numbered),
            reply=self.reply,
            knowledge=self.knowledge,
            origin=self.origin,
        )


def read_views(given: Any) -> tuple[TurnView, ...]:
    """Return the replies to judge, from whatever people write.

    A key may have another of the names that `hallulab import` knows, such as `answer`.

    >>> [view] = read_views([{"question": "The fee?", "context": ["It is 5."], "answer": "It is 6."}])
    >>> view.reply, view.passages[0].text
    ('It is 6.', 'It is 5.')

    Raises:
        UsageError: they are no replies; names the first that is none, and its field.
    """
    if isinstance(given, str | bytes | Mapping | TurnView) or not hasattr(type(given), "__iter__"):
        raise UsageError(
            f"judge_replies: `views` is {_describe_kind(given)}, and no list of replies. {_TAKES} for each."
        )
    if hasattr(given, "columns"):
        raise UsageError("judge_replies: `views` is a table. Give `table.to_dict('records')`.")
    return tuple(_read_view(number, one) for number, one in enumerate(given))


def _read_view(number: int, given: Any) -> TurnView:
    try:
        if isinstance(given, TurnView):  # one made without checks would fail in the detector
            return TurnView.model_validate({name: getattr(given, name) for name in TurnView.model_fields})
        if isinstance(given, LabelledReply):
            return given.view
        if not hasattr(given, "keys"):
            raise UsageError(f"judge_replies: item {number} of `views` is {_describe_kind(given)}. {_TAKES}.")
        return ViewInput.model_validate(_rename(dict(given))).view()
    except AmbiguousNameError as error:
        ours = next(name for name, field in _FIELDS.items() if field == error.field)
        sentence = error.describe(error.names, ours)
        raise UsageError(
            f"judge_replies: item {number} of `views`: {sentence} Call that one `{ours}`."
        ) from error
    except ValidationError as error:
        first = choose_main_error(error)
        field = ".".join(str(part) for part in first["loc"])
        flaw = {"missing": "is missing", "extra_forbidden": "is none of a reply"}.get(first["type"])
        flaw = flaw or f"is wrong: {explain_error(first)}"
        raise UsageError(f"judge_replies: item {number} of `views`: `{field}` {flaw}. {_TAKES}.") from error


def _rename(given: dict[Any, Any]) -> dict[str, Any]:
    """Return the keys by the names of `TurnView`, without what a table calls missing."""
    held = {
        str(key): value
        for key, value in given.items()
        if value is not None and not (isinstance(value, float) and math.isnan(value))
    }
    fields = [field for name, field in _FIELDS.items() if name not in held]
    for field, name in Reading().choose(held, *fields).items():
        ours = next(one for one, other in _FIELDS.items() if other == field)
        held[ours] = held.pop(name)
    return held


def _describe_kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
