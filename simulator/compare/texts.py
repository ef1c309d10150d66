"""Short texts of changed turns, read from run folders conversation by conversation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hallulab.scenarios.text.wording import shorten_line
from hallulab.simulator.compare.runs import RunsCompared
from hallulab.simulator.compare.turns import KINDS, ChangedTurn, TurnTexts
from hallulab.simulator.metrics.hallucinations import index_by_detector
from hallulab.simulator.records.folder import RunFolder

MOST_OF_A_KIND = 50
"""Changed turns of each kind and run that are shown with their texts."""

TurnKey = tuple[str, int, str]
"""Conversation, turn and detector."""


@dataclass(frozen=True)
class _Said:
    """Texts of a turn of one run."""

    user: str
    reply: str
    spans: tuple[str, ...]


def choose_shown(turns: Sequence[ChangedTurn], most: int) -> list[ChangedTurn]:
    """Return the first turns of each kind."""
    return [turn for kind in KINDS for turn in [one for one in turns if one.kind == kind][:most]]


def list_flagged(texts: TurnTexts, most: int | None = None) -> list[tuple[str, str]]:
    """Return what was flagged in either run, labelled, `most` of each; once where it is the same in both."""
    if texts.spans_before == texts.spans_after:
        return [("flagged", text) for text in texts.spans_after[:most]]
    return [
        *(("flagged before", text) for text in texts.spans_before[:most]),
        *(("flagged after", text) for text in texts.spans_after[:most]),
    ]


def quote_turns(
    turns: Iterable[ChangedTurn], folder: RunFolder, chosen: Iterable[ChangedTurn]
) -> list[ChangedTurn]:
    """Return turns with the texts that the run's folder has of the chosen ones.

    Raises:
        UsageError: a journal is damaged.
    """
    after = _read_texts(folder, [_get_key(turn, "after") for turn in chosen])
    return [_add_to_turn(turn, {}, after) for turn in turns]


def add_texts(compared: RunsCompared, folders: Sequence[RunFolder | None]) -> RunsCompared:
    """Return the comparison with the texts of the changed turns that are shown.

    Args:
        folders: the run folder of each run, the reference first; None: there is only a baseline file.

    Raises:
        UsageError: a folder has changed since it was summarized.
    """
    reference, *others = folders
    shown = [choose_shown(one.turns.turns, MOST_OF_A_KIND) for one in compared.runs]
    before = _read_texts(reference, [_get_key(turn, "before") for turns in shown for turn in turns])
    runs = []
    for run, folder, turns in zip(compared.runs, others, shown, strict=True):
        after = _read_texts(folder, [_get_key(turn, "after") for turn in turns])
        chosen = {id(turn) for turn in turns}
        quoted = tuple(
            _add_to_turn(turn, before, after) if id(turn) in chosen else turn for turn in run.turns.turns
        )
        changes = run.turns.model_copy(update={"turns": quoted})
        runs.append(run.model_copy(update={"turns": changes}))
    return compared.model_copy(update={"runs": tuple(runs)})


def _get_key(turn: ChangedTurn, side: str) -> TurnKey:
    return getattr(turn, f"conversation_{side}"), turn.index, turn.detector


def _add_to_turn(
    turn: ChangedTurn, before: Mapping[TurnKey, _Said], after: Mapping[TurnKey, _Said]
) -> ChangedTurn:
    old, new = before.get(_get_key(turn, "before")), after.get(_get_key(turn, "after"))
    latest = new or old
    if latest is None:
        return turn
    texts = TurnTexts(
        user=latest.user,
        reply_before=None if old is None else old.reply,
        reply_after=None if new is None else new.reply,
        spans_before=() if old is None else old.spans,
        spans_after=() if new is None else new.spans,
    )
    return turn.model_copy(update={"texts": texts})


def _read_texts(folder: RunFolder | None, keys: Sequence[TurnKey]) -> dict[TurnKey, _Said]:
    """Read the texts of turns from a run folder, conversation by conversation."""
    if folder is None or not keys:
        return {}
    wanted: dict[str, set[tuple[int, str]]] = defaultdict(set)
    for conversation, index, detector in keys:
        wanted[conversation].add((index, detector))
    journals = folder.read_journals().current(folder.read_experiment())
    found: dict[TurnKey, _Said] = {}
    for chat, verdicts in journals.about(lambda head: head.id in wanted).judged():
        judged = index_by_detector(verdicts)
        for index, detector in wanted[chat.id]:
            if index >= len(chat.turns):
                continue
            turn, verdict = chat.turns[index], judged.get(detector, {}).get(index)
            # The severest first: a summary quotes only the first.
            spans = sorted(
                () if verdict is None else verdict.spans or (), key=lambda span: -(span.severity or 0.0)
            )
            found[chat.id, index, detector] = _Said(
                user=shorten_line(turn.user),
                reply=shorten_line(turn.reply),
                spans=tuple(shorten_line(span.text) for span in spans),
            )
    return found
