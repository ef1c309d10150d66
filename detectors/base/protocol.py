"""The protocol of detectors, and how a detector of anybody is run and checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

from pydantic import ValidationError

from hallulab.agents.concurrency import call_untrusted, require_failure
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.redaction import remove_keys
from hallulab.agents.served_model import ClaimCheck, read_claim_check
from hallulab.detectors.base.reading import TurnAsRead, read_turn
from hallulab.scenarios.components import describe_failure
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import choose_main_error, explain_error
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.packs.pack import Reading
from hallulab.scenarios.text.declining import classify_reply
from hallulab.scenarios.transcript import Frozen, Judgement
from hallulab.scenarios.turn_views import TurnView

ThresholdProtocol = Literal["published", "untuned", "tuned", "calibrated", "given"]
"""Where a threshold comes from. `published`: the paper, and scores are made as there. `untuned`: the paper,
though scores are not, or even odds. `tuned`: a fit for this model on our development data. `calibrated`:
`hallulab calibrate`. `given`: the options."""


@dataclass(frozen=True)
class Traits:
    """Properties of a detector that matter to whoever runs it."""

    needs_model: bool = True
    """True if it asks the served model; no model is started for a detector that does not."""
    probabilities: bool = True
    """True if its scores are meant as probabilities."""
    batch: bool = False
    """True if `detect_many` judges many replies faster than `detect` one by one."""
    reads_origin: bool = False
    """True if its options ask who wrote a reply; `TurnView.origin` then says so, if the data does."""


class Detector(ABC):
    """Judges replies. Every detector is a subclass, including those of other people.

    A detector is made before any model is served. If its `threshold` or `version` depends on the served
    model, it finds them out when they are first asked for.
    """

    KIND: ClassVar[str | None] = None
    """The name under which a detector of this package is registered; None: it is none. Others are registered
    by an entry point."""
    OPTIONS: ClassVar[type[Frozen] | None] = None
    """The class of its options; None: nobody knows them."""
    VARIANTS: ClassVar[str] = ""
    """Which variant of its method is run for which model, in words; empty: there is only one."""
    VERSION: ClassVar[int] = 1
    """Raised by the author when verdicts change for a reason that code, options, prompts and models do not
    show. Part of `version`."""
    name: str
    """The name under which it is registered and reported."""
    version: str
    """Hash of all that changes its verdicts: options, prompts, thresholds, model names, seed and code. A
    resumed run keeps only the verdicts of this version."""
    scoring: str | None = None
    """Hash of all that changes its scores: what `version` is made of, without the threshold. None: its
    threshold cannot be calibrated."""
    threshold: float | None = None
    """Score from which a reply is flagged; None if there is none. Some topics have stricter ones."""
    threshold_protocol: ThresholdProtocol = "given"
    """Where the threshold comes from. The paper's threshold on scores corrected for the model counts as
    tuned."""
    variant: str = ""
    """The variant of its method that is run, such as a reading; empty: there is only one. It may depend on
    the served models."""
    as_published: bool | None = None
    """True if that variant is the paper's; None: the name stands for no paper's method."""
    reading: Reading = "probability"
    """Source of its scores from 0 to 1; topics may have another threshold for printed words."""
    traits: Traits = Traits()
    languages: tuple[str, ...] | None = None
    """Codes (ISO 639-1, such as `en`) of the languages that it reads; None: all that its model knows, or it
    has a rule of its own. Where reply or evidence are in none of them, `run_detector` abstains for it."""
    warnings: tuple[str, ...] = ()
    """Sentences that a user should read before relying on it. They may depend on the served models."""
    claim_check: ClaimCheck | None = None
    """The models that it judges by and their prompt files. None means the served model, if it needs one, with
    unknown prompts."""

    @abstractmethod
    async def detect(self, view: TurnView) -> Judgement:
        """Judge `view.reply` against the evidence in `view`.

        A model's failure is an outcome: this method does not raise for it.
        """

    def use_calibrated(self, threshold: float) -> None:
        """Judge with a threshold that was fitted for `scoring`.

        Raises:
            NotImplementedError: `scoring` is None.
        """
        raise NotImplementedError(f"the threshold of {self.name} cannot be calibrated")

    async def detect_many(self, views: Sequence[TurnView]) -> list[Judgement]:
        """Judge every reply; the judgements and their order are those that `detect` gives."""
        return [await self.detect(view) for view in views]


def describe_judging(detector: Detector, served: str) -> ClaimCheck:
    """Return the models that the detector judges by and their prompt files, see `Detector.claim_check`.

    Args:
        served: the name under which the detectors' model is served.

    Raises:
        UsageError: the attribute has another type.
    """
    told = read_claim_check(f"detector {detector.name}", detector)
    if told is None:
        told = ClaimCheck.by((served,) if detector.traits.needs_model else (), ())
    method = f"{type(detector).__module__}.{type(detector).__qualname__}"
    return told.model_copy(update={"methods": (method,)})


class JudgingMethod(Frozen):
    """How a detector of a run judged: an entry of `methods` in `experiment.json`."""

    variant: str = ""
    as_published: bool | None = None
    threshold: float | None = None
    """Score from which a reply is flagged; None: there is none."""
    threshold_protocol: ThresholdProtocol = "given"
    """Where the threshold comes from."""


def describe_method(detector: Detector) -> JudgingMethod:
    """Return the variant and the threshold by which a detector judges.

    Raises:
        UsageError: an attribute of somebody else's detector has another type.
    """
    try:
        return JudgingMethod(
            variant=detector.variant,
            as_published=detector.as_published,
            threshold=detector.threshold,
            threshold_protocol=detector.threshold_protocol,
        )
    except ValidationError as error:
        first = choose_main_error(error)
        field = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"detector {detector.name}: its `{field}` is wrong: {explain_error(first)}."
        ) from None


class TrainableDetector(Detector):
    """A detector that learns from labelled replies; without training it uses the model in the package."""

    @abstractmethod
    def fit(self, replies: Sequence[LabelledReply], seed: int = 0) -> None:
        """Learn from `replies`, and choose thresholds on groups that learning did not see.

        Forget all that was learnt before: `bench --folds` relies on that.

        Raises:
            UsageError: the replies lack what is learnt from (spans, or one of the two classes).
        """


@dataclass(frozen=True)
class DetectorContext:
    """Arguments of the factory of a detector."""

    models: ModelPool
    """The models by name; `models.get()` is the default one. They are served when the detector judges."""
    model: str | None = None
    """Name in `models` of the model for this role; None: the default one."""
    seed: int = 0
    """Base seed of every sampled answer."""
    identity_thresholds: Mapping[str, float | Mapping[Reading, float]] = field(default_factory=dict)
    """The scenario's stricter thresholds by topic label (MetaRAG section 3.6)."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The detector's own options from the experiment file."""


async def run_detector(detector: Detector, views: Sequence[TurnView]) -> list[Judgement]:
    """Return a judgement of each reply; where the detector raises or returns something else, it has failed.

    A reply that declines (`hallulab.scenarios.text.declining`) claims nothing: it is scored clean without
    asking the detector. A detector is given other replies without what declines or names sources
    (`hallulab.scenarios.text.framing`), and replies and passages in one form
    (`hallulab.scenarios.text.one_form`); the places in a judgement are those in the reply as it was said. For
    texts that the detector cannot read, the judgement abstains.

    A detector that judges in batches gets several replies at once. If the batch fails, it gets them one by
    one, so that only the reply at fault fails.
    """
    read = [_read_turn(detector, view) for view in views]
    readable = [each.view for each in read if isinstance(each, TurnAsRead)]
    judged = iter(await _judge_all(detector, readable))
    return [
        each.restore(next(judged), view.reply) if isinstance(each, TurnAsRead) else each
        for each, view in zip(read, views, strict=True)
    ]


def _read_turn(detector: Detector, view: TurnView) -> TurnAsRead | Judgement:
    """Return the turn as the detector reads it, or the judgement where it has nothing to read."""
    try:
        if classify_reply(view.reply) == "declines":
            return Judgement(outcome="scored", score=0.0, flagged=False, spans=())
        read = read_turn(detector.name, detector.languages, view)
    except Exception as error:  # noqa: BLE001 - the view of anybody's program; a failure is data
        return make_failed_judgement(error)
    return read if read.unread is None else Judgement(outcome="abstained", error=read.unread)


async def _judge_all(detector: Detector, views: Sequence[TurnView]) -> list[Judgement]:
    if detector.traits.batch and len(views) > 1:
        try:
            found = await call_untrusted(partial(detector.detect_many, views))
            return [check_judgement(one, view.reply) for one, view in zip(found, views, strict=True)]
        except BaseException as error:  # noqa: BLE001 - somebody else's detector may raise anything
            require_failure(error)
    return [await _judge_one(detector, view) for view in views]


async def _judge_one(detector: Detector, view: TurnView) -> Judgement:
    try:
        return check_judgement(await call_untrusted(partial(detector.detect, view)), view.reply)
    except BaseException as error:  # noqa: BLE001 - as above; a failure is data
        require_failure(error)
        return make_failed_judgement(error)


def check_judgement(found: object, reply: str) -> Judgement:
    """Return what a detector found, or a failed judgement if it is no judgement or does not fit `reply`."""
    if type(found) is not Judgement:
        return Judgement(outcome="failed", error=f"the detector gave a {type(found).__name__}, no Judgement")
    try:
        written = found.model_dump_json(warnings=False)
        # A judgement made unchecked (`model_construct`, `model_copy`) may write a line that nobody can read.
        found = Judgement.model_validate_json(written)
    except ValidationError as error:
        first = choose_main_error(error)
        place = ".".join(map(str, first["loc"]))
        wrong = f"`{place}`: {explain_error(first)}" if place else explain_error(first)
        return Judgement(outcome="failed", error=f"the detector gave no sound Judgement: {wrong}")
    except ValueError as error:
        return make_failed_judgement(error)
    flaw = find_misfit(found, reply)
    if flaw is not None:
        return Judgement(outcome="failed", calls=found.calls, error=f"the detector gave {flaw[1]}")
    return found.model_copy(update={"error": remove_keys(found.error)}) if found.error else found


def find_misfit(judgement: Judgement, reply: str) -> tuple[str, str] | None:
    """Return the field of a judgement that cannot belong to `reply`, and why; None if all fit."""
    for number, span in enumerate(judgement.spans or ()):
        if span.end is not None and span.end > len(reply):
            where = f"[{span.start}, {span.end}) outside the reply, which has {len(reply)} characters"
            return f"spans.{number}", f"a span {where}"
    if judgement.word_scores is not None:
        scores, words = len(judgement.word_scores), len(reply.split())
        if scores != words:
            return "word_scores", f"{scores} word scores for a reply of {words} words"
    return None


def make_failed_judgement(error: BaseException) -> Judgement:
    """Return the judgement of a detector that raised `error`, with the place of a bug of ours."""
    return Judgement(outcome="failed", error=remove_keys(describe_failure(error)))
