"""Learn HalluDetect's mixture for a served model.

    python -m benchmarks.train_mixture --data DIR --answers FILE

DIR holds the folders gold, mtrag, begin, wice and ragtruth. The model's answers come from FILE, and missing
ones from the endpoint (`--base-url`), which are then recorded. The output is the quality of the mixture on
each data set, learnt from all and learnt from all others. `--write` writes `mixture.yaml`.

All data sets count the same. Two things are set by hand, for reasons:

- Sentences: `gold` counts twice, because HPT is counted on replies of our own bots. RAGTruth counts half,
  because its annotators marked few of the sentences that others find wrong (RAGTruth++). MTRAG has no spans.
- The sentences' intercept flags as many of gold's sentences as the labels have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score

from benchmarks.command import build_parser
from benchmarks.detectors_table.samples import SOURCES, sample
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import DEFAULT_MODEL, ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.halludetect.detector import HalluDetectDetector
from hallulab.detectors.halludetect.mixture import FILE, LogisticWeights, Mixture, measure_reply
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.spans import compute_unknown_share, split_words
from hallulab.scenarios.transcript import Judgement

Numbers = NDArray[np.float64]

SENTENCE = ("unsupported", "length", "novelty", "misattributed")
REPLY = ("any", "unknown")
COUNTS = {"gold": 2.0, "ragtruth": 0.5}
"""Weight of a data set's sentences; 1 by default."""
LIMIT = 200
"""Largest number of replies of a data set; see `detectors_table.samples`."""


@dataclass(frozen=True)
class MeasuredReply:
    """A reply and the measurements of its sentences."""

    reply: LabelledReply
    """The labelled reply."""
    sentences: Numbers
    """(sentences that claim something, SENTENCE)"""
    labels: tuple[bool | None, ...]
    """Label of each of these sentences: whether a gold span meets it. In a reply without spans, a single
    sentence has the reply's label, else None."""


@dataclass(frozen=True)
class Learnt:
    """Weights, and an intercept for each data set."""

    weights: Numbers
    """(inputs,)"""
    intercepts: Mapping[str, float]
    """By data set."""


async def judge_all(replies: Sequence[LabelledReply], pool: ModelPool) -> list[Judgement]:
    """Return HalluDetect's judgements, eight replies at a time."""
    detector = HalluDetectDetector(
        "halludetect", DetectorContext(models=pool, options={"reading": "mixture"})
    )
    bench = asyncio.Semaphore(8)

    async def judged(reply: LabelledReply) -> Judgement:
        async with bench:
            return await detector.detect(reply.view)

    return list(await asyncio.gather(*map(judged, replies)))


def measured(reply: LabelledReply, judgement: Judgement) -> MeasuredReply:
    """Return the detector's measurements, from the units of a scored judgement."""
    units = [unit for unit in judgement.units if "unsupported" in unit.details]
    rows = [[float(unit.details[name] or 0.0) for name in SENTENCE] for unit in units]
    labels: list[bool | None] = []
    for unit in units:
        if reply.spans is not None and unit.start is not None and unit.end is not None:
            start, end = unit.start, unit.end
            labels.append(any(span.start < end and span.end > start for span in reply.spans))
        else:
            labels.append(reply.label if len(units) == 1 else None)
    return MeasuredReply(reply, np.array(rows).reshape(-1, len(SENTENCE)), tuple(labels))


