"""Options of LogicGraph: the paper's parameters (section 4.2) and its ablation (table 5)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hallulab.detectors.logic_graph.consistency import Weighting
from hallulab.scenarios.transcript import Frozen


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
    """What is judged: each factual sentence, so that a verdict has a place in the reply, or all factual
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
    `consistency.shares`). With a small model's probabilities 2 are better than all (docs/methods.md)."""
    question: bool = True
    """Whether the question is part of the claim H, as in the paper: alone, a short answer says nothing."""
    entailment: Literal["served", "hhem"] = "served"
    """Who says how far a group entails a claim: the served model, by the probability of Yes, or
    HHEM-2.1-Open."""
    overlap: float = Field(default=0.5, ge=0.0, le=1.0)
    """Weight in S of the share of the claim's content words that the counted groups hold together
    (`entailment: served`); 0: none, as in the paper. For an answer too short to be a statement, the share is
    multiplied by that of its question. A small model overlooks names and numbers (docs/methods.md)."""
    relevance: Literal["embedding", "served", "reranker"] = "embedding"
    """Who says how relevant a group is. `embedding`: the cosine of the claim and the group's nearest chunk,
    which is free because B has embedded the chunks. The served model, by the probability of Yes. Or
    mxbai-rerank-base-v2. The first is better than a small served model (docs/methods.md)."""
    relevance_temperature: float | None = Field(default=0.1, gt=0.0)
    """τ: groups count by softmax(r / τ) (`relevance: embedding`; ours). None: by r̃ₖ = rₖ / Σ rⱼ, as in the
    paper. The paper's reranker says 0.4 of one group and 8.7 of another (table 8); cosines of 0.3 and 0.6
    would count nearly the same (docs/methods.md)."""
    embedding_model: str = "all-minilm-l6-v2"
    """Makes the vectors; see `hallulab.agents.retrieval.embedding.SentenceEmbedder`."""
    hhem_model: str = "vectara/hallucination_evaluation_model"
    """Folder or hub name of HHEM-2.1-Open."""
    reranker_model: str = "mixedbread-ai/mxbai-rerank-base-v2"
    """Folder or hub name of the reranker."""
    max_group_characters: int = Field(default=12000, ge=100)
    """A longer group is cut; the judgement is then marked truncated. Only without A or with a long T_t."""
