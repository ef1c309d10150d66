"""LogicGraph, "Logic Matters in Lightweight Hallucination Classification for RAG System" (section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.agents.models.model import Session
from hallulab.agents.models.prompt import Prompt
from hallulab.detectors.base.judging import Abstention, make_flagged_spans
from hallulab.detectors.base.protocol import DetectorContext, Traits
from hallulab.detectors.base.served import Scale, ServedDetector
from hallulab.detectors.logic_graph.consistency import compute_shares, compute_support
from hallulab.detectors.logic_graph.options import LogicGraphOptions
from hallulab.detectors.logic_graph.overlap import Overlap
from hallulab.detectors.logic_graph.relations import compute_distances, find_clusters
from hallulab.detectors.logic_graph.scorers import (
    ChunkGroup,
    EmbeddingRelevance,
    Pair,
    Scorer,
    ask_entailment,
    ask_relevance,
)
from hallulab.detectors.logic_graph.segmentation import (
    Claim,
    answer_claims,
    keep_whole_documents,
    split_claims,
    split_documents,
    whole_reply,
)
from hallulab.detectors.logic_graph.vectors import Vectors, get_shared_embedder
from hallulab.detectors.logic_graph.weights import HhemScorer, RerankScorer
from hallulab.scenarios.options import read_options
from hallulab.scenarios.text.spans import split_words
from hallulab.scenarios.transcript import Judgement, Passage, TurnView, Unit

PAPER_THRESHOLD = 0.6
"""1 − T_s with the paper's T_s = 0.4 (section 4.2)."""


