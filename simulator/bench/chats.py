"""Numbers of whole chats (HalluDetect section 4.2) and hallucinations per turn of labelled chatbots.

Hallucinations per turn of chatbots with labelled replies: by the labels, and by each detector.
A comparison of chatbots by a detector knows only the detector's number. Where turns are annotated, that
number can be compared with the true one. Everything is counted as in a run's report, by
`hallulab.simulator.metrics.hallucinations`: labels and judgements become verdicts on the turns of the
replies. A reply given in several turns counts in each.

Multi-turn chats: precision and recall averaged over conversations (HalluDetect section 4.2).
Where the annotators mark the places in every turn, hallucinations are counted. A flagged span that overlaps a
gold one is right, any other is wrong. A gold span that no flagged one overlaps is missed. Else turns are
counted. A conversation in which a detector flags nothing has no precision, and one without hallucination has
no recall; neither enters that mean. Detectors are compared over the conversations in which they have a value:
all by Friedman's test, two by Wilcoxon's signed-rank test (HalluDetect section 5.1.2).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np

from hallulab.scenarios.labelled import ChatbotTurn, LabelledReply
from hallulab.scenarios.transcript import Conversation, Frozen, Judgement, Span, Turn, Verdict
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.bench.levels import list_located_ends
from hallulab.simulator.bench.significance import FEWEST, RankTest, compute_wilcoxon_p, run_rank_test
from hallulab.simulator.metrics.hallucinations import Row, compute_mean
from hallulab.simulator.metrics.results import build_rows
from hallulab.simulator.metrics.run_sums import count_all_verdicts
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.statistics.differences import adjust_by_holm
from hallulab.simulator.statistics.intervals import Interval, Rounded

Metric = Literal["precision", "recall"]
METRICS: tuple[Metric, ...] = ("precision", "recall")
CONVERSATION = "conversation"
"""Key of `meta` for the name of a reply's conversation."""

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
    f1: Rounded | None = None
    """Harmonic mean of the two means, as in HalluDetect's table 1; None where one is not defined."""


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
    conversations = len({_get_conversation(reply) for reply in chats})
    rows = []
    for name, found in values.items():
        precision, recall = (compute_mean(list(found[metric].values())) for metric in METRICS)
        rows.append(
            ChatRow(
                detector=name,
                conversations=conversations,
                precision=precision,
                precision_over=len(found["precision"]),
                recall=recall,
                recall_over=len(found["recall"]),
                f1=compute_harmonic_mean(precision, recall),
            )
        )
    return ChatReport(
        counted=counted,
        rows=tuple(rows),
        friedman=tuple(test for metric in METRICS for test in _run_friedman_test(values, metric)),
        tests=tuple(test for metric in METRICS for test in _test_pairs(values, metric)),
    )


def compute_harmonic_mean(precision: float | None, recall: float | None) -> float | None:
    """Return F1 of precision and recall; None where one is not defined, 0 where both are 0.

    >>> round(compute_harmonic_mean(0.5456, 0.8063), 4)
    0.6508
    """
    if precision is None or recall is None:
        return None
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def score_conversations(evaluation: Evaluation, counted: Counted) -> Values:
    """Compute precision and recall of a detector in each conversation."""
    right: dict[str, list[bool]] = defaultdict(list)
    met: dict[str, list[bool]] = defaultdict(list)
    count = _match_spans if counted == "spans" else _match_turn
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


def _match_turn(reply: LabelledReply, judgement: Judgement) -> tuple[Hits, Hits]:
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
    placed = list_located_ends(judgement) if judgement.spans else whole
    right = [any(start < b and a < end for a, b in gold) for start, end in placed]
    met = [any(start < b and a < end for start, end in placed) for a, b in gold]
    return right + [False] * (len(judgement.spans or whole) - len(placed)), met


def _run_friedman_test(values: Mapping[str, Values], metric: Metric) -> list[ChatFriedman]:
    """Run the test on the conversations in which all detectors have a value; empty with too few of either."""
    shared = sorted(set.intersection(*(set(found[metric]) for found in values.values())))
    if len(values) < FEWEST or len(shared) < FEWEST:
        return []
    # The highest value has rank 1.
    losses = {name: np.array([-found[metric][chat] for chat in shared]) for name, found in values.items()}
    return [ChatFriedman(metric=metric, conversations=len(shared), **dict(run_rank_test(losses)))]


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


LABELS = ""
"""Name of the annotators among the detectors; no detector can have it."""


class _Rates(Frozen):
    """Hallucinations per turn by a detector, beside those by the labels."""

    detector: str
    turns: int
    coverage: Rounded | None
    """Share of them that the detector scored and localised."""
    labels_hpt_1: Rounded | None
    """Hallucinations per turn by the labels, over all annotated turns."""
    hpt_1: Rounded | None
    """Hallucinations per turn by the detector, over the turns that it scored and localised."""
    error: Rounded | None
    """The detector's number minus the labels', over the labels'; None where the labels' is 0."""


