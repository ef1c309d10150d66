"""Shared parts of detectors: a judgement with its ledger, evidence in a prompt, spans of flagged units.

`ServedDetector` is the base of those that ask served models.
"""

from __future__ import annotations

import asyncio
import logging
import re
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from hallulab.agents.models.prompt import Prompt
from hallulab.agents.models.session import Session
from hallulab.agents.served_model import ClaimCheck, find_catalogue_name, identify_model, read_tuned_number
from hallulab.agents.versions import compute_version, make_plain
from hallulab.detectors.base.protocol import DetectorContext, ThresholdProtocol
from hallulab.detectors.base.questions import list_calibrations
from hallulab.detectors.base.thresholds import PolicyDetector, ThresholdPolicy
from hallulab.scenarios.errors import HallulabError
from hallulab.scenarios.packs.pack import Reading
from hallulab.scenarios.text.spans import split_sentences, split_words
from hallulab.scenarios.transcript import Frozen, Judgement, Passage, Span, Unit
from hallulab.scenarios.turn_views import TurnView

if TYPE_CHECKING:
    from hallulab.agents.models.client import ModelClient

Result = TypeVar("Result")

_log = logging.getLogger(__name__)


CUT_AND_NOT_FLAGGED = "the evidence or the reply was cut to fit, and nothing in the rest was flagged"
"""Reason to abstain when text was cut and nothing is flagged: the detector did not see everything."""


class Abstention(Exception):
    """There is nothing to judge, or no evidence to judge by; `str(error)` says what is missing."""


async def judge(session: Session, work: Callable[[], Awaitable[Judgement]]) -> Judgement:
    """Return the outcome of `work`, whatever happens, with every call of `session` in its ledger.

    A reply whose text was cut to fit is never clean: unless flagged, it ends as `abstained`. A failed model,
    a missing API key and any unforeseen exception end as `failed` with the reason.
    """
    try:
        judgement = await work()
    except Abstention as reason:
        judgement = Judgement(outcome="abstained", error=str(reason))
    except HallulabError as error:
        judgement = Judgement(outcome="failed", error=str(error))
    except Exception as error:  # noqa: BLE001 - one broken judgement must not end a run; it is kept as a failure
        _log.warning("%s failed on a reply: %s", session.role, type(error).__name__, exc_info=error)
        judgement = Judgement(outcome="failed", error=f"{type(error).__name__}: {error}")
    if judgement.truncated and judgement.flagged is False:
        judgement = Judgement(
            outcome="abstained", units=judgement.units, truncated=True, error=CUT_AND_NOT_FLAGGED
        )
    return judgement.model_copy(update={"calls": tuple(session.calls)})


