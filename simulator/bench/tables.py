"""The columns of a benchmark's tables; docs/metrics.md is generated from them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hallulab.simulator.show.columns import PERCENT, Column, Format, build_decimal_format, is_lacking

_THREE = build_decimal_format(3)


def format_option(value: Any) -> str:
    """Format an option's value: lists are joined by `+`, and an empty one is `own`."""
    if isinstance(value, list):
        return "+".join(map(format_option, value)) or "own"
    return value if isinstance(value, str) else json.dumps(value)


def _build_front_format(words: dict[str, str], between: str) -> Format:
    return lambda fronts: between.join(words[front] for front in fronts)


_DETECTOR = Column("Detector", "detector", "name of the detector or floor", kind="name", short="Detector")
_LEVEL = Column("Level", "level", "what is judged", kind="text")
_COVERAGE = Column("Coverage %", "coverage", "share of the items that were scored", PERCENT, short="Cov\n%",
                   warns=is_lacking)  # fmt: skip
_PRECISION = Column("Precision", "precision", "share of the flagged items that are hallucinated", _THREE,
                    short="P")  # fmt: skip
_RECALL = Column("Recall", "recall", "share of the hallucinated items that are flagged", _THREE, short="R")
_AUROC = Column("AUROC", "auroc", "chance that a hallucinated item has a higher score than a clean one",
                _THREE, beside="auroc_ci95", short="AUROC")  # fmt: skip
_AUPRC = Column("AUPRC", "auprc", "average precision, no interpolation", _THREE, beside="auprc_ci95",
                short="AUPRC", brief=True)  # fmt: skip

LEVELS = (
    _DETECTOR,
    Column("Items", "n", "all items, scored or not"),
    _COVERAGE,
    _AUROC,
    _AUPRC,
    _PRECISION,
    _RECALL,
    Column("F1", "f1", "harmonic mean of precision and recall, of the detector's own flags", _THREE,
           beside="f1_ci95", short="F1", brief=True),
    Column("F1, tuned", "thresholds.tuned.f1",
           "at the threshold that is best on the other half of the groups", _THREE, short="F1\ntun."),
    Column("F1, maximum", "thresholds.oracle.f1",
           "at the threshold that is best on these very items: no result", _THREE, short="F1\nmax"),
    Column("Accuracy", "accuracy", "share of the items that are decided rightly", _THREE),
    Column("Balanced accuracy", "balanced_accuracy",
           "mean over both classes of the share that is decided rightly", _THREE),
    Column("ECE", "ece", "calibration error of the scores, ten bins of equal width", _THREE, short="ECE",
           wide=True),
    Column("Brier", "brier", "mean squared distance of score and label", _THREE),
)  # fmt: skip
"""For `rows` at response, sentence and word level."""

SPANS = (
    _DETECTOR,
    Column("Replies", "n", "replies with gold spans, perhaps none in them"),
    _COVERAGE,
    _PRECISION,
    _RECALL,
    Column("F1 of characters", "f1", "of the characters under flagged and under gold spans", _THREE,
           beside="f1_ci95", short="F1"),
    Column("F1, pairwise", "pairwise_f1", "of overlaps of every flagged with every gold span", _THREE,
           short="Pairwise\nF1"),
    Column("Mean IoU", "iou", "characters in both over characters in either, mean over replies", _THREE,
           short="IoU"),
    Column("F1, exact", "exact_f1", "of spans with the same two ends", _THREE, short="Exact\nF1"),
)  # fmt: skip
"""For `rows` at span level; precision and recall are of characters."""

