"""Multi-turn chats: precision and recall averaged over conversations (HalluDetect section 4.2).

Where the annotators mark the places in every turn, hallucinations are counted. A flagged span that overlaps a
gold one is right, any other is wrong. A gold span that no flagged one overlaps is missed. Else turns are
counted. A conversation in which a detector flags nothing has no precision, and one without hallucination has
no recall; neither enters that mean. Detectors are compared over the conversations in which they have a value:
all by Friedman's test, two by Wilcoxon's signed-rank test (HalluDetect section 5.1.2).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal

import numpy as np

from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Frozen, Judgement
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.bench.friedman import FEWEST, RankTest, rank_test
from hallulab.simulator.measure.metrics import compute_mean
from hallulab.simulator.measure.numbers import Rounded
from hallulab.simulator.measure.statistics import Integers, adjust_by_holm

Metric = Literal["precision", "recall"]
METRICS: tuple[Metric, ...] = ("precision", "recall")
CONVERSATION = "conversation"
"""Key of `meta` for the name of a reply's conversation."""
_MOST_EXACT = 500
"""Largest number of differing pairs with an exact signed-rank test, which then takes half a second."""

Counted = Literal["spans", "turns"]
Hits = Sequence[bool]
Values = Mapping[Metric, Mapping[str, float]]
"""Metric → its value by conversation, where it has one."""


class ChatRow(Frozen):
    """A detector's means, and the number of conversations behind them."""

    detector: str
    conversations: int
    precision: Rounded | None
    precision_over: int
    recall: Rounded | None
    recall_over: int


class ChatFriedman(RankTest):
    """All detectors over conversations; the highest value has rank 1."""

    metric: Metric
    conversations: int


class ChatTest(Frozen):
    """Two detectors over conversations: Wilcoxon's signed-rank test."""

    metric: Metric
    a: str
    b: str
    conversations: int
    difference: Rounded | None
    p_value: Rounded | None
    p_holm: Rounded | None


class ChatReport(Frozen):
    """Means over conversations."""

    counted: Counted
    rows: tuple[ChatRow, ...]
    friedman: tuple[ChatFriedman, ...]
    tests: tuple[ChatTest, ...]


def build_chat_report(evaluations: Sequence[Evaluation]) -> ChatReport | None:
    """Compute means by detector and tests between detectors; None where no reply names its conversation."""
    replies = evaluations[0].replies if evaluations else ()
    chats = [reply for reply in replies if _get_conversation(reply) is not None]
    if not chats:
        return None
    counted: Counted = "turns" if any(reply.spans is None for reply in chats) else "spans"
    values = {evaluation.detector: score_conversations(evaluation, counted) for evaluation in evaluations}
    return ChatReport(
        counted=counted,
        rows=tuple(
            ChatRow(
                detector=name,
                conversations=len({_get_conversation(reply) for reply in chats}),
                precision=compute_mean(list(found["precision"].values())),
                precision_over=len(found["precision"]),
                recall=compute_mean(list(found["recall"].values())),
                recall_over=len(found["recall"]),
            )
            for name, found in values.items()
        ),
        friedman=tuple(test for metric in METRICS for test in _run_friedman_test(values, metric)),
        tests=tuple(test for metric in METRICS for test in _test_pairs(values, metric)),
    )


def score_conversations(evaluation: Evaluation, counted: Counted) -> Values:
    """Compute precision and recall of a detector in each conversation."""
    right: dict[str, list[bool]] = defaultdict(list)
    met: dict[str, list[bool]] = defaultdict(list)
    count = _match_spans if counted == "spans" else _turn
    for reply, judgement in zip(evaluation.replies, evaluation.judgements, strict=True):
        chat = _get_conversation(reply)
        if chat is not None and judgement.outcome == "scored":
            flags, gold = count(reply, judgement)
            right[chat] += flags
            met[chat] += gold
    return {
        metric: {chat: sum(hits) / len(hits) for chat, hits in found.items() if hits}
        for metric, found in zip(METRICS, (right, met), strict=True)
    }


def _get_conversation(reply: LabelledReply) -> str | None:
    """Return the conversation of a reply; None where the reply names none."""
    named = reply.meta.get(CONVERSATION)
    return None if named is None else str(named)


