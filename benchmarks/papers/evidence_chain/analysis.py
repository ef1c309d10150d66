"""The paper's analyses: ablation (Table 8), attribution on its corpus and on real data (Table 9).

Table 9 on real data: which sentence of the evidence each score takes for the support of a statement.
The paper measures attribution on its made corpus. WiCE's annotators marked the sentences of a page that
support a claim; HotpotQA's questions come with the sentences that are needed for the answer. Here each
sentence of the evidence is a passage, and a statement is attributed rightly if its best passage is one of
those that people named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hallulab.detectors.evidence_chain.training import hold_out, make_regression
from hallulab.detectors.features.batch import Batch, Flags, Integers, Numbers, make_batch, make_case
from hallulab.detectors.features.features import PAPER_FEATURES, Attribution, measure
from hallulab.detectors.features.judgements import Scores
from hallulab.detectors.features.matching import Match
from hallulab.detectors.features.trained_detector import choose_threshold, count_forms, mark_gold
from hallulab.scenarios.datasets.hotpotqa import HotpotQuestion
from hallulab.scenarios.datasets.loader import SCHEMA
from hallulab.scenarios.datasets.wice import WiceClaim
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import read_records
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Passage

ABLATIONS: dict[str, tuple[str, ...]] = {
    "All evidence-chain features": PAPER_FEATURES,
    "No lexical coverage": tuple(name for name in PAPER_FEATURES if name != "lexical_coverage"),
    "No retrieval scores": tuple(name for name in PAPER_FEATURES if name not in ("bm25", "tfidf")),
    "No mismatch rules": tuple(name for name in PAPER_FEATURES if not name.endswith("mismatches")),
    "Only lexical coverage": ("lexical_coverage",),
}
"""Table 8: variant → its features."""

COVERAGE_EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Table 10: each bin is open below and closed above; 0 is in the first one."""


@dataclass(frozen=True)
class Ablation:
    """A variant of the logistic regression, on the sentences of the test part."""

    variant: str
    """A key of `ABLATIONS`."""
    labels: Flags
    """(sentences,): whether it is hallucinated."""
    scores: Numbers
    """(sentences,)"""
    threshold: float
    """Chosen on a part that was not trained on."""


@dataclass(frozen=True)
class CoverageBin:
    """Replies whose source coverage lies in one bin."""

    low: float
    """Lower edge."""
    high: float
    """Upper edge."""
    replies: int
    """Number of replies."""
    coverage: float | None
    """Their mean source coverage; None without replies."""
    hallucinated: float | None
    """Their mean share of hallucinated words; None without replies."""


def ablate(train: Sequence[LabelledReply], test: Sequence[LabelledReply], seed: int = 0) -> list[Ablation]:
    """Train logistic regressions on parts of the paper's features, without a reply's origin.

    Raises:
        UsageError: `train` has fewer than two groups.
    """
    held_out = hold_out(train, seed)
    frequency = count_forms(make_batch([make_case(one) for one in held_out.to_learn_from(train)]))
    batches = [make_batch([make_case(one) for one in part]) for part in (train, test)]
    features = [measure(batch, frequency, "paper").sentences for batch in batches]
    labels = [mark_gold(batch.sentences, part) for batch, part in zip(batches, (train, test), strict=True)]
    of_reply = batches[0].sentences.reply
    parts = [part[of_reply] for part in held_out.parts]
    judged, learnt = held_out.judged[of_reply], held_out.learnt[of_reply]
    found = []
    for variant, names in ABLATIONS.items():
        inputs, tested = (part[:, [PAPER_FEATURES.index(name) for name in names]] for part in features)
        scores = np.select(parts, [_risk(inputs[~part], labels[0][~part], inputs) for part in parts])
        threshold = choose_threshold(labels[0][judged], scores[judged])
        risk = _risk(inputs[learnt], labels[0][learnt], tested)
        found.append(Ablation(variant, labels[1], risk, threshold))
    return found


def _risk(inputs: Numbers, labels: Flags, tested: Numbers) -> Numbers:
    """Return the risk of `tested` by a regression on `inputs` and `labels`, of shape (sentences,)."""
    probability: Numbers = make_regression(inputs.shape[1]).fit(inputs, labels).predict_proba(tested)[:, 1]
    return probability


def attributed(scores: Scores, method: Attribution, reply: Integers, start: Integers) -> Integers:
    """See `attribute_places`, by the matches of scored replies."""
    return attribute_places(scores.batch, scores.features.matches[method], reply, start)


def attribute_places(batch: Batch, match: Match, reply: Integers, start: Integers) -> Integers:
    """Return the position of the passage that each sentence is attributed to, of shape (places,).

    A place is (reply, character). -1 where its sentence matches nothing.
    """
    chunk = match.chunk[batch.sentences.holding(reply, start)]
    return np.where(chunk >= 0, batch.chunk_passage[chunk], -1)


