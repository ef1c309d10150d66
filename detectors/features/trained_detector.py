"""Detectors that judge by a trained model of words, sentences and replies, and how they learn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from pydantic import Field

from hallulab.agents.versions import compute_version
from hallulab.detectors.base.protocol import TrainableDetector, Traits
from hallulab.detectors.base.reading import identify_reply_language
from hallulab.detectors.base.thresholds import PolicyDetector, ThresholdPolicy
from hallulab.detectors.features.batch import (
    Batch,
    Flags,
    Integers,
    Numbers,
    Pieces,
    ReplyWithEvidence,
    make_case,
)
from hallulab.detectors.features.features import Attribution
from hallulab.detectors.features.judgements import LevelThresholds, Scores, judge_blocks
from hallulab.detectors.features.matching import DocumentFrequency
from hallulab.scenarios.components import LeadsTo
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.languages import WITHOUT_SPACES
from hallulab.scenarios.transcript import Frozen, Judgement, Passage
from hallulab.scenarios.turn_views import TurnView


class RuleOptions(Frozen):
    """Options of the four methods without training, and of `combined`."""

    threshold: float | None = Field(default=None, ge=0.0, le=1.0)
    """Score from which a reply is flagged; None: the one that was tuned."""
    attribution: Attribution = "tfidf"
    """The score by which a sentence is attributed to a chunk; TF-IDF is the paper's best (Table 9)."""
    model: Annotated[str | None, LeadsTo("file")] = None
    """File of a model trained elsewhere; None: the model in the package."""


class TrainedModel(Protocol):
    """The model that a detector judges by."""

    @property
    def thresholds(self) -> LevelThresholds:
        """Scores from which something is flagged."""
        ...

    @property
    def identity(self) -> str:
        """Hash of what it was trained on and with."""
        ...

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the languages that it learnt from."""
        ...

    def score(self, cases: Sequence[ReplyWithEvidence]) -> Scores:
        """Return the risks of all replies, sentences and words."""
        ...


Model = TypeVar("Model", bound=TrainedModel)


_TRIAL = ReplyWithEvidence(
    reply="The kettle boils in 3 minutes. Ann likes it.",
    passages=(Passage(id="kettle-1", document="kettle", text="A kettle takes 4 minutes.", score=1.0),),
    task="qa",
)


def try_out(model: Model) -> Model:
    """Return a model of a file, after it scored a reply: its parts fit together.

    Raises:
        Exception: it cannot score.
    """
    found = model.score([_TRIAL])
    for scores in (found.words, found.sentences, found.replies):
        if not ((scores >= 0) & (scores <= 1)).all():
            raise ValueError("a score is not from 0 to 1")
    if not isinstance(model.identity, str):
        raise TypeError("no identity")
    return model


class TrainedDetector(PolicyDetector, TrainableDetector, Generic[Model]):
    """Judges replies in batches, by the model that it was made with or trained since."""

    OPTIONS: ClassVar[type[RuleOptions]] = RuleOptions
    traits = Traits(needs_model=False, batch=True)

    def __init__(self, name: str, options: RuleOptions, model: Model) -> None:
        self.name = name
        self._options = options
        self._use(model)

    @property
    def model(self) -> Model:
        """Its trained model."""
        return self._model

    async def detect(self, view: TurnView) -> Judgement:
        """See `Detector.detect`. Abstains when the reply or the evidence has no words."""
        return (await self.detect_many([view]))[0]

    async def detect_many(self, views: Sequence[TurnView]) -> list[Judgement]:
        """See `Detector.detect_many`."""
        cases = [make_case(view) for view in views]
        thresholds = self._model.thresholds.model_copy(update={"response": self.threshold})
        return judge_blocks(cases, self._model.score, thresholds, self._options.attribution)

    def _use(self, model: Model) -> None:
        self._model = model
        self.languages = model.languages
        tuned = model.thresholds.response
        self.follow(ThresholdPolicy(self._options.threshold, lambda: (tuned, "tuned"), self._identity))

    def _identity(self, threshold: float | None) -> str:
        options = self._options.model_copy(update={"threshold": threshold})
        return compute_version(type(self).__module__, self.VERSION, options, learnt=self._model.identity)


PARTS = 5
"""Number of parts of the training groups; the paper's calibration subset is 20 of 98 sources."""

