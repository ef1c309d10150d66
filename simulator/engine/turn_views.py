"""Views of turns for detectors: the one place where a turn's evidence is put together for all of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hallulab.chatbots.evidence import EvidenceSource
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.transcript import Message, Passage, Turn
from hallulab.scenarios.turn_views import TurnView, choose_earlier_passages


def build_view(
    turn: Turn,
    history: Sequence[Message],
    before: Sequence[Sequence[Passage]],
    evidence: EvidenceSource | None,
) -> TurnView:
    """Return what detectors see of a turn; they may search where evidence is searched.

    Args:
        history: the messages before it, those before a branch included.
        before: passages of the turns before it, oldest turn first: evidence, too.
        evidence: what is searched; None: nothing.
    """
    earlier = choose_earlier_passages(turn.passages, before)
    return TurnView(
        history=tuple(history),
        question=turn.user,
        passages=(*turn.passages, *earlier),
        earlier=len(earlier),
        reply=turn.reply,
        knowledge=None if evidence is None else evidence.retriever,
    )


def reorder_passages(view: TurnView) -> TurnView:
    """Return a view with the turn's passages in another order, drawn by its texts.

    With less than two it is the same. Passages of earlier turns stay behind them.
    """
    passages = list(view.own_passages)
    random.Random(digest([view.question, view.reply])).shuffle(passages)  # noqa: S311 - no secret
    if passages == list(view.own_passages):
        passages.reverse()
    return view.model_copy(update={"passages": (*passages, *view.earlier_passages)})