def fit(inputs: Mapping[str, Numbers], labels: Mapping[str, Numbers], counts: Mapping[str, float]) -> Learnt:
    """Fit one slope for all data sets, and an intercept for each.

    Data sets differ in how often replies are wrong, which says nothing about a sentence.

    Args:
        inputs: (rows, inputs) by data set.
        labels: (rows,) by data set, 0 or 1.
        counts: weight of a data set, 1 by default.
    """
    names = [name for name in inputs if len(inputs[name])]
    rows = np.vstack([inputs[name] for name in names])
    own = np.concatenate([np.full(len(inputs[name]), place) for place, name in enumerate(names)])
    weight = np.concatenate(
        [np.full(len(inputs[n]), 100 * counts.get(n, 1.0) / len(inputs[n])) for n in names]
    )
    middle, spread = rows.mean(0), rows.std(0) + 1e-9
    # Intercepts are inputs three times as large: regularisation hardly holds them back.
    wide = np.hstack([(rows - middle) / spread, 3.0 * np.eye(len(names))[own]])
    model = LogisticRegression(fit_intercept=False, max_iter=2000)
    model.fit(wide, np.concatenate([labels[name] for name in names]), sample_weight=weight)
    slopes = model.coef_[0][: rows.shape[1]] / spread
    shift = float(slopes @ middle)
    intercepts = {
        name: 3.0 * float(model.coef_[0][rows.shape[1] + place]) - shift for place, name in enumerate(names)
    }
    return Learnt(slopes, intercepts)


def fit_sentences(data: Mapping[str, Sequence[MeasuredReply]]) -> Learnt:
    """Fit the sentences whose label is known."""
    inputs, labels = {}, {}
    for name, replies in data.items():
        known = [
            (row, label)
            for one in replies
            for row, label in zip(one.sentences, one.labels, strict=True)
            if label is not None
        ]
        inputs[name] = np.array([row for row, _ in known]).reshape(-1, len(SENTENCE))
        labels[name] = np.array([float(label) for _, label in known])
    return fit(inputs, labels, COUNTS)


def reply_inputs(replies: Sequence[MeasuredReply], weights: LogisticWeights) -> Numbers:
    """Return the inputs of replies, of shape (replies that claim something, REPLY)."""
    rows = []
    for one in replies:
        odds = [weights.log_odds(dict(zip(weights.weights, row, strict=True))) for row in one.sentences]
        known = {word for passage in one.reply.passages for word in split_words(passage.text)}
        found = measure_reply(one.reply.reply, odds, known)
        rows.append([found[name] for name in REPLY])
    return np.array(rows)


def claiming(replies: Sequence[MeasuredReply]) -> list[MeasuredReply]:
    """Return the replies with a sentence that was asked about."""
    return [one for one in replies if len(one.sentences)]


def learn(data: Mapping[str, Sequence[MeasuredReply]]) -> Mixture:
    """Learn the mixture from some data sets."""
    of_sentences = fit_sentences(data)
    gold = data.get("gold")
    slopes = dict(zip(SENTENCE, map(float, of_sentences.weights), strict=True))
    sentence = LogisticWeights(intercept=0.0, weights=slopes)
    intercept = -_level(gold, sentence) if gold else float(np.mean(list(of_sentences.intercepts.values())))
    sentence = LogisticWeights(intercept=intercept, weights=slopes)
    inputs = {name: reply_inputs(claiming(replies), sentence) for name, replies in data.items()}
    labels = {
        name: np.array([float(one.reply.hallucinated) for one in claiming(replies)])
        for name, replies in data.items()
    }
    of_replies = fit(inputs, labels, {})
    slopes = dict(zip(REPLY, map(float, of_replies.weights), strict=True))
    odds = {name: inputs[name] @ of_replies.weights for name in data}
    return Mixture(
        sentence=sentence, reply=LogisticWeights(intercept=-_best_cut(odds, labels), weights=slopes)
    )


def _level(gold: Sequence[MeasuredReply], weights: LogisticWeights) -> float:
    """Return the log-odds from which as many of gold's sentences are flagged as the labels have."""
    odds = sorted(
        (
            weights.log_odds(dict(zip(weights.weights, row, strict=True)))
            for one in gold
            for row in one.sentences
        ),
        reverse=True,
    )
    wanted = sum(bool(label) for one in gold for label in one.labels)
    return (odds[wanted - 1] + odds[wanted]) / 2