COSTS = (
    _DETECTOR,
    Column("Threshold", "threshold", "score from which a reply is flagged, and its source", _THREE,
           beside="threshold_protocol", short="Thres-\nhold"),
    Column("Abstained", "abstained", "replies on which the detector abstained", short="Abst."),
    Column("Failed", "failed", "replies on which it failed", short="Failed"),
    Column("of these unreadable", "parse_failures", "failures although the model answered every request"),
    Column("Cut to fit", "truncated", "replies with a cut in reply or evidence",
           short="Cut"),
    Column("Calls / reply", "calls_per_reply", "model calls", build_decimal_format(1), short="Calls\n/reply"),
    Column("Tokens / reply", "tokens_per_reply", "tokens read and written; a dash if the server reports none",
           build_decimal_format(0), short="Tokens\n/reply"),
    Column("Training s", "train_s", "seconds of training here", build_decimal_format(1)),
    Column("First reply s", "cold_s", "seconds of the first reply, judged alone", build_decimal_format(2),
           short="Cold\ns", wide=True),
    Column("p50 ms", "p50_ms", "median time of the other scored replies", build_decimal_format(1),
           short="p50\nms"),
    Column("p95 ms", "p95_ms", "95th percentile of these times", build_decimal_format(1), short="p95\nms"),
    Column("Memory MB", "memory_mb",
           "growth of the process's highest memory while it judged, without servers and processes of its own",
           build_decimal_format(0), short="+MB"),
)  # fmt: skip
"""For `rows` at response level."""

REASONS = (
    _DETECTOR,
    Column("Replies", "n", "replies that lack a score for that reason"),
    Column("Outcome", "outcome", "failed or abstained", kind="text"),
    Column("Reason", "reason", "why, in brief", kind="long"),
)
"""For `reasons` in `rows` at response level."""

DIFFERENCES = (
    _LEVEL,
    Column("Metric", "metric", "what is compared", str.upper, kind="text"),
    Column("a", "a", "a detector", kind="name"),
    Column("b", "b", "another one", kind="name"),
    Column("Items", "n", "items that both scored"),
    Column("Difference", "difference", "a minus b, paired by group", _THREE,
           beside="ci95"),
)  # fmt: skip

CHATS = (
    _DETECTOR,
    Column("Chats", "conversations", "all conversations", short="Chats"),
    Column("Precision", "precision", "mean over conversations with a flag", _THREE,
           short="Precision"),
    Column("over", "precision_over", "number of these conversations", short="over"),
    Column("Recall", "recall", "mean over conversations with a hallucination", _THREE, short="Recall"),
    Column("over", "recall_over", "number of these conversations", short="over"),
    Column("F1", "f1", "harmonic mean of the two means, as in HalluDetect's table 1", _THREE, short="F1"),
)  # fmt: skip

CHAT_TESTS = (
    Column("Metric", "metric", "what is compared", kind="text"),
    Column("a", "a", "a detector", kind="name"),
    Column("b", "b", "another one", kind="name"),
    Column("Conversations", "conversations", "conversations in which both have a value"),
    Column("Difference", "difference", "mean of a minus b", _THREE),
    Column("p (Wilcoxon, Holm)", "p_holm", "signed-rank test, adjusted by Holm", build_decimal_format(4)),
)

CHATBOTS = (
    _DETECTOR,
    Column("Chatbot", "title", "name of the chatbot, or the mean of all", kind="text", short="Chatbot"),
    Column("Turns", "turns", "annotated turns", short="Turns"),
    _COVERAGE,
    Column("Labels' HPT-1", "labels_hpt_1", "hallucinations per turn by the labels", _THREE,
           short="Labels'\nHPT-1"),
    Column("HPT-1", "hpt_1", "hallucinations per scored turn by the detector", _THREE, short="HPT-1"),
    Column("Error %", "error", "difference of the second from the first, as a share of the first", PERCENT,
           short="Error\n%"),
)  # fmt: skip

PLANTED = (
    _DETECTOR,
    Column("Kind", "kind", "kind of the planted error", kind="text", short="Kind"),
    Column("Turns before", "turn", "turns of the dialogue before the reply", short="Turns\nbefore"),
    Column("Passages", "context", "passages of the evidence", short="Pas-\nsages"),
    Column("Pairs", "pairs", "errors, each with its clean twin", short="Pairs"),
    _COVERAGE,
    Column("Recall", "recall", "share of the errors whose reply is flagged, of pairs that are scored", _THREE,
           beside="recall_ci95", short="Recall"),
    Column("At its place", "placed", "share of the errors that a flagged span touches", _THREE,
           short="Placed"),
    Column("Twins flagged", "false_alarms", "share of the clean twins that are flagged", _THREE,
           beside="false_alarms_ci95", short="Twins\nflagged"),
    Column("Told apart", "told_apart", "share of the pairs whose error has the higher score; ties count half",
           _THREE, short="Told\napart"),
)  # fmt: skip

