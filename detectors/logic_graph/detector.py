"""LogicGraph: a reply's segments, their relations, and the evidence that each is held against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from hallulab.agents.models.prompt import Prompt
from hallulab.agents.models.session import Session
from hallulab.detectors.base.judging import Abstention, Scale, ServedDetector, make_flagged_spans
from hallulab.detectors.base.protocol import DetectorContext, Traits
from hallulab.detectors.logic_graph.relations import (
    Weighting,
    compute_distances,
    compute_shares,
    compute_support,
    find_clusters,
)
from hallulab.detectors.logic_graph.scorers import (
    ChunkGroup,
    EmbeddingRelevance,
    Overlap,
    Pair,
    Scorer,
    Vectors,
    ask_entailment,
    ask_relevance,
    get_shared_embedder,
)
from hallulab.detectors.logic_graph.segmentation import (
    Claim,
    claim_whole_reply,
    join_answer_claims,
    keep_whole_documents,
    split_claims,
    split_documents,
)
from hallulab.detectors.logic_graph.weights import HhemScorer, RerankScorer
from hallulab.scenarios.components import LeadsTo, read_options
from hallulab.scenarios.text.spans import split_words
from hallulab.scenarios.transcript import Frozen, Judgement, Passage, Unit
from hallulab.scenarios.turn_views import TurnView


class LogicGraphOptions(Frozen):
    """Options of the detector `logic-graph`.

    The ablation of table 5: `segmentation: false` is "w/o A", `relation_capture: false` "w/o B", `weighting:
    equal` "w/o C". The baseline to beat is the scorer on the best single chunk: `relation_capture: false`,
    `weighting: best` and `overlap: 0`.
    """

    threshold: float | None = Field(default=None, gt=0.0, le=1.0)
    """Score 1 − S from which a claim, and with it the reply, is flagged. None: the one tuned for the model,
    if there is one and all other options are the default; else 0.6, because the paper calls S > T_s = 0.4 no
    hallucination."""
    claims: Literal["sentence", "answer"] = "sentence"
    """Unit of judgement: each factual sentence, so that a verdict has a place in the reply, or all factual
    sentences together, as in the paper (A′)."""
    answer_tokens: int = Field(default=512, ge=1)
    """T_a: longer answers are judged in parts (`claims: answer`)."""
    document_tokens: int = Field(default=512, ge=1)
    """T_d: longer passages are cut."""
    chunk_tokens: int = Field(default=256, ge=1)
    """C: no chunk is longer; see `segmentation.document_chunks` for its relation to T_d."""
    group_tokens: int = Field(default=1024, ge=1)
    """T_t: chunks are put together up to this length."""
    alpha: float = Field(default=0.85, gt=0.0)
    """α: chunks are related if their distance is at most α times the mean distance. The paper does not give
    it. On 45 HotpotQA questions, 0.85 puts 27% of the pairs of paragraphs that answer a question together
    into one group, and 11% of the other pairs: the largest difference between 0.6 and 1. It leaves 7.4 groups
    of 10 paragraphs; the paper's example (table 9) has 8."""
    segmentation: bool = True
    """Module A: whether passages are cut, and the reply is filtered and split."""
    relation_capture: bool = True
    """Module B: whether related chunks are read together."""
    weighting: Weighting = "relevance"
    """Module C: how groups count: by relevance, all equally, or only the one that entails most."""
    top_groups: int | None = Field(default=2, ge=1)
    """Only this many of the most relevant groups count (`weighting: relevance`); None: all, as in the
    equation. No other group is asked about. The paper's worked example counts 2 and 5 (see
    `consistency.shares`). With a small model's probabilities 2 are better than all
    (docs/studies/published-methods.md)."""
    question: bool = True
    """True if the question is part of the claim H, as in the paper: alone, a short answer says nothing."""
    entailment: Literal["served", "hhem"] = "served"
    """Who says how far a group entails a claim: the served model, by the probability of Yes, or
    HHEM-2.1-Open."""
    overlap: float = Field(default=0.5, ge=0.0, le=1.0)
    """Weight in S of the share of the claim's content words that the counted groups hold together
    (`entailment: served`); 0: none, as in the paper. For an answer too short to be a statement, the share is
    multiplied by that of its question. A small model overlooks names and numbers
    (docs/studies/published-methods.md)."""
    relevance: Literal["embedding", "served", "reranker"] = "embedding"
    """Who says how relevant a group is. `embedding`: the cosine of the claim and the group's nearest chunk,
    which is free because B has embedded the chunks. The served model, by the probability of Yes. Or
    mxbai-rerank-base-v2. The first is better than a small served model
    (docs/studies/published-methods.md)."""
    relevance_temperature: float | None = Field(default=0.1, gt=0.0)
    """τ: groups count by softmax(r / τ) (`relevance: embedding`; ours). None: by r̃ₖ = rₖ / Σ rⱼ, as in the
    paper. The paper's reranker says 0.4 of one group and 8.7 of another (table 8); cosines of 0.3 and 0.6
    would count nearly the same (docs/studies/published-methods.md)."""
    embedding_model: Annotated[str, LeadsTo("embedding")] = "all-minilm-l6-v2"
    """Makes the vectors; see `hallulab.agents.retrieval.embeddings.SentenceEmbedder`."""
    hhem_model: Annotated[str, LeadsTo("weights")] = "vectara/hallucination_evaluation_model"
    """Folder or hub name of HHEM-2.1-Open."""
    reranker_model: Annotated[str, LeadsTo("weights")] = "mixedbread-ai/mxbai-rerank-base-v2"
    """Folder or hub name of the reranker."""
    max_group_characters: int = Field(default=12000, ge=100)
    """A longer group is cut; the judgement is then marked truncated. Only without A or with a long T_t."""


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

    KIND = "logic-graph"
    languages: tuple[str, ...] | None = ("en",)
    OPTIONS = LogicGraphOptions
    VARIANTS = "ours by default: sentences, two groups, softmax, half overlap, the served model as NLI"

    def __init__(self, name: str, context: DetectorContext) -> None:
        options = read_options(f"detector {name}", LogicGraphOptions, context.options)
        self._options = options
        self._vectors = Vectors(get_shared_embedder(options.embedding_model), context.models.recording)
        self._entailment: Scorer = (
            ask_entailment() if options.entailment == "served" else HhemScorer(options.hhem_model)
        )
        self._relevance = self._relevance_scorer()
        if not _has_english_parts(options):
            self.languages = None
        used = [self._entailment, *([self._relevance] if self._relevance else [])]
        prompts = [prompt for scorer in used for prompt in scorer.prompts]
        self.traits = Traits(needs_model=bool(prompts))
        usual = options == LogicGraphOptions(threshold=options.threshold)
        scale = Scale(
            prompts,
            untuned=PAPER_THRESHOLD,
            published=_is_as_published(options),
            tuned=options.entailment if usual else None,
            variant=_name_variant(options),
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
            return claim_whole_reply(view.reply, question)
        if self._options.claims == "sentence":
            return split_claims(view.reply, question)
        return join_answer_claims(view.reply, self._options.answer_tokens, question)

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


def _has_english_parts(options: LogicGraphOptions) -> bool:
    """Return whether HHEM, English stems or the default embeddings have a part in the scores.

    These know English. Other models know the languages that they were trained on.
    """
    embeds = options.relation_capture or (
        options.weighting == "relevance" and options.relevance == "embedding"
    )
    return (
        options.entailment == "hhem"
        or options.overlap > 0
        or (embeds and options.embedding_model == LogicGraphOptions().embedding_model)
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


def _name_variant(options: LogicGraphOptions) -> str:
    """Return in words what is judged, by which groups, and by whom."""
    modules = [
        name for name, used in (("A", options.segmentation), ("B", options.relation_capture)) if not used
    ]
    if options.weighting == "relevance":
        groups = f"top {options.top_groups} groups" if options.top_groups else "all groups"
        soft = options.relevance == "embedding" and options.relevance_temperature is not None
        groups += " by softmax" if soft else ""
    else:
        groups = "all groups alike" if options.weighting == "equal" else "the best group"
    share = f" and overlap {options.overlap:g}" if options.overlap else ""
    parts = [
        "sentences" if options.claims == "sentence" else "the whole answer",
        groups,
        "HHEM" if options.entailment == "hhem" else f"served model{share}",
        *(f"without {name}" for name in modules),
    ]
    return ", ".join(parts)
