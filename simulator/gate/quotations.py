"""Short quotations for the turns that a gate lists: a summary has no texts, but the run's folder has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hallulab.scenarios.text.wording import shorten_line
from hallulab.scenarios.transcript import Span, Turn, Verdict
from hallulab.simulator.compare.turns import ChangedTurn, TurnTexts
from hallulab.simulator.gate.markdown import SHOWN
from hallulab.simulator.gate.result import GateResult
from hallulab.simulator.records.folder import RunFolder

Key = tuple[str, int, str]
"""Conversation, place of the turn in it, detector."""


def add_quotations(result: GateResult, folder: RunFolder) -> GateResult:
    """Quote the first turns of each kind that get worse; the others stay as they are.

    Raises:
        UsageError: a journal is damaged.
    """
    severe = [turn for turn in result.severe if not turn.noise][:SHOWN]
    changed = [
        turn
        for kind in ("new", "worse")
        for turn in [one for one in result.changed if one.kind == kind][:SHOWN]
    ]
    texts = _read_texts(folder, {_locate(turn) for turn in (*severe, *changed)})
    return result.model_copy(
        update={"severe": _quote(result.severe, texts), "changed": _quote(result.changed, texts)}
    )


def _read_texts(folder: RunFolder, wanted: set[Key]) -> dict[Key, TurnTexts]:
    if not wanted:
        return {}
    ids = {conversation for conversation, _, _ in wanted}
    journals = folder.read_journals().current(folder.read_experiment()).about(lambda head: head.id in ids)
    return {
        (conversation.id, verdict.turn, verdict.detector): _shorten(conversation.turns[verdict.turn], verdict)
        for conversation, verdicts in journals.judged()
        for verdict in verdicts
        if (conversation.id, verdict.turn, verdict.detector) in wanted
    }


def _shorten(turn: Turn, verdict: Verdict) -> TurnTexts:
    spans = sorted(verdict.spans or (), key=_rank)
    return TurnTexts(
        user=shorten_line(turn.user),
        reply_after=shorten_line(turn.reply),
        spans_after=tuple(shorten_line(span.text) for span in spans),
    )


def _rank(span: Span) -> float:
    """Return the key that puts the most severe span first."""
    return 0.0 if span.severity is None else -span.severity


def _quote(turns: Iterable[ChangedTurn], texts: Mapping[Key, TurnTexts]) -> tuple[ChangedTurn, ...]:
    return tuple(turn.model_copy(update={"texts": texts.get(_locate(turn))}) for turn in turns)


def _locate(turn: ChangedTurn) -> Key:
    return turn.conversation_after, turn.index, turn.detector