RARE = 2
"""Forms found in fewer texts are dropped: they count as new ones."""


def assign_parts(replies: Sequence[LabelledReply], seed: int) -> Integers:
    """Return (replies,): the part of each reply, below `PARTS`. A group stays whole; hashes order the groups.

    Raises:
        UsageError: there are fewer than two groups.
    """
    groups = sorted({one.group for one in replies}, key=lambda group: digest([seed, group]))
    if len(groups) < 2:
        raise UsageError(
            "Training needs replies of two groups or more, to hold some out for the thresholds. Add some."
        )
    part = {group: place % PARTS for place, group in enumerate(groups)}
    return np.array([part[one.group] for one in replies], dtype=np.int64)


_LEARNT = 10
"""One of so many training replies is in a language, at least, that a model has learnt."""


def list_learnt_languages(replies: Sequence[LabelledReply]) -> tuple[str, ...]:
    """Return the codes of the languages that replies teach, most frequent first; else English.

    Features are of words between spaces, so nobody learns Chinese, Japanese or Thai.
    """
    counts = Counter(identify_reply_language(one) for one in replies)
    most = [code for code, count in counts.most_common() if count * _LEARNT >= len(replies)]
    return tuple(code for code in most if code not in WITHOUT_SPACES) or ("en",)


def count_forms(batch: Batch) -> DocumentFrequency:
    """Count in how many of the batch's chunks and sentences each form occurs, exact or as a stem."""
    forms = batch.lexicon.forms
    counts = np.zeros(len(forms), dtype=np.int64)
    for tokens, owner in (
        (batch.chunk_tokens, batch.chunk_tokens.text),
        (batch.tokens, batch.token_sentence),
    ):
        keys = [owner * len(forms) + form for form in (tokens.exact, tokens.stem)]
        counts += np.bincount(np.unique(np.concatenate(keys)) % max(len(forms), 1), minlength=len(forms))
    kept = {form: int(count) for form, count in zip(forms, counts, strict=True) if count >= RARE}
    return DocumentFrequency(texts=len(batch.chunks) + len(batch.sentences), counts=kept)


def mark_gold(pieces: Pieces, replies: Sequence[LabelledReply]) -> Flags:
    """Return (pieces,): whether a piece meets a hallucinated span (the paper's overlap rule)."""
    found = np.zeros(len(pieces), dtype=bool)
    first = np.searchsorted(pieces.reply, np.arange(len(replies) + 1))
    for index, reply in enumerate(replies):
        at = slice(first[index], first[index + 1])
        for span in reply.spans or ():
            found[at] |= (pieces.start[at] < span.end) & (span.start < pieces.end[at])
    return found


def choose_threshold(labels: Flags, scores: Numbers) -> float:
    """Return the threshold with the largest F1; of equals, the highest.

    It lies half-way to the next lower score: that score is not flagged, and nothing is known between the two.

    Raises:
        ValueError: nothing is positive.
    """
    if not labels.any():
        raise ValueError("there is no positive label")
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(labels[order])
    flagged = np.arange(1, len(order) + 1)
    f1 = 2 * hits / (flagged + labels.sum())
    last = np.append(np.diff(scores[order]) != 0, True)  # a threshold cannot part equal scores
    levels = scores[order][last]
    best = int(np.argmax(f1[last]))
    return float(levels[best : best + 2].mean())


class Forest(NamedTuple):
    """Size of a random forest; the paper says "bounded depth"."""

    trees: int
    depth: int
    leaf: int
    """Fewest sentences in a leaf."""


SHALLOW = Forest(trees=100, depth=8, leaf=6)
"""Forest for labels by people, which are noisy; its file is below 1 MB."""


def make_forest(size: Forest, seed: int) -> Any:
    """Make scikit-learn's random forest, with classes balanced in each tree's sample."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(
        size.trees,
        max_depth=size.depth,
        min_samples_leaf=size.leaf,
        class_weight="balanced_subsample",
        random_state=seed,
        n_jobs=1,
    )


def make_scaled_regression(**settings: Any) -> Any:
    """Make a logistic regression with these settings of scikit-learn; all its inputs are standardised."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(**settings))
