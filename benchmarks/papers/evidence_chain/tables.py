"""The tables 1 to 11 of the EvidenceChain paper, with its columns, from our run of its experiment.

Beside them, every sentence and word of the test part is written with its scores, so that numbers can be
audited.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.evidence_chain.analysis import (
    ablate,
    attributed,
    attribution_rows,
    coverage_bins,
    hallucinated_share,
    source_coverage,
)
from benchmarks.papers.evidence_chain.figures import FIGURES
from benchmarks.papers.evidence_chain.study import (
    METHODS,
    SEED,
    Study,
    cut,
    read_ragtruth,
    run_study,
    spoken_words,
)
from hallulab.detectors.features.batch import Pieces
from hallulab.detectors.features.features import Attribution
from hallulab.detectors.features.trained_detector import mark_gold
from hallulab.scenarios.datasets.audit_corpus import read_sentence_meta
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.scenarios.labelled import LabelledReply
from hallulab.simulator.show.columns import escape_formula
from hallulab.simulator.statistics.detection import (
    Booleans,
    Sample,
    compute_auroc,
    compute_average_precision,
    compute_flag_scores,
)

Row = dict[str, Any]

ATTRIBUTIONS: dict[Attribution, str] = {
    "lexical": "Lexical-overlap argmax",
    "bm25": "BM25 argmax",
    "tfidf": "TF-IDF argmax",
}
"""Table 9: score → the paper's name for it."""

_ATTRIBUTION = 9
"""The number of the table of attribution."""

_FIELDS = (
    ("response.jsonl", "id", "String", "Response index used by all evaluation joins."),
    ("response.jsonl", "source_id", "String", "Foreign key to retrieved evidence."),
    ("response.jsonl", "model", "String", "Generator label; a feature of the trained methods."),
    ("response.jsonl", "temperature", "Float", "Decoding temperature; a feature of the trained methods."),
    ("response.jsonl", "labels", "List[Dict]", "Character spans, converted to labels of words."),
    ("response.jsonl", "split", "String", "Train/test split; calibration is carved from train."),
    ("response.jsonl", "quality", "String", "Good rows are retained."),
    ("response.jsonl", "response", "String", "Generated answer, judged at sentence and word level."),
    ("source_info.jsonl", "source_id", "String", "Evidence index shared with responses."),
    ("source_info.jsonl", "task_type", "String", "QA, Data2txt, or Summary."),
    ("source_info.jsonl", "source", "String", "Source collection name."),
    ("source_info.jsonl", "source_info", "String/Dict", "Evidence: text, passages, or structured data."),
    ("source_info.jsonl", "prompt", "String", "Instruction; not used by a detector."),
)

_SIGNALS = {
    "lexical": ("No training", "Token novelty and source coverage"),
    "bm25": ("No training", "Per-source matching evidence"),
    "tfidf": ("No training", "Global document frequencies"),
    "nli-rules": ("No training", "Number/entity mismatch plus coverage"),
    "lr": ("Train split", "Logistic regression over evidence-chain features"),
    "rf": ("Train split", "Random forest over evidence-chain features"),
}


def write_tables(folder: Path, ragtruth: Path | None = None, supporting: Path | None = None) -> None:
    """Run the experiment; write `table-N.csv`, `figure-N.png`, `sentences.csv` and `words.csv`.

    Args:
        folder: for the files.
        ragtruth: folder of RAGTruth's two files; None: the audit corpus.
        supporting: folder of data sets with supporting sentences, on which attribution is measured, too.

    Raises:
        UsageError: data are missing or wrong.
    """
    # Read first: it is the quickest to fail.
    real = None if supporting is None else attribution_rows(supporting, ATTRIBUTIONS)
    study = run_study(None if ragtruth is None else read_ragtruth(ragtruth))
    folder.mkdir(parents=True, exist_ok=True)
    for number, table in TABLES.items():
        # RAGTruth does not say which passage supports a sentence.
        if number != _ATTRIBUTION or ragtruth is None:
            write_atomically(folder / f"table-{number}.csv", as_csv(table(study)))
    if real is not None:
        write_atomically(folder / f"table-{_ATTRIBUTION}-real.csv", as_csv(real))
    for name, scored in (("sentences", scored_sentences(study)), ("words", scored_words(study))):
        write_atomically(folder / f"{name}.csv", as_csv(scored))
    for number, draw in FIGURES.items():
        draw(study).savefig(folder / f"figure-{number}.png", dpi=150, metadata={"Software": None})


