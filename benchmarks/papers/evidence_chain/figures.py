"""The figures of the EvidenceChain paper, from our run of its experiment: 1 to 7."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.papers.evidence_chain.analysis import hallucinated_share, source_coverage
from benchmarks.papers.evidence_chain.study import METHODS, Study, spoken_words
from hallulab.simulator.statistics.detection import compute_curve, compute_flag_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEATMAP_WORDS = 60
"""Number of words in the heatmap."""
_IN_ROW = 10

_STEPS = (
    "source\npassages or record",
    "evidence chunks",
    "lexical, BM25, TF-IDF\nnumbers, entities",
    "sentence risk\n(rules, LR, RF)",
    "word risk =\nsentence risk × novelty",
    "flagged spans\nwith their chunk",
)


def pipeline(_: Study) -> Figure:
    """Draw figure 1: how a reply is judged."""
    figure, axes = _canvas(13.0, 1.5)
    axes.axis("off")
    axes.set_xlim(-0.6, len(_STEPS) - 0.4)
    axes.set_ylim(-1, 1)
    for place, step in enumerate(_STEPS):
        axes.text(place, 0, step, ha="center", va="center", fontsize=8, bbox={"boxstyle": "round", "fc": "w"})
        if place:
            axes.annotate("", (place - 0.43, 0), (place - 0.57, 0), arrowprops={"arrowstyle": "->"})
    return figure


def heatmap(study: Study) -> Figure:
    """Draw figure 2: gold labels and the forest's scores of the first hallucinated words of the test part."""
    batch, scores = study.batch, study.scores["rf"].words
    labelled = [index for index, reply in enumerate(study.test) if reply.label]
    rows = np.flatnonzero(np.isin(batch.words.reply, labelled))[:HEATMAP_WORDS]
    labels = study_labels(study)[rows]
    words = [
        study.test[reply].reply[start:end]
        for reply, start, end in zip(
            batch.words.reply[rows].tolist(),
            batch.words.start[rows].tolist(),
            batch.words.end[rows].tolist(),
            strict=True,
        )
    ]
    height = -(-len(rows) // _IN_ROW)
    padded = np.full(height * _IN_ROW, np.nan)
    padded[: len(rows)] = scores[rows]
    figure, axes = _canvas(12.0, 0.5 * height + 1)
    image = axes.imshow(padded.reshape(height, _IN_ROW), cmap="Reds", vmin=0, vmax=1, aspect="auto")
    for place, (word, wrong) in enumerate(zip(words, labels.tolist(), strict=True)):
        axes.text(
            place % _IN_ROW,
            place // _IN_ROW,
            _plain(word),
            ha="center",
            va="center",
            fontsize=8,
            weight="bold" if wrong else "normal",
        )
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title("EvidenceChain_RF by word; gold hallucinations in bold")
    figure.colorbar(image, ax=axes)
    return figure


def word_f1(study: Study) -> Figure:
    """Draw figure 3: F1 of words by method."""
    figure, axes = _canvas(7.0, 4.0)
    values = [compute_flag_scores(study.words(method))["f1"] or 0.0 for method in METHODS]
    bars = axes.bar(list(METHODS.values()), values)
    axes.bar_label(bars, fmt="%.3f")
    axes.set_ylabel("word-level F1")
    axes.tick_params(axis="x", rotation=20)
    return figure


def generator_rates(study: Study) -> Figure:
    """Draw figure 4: share of hallucinated replies by generator label."""
    labels: dict[str, list[bool]] = {}
    for reply in study.replies:
        labels.setdefault(str(reply.meta["model"]), []).append(bool(reply.label))
    names = sorted(labels)
    figure, axes = _canvas(7.0, 4.0)
    bars = axes.bar(names, [float(np.mean(labels[name])) for name in names])
    axes.bar_label(bars, fmt="%.3f")
    axes.set_ylabel("hallucinated responses")
    axes.tick_params(axis="x", rotation=20)
    return figure


def coverage_against_rate(study: Study) -> Figure:
    """Draw figure 5: source coverage and share of hallucinated words of each test reply."""
    figure, axes = _canvas(6.0, 4.0)
    scores = study.scores["lexical"]
    axes.scatter(source_coverage(scores), hallucinated_share(scores.batch, study.test), s=12, alpha=0.6)
    axes.set_xlabel("source coverage")
    axes.set_ylabel("hallucinated word rate")
    return figure


def precision_recall(study: Study) -> Figure:
    """Draw figure 6: precision and recall of words at every threshold."""
    figure, axes = _canvas(6.0, 5.0)
    for method, name in METHODS.items():
        sample = study.words(method)
        found = compute_curve(sample)
        axes.step(found.hits / sample.labels.sum(), found.hits / found.flagged, where="post", label=name)
    axes.set_xlabel("recall")
    axes.set_ylabel("precision")
    axes.legend()
    return figure


def confusion(study: Study) -> Figure:
    """Draw figure 7: the forest's confusion matrix of words."""
    sample = study.words("rf")
    counts = [
        [int(((sample.labels == label) & (sample.flags == flag)).sum()) for flag in (False, True)]
        for label in (False, True)
    ]
    figure, axes = _canvas(4.5, 4.0)
    axes.imshow(np.log1p(counts), cmap="Blues")
    for row, line in enumerate(counts):
        for column, count in enumerate(line):
            axes.text(column, row, str(count), ha="center", va="center", color="black")
    _named(axes.set_xticks, ("supported", "hallucinated"))
    _named(axes.set_yticks, ("supported", "hallucinated"))
    axes.set_xlabel("predicted")
    axes.set_ylabel("gold")
    return figure


FIGURES: dict[int, Callable[[Study], Figure]] = {
    1: pipeline,
    2: heatmap,
    3: word_f1,
    4: generator_rates,
    5: coverage_against_rate,
    6: precision_recall,
    7: confusion,
}
"""The paper's figures by number."""


def study_labels(study: Study) -> np.ndarray:
    """Return the gold labels of the test part's words, of shape (words,)."""
    labels = np.zeros(len(study.batch.words), dtype=bool)
    labels[spoken_words(study.batch)] = study.words("rf").labels
    return labels


def _canvas(width: float, height: float) -> tuple[Figure, Any]:
    """Make a figure of that size in inches, without pyplot's global state, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _named(ticks: Callable[..., object], names: Sequence[str]) -> None:
    ticks(range(len(names)), names)


def _plain(word: str) -> str:
    """Remove what matplotlib would take for a formula."""
    return word.replace("$", r"\$")
