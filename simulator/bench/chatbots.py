"""Hallucinations per turn of chatbots with labelled replies: by the labels, and by each detector.

A comparison of chatbots by a detector knows only the detector's number. Where turns are annotated, that
number can be compared with the true one. Everything is counted as in a run's report, by
`hallulab.simulator.measure.metrics`: labels and judgements become verdicts on the turns of the replies. A
reply given in several turns counts in each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from hallulab.scenarios.labelled import ChatbotTurn, LabelledReply
from hallulab.scenarios.transcript import Conversation, Frozen, Judgement, Span, Turn, Verdict
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.measure.metrics import Row, Tallies, build_rows, compute_mean, count_all_verdicts
from hallulab.simulator.measure.numbers import Interval, Rounded
from hallulab.simulator.runs.journals import Journals

LABELS = ""
"""Name of the annotators among the detectors; no detector can have it."""


class _Rates(Frozen):
    """Hallucinations per turn by a detector, beside those by the labels."""

    detector: str
    """Name of the detector."""
    turns: int
    """Annotated turns."""
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
    """Its name."""
    hpt_1_ci95: Interval
    """Interval of `hpt_1`."""

    @property
    def title(self) -> str:
        """Its name."""
        return self.chatbot


class ChatbotMean(_Rates):
    """Mean over chatbots, without missing values. Each chatbot weighs the same."""

    chatbot: None = None
    """No single one."""
    chatbots: int
    """Number of chatbots."""

    @property
    def title(self) -> str:
        """Name of the row."""
        return f"mean of {self.chatbots}"


ChatbotRows = tuple[ChatbotRow | ChatbotMean, ...]


def build_chatbot_rows(evaluations: Sequence[Evaluation]) -> ChatbotRows | None:
    """Make a row for each detector and chatbot, and one for their mean; None without annotated turns."""
    tallies = count_annotated(evaluations)
    if tallies is None:
        return None
    counted = build_rows(tallies)
    labels = {row.chatbot: row for row in counted if row.detector == LABELS}
    found: list[ChatbotRow | ChatbotMean] = []
    for detector in (one.detector for one in evaluations):
        own = [_build_row(labels[row.chatbot], row) for row in counted if row.detector == detector]
        found += [*own, _compute_mean(own)]
    return tuple(found)


def count_annotated(evaluations: Sequence[Evaluation]) -> Tallies | None:
    """Count each conversation by the labels (as a detector named `LABELS`) and by each detector; None without
    annotated turns."""
    conversations, verdicts = collect_annotated(evaluations)
    if not conversations:
        return None
    chatbots = sorted({conversation.chatbot for conversation in conversations})
    detectors = [LABELS, *(one.detector for one in evaluations)]
    return count_all_verdicts(Journals(conversations, verdicts), chatbots, detectors)


def collect_annotated(evaluations: Sequence[Evaluation]) -> tuple[list[Conversation], list[Verdict]]:
    """Return the conversations of the annotated turns, and the verdicts on them by the labels (as a detector
    named `LABELS`) and by each detector."""
    replies = evaluations[0].replies if evaluations else ()
    told = [place for place, reply in enumerate(replies) if reply.turns and reply.spans is not None]
    verdicts = [
        *(
            verdict
            for place in told
            for verdict in _build_verdicts(replies[place], _build_gold_judgement(replies[place]), LABELS)
        ),
        *(
            verdict
            for one in evaluations
            for place in told
            for verdict in _build_verdicts(replies[place], one.judgements[place], one.detector)
        ),
    ]
    return _group_turns([replies[place] for place in told]), verdicts


def _group_turns(replies: Sequence[LabelledReply]) -> list[Conversation]:
    """Group the annotated turns into conversations."""
    turns: dict[tuple[str, str], list[tuple[ChatbotTurn, LabelledReply]]] = defaultdict(list)
    for reply in replies:
        for turn in reply.turns:
            turns[turn.chatbot, turn.conversation].append((turn, reply))
    return [
        Conversation(
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
            **dict(judgement),
            conversation=turn.conversation,
            turn=turn.turn,
            detector=detector,
            version="",
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