class LogicGraphDetector(ServedDetector):
    """Holds each factual sentence of a reply against groups of related pieces of the evidence.

    A sentence's score is 1 − S, so that higher is worse. The reply has the score of its worst sentence: one
    invented sentence makes a reply wrong. With `claims: answer` all sentences together are one claim, as in
    the paper. Units are the claims, of kind `sentence` in the first case. Their details have the relevance of
    every group, and entailment and overlap of the groups that count.

    Raises:
        UsageError: an option is unknown or wrong, the served model is not in the pool, or the weights of a
            model that the options name cannot be had.
    """

    def __init__(self, name: str, context: DetectorContext) -> None:
        options = read_options(f"detector {name}", LogicGraphOptions, context.options)
        self._options = options
        self._vectors = Vectors(get_shared_embedder(options.embedding_model), context.models.recording)
        self._entailment: Scorer = (
            ask_entailment() if options.entailment == "served" else HhemScorer(options.hhem_model)
        )
        self._relevance = self._relevance_scorer()
        used = [self._entailment, *([self._relevance] if self._relevance else [])]
        prompts = [prompt for scorer in used for prompt in scorer.prompts]
        self.traits = Traits(needs_model=bool(prompts))
        usual = options == LogicGraphOptions(threshold=options.threshold)
        scale = Scale(
            prompts,
            untuned=PAPER_THRESHOLD,
            published=_is_as_published(options),
            place=("logic-graph", options.entailment) if usual else None,
        )
        super().__init__(name, context, options, lambda: scale, asked=None if prompts else {})

    def _judging_prompts(self, scale: Scale) -> Sequence[Prompt]:
        """See `ServedDetector`: relevance is no judgement."""
        return self._entailment.prompts

    def _relevance_scorer(self) -> Scorer | None:
        """Return the scorer of relevance; None where relevance does not count."""
        if self._options.weighting != "relevance":
            return None
        if self._options.relevance == "embedding":
            return EmbeddingRelevance(self._vectors)
        if self._options.relevance == "reranker":
            return RerankScorer(self._options.reranker_model)
        return ask_relevance()

    async def _judge(self, session: Session, view: TurnView) -> Judgement:
        """See `ServedDetector`. Abstains without evidence and when the reply claims nothing."""
        if not split_words(view.reply):
            raise Abstention("the reply has no words")
        passages = [passage for passage in view.passages if split_words(passage.text)]
        if not passages:
            raise Abstention("there is no evidence")
        claims = self._claims(view)
        if not claims:
            raise Abstention("no factual statement")
        room = self._options.max_group_characters
        groups = await self._groups(passages)
        units = await self._units(session, [group.cut(room) for group in groups], claims)
        score = max(unit.score for unit in units if unit.score is not None)
        return Judgement(
            outcome="scored",
            score=score,
            flagged=score >= self.threshold,
            spans=make_flagged_spans(units, self.threshold, self._reason, passages),
            units=tuple(units),
            truncated=any(len(group.text) > room for group in groups),
        )

    def _claims(self, view: TurnView) -> list[Claim]:
        question = " ".join(view.question.split()) if self._options.question else ""
        if not self._options.segmentation:
            return whole_reply(view.reply, question)
        if self._options.claims == "sentence":
            return split_claims(view.reply, question)
        return answer_claims(view.reply, self._options.answer_tokens, question)

    async def _groups(self, passages: Sequence[Passage]) -> list[ChunkGroup]:
        """Return D_1 … D_K; without module B every chunk is a group."""
        options = self._options
        chunks = (
            split_documents(passages, options.document_tokens, options.chunk_tokens)
            if options.segmentation
            else keep_whole_documents(passages)
        )
        members = [[index] for index in range(len(chunks))]
        if options.relation_capture and len(chunks) > 1:
            apart = compute_distances(await self._vectors.of([chunk.text for chunk in chunks]))
            members = find_clusters(
                apart, [chunk.tokens for chunk in chunks], options.alpha, options.group_tokens
            )
        return [ChunkGroup(tuple(chunks[index].text for index in cluster)) for cluster in members]

    async def _units(
        self, session: Session, groups: Sequence[ChunkGroup], claims: Sequence[Claim]
    ) -> list[Unit]:
        """Return the claims with their scores.

        Pairs go by group, so that a server keeps the group's evidence in its cache. Entailment is asked only
        of groups that count.
        """
        pairs = [Pair(group, claim) for group in groups for claim in claims]
        relevances = await self._relevance.score(session, pairs) if self._relevance else None
        count = len(claims)
        counted = [self._shares(relevances[c::count] if relevances else None, groups) for c in range(count)]
        asked = [(k, c) for k in range(len(groups)) for c in range(count) if k in counted[c]]
        scores = await self._entailment.score(session, [pairs[k * count + c] for k, c in asked])
        entailed = dict(zip(asked, scores, strict=True))
        overlap = Overlap(groups)
        return [
            self._unit(
                claim,
                {k: entailed[k, c] for k in counted[c]},
                counted[c],
                relevances[c::count] if relevances else (),
                overlap,
            )
            for c, claim in enumerate(claims)
        ]

    def _shares(self, relevances: Sequence[float] | None, groups: Sequence[ChunkGroup]) -> dict[int, float]:
        """Return the share of S of each group that counts for a claim."""
        if relevances is None:
            return compute_shares([1.0] * len(groups))
        options = self._options
        temperature = options.relevance_temperature if options.relevance == "embedding" else None
        return compute_shares(relevances, options.top_groups, temperature)

    def _unit(
        self,
        claim: Claim,
        entailments: dict[int, float],
        weights: dict[int, float],
        relevances: Sequence[float],
        overlap: Overlap,
    ) -> Unit:
        share = self._options.overlap if self._options.entailment == "served" else 0.0
        held = {k: overlap.share(claim, [k]) for k in entailments} if share else {}
        if self._options.weighting == "best":
            supported = max(
                (1 - share) * value + share * held.get(k, 0.0) for k, value in entailments.items()
            )
        else:
            together = overlap.share(claim, weights) if share else 0.0
            supported = (1 - share) * compute_support(entailments, weights) + share * together
        details: dict[str, float | str | None] = {
            f"entailment {k + 1}": value for k, value in entailments.items()
        }
        details |= {f"relevance {number}": value for number, value in enumerate(relevances, start=1)}
        details |= {f"overlap {k + 1}": value for k, value in held.items()}
        return Unit(
            kind="sentence" if self._options.segmentation and self._options.claims == "sentence" else "claim",
            text=claim.text,
            start=claim.region.start,
            end=claim.region.end,
            score=1.0 - min(1.0, supported),  # rounding may end a hair above 1
            details=details,
        )

    def _reason(self, unit: Unit) -> str:
        return (
            f"1 − S = {unit.score:.2f}, threshold {self.threshold:.2f}. No group of related pieces of the "
            "evidence that matters to this bears it out."
        )


def _is_as_published(options: LogicGraphOptions) -> bool:
    """Return whether scores are made as in the paper (sections 3.2, 4.2), so that its T_s means the same."""
    return (
        options.entailment == "hhem"
        and options.relevance == "reranker"
        and options.weighting == "relevance"
        and options.claims == "answer"
        and options.top_groups is None
        and options.relevance_temperature is None
    )