def source_coverage(scores: Scores) -> Numbers:
    """Return one minus the share of novel words, of shape (replies,): the paper's "token novelty rate"."""
    words = scores.batch.words
    count = len(scores.batch.cases)
    novel = np.bincount(words.reply, weights=scores.features.novel, minlength=count)
    total = np.bincount(words.reply, minlength=count)
    coverage: Numbers = 1 - novel / np.maximum(total, 1)
    return coverage


def hallucinated_share(batch: Batch, replies: Sequence[LabelledReply]) -> Numbers:
    """Return the share of hallucinated words, of shape (replies,)."""
    hallucinated = np.bincount(
        batch.words.reply, weights=mark_gold(batch.words, replies), minlength=len(replies)
    )
    share: Numbers = hallucinated / np.maximum(np.bincount(batch.words.reply, minlength=len(replies)), 1)
    return share


def coverage_bins(coverage: Numbers, hallucinated: Numbers) -> list[CoverageBin]:
    """Group replies by their coverage; both arrays have shape (replies,)."""
    place = np.clip(np.searchsorted(COVERAGE_EDGES, coverage, side="left") - 1, 0, len(COVERAGE_EDGES) - 2)
    bins = []
    for index, (low, high) in enumerate(pairwise(COVERAGE_EDGES)):
        inside = place == index
        count = int(inside.sum())
        bins.append(
            CoverageBin(
                low,
                high,
                count,
                float(coverage[inside].mean()) if count else None,
                float(hallucinated[inside].mean()) if count else None,
            )
        )
    return bins


@dataclass(frozen=True)
class Supported:
    """A statement that its evidence supports."""

    reply: LabelledReply
    """The statement, with a passage for each sentence of the evidence."""
    sentences: frozenset[int]
    """Positions of the passages that people named."""


def read_claims(path: Path) -> Iterator[Supported]:
    """Yield WiCE's claims that are supported, at least in part.

    Raises:
        UsageError: a line of the file is wrong.
    """
    for _, claim in read_records(path, WiceClaim, SCHEMA):
        named = frozenset(place for chosen in claim.supporting_sentences for place in chosen)
        if named:
            yield Supported(_statement(claim.meta.id, claim.claim, claim.evidence), named)


def read_answers(path: Path) -> Iterator[Supported]:
    """Yield HotpotQA's questions, each with its answer behind it as the statement.

    Raises:
        UsageError: a line of the file is wrong.
    """
    for _, one in read_records(path, HotpotQuestion, SCHEMA):
        places = [(title, place) for title, sentences in one.context for place in range(len(sentences))]
        texts = [f"{title}: {text}" for title, sentences in one.context for text in sentences]
        named = frozenset(place for place, key in enumerate(places) if key in set(one.supporting_facts))
        yield Supported(_statement(one.id, f"{one.question.rstrip(' ?')} {one.answer}", texts), named)


READERS: dict[str, tuple[str, Callable[[Path], Iterator[Supported]]]] = {
    "WiCE": ("wice/claims.jsonl", read_claims),
    "HotpotQA": ("hotpotqa/distractor.jsonl", read_answers),
}
"""Data set → its file under the folder of data sets, and the function that reads it."""


def attribution_rows(data: Path, names: dict[Attribution, str]) -> list[dict[str, Any]]:
    """Return the rows of each data set that the folder has, by score.

    Args:
        data: folder of the data sets' folders.
        names: score → its name in the table.

    Raises:
        UsageError: the folder has none of the files, or a line of one is wrong.
    """
    found = {name: (data / file, read) for name, (file, read) in READERS.items() if (data / file).is_file()}
    if not found:
        raise UsageError(f"{data}: there is none of {', '.join(file for file, _ in READERS.values())}.")
    return [
        {
            "Data": name,
            "Attribution method": names[method],
            "Supported statements": len(right),
            "Sentences of evidence, mean": float(np.mean(sizes)),
            "Top-1 evidence accuracy": float(np.mean(right)),
        }
        for name, (path, read) in found.items()
        for method, right, sizes in _by_method(tuple(read(path)), names)
    ]


def _by_method(
    supported: tuple[Supported, ...], methods: Iterable[Attribution]
) -> Iterator[tuple[Attribution, list[bool], list[int]]]:
    batch = make_batch([make_case(one.reply) for one in supported])
    matches = measure(batch, count_forms(batch), "paper").matches
    replies = np.arange(len(supported))
    for method in methods:
        passages = attribute_places(batch, matches[method], replies, np.zeros_like(replies)).tolist()
        right = [passage in one.sentences for passage, one in zip(passages, supported, strict=True)]
        yield method, right, [len(one.reply.passages) for one in supported]


def _statement(name: str, text: str, evidence: Iterable[str]) -> LabelledReply:
    passages = tuple(
        # A sentence without a word is no text; it keeps its place.
        Passage(id=f"{name}#{place}", document=name, text=sentence if sentence.strip() else "-")
        for place, sentence in enumerate(evidence)
    )
    return LabelledReply(
        id=name, dataset="", task="claim", passages=passages, reply=text, label=False, group=name
    )
