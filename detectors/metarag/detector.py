"""MetaRAG's Algorithm 1 and its options: decompose, mutate, verify, score (sections 3.2 to 3.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.prompt import Prompt, load_prompt
from hallulab.agents.models.session import Session
from hallulab.agents.served_model import find_catalogue_name
from hallulab.detectors.base.judging import (
    Abstention,
    PromptEvidence,
    Scale,
    ServedDetector,
    find_best_passage,
    format_cited,
    format_evidence,
    gather_all,
    has_evidence,
)
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.base.questions import list_calibrations
from hallulab.detectors.explanations.explanation import explain
from hallulab.detectors.metarag.steps import (
    MIDWAY_TAU,
    PAPER_TAU,
    SUPPORTED,
    Check,
    Factoid,
    Variant,
    Verifier,
    decompose,
    mutate,
    score_factoid,
    score_response,
)
from hallulab.detectors.metarag.together import judge_together
from hallulab.scenarios.components import read_options
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack import TopicThreshold, choose_threshold
from hallulab.scenarios.transcript import Frozen, Judgement, Passage, Span, Unit
from hallulab.scenarios.turn_views import TurnView

Threshold = Annotated[float, Field(ge=0.0, le=1.0)]
Temperature = Annotated[float, Field(ge=0.0, le=2.0)]


class MetaRagOptions(Frozen):
    """Options of the detector `metarag`."""

    mutations: int = Field(default=2, ge=1, le=8)
    """N: variants of each relation for each factoid."""
    tau: Threshold | None = None
    """Score from which a factoid, and with it the reply, is flagged. None: the one tuned for the model if
    there is one, else the paper's 0.5 for printed words, and 0.375 for probabilities."""
    identity_thresholds: dict[str, TopicThreshold] | None = None
    """Stricter thresholds by topic, such as `pregnancy: 0.3`, or one for each reading: `pregnancy: {word:
    0.3, probability: 0.49}`. Of the topics of the evidence, the lowest one counts if it is below `tau`. None:
    the scenario's."""
    reading: Literal["auto", "probability", "word"] = "auto"
    """How a verifier's decision is read: as the printed word YES, NO or NOT SURE, as in the paper, or from
    the probabilities of its first word. `auto`: by `probability` for models that the catalogue calls
    small, where the endpoint gives log-probabilities; else by `word`."""
    decomposer: str | None = None
    """Model (a name under `models`) that splits replies into factoids. None: the detector's own."""
    mutator: str | None = None
    """Model that writes the variants. None: the detector's own."""
    verifiers: tuple[str, ...] = ()
    """Models that verify; several are an ensemble with the mean penalty. Empty: the detector's own."""
    decomposition_temperature: Temperature = 0.0
    """Temperature of decomposition."""
    mutation_temperature: Temperature = 0.0
    """Temperature of mutation; the paper compares 0 and 0.7."""
    verification_temperature: Temperature = 0.0
    """Temperature of verification by printed word."""
    together: bool = False
    """True if all variants of a reply's factoids and the verdicts on them are asked for in one request (ours,
    not published; about an eighth of the tokens). It takes a capable model, which prints words, and has the
    temperature of mutation."""
    max_factoids: int = Field(default=24, ge=1)
    """More factoids of a reply are not judged; the judgement is then marked truncated."""
    max_evidence_characters: int = Field(default=12000, ge=100)
    """Longer evidence is cut here; the judgement is then marked truncated."""


FACT = "fact"
"""The name of the fact itself among its variants."""