def _turn(reply: LabelledReply, judgement: Judgement) -> tuple[Hits, Hits]:
    """Return whether the turn's flag, if any, is right, and whether its hallucination, if any, is flagged."""
    label, flagged = reply.label, bool(judgement.flagged)
    if label is None:
        return [], []
    return [label] * flagged, [flagged] * label


def _match_spans(reply: LabelledReply, judgement: Judgement) -> tuple[Hits, Hits]:
    """Return whether each flagged span is right, and whether each gold span is met.

    A flagged span without a place is wrong. A reply flagged without any span counts as one span.
    """
    gold = [(span.start, span.end) for span in reply.spans or ()]
    whole = [(0, len(reply.reply))] if judgement.flagged else []
    flagged = [(span.start, span.end) for span in judgement.spans or ()] or whole
    placed = [(start, end) for start, end in flagged if start is not None and end is not None]
    right = [any(start < b and a < end for a, b in gold) for start, end in placed]
    met = [any(start < b and a < end for start, end in placed) for a, b in gold]
    return right + [False] * (len(flagged) - len(placed)), met


def compute_wilcoxon_p(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Compute the two-sided p-value of the signed-rank test, without equal pairs; None if all are equal.

    Equal differences share the mean of their ranks. Given these ranks, the p-value is exact: twice the
    smaller tail of the sum of positive ranks over all 2^n equally likely patterns of signs, at most 1
    (Wilcoxon 1945; with ties Hollander and Wolfe, Nonparametric Statistical Methods, section 3.1). Shares of
    few hallucinations are mostly ties, for which the p-values of the normal approximation are too small.
    scipy uses it there from n = 14 on. We use it beyond `_MOST_EXACT` pairs, where the exact sum would need
    seconds.
    """
    from scipy.stats import rankdata, wilcoxon

    differences = np.array([round(a - b, 12) for a, b in zip(first, second, strict=True)])
    differences = differences[differences != 0]
    if not len(differences):
        return None
    if len(differences) > _MOST_EXACT:
        return float(wilcoxon(differences).pvalue)
    doubled = np.rint(2 * rankdata(np.abs(differences))).astype(np.int64)
    return _compute_signed_rank_p(doubled, int(doubled[differences > 0].sum()))


def _compute_signed_rank_p(ranks: Integers, positive: int) -> float:
    """Return twice the smaller tail, at `positive`, of the sum of a random subset of `ranks` (whole)."""
    chances = np.ones(1)
    for rank in np.sort(ranks):
        halves = chances / 2
        chances = np.pad(halves, (0, rank))
        chances[rank:] += halves
    return min(1.0, 2 * float(min(chances[: positive + 1].sum(), chances[positive:].sum())))


def _run_friedman_test(values: Mapping[str, Values], metric: Metric) -> list[ChatFriedman]:
    """Run the test on the conversations in which all detectors have a value; empty with too few of either."""
    shared = sorted(set.intersection(*(set(found[metric]) for found in values.values())))
    if len(values) < FEWEST or len(shared) < FEWEST:
        return []
    # The highest value has rank 1.
    losses = {name: np.array([-found[metric][chat] for chat in shared]) for name, found in values.items()}
    return [ChatFriedman(metric=metric, conversations=len(shared), **dict(rank_test(losses)))]


def _test_pairs(values: Mapping[str, Values], metric: Metric) -> list[ChatTest]:
    found = []
    for a, b in combinations(values, 2):
        one, two = values[a][metric], values[b][metric]
        shared = sorted(one.keys() & two.keys())
        first, second = [one[key] for key in shared], [two[key] for key in shared]
        difference = compute_mean([x - y for x, y in zip(first, second, strict=True)])
        found.append((a, b, len(shared), difference, compute_wilcoxon_p(first, second)))
    adjusted = adjust_by_holm([item[4] for item in found])
    return [
        ChatTest(
            metric=metric, a=a, b=b, conversations=pairs, difference=difference, p_value=p, p_holm=p_holm
        )
        for (a, b, pairs, difference, p), p_holm in zip(found, adjusted, strict=True)
    ]