async def gather_all(jobs: Iterable[Awaitable[Result]]) -> list[Result]:
    """Return all results in order. If some fail, raise the first error after all have ended.

    Then no request is under way, or missing from the ledger, when a judgement is returned.
    """
    results = await asyncio.gather(*jobs, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


class PromptEvidence(Frozen):
    """Passages as they read in a prompt."""

    text: str
    """Numbered passages, best first."""
    passages: tuple[Passage, ...]
    """The passages in it; the last one may be cut."""
    truncated: bool
    """True if some text had to be left out."""


CUT = "[...]"
"""Mark in place of what a cut passage goes on with."""


def format_evidence(
    passages: Sequence[Passage], max_characters: int, earlier: Sequence[Passage] = ()
) -> PromptEvidence:
    """Number the passages from 1. Cut the last one that fits in part, and leave out the others.

    A passage is cut at the end of a sentence, or else of a word, and `CUT` says so.

    Args:
        earlier: passages of earlier turns, which follow as far as they fit whole. To leave some of them out
            is no cut.
    """
    texts = [" ".join(passage.text.split()) for passage in passages]
    shown: list[str] = []
    room = max_characters
    for text in texts:
        if len(text) > room:
            if begun := cut_text(text, room):
                shown.append(f"{begun} {CUT}")
            break
        shown.append(text)
        room -= len(text)
    truncated = shown != texts
    fitting = () if truncated else take_whole(earlier, room)
    shown += [" ".join(passage.text.split()) for passage in fitting]
    return PromptEvidence(
        text="\n".join(f"Document {number}: {text}" for number, text in enumerate(shown, start=1)),
        passages=(*passages, *fitting)[: len(shown)],
        truncated=truncated,
    )


def cut_text(text: str, room: int) -> str:
    """Return the whole sentences of a text that fit, or else its words, or else its first characters."""
    ends = [region.end for region in split_sentences(text) if region.end <= room]
    begun = text[:room]
    return text[: ends[-1]] if ends else begun.rpartition(" ")[0] or begun


def take_whole(passages: Iterable[Passage], room: int) -> tuple[Passage, ...]:
    """Return the first passages, as far as all of them together fit into `room` characters."""
    taken: list[Passage] = []
    for passage in passages:
        room -= len(passage.text)
        if room < 0:
            break
        taken.append(passage)
    return tuple(taken)


_LIST_MARK = re.compile(r"(?:[-*•–]|\(?\d{1,2}[.)])\s+(?=\S)")


def number_texts(texts: Sequence[str]) -> str:
    """Number texts from 1, one a line, without line breaks and without their own list marks.

    A single mark may be a date (`14. Mai`), and stays.

    >>> print(number_texts(["1. Open the\\napp.", "2. Log in.", "It is free."]))
    1. Open the app.
    2. Log in.
    3. It is free.
    """
    shown = [" ".join(text.split()) for text in texts]
    bare = [_LIST_MARK.sub("", text, count=1) if _LIST_MARK.match(text) else text for text in shown]
    if sum(one != other for one, other in zip(shown, bare, strict=True)) > 1:
        shown = bare
    return "\n".join(f"{number}. {text}" for number, text in enumerate(shown, start=1))


def ask_with(question: str, heading: str, end: str) -> str:
    """Return the part of a prompt that has the question, or nothing where there is no question.

    Args:
        question: empty for summaries and other replies that answer none.
        heading: what stands before it.
        end: what stands behind it.
    """
    return f"{heading}{question}{end}" if question.strip() else ""


def has_evidence(passages: Iterable[Passage]) -> bool:
    """Return whether any passage has words. A bot may name passages without text, which say nothing."""
    return any(split_words(passage.text) for passage in passages)


def find_best_passage(text: str, passages: Sequence[Passage]) -> str:
    """Return the passage that shares most words with `text` (earliest on a tie), as `id: text`; or ""."""
    if not passages:
        return ""
    wanted = set(split_words(text))
    shared = [len(wanted & _words_of(passage.text)) for passage in passages]
    if max(shared) == 0:
        return ""
    return format_cited(passages[shared.index(max(shared))])


def format_cited(passage: Passage) -> str:
    """Return a passage as the evidence of a span names it: `id: text`."""
    return f"{passage.id}: {passage.text}"


@lru_cache(maxsize=64)
def _words_of(passage: str) -> frozenset[str]:
    """Return the words of a passage; cached, because every span of a reply asks for them."""
    return frozenset(split_words(passage))


def make_flagged_spans(
    units: Iterable[Unit], threshold: float, reason: Callable[[Unit], str], passages: Sequence[Passage] = ()
) -> tuple[Span, ...]:
    """Return a span for each unit whose score reaches `threshold`, with its best passage as evidence."""
    return tuple(
        Span(
            start=unit.start,
            end=unit.end,
            text=unit.text,
            score=unit.score,
            reason=reason(unit),
            evidence=find_best_passage(unit.text, passages),
        )
        for unit in units
        if unit.score is not None and unit.score >= threshold
    )


@dataclass(frozen=True)
class Scale:
    """Scoring of a detector: how scores are made, and the threshold that belongs to them."""

    prompts: Sequence[Prompt]
    """The prompt files that they are made with."""
    untuned: float
    """Threshold where none is given or tuned for the model."""
    published: bool = False
    """True if that is the paper's, for scores that are made as in the paper."""
    tuned: str | None = None
    """The threshold's name in the `tuned.yaml` beside the detector; None: it has none there."""
    corrections: Frozen | Mapping[str, Any] | None = None
    """Corrections learnt for the served model; None or empty: none."""
    in_force: Mapping[str, Any] = field(default_factory=dict)
    """The options that depend on the model, as they are in force."""
    variant: str = ""
    """Which variant of a paper's method makes them (`Detector.variant`); empty: there is no paper."""
    reading: Reading = "probability"
    """Source of the scores (`Detector.reading`)."""


class ServedDetector(PolicyDetector):
    """Judges a reply by served models.

    A detector is made before its models are served. So it finds out what depends on them (the scale of its
    scores, threshold and version) when they are first asked for.

    Args:
        context: has the models, and the seed of their answers.
        scale: returns the scale of its scores, once the models are known.
        option: the option that gives the threshold.
        asked: the models that it asks, by role. The threshold is tuned for the first one. None: the model of
            the context.
        judging: the roles of those that judge; None: all.

    Raises:
        UsageError: the model is not in the pool.
    """

    def __init__(
        self,
        name: str,
        context: DetectorContext,
        options: Frozen,
        scale: Callable[[], Scale],
        *,
        option: str = "threshold",
        asked: Mapping[str, ModelClient] | None = None,
        judging: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self._context = context
        self._given = options.model_dump(mode="json")
        self._find_scale = scale
        self._option = option
        self._asked = {"model": context.models.get(context.model)} if asked is None else asked
        self._judging = tuple(self._asked) if judging is None else judging
        self.follow(ThresholdPolicy(self._given[option], self._find_default, self._identity))

    @cached_property
    def scale(self) -> Scale:
        """The scale of its scores with the served models."""
        return self._find_scale()

    def _find_claim_check(self) -> ClaimCheck:
        prompts = self._judging_prompts(self.scale)
        models = (self._asked[role].endpoint.model for role in self._judging if prompts)
        return ClaimCheck.by(models, prompts)

    claim_check = cached_property(_find_claim_check)

    def _find_variant(self) -> str:
        return self.scale.variant

    def _is_as_published(self) -> bool | None:
        return self.scale.published if self.scale.variant else None

    def _find_reading(self) -> Reading:
        return self.scale.reading

    variant = cached_property(_find_variant)
    reading = cached_property(_find_reading)
    as_published = cached_property(_is_as_published)

    def _judging_prompts(self, scale: Scale) -> Sequence[Prompt]:
        """Return the prompts by which models judge; by default all."""
        return scale.prompts

    def _find_default(self) -> tuple[float, ThresholdProtocol]:
        """Return the threshold that was tuned for the model, or else the untuned one."""
        scale = self.scale
        model = next(map(find_catalogue_name, self._asked.values()), None)
        package = type(self).__module__.rpartition(".")[0]
        tuned = read_tuned_number(package, scale.tuned, model) if scale.tuned else None
        if tuned is not None:
            return tuned, "tuned"
        # Corrected scores change the meaning of a threshold.
        if scale.corrections:
            return scale.untuned, "tuned"
        return scale.untuned, "published" if scale.published else "untuned"

    def _identity(self, threshold: float | None) -> str:
        scale = self.scale
        return compute_version(
            type(self).__module__,
            self.VERSION,
            {**self._given, **scale.in_force, self._option: threshold},
            scale.prompts,
            {role: identify_model(client) for role, client in self._asked.items()},
            self._context.seed,
            [
                [list_calibrations(find_catalogue_name(client)) for client in self._asked.values()],
                make_plain(scale.corrections),
            ],
        )

    async def detect(self, view: TurnView) -> Judgement:
        """See `Detector.detect`."""
        session = self._context.models.session(self.name, self._context.seed, self._context.model)
        return await judge(session, lambda: self._judge(session, view))

    @abstractmethod
    async def _judge(self, session: Session, view: TurnView) -> Judgement:
        """Return the judgement without its ledger.

        Raises:
            Abstention: there is nothing to judge, or nothing to judge by.
            HallulabError: the model gave no answer.
        """
