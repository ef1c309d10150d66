"""Conversations side by side, turn by turn: of several chatbots with one persona, or of two runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.annotate.marks import identify_flag
from hallulab.simulator.report.reader import cut_segments
from hallulab.simulator.viewer.conversation import (
    ReplyPiece,
    ShownFinding,
    ShownPassage,
    find_citation,
    name_state,
    show_passages,
)


@dataclass(frozen=True)
class JudgedConversation:
    """A conversation with the verdicts on it."""

    chat: Conversation
    verdicts: Sequence[Verdict]


@dataclass(frozen=True)
class BesideFinding:
    """A hallucination, and who found it."""

    detector: int
    """Place of the detector, which chooses the colour."""
    shown: ShownFinding


@dataclass(frozen=True)
class BesideCell:
    """A turn of one conversation."""

    index: int
    user: str
    pieces: tuple[ReplyPiece, ...]
    """The reply, cut where the flagging by any detector changes."""
    findings: tuple[BesideFinding, ...]
    """The hallucinations by all detectors."""
    states: tuple[str, ...]
    """What came of each detector (`Lane.state`)."""
    passages: tuple[ShownPassage, ...]

    @property
    def flagging(self) -> list[int]:
        """Places of the detectors that flag it."""
        return [place for place, state in enumerate(self.states) if state == "flagged"]


@dataclass(frozen=True)
class BesideTurn:
    """The same turn of each conversation."""

    depth: int
    cells: tuple[BesideCell | None, ...]
    """One for each conversation; None: it has no such turn."""

    @property
    def flagging(self) -> list[int]:
        """Places of the detectors that flag it in some conversation."""
        return sorted({place for cell in self.cells if cell is not None for place in cell.flagging})


def lay_out_beside(judged: Sequence[JudgedConversation], detectors: Sequence[str]) -> list[BesideTurn]:
    """Lay conversations out beside each other, by the number of exchanges before each turn.

    Args:
        judged: the conversations, from left to right.
        detectors: names of the detectors that are shown.
    """
    columns = [_show_cells(one, detectors) for one in judged]
    depths = sorted({depth for column in columns for depth in column})
    return [BesideTurn(depth, tuple(column.get(depth) for column in columns)) for depth in depths]


def _show_cells(judged: JudgedConversation, detectors: Sequence[str]) -> dict[int, BesideCell]:
    """Return the turns of a conversation by the number of exchanges before each."""
    chat = judged.chat
    by_turn = {(verdict.turn, verdict.detector): verdict for verdict in judged.verdicts}
    cells = {}
    for turn in chat.turns:
        verdicts = [by_turn.get((turn.index, name)) for name in detectors]
        passages = show_passages(turn)
        found = [
            (place, span)
            for place, verdict in enumerate(verdicts)
            for span in (verdict.spans if verdict is not None else None) or ()
        ]
        cells[chat.depth(turn.index)] = BesideCell(
            index=turn.index,
            user=turn.user,
            pieces=tuple(
                ReplyPiece(text, covering)
                for text, covering in cut_segments(turn.reply, [span for _, span in found])
            ),
            findings=tuple(
                BesideFinding(place, ShownFinding(span, flag.id, *find_citation(span, passages)))
                for place, span in found
                for flag in [identify_flag(detectors[place], span)]
            ),
            states=tuple("missing" if one is None else name_state(one) for one in verdicts),
            passages=passages,
        )
    return cells
