"""HalluDetect's steps by token probabilities, for small models.

Asked for a list, a small model lists nothing; asked about each sentence, it knows (HalluDetect's false
negatives are of this kind). Self-consistency is the mean over differently worded questions. This shows more
than the same question several times: the probabilities of a one-token answer are already its distribution.
"""

from __future__ import annotations

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.prompt import load_prompt
from hallulab.agents.models.session import Session
from hallulab.agents.served_model import find_catalogue_name
from hallulab.detectors.base.judging import gather_all
from hallulab.detectors.base.questions import Question, find_calibration, split_statements
from hallulab.detectors.halludetect.evidence import (
    EvidenceContext,
    draws_on_user,
    find_clearing_rule,
    measure_lack_of_overlap,
)
from hallulab.detectors.halludetect.strategies import (
    HARMLESS,
    DoubledRetrieval,
    RatedSentence,
    compute_severity,
)
from hallulab.scenarios.text.spans import Region
from hallulab.scenarios.turn_views import TurnView

WORDINGS = ("supported", "proven", "agreed")
"""Questions of the analysis. In all of them Yes speaks for the sentence: small models misunderstand reversed
questions (does it say anything that is not in the evidence?)."""

REASON_TOKENS = 48


class ProbabilityReading(DoubledRetrieval):
    """Ask once a sentence and wording, once for the refiner, and once for each hallucination's reason.

    Args:
        samples: how many of the wordings are asked.
        overlap: whether the overlap of words and numbers counts, as much as the questions together.
        reasons: whether the model is asked for reasons.
        factor, max_characters: see `DoubledRetrieval`.
    """

    def __init__(self, samples: int, overlap: bool, reasons: bool, factor: int, max_characters: int) -> None:
        super().__init__(factor, max_characters)
        self._overlap = overlap
        self._analysis = [Question(name) for name in WORDINGS[:samples]]
        self._refiner = Question("consequence", ("Fact", "Talk"))
        self._reason = load_prompt("hallulab.detectors.halludetect", "reason")
        self._reasons = reasons
        self.prompts = (
            self._memory,
            *(question.prompt for question in self._analysis),
            self._refiner.prompt,
            self._reason,
        )

    async def rate(self, session: Session, grounds: EvidenceContext, view: TurnView) -> list[RatedSentence]:
        """See `JudgingStrategy.rate`: every sentence."""
        regions = split_statements(view.reply)
        return await gather_all(self._rate(session, grounds, view.reply, region) for region in regions)

    async def _rate(
        self, session: Session, grounds: EvidenceContext, reply: str, region: Region
    ) -> RatedSentence:
        text = region.of(reply)
        evidence = grounds.passage_text
        rule = find_clearing_rule(text, grounds)
        if rule is not None:
            return RatedSentence(text=text, region=region, severity=HARMLESS, details={"rule": rule})
        statement = " ".join(text.split())
        held_against = (
            grounds.text if draws_on_user(text, grounds.user_statements, evidence) else grounds.documents
        )
        consequence, *answers = await gather_all(
            [
                self._refiner.ask(session, "", statement),
                *(question.ask(session, held_against, statement) for question in self._analysis),
            ]
        )
        details: dict[str, float | str | None] = {
            f"P(unsupported) {question.name}": 1.0 - yes
            for question, yes in zip(self._analysis, answers, strict=True)
        }
        unsupported = 1.0 - sum(answers) / len(answers)
        if self._overlap:
            unknown = measure_lack_of_overlap(text, f"{evidence}\n{grounds.user_statements}")
            details["lack of overlap"] = unknown
            unsupported = (unsupported + unknown) / 2
        unsupported = find_calibration(find_catalogue_name(session.client), "unsupported").apply(unsupported)
        return RatedSentence(
            text=text,
            region=region,
            severity=compute_severity(unsupported, consequence),
            details={**details, "P(unsupported)": unsupported, "P(consequence)": consequence},
        )

    async def conclude(
        self, session: Session, grounds: EvidenceContext, kept: list[RatedSentence]
    ) -> list[RatedSentence]:
        """See `JudgingStrategy.conclude`."""
        if not self._reasons:
            return kept
        return await gather_all(self._explain(session, grounds, rated) for rated in kept)

    async def _explain(
        self, session: Session, grounds: EvidenceContext, rated: RatedSentence
    ) -> RatedSentence:
        messages = self._reason.fill(evidence=grounds.text, statement=" ".join(rated.text.split()))
        try:
            reason = await session.text("reason", messages, max_tokens=REASON_TOKENS)
        except ModelError as error:
            return rated.without_reason(error, "The model gave no reason.")
        return rated.model_copy(update={"reason": " ".join(reason.split())})
