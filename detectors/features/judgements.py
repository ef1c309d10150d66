"""Judgements by the scores of words, sentences and replies."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import Field

from hallulab.detectors.features.batch import Batch, Numbers, ReplyWithEvidence
from hallulab.detectors.features.features import PAPER_FEATURES, Attribution, Features
from hallulab.scenarios.transcript import Frozen, Judgement, Span


class LevelThresholds(Frozen):
    """Scores from which a word, a sentence, a reply is flagged."""

    word: float = Field(ge=0, le=1)
    sentence: float = Field(ge=0, le=1)
    response: float = Field(ge=0, le=1)


@dataclass(frozen=True)
class Scores:
    """Scores of a method for a batch. All in [0, 1], higher is worse."""

    batch: Batch
    features: Features
    sentences: Numbers
    """(sentences,)"""
    words: Numbers
    """(words,)"""
    replies: Numbers
    """(replies,)"""


def compute_reply_scores(batch: Batch, sentences: Numbers) -> Numbers:
    """Return (replies,): the largest risk of a reply's sentences, for one unsupported sentence is enough."""
    scores = np.zeros(len(batch.cases))
    np.maximum.at(scores, batch.sentences.reply, sentences)
    return scores


BLOCK = 1024
"""Replies judged together; more would only use memory."""


def judge_blocks(
    cases: Sequence[ReplyWithEvidence],
    score: Callable[[Sequence[ReplyWithEvidence]], Scores],
    thresholds: LevelThresholds,
    attribution: Attribution,
) -> list[Judgement]:
    """Judge replies, block by block.

    Neighbouring flagged words of a sentence are one span. A reply that is not flagged has no span. A flagged
    reply without a flagged word has its riskiest sentence as span. A reply without words, or without
    evidence, is not judged.

    Args:
        thresholds: scores from which a word, a sentence, a reply is flagged.
        attribution: the score by which a sentence is attributed to a chunk.
    """
    judgements: list[Judgement] = []
    # Counting frozen objects takes longer than to judge a reply of a run.
    with _pause_collector() if len(cases) > 1 else nullcontext():
        for start in range(0, len(cases), BLOCK):
            scores = score(cases[start : start + BLOCK])
            judgements += _Judging(scores, thresholds, attribution).judgements()
    return judgements


class _Judging:
    """Turns the arrays of a block into judgements."""

    def __init__(self, scores: Scores, thresholds: LevelThresholds, attribution: Attribution) -> None:
        self._scores = scores
        self._batch: Batch = scores.batch
        self._thresholds = thresholds
        self._unit_thresholds = {"sentence": thresholds.sentence, "word": thresholds.word}
        self._chunks: list[int] = scores.features.matches[attribution].chunk.tolist()
        self._sentence_scores: list[float] = scores.sentences.tolist()
        self._word_scores: list[float] = scores.words.tolist()

    def judgements(self) -> list[Judgement]:
        batch, scores = self._batch, self._scores.replies.tolist()
        sentence_rows = _find_rows_by_reply(batch.sentences.reply.tolist(), len(scores))
        word_rows = _find_rows_by_reply(batch.words.reply.tolist(), len(scores))
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
        flagged = score >= self._thresholds.response
        # To validate the whole at once takes two thirds of the time of making each unit, and less in strict
        # mode, which converts nothing.
        return Judgement.model_validate(
            {
                "outcome": "scored",
                "score": score,
                "flagged": flagged,
                "spans": tuple(self._spans(reply, sentences, words)) if flagged else (),
                "units": tuple(self._sentence_units(reply, sentences)),
                "word_scores": tuple(self._word_scores[words.start : words.stop]),
                "unit_thresholds": self._unit_thresholds,
            },
            strict=True,
        )

    def _sentence_units(self, reply: int, rows: range) -> list[dict[str, Any]]:
        text, pieces = self._batch.cases[reply].reply, self._batch.sentences
        part = slice(rows.start, rows.stop)
        places = zip(pieces.start[part].tolist(), pieces.end[part].tolist(), rows, strict=True)
        return [
            {
                "kind": "sentence",
                "text": text[start:end],
                "start": start,
                "end": end,
                "score": self._sentence_scores[row],
                "details": self._details(row, reply),
            }
            for start, end, row in places
        ]

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
            f"The evidence has {values['lexical_coverage']:.0%} of this sentence's content words, one piece "
            f"of it {values['max_chunk_overlap']:.0%}. Of the sentence's numbers it lacks "
            f"{values['numeric_mismatches']:.0f}, of its names {values['entity_mismatches']:.0f}."
        )
        evidence = f"{self._passage(sentence, reply)}: {self._batch.chunks[chunk]}" if chunk >= 0 else ""
        return Span(start=start, end=end, text=text[start:end], score=score, reason=reason, evidence=evidence)

    def _passage(self, sentence: int, reply: int) -> str | None:
        chunk = self._chunks[sentence]
        if chunk < 0:
            return None
        return self._batch.cases[reply].passages[int(self._batch.chunk_passage[chunk])].id


def _find_rows_by_reply(reply: list[int], replies: int) -> list[range]:
    """Return the rows of each reply; rows are in the order of replies."""
    counts = [0] * replies
    for index in reply:
        counts[index] += 1
    rows, start = [], 0
    for count in counts:
        rows.append(range(start, start + count))
        start += count
    return rows


@contextmanager
def _pause_collector() -> Iterator[None]:
    """Pause garbage collection: to look through all units again and again takes longer than to make them."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            # Both together move the new objects among the old ones, which are seldom looked through.
            # Otherwise the first collection would look through all of them. Frozen objects stay frozen.
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