def scored_sentences(study: Study) -> list[Row]:
    """Return each sentence of the test part with its label, its best passage, and its scores."""
    pieces = study.batch.sentences
    passages = attributed(study.scores["rf"], "tfidf", pieces.reply, pieces.start).tolist()
    rows = _scored(study, pieces, [study.sentences(method) for method in METHODS])
    return [
        {**row, "Evidence": study.test[reply].passages[passage].id if passage >= 0 else ""}
        for row, reply, passage in zip(rows, pieces.reply.tolist(), passages, strict=True)
    ]


def scored_words(study: Study) -> list[Row]:
    """Return each word of the test part with its label and its scores; not punctuation."""
    spoken = spoken_words(study.batch)
    return _scored(study, study.batch.words, [study.words(method) for method in METHODS], spoken)


def _scored(
    study: Study, pieces: Pieces, samples: Sequence[Sample], kept: Booleans | None = None
) -> list[Row]:
    places = np.flatnonzero(np.ones(len(pieces), dtype=bool) if kept is None else kept).tolist()
    rows = []
    for row, place in enumerate(places):
        reply = study.test[int(pieces.reply[place])]
        start, end = int(pieces.start[place]), int(pieces.end[place])
        rows.append(
            {
                "Reply": reply.id,
                "Task": reply.task,
                "Start": start,
                "End": end,
                "Text": " ".join(reply.reply[start:end].split()),
                "Hallucinated": int(samples[0].labels[row]),
                **{
                    name: float(sample.scores[row])
                    for name, sample in zip(METHODS.values(), samples, strict=True)
                },
            }
        )
    return rows


def splits(study: Study) -> list[Row]:
    """Make table 1."""
    rows = []
    for split in ("calibration", "test", "train"):
        replies = [one for one in study.replies if one.meta["split"] == split]
        batch = cut(replies)
        spoken = spoken_words(batch)
        tokens, wrong = int(spoken.sum()), int((mark_gold(batch.words, replies) & spoken).sum())
        rows.append(
            {
                "Sources": len({one.group for one in replies}),
                "split": split,
                "Responses": len(replies),
                "Sentences": len(batch.sentences),
                "Tokens": tokens,
                "Hallucinated tokens": wrong,
                "Hallucinated token rate": wrong / tokens,
            }
        )
    return rows


def schema(_: Study) -> list[Row]:
    """Make table 2: fields of RAGTruth's files, and their purpose."""
    return [dict(zip(("File", "Field", "Type", "Use"), field, strict=True)) for field in _FIELDS]


def tasks(study: Study) -> list[Row]:
    """Make table 3."""
    return [
        {
            "task_type": task,
            "source": source,
            "Sources": len({one.group for one in replies}),
            **_rates(replies),
        }
        for (task, source), replies in _grouped(study.replies, lambda one: (one.task, one.meta["source"]))
    ]


def generators(study: Study) -> list[Row]:
    """Make table 4."""
    return [
        {
            "model": model,
            **_rates(replies),
            "Mean_temperature": float(np.mean([float(one.meta["temperature"] or 0) for one in replies])),
        }
        for model, replies in _grouped(study.replies, lambda one: one.meta["model"])
    ]


def word_level(study: Study) -> list[Row]:
    """Make table 5."""
    return [
        {"Method": name, **_quality(study.words(method)), "Threshold": study.models[method].thresholds.word}
        for method, name in METHODS.items()
    ]


def sentence_level(study: Study) -> list[Row]:
    """Make table 6."""
    return [
        {
            "Method": name,
            **_quality(study.sentences(method)),
            "Threshold": study.models[method].thresholds.sentence,
        }
        for method, name in METHODS.items()
    ]


