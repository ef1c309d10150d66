"""The lexical floor: the share of a reply's words that the evidence lacks. No model.

A detector that understands text must beat it. On the knowledge-grounded replies of BEGIN this rule alone
separates attributable from other replies very well; on abstractive replies it does not.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from hallulab.agents.versions import compute_version
from hallulab.detectors.base.judging import make_flagged_spans
from hallulab.detectors.base.protocol import DetectorContext, Traits
from hallulab.detectors.base.reading import identify_reply_language, list_other_languages
from hallulab.detectors.base.thresholds import PolicyDetector, ThresholdPolicy
from hallulab.scenarios.components import read_options
from hallulab.scenarios.text.citations import blank_regions
from hallulab.scenarios.text.courtesies import claims_nothing
from hallulab.scenarios.text.framing import find_lead_in
from hallulab.scenarios.text.languages import are_written_alike, name_language
from hallulab.scenarios.text.numbers import WITHOUT_WORDS, list_word_values
from hallulab.scenarios.text.page_marks import blank_marks
from hallulab.scenarios.text.spans import Region, split_sentences
from hallulab.scenarios.transcript import Frozen, Judgement, Unit
from hallulab.scenarios.turn_views import TurnView


class LexicalOptions(Frozen):
    """Options: the evidence, and the threshold for flags."""

    threshold: float = Field(default=0.25, gt=0.0, le=1.0)
    """Share of unknown words from which a reply, or a sentence of it, is flagged. The default was tuned on
    the development halves of the three parts of BEGIN; one that was calibrated takes its place."""
    dialogue_is_evidence: bool = False
    """True if words of the question and the history count as known, too."""
    claims_only: bool = False
    """True if words of sentences that claim nothing do not count: questions and courtesies, as far as English
    rules know them (`claims_nothing`). A reply of nothing else has the score 0."""


class LexicalDetector(PolicyDetector):
    """Share of a reply's words that the evidence does not hold, without a model: the floor to beat.

    Each occurrence of a word counts, case aside, but for those that lead to claims (`Based on the passages,
    here are the steps:`). It reads any language that writes words apart, and Chinese,
    Japanese (by characters) and Thai; its threshold was tuned on English. Numbers of other languages than
    English count by their value.
    """

    KIND = "lexical"
    OPTIONS = LexicalOptions
    traits = Traits(needs_model=False)

    def __init__(self, name: str, context: DetectorContext) -> None:
        options = read_options(f"detector {name}", LexicalOptions, context.options)
        self.name = name
        self._options = options
        given = options.threshold if "threshold" in options.model_fields_set else None
        self.follow(ThresholdPolicy(given, lambda: (options.threshold, "tuned"), self._identity))

    def _identity(self, threshold: float | None) -> str:
        return compute_version(
            __name__, self.VERSION, {**self._options.model_dump(mode="json"), "threshold": threshold}
        )

    async def detect(self, view: TurnView) -> Judgement:
        """See `Detector.detect`.

        Abstains when the reply or the evidence has no words, when words of the reply's language cannot be
        told apart, and when the evidence is in another language.
        """
        language = identify_reply_language(view)
        if language in WITHOUT_WORDS:
            reason = f"the reply is in {name_language(language)}, whose words {self.name} cannot tell apart"
            return Judgement(outcome="abstained", error=reason)
        texts = [passage.text for passage in view.passages]
        if self._options.dialogue_is_evidence:
            texts += [*(message.text for message in view.history), view.question]
        known = {word for text in texts for word in list_word_values(text, language)}
        if not list_word_values(blank_marks(view.reply), language):
            return Judgement(outcome="abstained", error="the reply has no words")
        if not known:
            return Judgement(outcome="abstained", error="there is no evidence")
        others = list_other_languages(view, lambda written: are_written_alike(language, written))
        if others:
            reason = f"the reply is in {name_language(language)} and the evidence in {others}"
            return Judgement(outcome="abstained", error=f"{reason}: their words cannot be compared")
        reply = _blank_unclaimed(view.reply, courtesies=self._options.claims_only)
        said = list_word_values(reply, language)
        score = sum(word not in known for word in said) / len(said) if said else 0.0
        units = tuple(self._units(view.reply, reply, language, known))
        spans = make_flagged_spans(
            units, self.threshold, lambda unit: f"not in the evidence: {unit.details['unknown']}"
        )
        return Judgement(
            outcome="scored", score=score, flagged=score >= self.threshold, spans=spans, units=units
        )

    def _units(self, reply: str, claims: str, language: str, known: set[str]) -> Iterable[Unit]:
        for region in split_sentences(reply):
            found = list_word_values(region.of(claims), language)
            unknown = [word for word in found if word not in known]
            yield Unit(
                text=region.of(reply),
                start=region.start,
                end=region.end,
                score=len(unknown) / len(found) if found else None,
                details={"unknown": ", ".join(dict.fromkeys(unknown))},
            )


def _blank_unclaimed(reply: str, *, courtesies: bool) -> str:
    """Return a reply with spaces in place of marks and of what only leads to claims, so that places stay.

    Args:
        courtesies: whether the sentences that claim nothing are such places, too.
    """
    plain = blank_marks(reply)
    numbered = blank_marks(reply, list_numbers=False)
    regions = []
    for region in split_sentences(reply):
        nothing = courtesies and claims_nothing(region.of(plain))
        # The number of a question tells that it is repeated before its answer.
        lead_in = Region(0, region.end - region.start) if nothing else find_lead_in(region.of(numbered))
        if lead_in is not None:
            regions.append((region.start + lead_in.start, region.start + lead_in.end))
    return blank_regions(plain, regions)
