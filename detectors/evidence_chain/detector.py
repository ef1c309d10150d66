"""The six EvidenceChain detectors: a reply's risk, its sentences', its words', and the evidence of each."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal

from detectors.evidence_chain.batch import Batch, Case, make_case
from detectors.evidence_chain.features import PAPER_FEATURES, FeatureSet
from detectors.evidence_chain.model import ChainModel, Scores, load_model
from detectors.evidence_chain.options import RuleOptions, TrainedOptions
from detectors.evidence_chain.risk import Method
from detectors.evidence_chain.training import train
from detectors.judging import configuration_version
from detectors.origin import UNKNOWN, Origin
from detectors.protocol import DetectorContext, ThresholdProtocol
from scenarios.errors import UsageError
from scenarios.labelled import LabelledReply
from scenarios.options import read_options
from scenarios.recording import digest
from scenarios.transcript import Judgement, Span, TurnView, Unit

BLOCK = 1024
"""Replies judged together; more would only take memory."""


class EvidenceChainDetector:
    """What the six methods share; the model comes with the package, or from `fit`, or from a file.

    A reply's score is the largest of its sentences' (the paper scores none); a word's is its sentence's times
    the evidence against the word. Flagged words that follow each other in a sentence are one span; a reply
    that is not flagged has none; one that is flagged without a flagged word has its riskiest sentence.
    """

    method: ClassVar[Method]
    """Which of the six."""

    def __init__(self, name: str, context: DetectorContext) -> None:
        schema = TrainedOptions if self.method in ("lr", "rf") else RuleOptions
        self._options = read_options(f"detector {name}", schema, context.options)
        self.name = name
        read = set(self._options.context) if isinstance(self._options, TrainedOptions) else set[str]()
        self.reads_origin = bool(read - {"task"})
        self._use(load_model(Path(self._options.model)) if self._options.model else self._shipped())

    @property
    def model(self) -> ChainModel:
        """What it judges by: `save_model` keeps it."""
        return self._model

    async def detect(self, view: TurnView) -> Judgement:
        """See `Detector.detect`. Abstains when the reply or the evidence has no words."""
        return self.detect_batch([view])[0]

    def detect_batch(self, views: Sequence[TurnView]) -> list[Judgement]:
        """See `BatchDetector.detect_batch`."""
        return self.detect_from(views, [UNKNOWN] * len(views))

    def detect_from(self, views: Sequence[TurnView], origins: Sequence[Origin]) -> list[Judgement]:
        """See `OriginDetector.detect_from`."""
        return self._judge([make_case(view, origin) for view, origin in zip(views, origins, strict=True)])

    def fit(self, replies: Sequence[LabelledReply], seed: int = 0) -> None:
        """See `TrainableDetector.fit`. The methods without training learn thresholds and word frequencies."""
        options = self._options
        if isinstance(options, TrainedOptions):
            self._use(train(self.method, replies, seed, options.features, options.context))
        else:
            self._use(train(self.method, replies, seed))

    def _shipped(self) -> ChainModel:
        """Trained on the task alone; what else the option `context` names needs `fit`."""
        if isinstance(self._options, TrainedOptions):
            return _shipped_model(self.method, self._options.features)
        return _shipped_model(self.method, "paper")

    def _use(self, model: ChainModel) -> None:
        if model.method != self.method:
            raise UsageError(
                f"detector {self.name}: {self._options.model} holds a model of evidence-chain-{model.method}."
                f" Use that detector, or train evidence-chain-{self.method}."
            )
        self._model = model
        given = self._options.threshold
        self.threshold: float | None = model.thresholds.response if given is None else given
        self.threshold_protocol: ThresholdProtocol = "tuned" if given is None else "given"
        self.version = digest([configuration_version(__name__, self._options), model.identity])[:16]

    def _judge(self, cases: Sequence[Case]) -> list[Judgement]:
        judgements: list[Judgement] = []
        with _collector_paused():
            for start in range(0, len(cases), BLOCK):
                block = cases[start : start + BLOCK]
                judgements += _Judging(self, self._model.score(block), self._options).judgements()
        return judgements


class _Judging:
    """Turns the arrays of a block into judgements."""

    def __init__(self, detector: EvidenceChainDetector, scores: Scores, options: RuleOptions) -> None:
        self._scores = scores
        self._batch: Batch = scores.batch
        self._thresholds = detector.model.thresholds
        self._threshold = detector.threshold or 0.0
        self._chunks: list[int] = scores.features.matches[options.attribution].chunk.tolist()
        self._sentence_scores: list[float] = scores.sentences.tolist()
        self._word_scores: list[float] = scores.words.tolist()

    def judgements(self) -> list[Judgement]:
        batch, scores = self._batch, self._scores.replies.tolist()
        sentence_rows = _rows_by_reply(batch.sentences.reply.tolist(), len(scores))
        word_rows = _rows_by_reply(batch.words.reply.tolist(), len(scores))
        read = set(batch.tokens.text.tolist())
        evidenced = set(batch.chunk_source[batch.chunk_tokens.text].tolist())
        judged = []
        for index, (source, score) in enumerate(zip(batch.source.tolist(), scores, strict=True)):
            if index not in read:
                judged.append(Judgement(outcome="abstained", error="the reply has no words"))
            elif source not in evidenced:
                judged.append(Judgement(outcome="abstained", error="there is no evidence"))
            else:
                judged.append(self._judgement(index, score, sentence_rows[index], word_rows[index]))
        return judged

    def _judgement(self, reply: int, score: float, sentences: range, words: range) -> Judgement:
        flagged = score >= self._threshold
        return Judgement(
            outcome="scored",
            score=score,
            flagged=flagged,
            spans=tuple(self._spans(reply, sentences, words)) if flagged else (),
            units=(
                *self._units("sentence", reply, sentences),
                *self._units("word", reply, words),
            ),
        )

    def _units(self, kind: Literal["sentence", "word"], reply: int, rows: range) -> Iterator[Unit]:
        pieces = self._batch.sentences if kind == "sentence" else self._batch.words
        scores = self._sentence_scores if kind == "sentence" else self._word_scores
        text, part = self._batch.cases[reply].reply, slice(rows.start, rows.stop)
        for row, start, end in zip(rows, pieces.start[part].tolist(), pieces.end[part].tolist(), strict=True):
            yield Unit(
                kind=kind,
                text=text[start:end],
                start=start,
                end=end,
                score=scores[row],
                details=self._details(row, reply) if kind == "sentence" else {},
            )

    def _details(self, sentence: int, reply: int) -> dict[str, float | str | None]:
        values = self._scores.features.sentences[sentence].tolist()
        measured = dict(zip(PAPER_FEATURES, values, strict=False))
        return {**measured, "passage": self._passage(sentence, reply)}

    def _spans(self, reply: int, sentences: range, words: range) -> Iterator[Span]:
        text, batch = self._batch.cases[reply].reply, self._batch
        owner = batch.word_sentence
        runs: list[list[int]] = []
        for word in words:
            if self._word_scores[word] < self._thresholds.word:
                continue
            if runs and runs[-1][-1] == word - 1 and owner[word] == owner[word - 1]:
                runs[-1].append(word)
            else:
                runs.append([word])
        for run in runs:
            start, end = int(batch.words.start[run[0]]), int(batch.words.end[run[-1]])
            score = max(self._word_scores[word] for word in run)
            yield self._span(text, start, end, score, int(owner[run[0]]), reply)
        if not runs:
            worst = max(sentences, key=lambda row: self._sentence_scores[row])
            start, end = int(batch.sentences.start[worst]), int(batch.sentences.end[worst])
            yield self._span(text, start, end, self._sentence_scores[worst], worst, reply)

    def _span(self, text: str, start: int, end: int, score: float, sentence: int, reply: int) -> Span:
        values = dict(zip(PAPER_FEATURES, self._scores.features.sentences[sentence].tolist(), strict=False))
        chunk = self._chunks[sentence]
        reason = (
            f"coverage {values['lexical_coverage']:.2f}, best chunk {values['max_chunk_overlap']:.2f}, "
            f"{values['numeric_mismatches']:.0f} unsupported numbers, "
            f"{values['entity_mismatches']:.0f} unsupported names in the sentence"
        )
        evidence = f"{self._passage(sentence, reply)}: {self._batch.chunks[chunk]}" if chunk >= 0 else ""
        return Span(start=start, end=end, text=text[start:end], score=score, reason=reason, evidence=evidence)

    def _passage(self, sentence: int, reply: int) -> str | None:
        chunk = self._chunks[sentence]
        if chunk < 0:
            return None
        return self._batch.cases[reply].passages[int(self._batch.chunk_passage[chunk])].id


class LexicalChain(EvidenceChainDetector):
    """Words, sentences and replies by the share of content words the evidence lacks (EvidenceChain)."""

    method = "lexical"


class Bm25Chain(EvidenceChainDetector):
    """The same with the BM25 score of the best evidence chunk (EvidenceChain)."""

    method = "bm25"


class TfidfChain(EvidenceChainDetector):
    """The same with the TF-IDF cosine of the best evidence chunk (EvidenceChain)."""

    method = "tfidf"


class NliRulesChain(EvidenceChainDetector):
    """The same by rules: unsupported numbers, unsupported names, low coverage (EvidenceChain)."""

    method = "nli-rules"


class RegressionChain(EvidenceChainDetector):
    """Logistic regression over coverage, retrieval and mismatch features (EvidenceChain-LR)."""

    method = "lr"


class ForestChain(EvidenceChainDetector):
    """Random forest over coverage, retrieval and mismatch features (EvidenceChain-RF)."""

    method = "rf"


EVIDENCE_CHAIN: dict[str, type[EvidenceChainDetector]] = {
    f"evidence-chain-{made.method}": made
    for made in (LexicalChain, Bm25Chain, TfidfChain, NliRulesChain, RegressionChain, ForestChain)
}
"""The six by the names they are registered under."""


def shipped_path(method: Method, features: FeatureSet) -> Path:
    """Where the model that comes with the package is kept."""
    return Path(__file__).parent / "trained" / f"{method}-{features}.skops"


@cache
def _shipped_model(method: Method, features: FeatureSet) -> ChainModel:
    return load_model(shipped_path(method, features))


def _rows_by_reply(reply: list[int], replies: int) -> list[range]:
    """The rows of each reply; rows are in the order of replies."""
    counts = [0] * replies
    for index in reply:
        counts[index] += 1
    rows, start = [], 0
    for count in counts:
        rows.append(range(start, start + count))
        start += count
    return rows


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Without garbage collection: a batch makes a unit for every word, none of them garbage, and looking
    through them again and again takes longer than making them."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
