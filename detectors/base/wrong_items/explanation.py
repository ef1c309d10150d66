"""What is wrong in a flagged sentence, and what the evidence has instead, in words and as numbers.

Pure text rules, no model: the same sentence and evidence give the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.detectors.base.wrong_items.claim import ComparedSentence, read_claim
from hallulab.detectors.base.wrong_items.comparison import find_differences
from hallulab.detectors.base.wrong_items.evidence import read_evidence
from hallulab.detectors.base.wrong_items.findings import Fault, SentenceFault, find_wrong
from hallulab.detectors.base.wrong_items.wording import word_reason
from hallulab.scenarios.transcript import Frozen, Passage

_WORDLESS = "There is nothing to check here."


class WrongItem(Frozen):
    """A piece of the sentence that is wrong."""

    fault: Fault
    """How it is wrong."""
    start: int
    """First character in the sentence."""
    end: int
    """One past the last character."""
    text: str
    """The piece: `sentence[start:end]`."""
    instead: str = ""
    """What the evidence has in its place, verbatim; empty: nothing like it."""
    evidence: str = ""
    """The evidence sentence that it was compared with; empty: none."""
    passage: int | None = None
    """Position of that sentence's passage."""


class Explanation(Frozen):
    """Why a sentence is wrong."""

    items: tuple[WrongItem, ...]
    """What is wrong, the surest first; empty only where the sentence has no words."""
    reason: str
    """One or two sentences, at most about 40 words, with quotations; never empty."""


class Signals(Frozen):
    """How far a sentence is from its evidence; a learnt mixture reads it beside a judge's answer."""

    items: int
    """Numbers, contacts, references, dates and names in the sentence."""
    unsupported_items: float
    """Share of them that neither evidence nor user have; 0 without items."""
    misattributed: float
    """How far the evidence has an item only for something else, from 0 to 1; the largest over the items."""
    negation_differs: bool
    """Whether the evidence says the opposite in nearly the same words."""
    condition_differs: bool
    """Whether the evidence, in nearly the same words, has a condition that the sentence leaves out."""
    missing_in_sentence: float
    """Share of the different content words that the best evidence sentence and its passage's title lack."""
    missing_in_passage: float
    """The share that the best passage lacks."""
    missing_in_all: float
    """The share that all passages lack. The shares are 0 without content words."""


def explain(sentence: str, passages: Sequence[Passage], user_text: str = "") -> Explanation:
    """Find what is wrong in a flagged sentence, and say it.

    Args:
        sentence: as it stands in the reply.
        passages: the evidence.
        user_text: what the user said, questions too.
    """
    claim = _claim(sentence, passages, user_text)
    if not claim.tokens:
        return Explanation(items=(), reason=_WORDLESS)
    found = find_wrong(claim)
    return Explanation(items=tuple(_item(claim, one) for one in found), reason=word_reason(claim, found))


def find_signals(sentence: str, passages: Sequence[Passage], user_text: str = "") -> Signals:
    """Return the same analysis as numbers, for any sentence, flagged or not. Arguments as in `explain`."""
    claim = _claim(sentence, passages, user_text)
    evidence = claim.evidence
    found = find_wrong(claim) if claim.tokens else []
    differing = {difference.kind for difference in find_differences(claim)}
    missing = [_missing(claim.stems, held) for held in evidence.passages]
    return Signals(
        items=len(claim.items),
        unsupported_items=sum(map(claim.absent, claim.items)) / max(len(claim.items), 1),
        misattributed=max((one.strength for one in found if one.fault == "misattributed"), default=0.0),
        negation_differs="negated" in differing,
        condition_differs="condition" in differing,
        missing_in_sentence=_missing(claim.stems, claim.best.stems if claim.best else frozenset()),
        missing_in_passage=min(missing, default=_missing(claim.stems, frozenset())),
        missing_in_all=_missing(claim.stems, evidence.stems),
    )


def _claim(sentence: str, passages: Sequence[Passage], user_text: str) -> ComparedSentence:
    return read_claim(sentence, read_evidence(tuple(passage.text for passage in passages)), user_text)


def _missing(wanted: frozenset[str], held: frozenset[str]) -> float:
    return len(wanted - held) / len(wanted) if wanted else 0.0


def _item(claim: ComparedSentence, one: SentenceFault) -> WrongItem:
    return WrongItem(
        fault=one.fault,
        start=one.place.start,
        end=one.place.end,
        text=one.place.of(claim.text),
        instead=one.instead,
        evidence=one.source.text if one.source else "",
        passage=one.source.passage if one.source else None,
    )