class MetaRagDetector(ServedDetector):
    """Splits a reply into facts and checks synonyms and antonyms of each against the evidence (S, 0-1).

    The evidence entails the synonyms of a true fact and contradicts its antonyms. A factoid with other
    variants is flagged. Units are the factoids with their S_i, then the sentences for which decomposition
    states no fact (`skipped` in their details, no score). Those are neither judged nor failures:
    decomposition decides what a reply claims. They leave outcome, score and `truncated` as they are.

    Raises:
        UsageError: an option is unknown or wrong, or names a model that the pool does not have.
    """

    KIND = "metarag"
    OPTIONS = MetaRagOptions
    VARIANTS = (
        "`word`, the paper's; `word, together`, which asks for variants and verdicts at once (`together`); "
        "`probability`, with the fact as one more variant, for small models"
    )

    def __init__(self, name: str, context: DetectorContext) -> None:
        options = read_options(f"detector {name}", MetaRagOptions, context.options)
        if options.identity_thresholds is None:
            options = options.model_copy(update={"identity_thresholds": dict(context.identity_thresholds)})
        if options.together:
            _require_one_model(name, options)
        self._options = options
        self._verifier_names: tuple[str | None, ...] = options.verifiers or (context.model,)
        given = "word" if options.together else options.reading
        self._verifier = Verifier(None if given == "auto" else given, options.verification_temperature)
        self._decomposition = load_prompt("hallulab.detectors.metarag", "decomposition")
        self._mutation = load_prompt("hallulab.detectors.metarag", "mutation")
        self._together = load_prompt("hallulab.detectors.metarag", "together")
        self._verifiers = {
            f"verifier {index}": context.models.get(name) for index, name in enumerate(self._verifier_names)
        }
        super().__init__(
            name,
            context,
            options,
            self._scale_of_verifiers,
            option="tau",
            asked={
                **self._verifiers,
                "decomposer": context.models.get(options.decomposer or context.model),
                "mutator": context.models.get(options.mutator or context.model),
            },
            judging=tuple(self._verifiers),
        )

    def _scale_of_verifiers(self) -> Scale:
        """Return the paper's scale if every verifier prints words."""
        readings = [self._verifier.reading_of(client) for client in self._verifiers.values()]
        by_word = set(readings) == {"word"}
        if self._options.together:
            return Scale(
                (self._decomposition, self._together),
                untuned=PAPER_TAU,
                in_force={"reading": readings},
                reading="word",
                variant="word, together",
            )
        first = list_calibrations(find_catalogue_name(self._verifiers["verifier 0"])).get(SUPPORTED)
        return Scale(
            (self._decomposition, self._mutation, self._verifier.prompt),
            untuned=PAPER_TAU if by_word else MIDWAY_TAU,
            published=by_word,
            tuned=readings[0] if len(set(readings)) == 1 else None,
            corrections=first if readings[0] == "probability" else None,
            in_force={"reading": readings},
            reading="word" if by_word else "probability",
            variant="word" if by_word else f"{' and '.join(dict.fromkeys(readings))}, with the fact itself",
        )

    @property
    def _asks_fact(self) -> bool:
        """True if the fact itself is verified, too: not if all is as published."""
        return not self.scale.published

    def _judging_prompts(self, scale: Scale) -> Sequence[Prompt]:
        """See `ServedDetector`: the models that decompose and mutate do not judge."""
        return (self._together if self._options.together else self._verifier.prompt,)

    async def _judge(self, session: Session, view: TurnView) -> Judgement:
        """See `ServedDetector`. Abstains without a reply, without evidence, and without factoids."""
        options = self._options
        evidence = format_evidence(view.own_passages, options.max_evidence_characters, view.earlier_passages)
        if not view.reply.strip():
            raise Abstention("the reply is empty")
        if not has_evidence(view.passages):
            raise Abstention("there is no evidence")
        decomposition = await decompose(
            session.on(options.decomposer or self._context.model),
            self._decomposition,
            view.question,
            view.reply,
            temperature=options.decomposition_temperature,
            limit=options.max_factoids,
        )
        if not decomposition.factoids:
            raise Abstention("no factual statement")
        if options.together:
            units = await self._score_together(session, view.question, decomposition.factoids, evidence)
        else:
            question = view.question if self.scale.published else ""
            units = await gather_all(
                self._score(session, question, factoid, evidence) for factoid in decomposition.factoids
            )
        judgement = _aggregate(units, view, evidence.passages, self._tau_for(view.own_passages))
        why: dict[str, float | str | None] = {"skipped": "decomposition states no fact of it"}
        skipped = (
            Unit(text=region.of(view.reply), start=region.start, end=region.end, details=why)
            for region in decomposition.skipped
        )
        truncated = evidence.truncated or decomposition.cut_off
        return judgement.model_copy(update={"units": (*units, *skipped), "truncated": truncated})

    async def _score(
        self, session: Session, question: str, factoid: Factoid, evidence: PromptEvidence
    ) -> Unit:
        """Return one factoid with its S_i, or without a score and with the reason."""
        unit = Unit(text=factoid.text, start=factoid.region.start, end=factoid.region.end)
        try:
            variants = await mutate(
                session.on(self._options.mutator or self._context.model),
                self._mutation,
                factoid.text,
                question=question,
                count=self._options.mutations,
                temperature=self._options.mutation_temperature,
            )
            asked = _name_variants(variants)
            if self._asks_fact:
                asked = [(FACT, Variant(relation="synonym", text=factoid.text)), *asked]
            checks = await self._verify(session, evidence.text, [variant for _, variant in asked])
        except ModelError as error:
            return unit.model_copy(update={"details": {"error": str(error)}})
        return self._grade(unit, asked, checks)

    async def _score_together(
        self, session: Session, question: str, factoids: Sequence[Factoid], evidence: PromptEvidence
    ) -> list[Unit]:
        """Return what `_score` does of each factoid, by one request for all."""
        units = [Unit(text=one.text, start=one.region.start, end=one.region.end) for one in factoids]
        try:
            found = await judge_together(
                session.on(self._verifier_names[0]),
                self._together,
                evidence.text,
                factoids,
                question=question,
                count=self._options.mutations,
                temperature=self._options.mutation_temperature,
            )
        except ModelError as error:
            return [unit.model_copy(update={"details": {"error": str(error)}}) for unit in units]
        left_out = {"error": "together: the model's answer leaves this fact out, or a rewording of it"}
        return [
            self._grade(
                unit,
                _name_variants([variant for variant, _ in found[place]]),
                [(check,) for _, check in found[place]],
            )
            if place in found
            else unit.model_copy(update={"details": left_out})
            for place, unit in enumerate(units)
        ]

    def _grade(
        self, unit: Unit, asked: Sequence[tuple[str, Variant]], checks: Sequence[Sequence[Check]]
    ) -> Unit:
        """Return a factoid with its S_i.

        Args:
            asked: names and variants.
            checks: those of each variant, one a verifier.
        """
        penalties = {
            name: sum(check.penalty for check in each) / len(each)
            for (name, _), each in zip(asked, checks, strict=True)
        }
        synonyms, antonyms = (
            [penalties[name] for name, variant in asked if variant.relation == relation and name != FACT]
            for relation in ("synonym", "antonym")
        )
        score = score_factoid(synonyms, antonyms, penalties.get(FACT))
        details = self._details(asked, checks, penalties)
        return unit.model_copy(update={"score": score, "details": details})

    async def _verify(
        self, session: Session, evidence: str, variants: Sequence[Variant]
    ) -> list[tuple[Check, ...]]:
        found = await gather_all(
            self._verifier.check(session.on(name), evidence, variants) for name in self._verifier_names
        )
        return list(zip(*found, strict=True))

    def _details(
        self,
        asked: Sequence[tuple[str, Variant]],
        checks: Sequence[Sequence[Check]],
        penalties: Mapping[str, float],
    ) -> dict[str, float | str | None]:
        details: dict[str, float | str | None] = {}
        for (key, variant), each in zip(asked, checks, strict=True):
            details[key] = variant.text
            details[f"{key} penalty"] = penalties[key]
            for name, check in zip(self._verifier_names, each, strict=True):
                prefix = f"{key} {name}" if len(each) > 1 else key
                details |= {f"{prefix} P({word})": share for word, share in check.decisions.items()}
        return details

    def _tau_for(self, passages: Sequence[Passage]) -> float:
        """Return the threshold for a turn's passages (section 3.6): the lowest of the general and theirs."""
        topics = {passage.topic for passage in passages}
        stricter = [
            choose_threshold(given, self.reading)
            for topic, given in (self._options.identity_thresholds or {}).items()
            if topic in topics
        ]
        return min([self.threshold, *stricter])