class ChatbotRow(_Rates):
    """Rates of one chatbot."""

    chatbot: str
    hpt_1_ci95: Interval

    @property
    def title(self) -> str:
        """Its name."""
        return self.chatbot


class ChatbotMean(_Rates):
    """Mean over chatbots, without missing values. Each chatbot weighs the same."""

    chatbot: None = None
    chatbots: int

    @property
    def title(self) -> str:
        """Name of the row."""
        return f"mean of {self.chatbots}"


ChatbotRows = tuple[ChatbotRow | ChatbotMean, ...]


def build_chatbot_rows(evaluations: Sequence[Evaluation]) -> ChatbotRows | None:
    """Make a row for each detector and chatbot, and one for their mean; None without annotated turns."""
    conversations, verdicts = collect_annotated(evaluations)
    if not conversations:
        return None
    chatbots = sorted({conversation.chatbot for conversation in conversations})
    detectors = [LABELS, *(one.detector for one in evaluations)]
    counted = build_rows(count_all_verdicts(Journals(conversations, verdicts), chatbots, detectors).rows)
    labels = {row.chatbot: row for row in counted if row.detector == LABELS}
    found: list[ChatbotRow | ChatbotMean] = []
    for detector in (one.detector for one in evaluations):
        own = [_build_row(labels[row.chatbot], row) for row in counted if row.detector == detector]
        found += [*own, _compute_mean(own)]
    return tuple(found)


def collect_annotated(evaluations: Sequence[Evaluation]) -> tuple[list[Conversation], list[Verdict]]:
    """Return the conversations of the annotated turns, and the verdicts on them.

    These are by the labels, as a detector named `LABELS`, and by each detector.
    """
    replies = evaluations[0].replies if evaluations else ()
    annotated = [place for place, reply in enumerate(replies) if reply.turns and reply.spans is not None]
    verdicts = [
        verdict
        for place in annotated
        for verdict in _build_verdicts(replies[place], _build_gold_judgement(replies[place]), LABELS)
    ]
    verdicts += [
        verdict
        for one in evaluations
        for place in annotated
        for verdict in _build_verdicts(replies[place], one.judgements[place], one.detector)
    ]
    return _group_turns([replies[place] for place in annotated]), verdicts


def _group_turns(replies: Sequence[LabelledReply]) -> list[Conversation]:
    """Group the annotated turns into conversations, which lack the others: turns keep their numbers."""
    turns: dict[tuple[str, str], list[tuple[ChatbotTurn, LabelledReply]]] = defaultdict(list)
    for reply in replies:
        for turn in reply.turns:
            turns[turn.chatbot, turn.conversation].append((turn, reply))
    return [
        Conversation.model_construct(
            id=conversation,
            scenario="",
            persona=found[0][1].group,
            chatbot=chatbot,
            model="",
            seed=0,
            turns=tuple(
                Turn(index=turn.turn, user=reply.question, passages=reply.passages, reply=reply.reply)
                for turn, reply in sorted(found, key=lambda pair: pair[0].turn)
            ),
            stop_reason="max_turns",
        )
        for (chatbot, conversation), found in turns.items()
    ]


def _build_gold_judgement(reply: LabelledReply) -> Judgement:
    """Return the annotations as the judgement of a detector."""
    spans = tuple(
        Span(start=span.start, end=span.end, text=reply.reply[span.start : span.end])
        for span in reply.spans or ()
    )
    return Judgement(outcome="scored", score=float(bool(spans)), flagged=bool(spans), spans=spans)


def _build_verdicts(reply: LabelledReply, judgement: Judgement, detector: str) -> Iterator[Verdict]:
    """Yield the judgement of a reply as a verdict on each turn in which it was given."""
    for turn in reply.turns:
        yield Verdict.model_construct(
            **dict(judgement), conversation=turn.conversation, turn=turn.turn, detector=detector, version=""
        )


def _build_row(labels: Row, row: Row) -> ChatbotRow:
    return ChatbotRow(
        detector=row.detector,
        chatbot=row.chatbot,
        turns=row.turns,
        coverage=row.coverage,
        labels_hpt_1=labels.hpt_1,
        hpt_1=row.hpt_1,
        hpt_1_ci95=row.hpt_1_ci95,
        error=row.hpt_1 / labels.hpt_1 - 1 if labels.hpt_1 and row.hpt_1 is not None else None,
    )


def _compute_mean(found: Sequence[ChatbotRow]) -> ChatbotMean:
    """Average a detector's rows over chatbots."""
    over: dict[str, Any] = {
        field: compute_mean([value for row in found if (value := getattr(row, field)) is not None])
        for field in ("coverage", "labels_hpt_1", "hpt_1", "error")
    }
    turns = sum(row.turns for row in found)
    return ChatbotMean(detector=found[0].detector, chatbots=len(found), turns=turns, **over)