PARTS = (
    Column("By", "by", "property that the data is divided by", lambda by: by.replace("_", " "), kind="text",
           short="By"),
    Column("Part", "part", "name of the part", kind="name", short="Part"),
    Column("Detector", "detector", "name of the detector", kind="text", short="Detector"),
    Column("Items", "n", "items in it, scored or not", short="Items"),
    Column("Positive", "positives", "those that are hallucinated", short="Pos."),
    _COVERAGE,
    Column("Accuracy", "accuracy", "share of the items that are decided rightly", _THREE, short="Acc"),
    Column("AUROC", "auroc", _AUROC.hint, _THREE, short="AUROC"),
    Column("AUPRC", "auprc", _AUPRC.hint, _THREE),
    _PRECISION,
    _RECALL,
    Column("F1", "f1", "harmonic mean of the two", _THREE, short="F1"),
)  # fmt: skip


def build_sweep_columns(options: Iterable[str]) -> tuple[Column, ...]:
    """Return the columns for `sweep`. The terminal has one for all varied options, the page one for each."""
    return (
        Column("Configuration", "name", "name of the configuration", kind="name"),
        Column("", "name", "its number", lambda name: name.rsplit("-", 1)[-1], kind="name", short="ID"),
        Column("", "config", "the options that vary",
               lambda config: "/".join(map(format_option, config.values())), kind="long", short="Config"),
        *(Column(name, f"config.{name}", "an option", format_option, kind="text") for name in options),
        Column("Coverage %", "coverage", "share of the replies that were scored", PERCENT),
        Column("F1", "f1", "of the flags", _THREE, beside="f1_sd", short="F1 ± sd"),
        Column("CV %", "f1_cv", "coefficient of variation of F1 over the repeats", build_decimal_format(2,
               100),
               short="CV %"),
        Column("Precision", "precision", _PRECISION.hint, _THREE, beside="precision_sd", short="P",
               brief=True),
        Column("Recall", "recall", _RECALL.hint, _THREE, beside="recall_sd", short="R", brief=True),
        Column("Accuracy", "accuracy", "share of the replies that are decided rightly", _THREE,
               beside="accuracy_sd", short="Acc", brief=True),
        Column("AUROC", "auroc", _AUROC.hint, _THREE, beside="auroc_sd"),
        Column("Tokens / reply", "tokens_per_reply",
               "tokens read and written; a dash if the server reports none", build_decimal_format(0),
               beside="tokens_per_reply_sd", short="Tokens\n/reply",
               brief=True),
        Column("p50 ms", "p50_ms", "median time of a reply: its requests, added up", build_decimal_format(1),
               beside="p50_ms_sd", short="p50\nms", brief=True),
        Column("Unbeaten in", "pareto", "criteria in which no other is as good, as cheap and covers as much",
               _build_front_format({"tokens": "tokens", "latency": "time", "precision_recall": "P/R"}, ", "),
               kind="long"),
        Column("", "pareto", "the same in letters",
               _build_front_format({"tokens": "T", "latency": "L", "precision_recall": "P"}, ""),
               short="Front"),
    )  # fmt: skip


ROWS = tuple({column.value: column for column in (_DETECTOR, _LEVEL, *LEVELS, *SPANS, *COSTS)}.values())
"""For `rows` at all levels: the content of `--csv`."""

TABLES = {
    "Replies, sentences and words": LEVELS,
    "Spans": SPANS,
    "Cost and failures": COSTS,
    "Why judgements are missing": REASONS,
    "Sweep": build_sweep_columns(()),
    "Differences": DIFFERENCES,
    "Means over conversations": CHATS,
    "Tests over conversations": CHAT_TESTS,
    "Hallucinations per turn of chatbots": CHATBOTS,
    "Planted errors": PLANTED,
    "Parts of the data": PARTS,
}