def by_task(study: Study) -> list[Row]:
    """Make table 7."""
    rows = []
    for task in sorted({one.task for one in study.test}):
        chosen = np.array([one.task == task for one in study.test])
        for method, name in METHODS.items():
            sample = study.words(method)
            quality = _quality(sample.only(chosen[sample.clusters]))
            kept = {key: quality[key] for key in ("Precision", "Recall", "F1", "ROC_AUC")}
            rows.append({"Task": task, "Method": name, **kept})
    return rows


def ablation(study: Study) -> list[Row]:
    """Make table 8."""
    rows = []
    for found in ablate(study.train, study.test, SEED):
        flags = found.scores >= found.threshold
        sample = Sample(found.labels, found.scores, flags, np.zeros(len(flags), dtype=np.int64))
        quality = _quality(sample)
        kept = {key: quality[key] for key in ("Precision", "Recall", "F1", "ROC_AUC")}
        rows.append({"Variant": found.variant, **kept})
    return rows


def attribution(study: Study) -> list[Row]:
    """Make table 9, over the test part's supported sentences, whose gold evidence the corpus knows."""
    gold_evidence = [
        (index, sentence.start, sentence.evidence)
        for index, reply in enumerate(study.test)
        for sentence in read_sentence_meta(reply)
        if sentence.evidence is not None
    ]
    reply, start, passage = (np.array(column, dtype=np.int64) for column in zip(*gold_evidence, strict=True))
    return [
        {
            "Attribution method": name,
            "Supported sentences": len(passage),
            "Top-1 evidence accuracy": float(
                (attributed(study.scores["rf"], method, reply, start) == passage).mean()
            ),
        }
        for method, name in ATTRIBUTIONS.items()
    ]


def coverage(study: Study) -> list[Row]:
    """Make table 10."""
    scores = study.scores["lexical"]
    return [
        {
            "Coverage bin": f"{'(' if found.low else '['}{found.low}, {found.high}]",
            "Responses": found.replies,
            "Mean_source_coverage": found.coverage,
            "Mean_hallucinated_token_rate": found.hallucinated,
        }
        for found in coverage_bins(source_coverage(scores), hallucinated_share(scores.batch, study.test))
    ]


def runtime(study: Study) -> list[Row]:
    """Make table 11: seconds of training (for rules, of choosing thresholds) and of judging the test part."""
    return [
        {
            "Method": name,
            "Training": _SIGNALS[method][0],
            "Main signal": _SIGNALS[method][1],
            "Seconds": round(study.seconds[method], 2),
        }
        for method, name in METHODS.items()
    ]


TABLES: dict[int, Callable[[Study], list[Row]]] = {
    1: splits,
    2: schema,
    3: tasks,
    4: generators,
    5: word_level,
    6: sentence_level,
    7: by_task,
    8: ablation,
    9: attribution,
    10: coverage,
    11: runtime,
}
"""The paper's tables by number."""


def _grouped(
    replies: Iterable[LabelledReply], key: Callable[[LabelledReply], Any]
) -> list[tuple[Any, list[LabelledReply]]]:
    groups: dict[Any, list[LabelledReply]] = {}
    for reply in replies:
        groups.setdefault(key(reply), []).append(reply)
    return sorted(groups.items())


def _rates(replies: Sequence[LabelledReply]) -> Row:
    wrong = sum(bool(one.label) for one in replies)
    return {
        "Responses": len(replies),
        "Hallucination_responses": wrong,
        "Hallucination rate": wrong / len(replies),
    }


def _quality(sample: Sample) -> Row:
    found = compute_flag_scores(sample)
    return {
        "Precision": found["precision"],
        "Recall": found["recall"],
        "F1": found["f1"],
        "Accuracy": found["accuracy"],
        "ROC_AUC": compute_auroc(sample),
        "PR_AUC": compute_average_precision(sample),
    }


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write CSV with three decimals; empty where a number is not defined."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writerow({key: escape_formula(key) for key in rows[0]})
    for row in rows:
        writer.writerow(
            {
                key: f"{value:.3f}" if isinstance(value, float) else escape_formula(value)
                for key, value in row.items()
            }
        )
    return text.getvalue()