def _best_cut(odds: Mapping[str, Numbers], labels: Mapping[str, Numbers]) -> float:
    """Return the log-odds from which flagging has the best F1, mean over the data sets."""
    levels = np.unique(np.concatenate(list(odds.values())))
    cuts = (levels[1:] + levels[:-1]) / 2
    scores = [_compute_f1(labels[name], odds[name][:, None] >= cuts) for name in odds]
    return float(cuts[int(np.argmax(np.mean(scores, axis=0)))])


def _compute_f1(labels: Numbers, flagged: NDArray[np.bool_]) -> Numbers:
    """Return (cuts,): the F1 of each column of `flagged` (rows, cuts), 0 where nothing is right."""
    found = labels.sum() + flagged.sum(0)
    score: Numbers = 2 * (labels @ flagged) / np.maximum(found, 1)
    return score


def describe(name: str, replies: Sequence[MeasuredReply], mixture: Mixture) -> str:
    """Write a line: AUROC of sentences and replies, and F1, for this mixture and for what it has to beat."""
    asked = claiming(replies)
    labels = np.array([one.reply.hallucinated for one in asked])
    found = reply_inputs(asked, mixture.sentence)
    odds = found @ np.array([mixture.reply.weights[n] for n in REPLY]) + mixture.reply.intercept
    shares = [
        compute_unknown_share(one.reply.reply, {w for p in one.reply.passages for w in split_words(p.text)})
        for one in asked
    ]
    plain = [max(one.sentences[:, 0]) for one in asked]
    known = [
        (label, mixture.sentence.log_odds(dict(zip(SENTENCE, row, strict=True))), row[0])
        for one in asked
        for row, label in zip(one.sentences, one.labels, strict=True)
        if label is not None
    ]
    sentences = ""
    if replies[0].reply.spans is not None:
        truth = [label for label, _, _ in known]
        sentences = (
            f"sentences {roc_auc_score(truth, [o for _, o, _ in known]):.3f}"
            f" (answer alone {roc_auc_score(truth, [p for _, _, p in known]):.3f}) "
        )
    return (
        f"{name:9s} {sentences}replies {roc_auc_score(labels, odds):.3f} (answer alone"
        f" {roc_auc_score(labels, plain):.3f}, words alone {roc_auc_score(labels, shares):.3f})"
        f" F1 {f1_score(labels, odds >= 0):.3f} flagged {np.mean(odds >= 0):.2f} of {len(labels)}"
    )


async def main() -> None:
    """Measure, learn, print, and write."""
    parser = build_parser("train_mixture", __doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the five data sets")
    parser.add_argument("--answers", type=Path, required=True, help="recording of the model's answers")
    parser.add_argument("--model", default="qwen2.5-coder-1.5b", help="name it is served under")
    parser.add_argument("--base-url", help="endpoint for answers that are missing; else a replay")
    parser.add_argument("--write", action="store_true", help="write mixture.yaml")
    given = parser.parse_args()
    recording = Recording.record(given.answers) if given.base_url else Recording.replay(given.answers)
    endpoint = Endpoint(given.model, given.base_url or "")
    pool = ModelPool({DEFAULT_MODEL: endpoint}, recording=recording)
    data: dict[str, list[MeasuredReply]] = {}
    for name in SOURCES:
        replies = sample(name, given.data, LIMIT)
        judgements = await judge_all(replies, pool)
        data[name] = [
            measured(reply, judgement)
            for reply, judgement in zip(replies, judgements, strict=True)
            if judgement.outcome == "scored"
        ]
    await pool.close()
    recording.close()
    mixture = learn(data)
    for name in data:
        print("all   ", describe(name, data[name], mixture))
    for name in data:
        others = {other: data[other] for other in data if other != name}
        print("others", describe(name, data[name], learn(others)))
    document = {given.model: mixture.model_dump()}
    print(yaml.safe_dump(document, sort_keys=False))
    if given.write:
        FILE.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
