"""Rate a reply's sentences by a mixture of the model's probability and measures of the text.

HalluDetect for small models: one question a sentence, with examples, on the turn's own passages.
The question is the one that MetaRAG asks (YES, NO or NOT SURE); the probability of YES counts.
docs/studies/published-methods.md says where it departs from the paper. Doubled retrieval, zero-shot questions
and a fixed mixture with overlap each cost a small judge more than its own weakness does.

Estimate how likely a sentence, and a reply, is hallucinated, by a small learnt mixture of measurements.
No single sign works for every kind of reply. On replies of small chatbots the model's answer says most; on
long replies of strong models words alone do. So logistic regressions weigh both. They are learnt over several
data sets together (`benchmarks/train_mixture.py`); `mixture.yaml` holds the weights by model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import yaml
from pydantic import TypeAdapter

from hallulab.agents.models.session import Session
from hallulab.detectors.base.judging import find_best_passage, format_cited, format_evidence, gather_all
from hallulab.detectors.base.questions import VERIFICATION, VERIFICATION_WORDS, Question, split_statements
from hallulab.detectors.explanations.explanation import explain, find_signals
from hallulab.detectors.halludetect.evidence import (
    EvidenceContext,
    adds_support,
    choose_nearest_passages,
    find_clearing_rule,
    merge_passages,
    search_doubled,
)
from hallulab.detectors.halludetect.strategies import HARMLESS, RatedSentence, compute_severity
from hallulab.scenarios.files.opening import read_file
from hallulab.scenarios.text.spans import Region, compute_unknown_share, split_words
from hallulab.scenarios.transcript import Frozen, Passage
from hallulab.scenarios.turn_views import TurnView

FILE = Path(__file__).with_name("mixture.yaml")
"""The learnt weights: the catalogue's name of a model → weights."""
_LENGTHS = (3, 40)
"""Smallest and largest number of words that counts; beyond them length says nothing more."""
_KNOWN_ENOUGH = 0.45
"""A share of new words up to this is usual in a true sentence."""
_FEW_WORDS = 8
"""Added to a reply's number of words, so that three new words in a short reply (`You can call`) count
less."""
_WORST = 3
"""Most sentences of a reply that are weighed: small doubts about each of twenty would make a certainty."""
_ALMOST = 1e-3
"""Probabilities are kept this far from 0 and 1: a one-token answer is not surer than that."""


class LogisticWeights(Frozen):
    """A logistic regression over few named numbers."""

    intercept: float
    """Log-odds where all are 0."""
    weights: dict[str, float]
    """Log-odds for one more of each."""

    def log_odds(self, measured: Mapping[str, float]) -> float:
        """Return the weighted sum of the measurements.

        Raises:
            KeyError: a measurement that has a weight is missing.
        """
        return self.intercept + sum(weight * measured[name] for name, weight in self.weights.items())


class Mixture(Frozen):
    """Weights for a sentence, and for its reply."""

    sentence: LogisticWeights
    """Weights of `measure_sentence`."""
    reply: LogisticWeights
    """Weights of `measure_reply`."""


def measure_sentence(
    sentence: str, unsupported: float, known: set[str], misattributed: float
) -> dict[str, float]:
    """Measure what the mixture weighs of a sentence.

    Args:
        unsupported: the model's probability that the evidence does not say it.
        known: words of the evidence and of the user, in lower case.
        misattributed: how far the evidence has an item of it for something else, 0 to 1
            (`explanations.explanation.Signals`).

    Returns:
        unsupported: that probability's log-odds; length: natural logarithm of its number of words; novelty:
        how far the share of words that are not known exceeds the usual one; misattributed: as given.
    """
    length = min(max(len(split_words(sentence)), _LENGTHS[0]), _LENGTHS[1])
    return {
        "unsupported": compute_log_odds(unsupported),
        "length": math.log(length),
        "novelty": max(0.0, (compute_unknown_share(sentence, known) or 0.0) - _KNOWN_ENOUGH),
        "misattributed": misattributed,
    }


def measure_reply(reply: str, sentences: Sequence[float], evidence: set[str]) -> dict[str, float]:
    """Measure what the mixture weighs of a reply.

    Args:
        sentences: log-odds of its sentences that claim something; at least one.
        evidence: words of the evidence, in lower case.

    Returns:
        any: log-odds that one of the three worst sentences is wrong, if they were independent; unknown:
        number of words that the evidence lacks, divided by the number of all words plus `_FEW_WORDS`.
    """
    found = split_words(reply)
    unknown = sum(word not in evidence for word in found)
    clean = math.prod(1.0 - compute_probability(odds) for odds in sorted(sentences, reverse=True)[:_WORST])
    return {"any": compute_log_odds(1.0 - clean), "unknown": unknown / (len(found) + _FEW_WORDS)}


def compute_log_odds(probability: float) -> float:
    """Return ln(p / (1 − p)) of a probability kept away from 0 and 1."""
    kept = min(max(probability, _ALMOST), 1.0 - _ALMOST)
    return math.log(kept / (1.0 - kept))


def compute_probability(odds: float) -> float:
    """Return the probability of given log-odds, in [0, 1]."""
    return 1.0 / (1.0 + math.exp(-odds)) if odds >= 0 else 1.0 - 1.0 / (1.0 + math.exp(odds))


def find_mixture(model: str | None) -> Mixture | None:
    """Return the mixture learnt for a model of the catalogue, or None."""
    return _load_mixtures().get(model or "")


@cache
def _load_mixtures() -> Mapping[str, Mixture]:
    found = yaml.safe_load(read_file(FILE)) or {}
    return TypeAdapter(dict[str, Mixture]).validate_python(found)


LOG_ODDS = "log-odds"
"""Detail of a rated sentence: the log-odds by the mixture."""