def _require_one_model(name: str, options: MetaRagOptions) -> None:
    """Raise UsageError if options ask for more than one request to one model can do."""
    if options.mutator is not None or len(options.verifiers) > 1:
        raise UsageError(
            f"detector {name}: `together` asks one model for variants and verdicts. Leave out `mutator`, and "
            "name at most one of `verifiers`."
        )
    if options.reading == "probability":
        raise UsageError(
            f"detector {name}: `together` reads printed words. Leave out `reading`, or `together`."
        )


def _name_variants(variants: Sequence[Variant]) -> list[tuple[str, Variant]]:
    """Name variants by relation and number: `synonym 1`."""
    number = {"synonym": 0, "antonym": 0}
    named = []
    for variant in variants:
        number[variant.relation] += 1
        named.append((f"{variant.relation} {number[variant.relation]}", variant))
    return named


def _aggregate(units: Sequence[Unit], view: TurnView, passages: Sequence[Passage], tau: float) -> Judgement:
    """Return H over the factoids (equation 2), and a span for each one with S_i of `tau` or more.

    Some factoids may have no score only if another one is flagged. Otherwise H, a maximum, could be anything,
    and the judgement fails.
    """
    scores = [unit.score for unit in units if unit.score is not None]
    unscored = [unit for unit in units if unit.score is None]
    if unscored and (not scores or score_response(scores) < tau):
        others = ", no other is flagged" if scores else ""
        reason = f"{len(unscored)} of {len(units)} factoids could not be scored{others}"
        error = f"{reason}: {unscored[0].details['error']}"
        return Judgement(outcome="failed", units=tuple(units), error=error)
    score = score_response(scores)
    spans = tuple(
        _explain(unit, view, passages) for unit in units if unit.score is not None and unit.score >= tau
    )
    return Judgement(outcome="scored", score=score, flagged=score >= tau, spans=spans, units=tuple(units))


def _explain(unit: Unit, view: TurnView, shown: Sequence[Passage]) -> Span:
    """Return a flagged factoid with its reason; the unit's details have the results of each variant.

    The reason is by all passages of the turn, so that "no passage" means none of them. The evidence is one
    of those that the verifiers were shown.
    """
    found = explain(unit.text, view.passages, view.user_text)
    cited = None if found.passage is None else view.passages[found.passage]
    return Span(
        start=unit.start,
        end=unit.end,
        text=unit.text,
        score=unit.score,
        reason=found.reason,
        evidence=format_cited(cited)
        if cited is not None and cited in shown
        else find_best_passage(unit.text, shown),
    )
