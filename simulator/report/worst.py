"""The conversations of a run that its page shows first, each with its worst reply.

A reply is worse that more detectors flag; of those that as many flag, the one with the higher score by the
first detector, then by the next. So the order needs no threshold and no model, and is the same for each order
of the journals.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Self

from hallulab.scenarios.transcript import Conversation, Turn, Verdict
from hallulab.simulator.metrics.flagged import Place, find_place
from hallulab.simulator.metrics.hallucinations import ByDetector

LISTED = 50
SHOWN = 3
"""Replies that a page shows first."""

Rank = tuple[int, tuple[float, ...], Place]
"""How bad a reply is and where it stands: the lowest is the worst."""


@dataclass(frozen=True)
class WorstReply:
    """A conversation, of which only the worst reply is kept."""

    rank: Rank
    conversation: str
    chatbot: str
    persona: str
    number: int
    """Number of the turn, from 1, given ones included."""
    turn: Turn
    verdicts: tuple[Verdict | None, ...]
    """Those on this turn, in the order of the detectors; None: there is none."""
    flagged: int
    """Turns of the conversation that some detector flags."""
    scored: int
    """Turns of the conversation that some detector scored."""

    @property
    def flagging(self) -> int:
        """Detectors that flag the reply."""
        return -self.rank[0]


class WorstReplies:
    """Collects the worst conversations of each chatbot; scores count in the order of the detectors."""

    def __init__(self, detectors: Sequence[str]) -> None:
        self._detectors = detectors
        self._kept: dict[str, list[WorstReply]] = defaultdict(list)
        """The worst of each chatbot, the worst first."""

    def add(self, conversation: Conversation, verdicts: ByDetector) -> None:
        """Look at a conversation and the verdicts on it; those without a turn are left out."""
        found = [
            [verdicts.get(name, {}).get(turn.index) for name in self._detectors]
            for turn in conversation.turns
        ]
        ranks = [_rank(conversation, turn, own) for turn, own in zip(conversation.turns, found, strict=True)]
        if not ranks:
            return
        at = min(range(len(ranks)), key=ranks.__getitem__)
        kept = self._kept[conversation.chatbot]
        if len(kept) == LISTED and ranks[at] > kept[-1].rank:
            return
        reply = WorstReply(
            rank=ranks[at],
            conversation=conversation.id,
            chatbot=conversation.chatbot,
            persona=conversation.persona,
            number=conversation.depth(at) + 1,
            turn=conversation.turns[at],
            verdicts=tuple(found[at]),
            flagged=sum(rank[0] < 0 for rank in ranks),
            scored=sum(any(one is not None and one.outcome == "scored" for one in own) for own in found),
        )
        insort(kept, reply, key=attrgetter("rank"))
        del kept[LISTED:]

    def merge(self, other: Self) -> None:
        """Add those of other conversations."""
        for chatbot, more in other._kept.items():
            self._kept[chatbot] = _sort([*self._kept[chatbot], *more])[:LISTED]

    def list_conversations(self) -> list[WorstReply]:
        """Return the worst conversations of all chatbots, at most `LISTED`, the worst first."""
        return _sort(chain.from_iterable(self._kept.values()))[:LISTED]

    def choose_replies(self) -> list[WorstReply]:
        """Return the worst flagged replies, at most `SHOWN`, the worst first.

        Another text stands before one that was chosen already; of each chatbot there is one before there are
        two of any, and of each persona likewise.
        """
        left = [one for one in _sort(chain.from_iterable(self._kept.values())) if one.flagging]
        chosen: list[WorstReply] = []
        while left and len(chosen) < SHOWN:
            bots, personas = ([getattr(one, name) for one in chosen] for name in ("chatbot", "persona"))
            said = {one.turn.reply for one in chosen}
            worst = min(
                left,
                key=lambda one: (
                    one.turn.reply in said,
                    bots.count(one.chatbot),
                    personas.count(one.persona),
                    one.rank,
                ),
            )
            left.remove(worst)
            chosen.append(worst)
        return _sort(chosen)


def is_flagged(verdict: Verdict | None) -> bool:
    """Return whether a verdict flags a reply, as a whole or words of it."""
    return verdict is not None and bool(verdict.flagged or verdict.spans)


def _rank(conversation: Conversation, turn: Turn, verdicts: Sequence[Verdict | None]) -> Rank:
    scores = tuple(float("inf") if one is None or one.score is None else -one.score for one in verdicts)
    return -sum(map(is_flagged, verdicts)), scores, find_place(conversation, turn)


def _sort(replies: Iterable[WorstReply]) -> list[WorstReply]:
    return sorted(replies, key=attrgetter("rank"))
