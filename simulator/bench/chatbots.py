"""Hallucinations per turn of the chatbots whose replies are labelled: by the labels, and by each detector.

Who compares chatbots by a detector sees only the detector's number; where turns are annotated, that number
can be held against the true one. Everything is counted as in a run's report, by `simulator.measure.metrics`:
labels and judgements are made verdicts of the turns in which the replies were given. A reply that was given
in several turns counts in each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from scenarios.labelled import ChatbotTurn, LabelledReply
from scenarios.transcript import Conversation, Judgement, Span, Turn, Verdict
from simulator.bench.evaluate import Evaluation
from simulator.measure.metrics import Row, mean, rows, tally_all

_LABELS = ""
"""What the annotators are called among the detectors; no detector can have this name."""


def chatbot_report(evaluations: Sequence[Evaluation]) -> list[dict[str, Any]] | None:
    """A row for each detector and chatbot, and one for their mean (`chatbot` None); None without such turns.

    `labels_hpt_1` is of all annotated turns, `hpt_1` of those that the detector scored and localised, and
    `error` is how far the second is above the first, as a share of it (None where the first is 0). The mean
    weighs each chatbot the same; its `error` is the mean of those that there are.
    """
    replies = evaluations[0].replies if evaluations else ()
    told = [place for place, reply in enumerate(replies) if reply.turns and reply.spans is not None]
    if not told:
        return None
    verdicts = [
        *(verdict for place in told for verdict in _verdicts(replies[place], _gold(replies[place]), _LABELS)),
        *(
            verdict
            for one in evaluations
            for place in told
            for verdict in _verdicts(replies[place], one.judgements[place], one.detector)
        ),
    ]
    chatbots = sorted({turn.chatbot for place in told for turn in replies[place].turns})
    detectors = [one.detector for one in evaluations]
    conversations = _conversations([replies[place] for place in told])
    counted = rows(tally_all(conversations, verdicts, chatbots, [_LABELS, *detectors]))
    labels = {row.chatbot: row for row in counted if row.detector == _LABELS}
    found = []
    for detector in detectors:
        own = [_row(labels[row.chatbot], row) for row in counted if row.detector == detector]
        found += [*own, _mean(own)]
    return found


def _conversations(replies: Sequence[LabelledReply]) -> list[Conversation]:
    """The annotated turns, by conversation."""
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


def _gold(reply: LabelledReply) -> Judgement:
    """What the annotators say, as a detector would."""
    spans = tuple(
        Span(start=span.start, end=span.end, text=reply.reply[span.start : span.end])
        for span in reply.spans or ()
    )
    return Judgement(outcome="scored", score=float(bool(spans)), flagged=bool(spans), spans=spans)


def _verdicts(reply: LabelledReply, judgement: Judgement, detector: str) -> Iterator[Verdict]:
    """The judgement of a reply as one of each turn in which it was given."""
    for turn in reply.turns:
        yield Verdict.model_construct(
            **dict(judgement),
            conversation=turn.conversation,
            turn=turn.turn,
            detector=detector,
            version="",
        )


def _row(labels: Row, row: Row) -> dict[str, Any]:
    error = None
    if labels.hpt_1 and row.hpt_1 is not None:
        error = round(row.hpt_1 / labels.hpt_1 - 1, 6)
    return {
        "detector": row.detector,
        "chatbot": row.chatbot,
        "turns": row.turns,
        "coverage": row.coverage,
        "labels_hpt_1": labels.hpt_1,
        "hpt_1": row.hpt_1,
        "hpt_1_ci95": row.hpt_1_ci95,
        "error": error,
    }


def _mean(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The mean over chatbots of a detector's rows."""

    def over(field: str) -> float | None:
        return mean([row[field] for row in found if row[field] is not None])

    return {
        "detector": found[0]["detector"],
        "chatbot": None,
        "chatbots": len(found),
        "turns": sum(row["turns"] for row in found),
        **{field: over(field) for field in ("coverage", "labels_hpt_1", "hpt_1", "error")},
    }
