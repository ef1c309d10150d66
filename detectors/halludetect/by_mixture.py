"""HalluDetect for small models: one question a sentence, with examples, on the turn's own passages.

The question is the one that MetaRAG asks (YES, NO or NOT SURE); the probability of YES counts.
docs/methods.md says where it departs from the paper. Doubled retrieval, zero-shot questions and a fixed
mixture with overlap each cost a small judge more than its own weakness does.
"""

from __future__ import annotations

import re

from hallulab.agents.models.model import Session
from hallulab.agents.retrieval.reformulation import reformulate
from hallulab.detectors.base.courtesy import claims_nothing
from hallulab.detectors.base.evidence_questions import VERIFICATION, VERIFICATION_WORDS, Question
from hallulab.detectors.base.judging import format_evidence, gather_all
from hallulab.detectors.base.statements import split_statements
from hallulab.detectors.base.wrong_items.explanation import explain, find_signals
from hallulab.detectors.halludetect.evidence import EvidenceContext, merge_passages
from hallulab.detectors.halludetect.mixture import (
    Mixture,
    compute_probability,
    log_odds,
    measure_reply,
    measure_sentence,
)
from hallulab.detectors.halludetect.own_evidence import adds_support, choose_nearest_passages
from hallulab.detectors.halludetect.reading import RatedSentence
from hallulab.detectors.halludetect.severity import HARMLESS, compute_severity
from hallulab.detectors.halludetect.user_said import repeats_user
from hallulab.scenarios.text.courtesies import is_courtesy
from hallulab.scenarios.text.spans import Region, split_words
from hallulab.scenarios.transcript import Passage, TurnView

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
        shown = format_evidence(choose_nearest_passages(view.passages, view.reply, self._room), self._room)
        query = None
        found: tuple[Passage, ...] = ()
        if view.knowledge is not None and not is_courtesy(view.question):
            query = await reformulate(session, view.history, view.question)
            found = await view.knowledge.search(query, self._factor * max(len(view.passages), 1))
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
            details |= {"rule": "a contact of something else", LOG_ODDS: log_odds(MISPLACED)}
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
        more = [passage for passage in grounds.found if adds_support(sentence, grounds.passages, passage)]
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
        passages = (*grounds.passages, *grounds.found)
        return [
            item.model_copy(update={"reason": explain(item.text, passages, grounds.user_text).reason})
            for item in kept
        ]


def find_clearing_rule(sentence: str, grounds: EvidenceContext) -> str | None:
    """Return why a sentence needs no judging, or None."""
    if claims_nothing(sentence):
        return "claims nothing"
    if repeats_user(sentence, grounds.user_statements, grounds.passage_text):
        return "repeats what the user said"
    return None


def gives_contact_of_another(sentence: str, grounds: EvidenceContext) -> bool:
    """Return whether a sentence gives something else's contact where the evidence has the right one."""
    found = explain(sentence, grounds.passages, grounds.user_text).items
    return any(
        item.fault == "misattributed" and bool(item.instead) and _CONTACT.fullmatch(item.text) is not None
        for item in found
    )
