"""Export a run's replies as annotated data, in the JSONL schema that `hallulab bench` reads."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Conversation, Turn, Verdict
from hallulab.simulator.runs.folder import RunFolder, refuse_overwriting, write_lines


@dataclass(frozen=True)
class ExportCounts:
    """Counts of an export."""

    written: int
    """Lines written."""
    without_evidence: int
    """Replies left out because they or their passages are empty: nobody can judge those."""


def export_annotated(folder: RunFolder, detector: str | None, out: Path) -> ExportCounts:
    """Write one line for each reply that the detector scored, with its located spans.

    A reply is labelled hallucinated if the detector flagged it or anything in it. Without a detector, every
    reply is written, unlabelled.

    Raises:
        UsageError: there are no verdicts of that detector or no replies, or `out` is one of the run's files.
    """
    refuse_overwriting(out, (*folder.files, folder.annotations))
    journals = folder.read_journals().current(folder.read_experiment())
    counts = Counter[str]()

    def lines() -> Iterator[str]:
        for conversation, found in journals.judged(by_case=False):
            verdicts = {
                one.turn: one for one in found if one.detector == detector and one.outcome == "scored"
            }
            for turn in conversation.turns:
                if detector is not None and turn.index not in verdicts:
                    continue
                judgeable = bool(turn.reply) and any(passage.text for passage in turn.passages)
                counts[_WRITTEN if judgeable else _LEFT_OUT] += 1
                if judgeable:
                    line = _build_line(conversation, turn, verdicts.get(turn.index))
                    yield json.dumps(line, ensure_ascii=False)
        if not counts[_WRITTEN]:
            raise _explain_nothing(folder, detector, counts[_LEFT_OUT])

    write_lines(out, lines())
    return ExportCounts(counts[_WRITTEN], counts[_LEFT_OUT])


_WRITTEN, _LEFT_OUT = "written", "left out"


def _explain_nothing(folder: RunFolder, detector: str | None, left_out: int) -> UsageError:
    """Say why a run has nothing to export."""
    if detector is not None and not left_out:
        return UsageError(
            f"{folder.path} has no scored verdicts of a detector {detector!r}. Make them with "
            f"`hallulab detect {folder.path} --detectors NAME`, or correct --detector."
        )
    why = f"{left_out} have no evidence, or are empty" if left_out else "it has none yet"
    return UsageError(f"{folder.path} has no reply to export: {why}.")


def _build_line(conversation: Conversation, turn: Turn, verdict: Verdict | None) -> dict[str, Any]:
    spans = (verdict.spans or ()) if verdict is not None else ()
    located = [
        {"start": span.start, "end": span.end, "label": "hallucination"}
        for span in spans
        if span.start is not None
    ]
    # An empty list means no hallucination, so one without a place must not give it.
    localised = located or (verdict is not None and verdict.spans == () and not verdict.flagged)
    return {
        "id": f"{conversation.id}-{turn.index}",
        "task": "dialogue",
        "question": turn.user,
        "history": [message.model_dump() for message in conversation.history(turn.index)],
        "passages": [
            passage.model_dump(include={"id", "document", "text", "topic"}, exclude_none=True)
            for passage in turn.passages
            if passage.text
        ],
        "reply": turn.reply,
        "label": bool(verdict.flagged or spans) if verdict is not None else None,
        "spans": located if localised else None,
        "group": conversation.persona,
        "meta": {
            "conversation": conversation.id,
            "chatbot": conversation.chatbot,
            "model": conversation.model,
            "scenario": conversation.scenario,
            "seed": conversation.seed,
            "turn": conversation.depth(turn.index),
            "detector": verdict.detector if verdict is not None else None,
            "detector_version": verdict.version if verdict is not None else None,
        },
    }
