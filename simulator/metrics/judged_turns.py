"""The turns that detectors scored, with annotations, added up by persona for corrected numbers.

Corrected numbers are made of sums over personas: all conversations with a persona, of every chatbot and with
every seed, are resampled together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hallulab.scenarios.datasets.annotations import Draw, TurnPlace
from hallulab.scenarios.text.spans import Region, split_sentences
from hallulab.scenarios.transcript import Conversation, Span, Verdict
from hallulab.simulator.metrics.annotations import Annotations
from hallulab.simulator.metrics.hallucinations import ByDetector, index_by_detector
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.statistics.intervals import Floats
from hallulab.simulator.statistics.prediction_powered import (
    CELL,
    SUMS,
    Draws,
    compute_cell_sums,
    compute_turn_sums,
)
from hallulab.simulator.statistics.sums import Mergeable, Person, PersonSums


@dataclass(frozen=True, slots=True)
class JudgedTurn:
    """A turn that a detector scored and localised."""

    chatbot: str
    person: Person
    """Whom the chatbot talked to."""
    depth: int
    """Exchanges before the turn."""
    flagged: bool
    """True if the reply is flagged."""
    spans: int
    """Hallucinations by the detector, unlocated ones included."""
    sentences: int
    flagged_sentences: int
    """Those that a located span touches."""
    annotated: int | None
    """Hallucinations by people; None: nobody looked."""
    draw: Draw | None = None
    """How the turn was drawn to be annotated; None: not by hallulab."""


class TurnSums(Mergeable):
    """The turns that one detector scored, added up by persona, depth and chatbot."""

    COUNTS = ("_sums", "_drawn")

    def __init__(self) -> None:
        self._sums = PersonSums(_WIDTH)
        self._drawn = PersonSums(2 * CELL)

    def add(self, turn: JudgedTurn) -> None:
        """Add a turn."""
        true, flagged = turn.annotated, int(turn.flagged)
        numbers = (
            1,
            flagged,
            turn.spans,
            turn.sentences,
            turn.flagged_sentences,
            *compute_turn_sums(flagged, None if true is None else int(true > 0)),
            *compute_turn_sums(turn.spans, true),
        )
        self._sums.add(turn.person, (turn.depth, turn.chatbot), numbers)
        if turn.draw is not None and true is not None:
            cell = (*compute_cell_sums(flagged, int(true > 0)), *compute_cell_sums(turn.spans, true))
            self._drawn.add(turn.person, (turn.depth, turn.chatbot, turn.draw), cell)

    @property
    def depths(self) -> list[int]:
        """The depths that there are."""
        return sorted({depth for depth, _ in self._sums.keys})

    def panel(self, chatbots: Sequence[str], depth: int | None) -> Panel:
        """Return the sums of turns at a depth, or of all for None, of the personas that have any."""
        depths = self.depths if depth is None else [depth]
        tables = [
            (place, *self._sums.table((each, name))) for place, name in enumerate(chatbots) for each in depths
        ]
        rows = {
            person: at
            for at, person in enumerate(sorted({one for _, persons, _ in tables for one in persons}))
        }
        found = np.zeros((len(rows), len(chatbots), _WIDTH))
        for place, persons, numbers in tables:
            found[[rows[person] for person in persons], place] += numbers
        cells = sorted(key for key in self._drawn.keys if key[0] in depths and key[1] in chatbots)
        draws = tuple(sorted({draw for _, _, draw in cells}))
        drawn = np.zeros((len(rows), len(chatbots), len(draws), 2 * CELL))
        for key in cells:
            persons, numbers = self._drawn.table(key)
            at = ([rows[person] for person in persons], chatbots.index(key[1]), draws.index(key[2]))
            drawn[at] += numbers
        return Panel(found, drawn, draws)


@dataclass(frozen=True)
class Panel:
    """Sums of turns, shape (personas, chatbots, values); personas are sorted by name."""

    sums: Floats
    drawn: Floats
    """Values of drawn turns, by draw: shape (personas, chatbots, draws, values)."""
    draws: Draws
    """How these were drawn."""

    @property
    def flags(self) -> Floats:
        """Turns, sentences, flagged turns."""
        return self.sums[:, :, [0, 3, 1]]

    @property
    def spans(self) -> Floats:
        """Turns, sentences, hallucinations."""
        return self.sums[:, :, [0, 3, 2]]

    @property
    def sentences(self) -> Floats:
        """Turns, sentences, flagged sentences."""
        return self.sums[:, :, [0, 3, 4]]

    @property
    def looked_flags(self) -> Floats:
        """Sums of `compute_turn_sums` of whether turns are flagged, then those of drawn turns."""
        return self._join(self.sums[:, :, 5 : 5 + SUMS], self.drawn[..., :CELL])

    @property
    def looked_spans(self) -> Floats:
        """Likewise of their hallucinations."""
        return self._join(self.sums[:, :, 5 + SUMS :], self.drawn[..., CELL:])

    def _join(self, sums: Floats, drawn: Floats) -> Floats:
        """Put the sums of drawn turns behind those of all."""
        return np.concatenate([sums, drawn.reshape(*drawn.shape[:2], -1)], axis=2)


_WIDTH = 5 + 2 * SUMS


def sum_judged_turns(turns: Iterable[JudgedTurn]) -> TurnSums:
    """Add up turns that one detector scored."""
    sums = TurnSums()
    for turn in turns:
        sums.add(turn)
    return sums


class JudgedTurns(Mergeable):
    """Adds up the scored turns of each detector, conversation by conversation."""

    COUNTS = ("sums",)

    def __init__(self, annotations: Annotations) -> None:
        self._annotations = annotations
        self.sums: dict[str, TurnSums] = defaultdict(TurnSums)

    def add(self, conversation: Conversation, verdicts: ByDetector) -> None:
        """Add the turns of a conversation."""
        for detector, turns in verdicts.items():
            for _, turn in collect_placed_turns(conversation, turns, self._annotations):
                self.sums[detector].add(turn)


def collect_judged_turns(
    conversations: Sequence[Conversation], verdicts: Sequence[Verdict], annotations: Annotations
) -> dict[str, list[JudgedTurn]]:
    """Return the scored turns of each detector, in the order of the conversations.

    Raises:
        UsageError: a turn has two verdicts of one detector.
    """
    judged: dict[str, list[JudgedTurn]] = defaultdict(list)
    for conversation, found in Journals(conversations, verdicts).judged(by_case=False):
        for detector, turns in index_by_detector(found).items():
            placed = collect_placed_turns(conversation, turns, annotations)
            judged[detector] += [turn for _, turn in placed]
    return dict(sorted(judged.items()))


def collect_placed_turns(
    conversation: Conversation, verdicts: Mapping[int, Verdict], annotations: Annotations
) -> list[tuple[TurnPlace, JudgedTurn]]:
    """Return the turns of a conversation that one detector scored, with their places in the run."""
    found = []
    person = (conversation.scenario, conversation.persona)
    for turn in conversation.turns:
        verdict = verdicts.get(turn.index)
        if verdict is None or verdict.spans is None or not verdict.localised:
            continue
        sentences, place = split_sentences(turn.reply), (conversation.id, turn.index)
        judged = JudgedTurn(
            chatbot=conversation.chatbot,
            person=person,
            depth=conversation.depth(turn.index),
            flagged=bool(verdict.flagged),
            spans=len(verdict.spans),
            sentences=len(sentences),
            flagged_sentences=_count_touched(turn.reply, verdict.spans, sentences),
            annotated=annotations.counts.get(place),
            draw=annotations.drawn.get(place),
        )
        found.append((place, judged))
    return found


def _count_touched(reply: str, spans: Sequence[Span], places: Sequence[Region]) -> int:
    """Count the places that a located span touches, in time that grows with the reply and with the spans."""
    if not any(span.start is not None for span in spans):
        return 0
    ends = np.zeros(len(reply) + 1, dtype=np.int64)
    for span in spans:
        if span.start is not None and span.end is not None:
            ends[span.start] += 1
            ends[span.end] -= 1
    before = np.concatenate([[0], np.cumsum(np.cumsum(ends) > 0)])
    return sum(bool(before[place.end] > before[place.start]) for place in places)
