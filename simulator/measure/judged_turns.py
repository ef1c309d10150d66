"""The turns that a detector scored, with what people found in those that they looked at.

Corrected numbers are made of sums over personas: all conversations with a persona, of every chatbot and with
every seed, are resampled together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hallulab.scenarios.text.spans import Region, split_sentences
from hallulab.scenarios.transcript import Conversation, Span, Verdict
from hallulab.simulator.measure.metrics import ByDetector, Person, index_by_detector
from hallulab.simulator.measure.statistics import Floats
from hallulab.simulator.runs.journals import Journals

Annotations = Mapping[tuple[str, int], int]
"""Hallucinations that people found in a turn, by (conversation, index of the turn). 0: they looked and found
none. A turn that is not there was not looked at."""


@dataclass(frozen=True, slots=True)
class JudgedTurn:
    """A turn that a detector scored and localised."""

    chatbot: str
    """Name of the chatbot."""
    person: Person
    """Whom the chatbot talked to."""
    depth: int
    """Exchanges before the turn."""
    flagged: bool
    """Whether the reply is flagged."""
    spans: int
    """Hallucinations by the detector, unlocated ones included."""
    sentences: int
    """Sentences of the reply."""
    flagged_sentences: int
    """Those that a located span touches."""
    annotated: int | None
    """Hallucinations by people; None: nobody looked."""


class JudgedTurns:
    """Collects the scored turns of each detector, conversation by conversation."""

    def __init__(self, annotations: Annotations) -> None:
        self._annotations = annotations
        self._found: dict[str, list[JudgedTurn]] = defaultdict(list)

    def add(self, conversation: Conversation, verdicts: ByDetector) -> None:
        """Add the turns of a conversation."""
        for detector, turns in verdicts.items():
            self._found[detector] += _collect_turns(conversation, turns, self._annotations)

    def turns(self) -> dict[str, list[JudgedTurn]]:
        """Return the turns by detector, in the order of names."""
        return dict(sorted(self._found.items()))


def collect_judged_turns(
    conversations: Sequence[Conversation], verdicts: Sequence[Verdict], annotations: Annotations
) -> dict[str, list[JudgedTurn]]:
    """Return the scored turns of each detector, in the order of the conversations.

    Raises:
        UsageError: a turn has two verdicts of one detector.
    """
    judged = JudgedTurns(annotations)
    for conversation, found in Journals(conversations, verdicts).judged(by_case=False):
        judged.add(conversation, index_by_detector(found))
    return judged.turns()


def _collect_turns(
    conversation: Conversation, verdicts: Mapping[int, Verdict], annotations: Annotations
) -> list[JudgedTurn]:
    found = []
    person = (conversation.scenario, conversation.persona)
    for turn in conversation.turns:
        verdict = verdicts.get(turn.index)
        if verdict is None or verdict.spans is None or not verdict.localised:
            continue
        places = split_sentences(turn.reply)
        found.append(
            JudgedTurn(
                chatbot=conversation.chatbot,
                person=person,
                depth=conversation.depth(turn.index),
                flagged=bool(verdict.flagged),
                spans=len(verdict.spans),
                sentences=len(places),
                flagged_sentences=_count_touched(turn.reply, verdict.spans, places),
                annotated=annotations.get((conversation.id, turn.index)),
            )
        )
    return found


def sum_turns(
    turns: Iterable[JudgedTurn],
    chatbots: Sequence[str],
    of_turn: Callable[[JudgedTurn], tuple[float, ...]],
) -> Floats:
    """Add up what `of_turn` gives: shape (personas, chatbots, values)."""
    turns = list(turns)
    rows = {person: place for place, person in enumerate(sorted({turn.person for turn in turns}))}
    columns = {name: place for place, name in enumerate(chatbots)}
    values = np.array([of_turn(turn) for turn in turns], dtype=np.float64)
    found = np.zeros((len(rows), len(columns), values.shape[1]))
    np.add.at(
        found, ([rows[turn.person] for turn in turns], [columns[turn.chatbot] for turn in turns]), values
    )
    return found


def _count_touched(reply: str, spans: Sequence[Span], places: Sequence[Region]) -> int:
    """Count the places that a located span touches, in time that grows with the reply and with the spans."""
    ends = np.zeros(len(reply) + 1, dtype=np.int64)
    for span in spans:
        if span.start is not None and span.end is not None:
            ends[span.start] += 1
            ends[span.end] -= 1
    before = np.concatenate([[0], np.cumsum(np.cumsum(ends) > 0)])
    return sum(bool(before[place.end] > before[place.start]) for place in places)