MISPLACED = 0.96
"""Lowest probability that a sentence is wrong if it gives a contact that the evidence has for something else,
and the evidence has the right contact, too: a one-token answer overlooks that."""
_CONTACT = re.compile(r"\+?\d[\d\s()-]{2,}\d")
"""A phone number or short code: at least four characters, no decimals, no unit."""


class MixtureReading:
    """One call a sentence; a second one if doubled retrieval found what the own passages do not say.

    Args:
        mixture: the one learnt for the served model. None: the model's answer counts alone, and the worst
            sentence decides.
        retrieval_factor: passages searched for, as a multiple of the turn's own.
        room: characters of evidence in a question.
    """

    def __init__(self, mixture: Mixture | None, retrieval_factor: int, room: int) -> None:
        self._mixture = mixture
        self._factor = retrieval_factor
        self._room = room
        self._question = Question(VERIFICATION, VERIFICATION_WORDS)
        self.prompts = (self._question.prompt,)

    async def ground(self, session: Session, view: TurnView) -> EvidenceContext:
        """See `JudgingStrategy.ground`: the own passages; what else doubled retrieval finds is kept apart."""
        own = choose_nearest_passages(view.own_passages, view.reply, self._room)
        left = self._room - sum(len(passage.text) for passage in own)
        earlier = choose_nearest_passages(view.earlier_passages, view.reply, left)
        shown = format_evidence(own, self._room, earlier)
        query, found = await search_doubled(session, view, self._factor)
        return EvidenceContext(
            documents=shown.text,
            text=shown.text,
            passages=view.passages,
            found=merge_passages(view.passages, found)[len(view.passages) :],
            user_text=view.user_text,
            query=query,
            memory=None,
            truncated=shown.truncated,
        )

    async def rate(self, session: Session, grounds: EvidenceContext, view: TurnView) -> list[RatedSentence]:
        """See `JudgingStrategy.rate`: every sentence."""
        known = set(split_words(f"{grounds.passage_text}\n{grounds.user_text}"))
        regions = split_statements(view.reply)
        return await gather_all(self._rate(session, grounds, view.reply, region, known) for region in regions)

    async def _rate(
        self, session: Session, grounds: EvidenceContext, reply: str, region: Region, known: set[str]
    ) -> RatedSentence:
        text = region.of(reply)
        rule = find_clearing_rule(text, grounds)
        if rule is not None:
            return RatedSentence(text=text, region=region, severity=HARMLESS, details={"rule": rule})
        unsupported = await self._unsupported(session, grounds, " ".join(text.split()))
        misattributed = find_signals(text, grounds.passages, grounds.user_text).misattributed
        measured = measure_sentence(text, unsupported, known, misattributed)
        details: dict[str, float | str | None] = {"P(not stated)": unsupported, **measured}
        if self._mixture is not None:
            details[LOG_ODDS] = self._mixture.sentence.log_odds(measured)
            unsupported = compute_probability(self._mixture.sentence.log_odds(measured))
        if unsupported < MISPLACED and gives_contact_of_another(text, grounds):
            unsupported = MISPLACED
            details |= {"rule": "a contact of something else", LOG_ODDS: compute_log_odds(MISPLACED)}
        details["P(unsupported)"] = unsupported
        return RatedSentence(
            text=text,
            region=region,
            severity=compute_severity(unsupported, 1.0),
            probability=unsupported,
            details=details,
        )

    async def _unsupported(self, session: Session, grounds: EvidenceContext, sentence: str) -> float:
        stated = await self._question.ask(session, grounds.documents, sentence)
        more = _choose_further(sentence, grounds)
        if more:
            added = format_evidence(more, self._room).text
            stated = max(stated, await self._question.ask(session, added, sentence))
        return 1.0 - stated

    def overall(self, rated: list[RatedSentence], grounds: EvidenceContext, view: TurnView) -> float:
        """See `JudgingStrategy.overall`: by the mixture, where there is one."""
        worst = max((item.severity for item in rated), default=HARMLESS)
        claims = [odds for item in rated if isinstance(odds := item.details.get(LOG_ODDS), float)]
        if self._mixture is None or not claims:
            return worst
        measured = measure_reply(view.reply, claims, set(split_words(grounds.passage_text)))
        return compute_severity(compute_probability(self._mixture.reply.log_odds(measured)), 1.0)

    async def conclude(
        self, session: Session, grounds: EvidenceContext, kept: list[RatedSentence]
    ) -> list[RatedSentence]:
        """See `JudgingStrategy.conclude`: text rules name the wrong item; no call."""
        return [_explain(item, grounds) for item in kept]


def _choose_further(sentence: str, grounds: EvidenceContext) -> list[Passage]:
    """Return the passages that the turn did not have and that are asked about for a sentence."""
    return [passage for passage in grounds.found if adds_support(sentence, grounds.passages, passage)]


def _explain(item: RatedSentence, grounds: EvidenceContext) -> RatedSentence:
    """Return a sentence with its reason, by the passages that were asked about."""
    passages = (*grounds.passages, *_choose_further(" ".join(item.text.split()), grounds))
    found = explain(item.text, passages, grounds.user_text)
    nearest = None if found.passage is None else format_cited(passages[found.passage])
    cited = find_best_passage(item.text, passages) if nearest is None else nearest
    return item.model_copy(update={"reason": found.reason, "evidence": cited})


def gives_contact_of_another(sentence: str, grounds: EvidenceContext) -> bool:
    """Return whether a sentence gives something else's contact where the evidence has the right one."""
    found = explain(sentence, grounds.passages, grounds.user_text).items
    return any(
        item.fault == "misattributed" and bool(item.instead) and _CONTACT.fullmatch(item.text) is not None
        for item in found
    )
