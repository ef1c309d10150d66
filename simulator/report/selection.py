"""Which conversations of a run an export writes, and which are left out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from shlex import quote

import numpy as np
from datasketch import MinHash, MinHashLSH
from numpy.typing import NDArray

from hallulab.scenarios.chats.record import DetectedSpan, Marked
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.near_names import suggest_name
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.options.groups import ExportSelection
from hallulab.simulator.records.experiment_json import SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.report.facts import build_flaw_finder, get_personas

ALIKE = 0.8
"""Share of common runs of words (Jaccard) from which two conversations are near duplicates."""
RUN = 5
_HASHES = 128


class NearDuplicates:
    """Remembers conversations by signatures of half a kilobyte each; their texts are not kept."""

    def __init__(self) -> None:
        self._index = MinHashLSH(threshold=ALIKE, num_perm=_HASHES)
        self._signatures: list[NDArray[np.uint32]] = []

    def has(self, conversation: Conversation) -> bool:
        """Return whether an earlier one is nearly the same; else remember this one."""
        signature = MinHash(num_perm=_HASHES)
        said = conversation.history(len(conversation.turns))
        words = [word for message in said for word in message.text.lower().split()]
        starts = range(max(1, len(words) - RUN + 1))
        signature.update_batch([run.encode() for run in {" ".join(words[at : at + RUN]) for at in starts}])
        own = signature.hashvalues.astype(np.uint32)
        # The index only proposes.
        if any(np.mean(self._signatures[place] == own) >= ALIKE for place in self._index.query(signature)):
            return True
        self._index.insert(len(self._signatures), signature)
        self._signatures.append(own)
        return False


@dataclass
class SelectionCounts:
    """Numbers of conversations, each counted once."""

    written: int = 0
    too_short: int = 0
    """Without a turn, or with too few."""
    not_clean: int = 0
    """Flagged by the detector, or not scored in every turn."""
    flawed: int = 0
    """With a flaw of the simulated user."""
    near_duplicates: int = 0
    """Nearly the same as an earlier one, and left out of data for training."""
    not_judged: int = 0
    """Replies of those written that have no spans, because a detector did not score them or say where, in a
    run that was judged."""


def require_wanted(
    wanted: ExportSelection, saved: SavedExperiment | None, journals: Journals, folder: RunFolder
) -> None:
    """Raise UsageError if the run cannot have what is wanted."""
    judged = {key.detector for key in journals.keys}
    for flag, name in (("--detector", wanted.detector), ("--clean-by", wanted.clean_by)):
        if name is not None and name not in judged:
            near = suggest_name(name, judged)
            raise UsageError(
                f"{folder.path} has no verdicts of a detector {name!r}{near}. Make them with "
                f"`hallulab detect {quote(str(folder.path))} --detectors NAME`, or correct {flag}."
            )
    if wanted.audited and saved is not None and saved.lacks_simulated_user:
        how = "was imported" if saved.live is None else "was typed by a person"
        raise UsageError(
            f"--audited: {folder.path} {how}, so there is no simulated user to audit. Leave it out."
        )


def select_conversations(
    journals: Journals, saved: SavedExperiment | None, wanted: ExportSelection, counts: SelectionCounts
) -> Iterator[Marked]:
    """Yield the wanted conversations, and count what became of all."""
    known = NearDuplicates()
    judges = {key.detector for key in journals.keys if wanted.detector in (None, key.detector)}
    flaws = build_flaw_finder(saved, get_personas(saved, None)) if wanted.audited else None
    for conversation, verdicts in journals.judged(by_case=False):
        if len(conversation.turns) < wanted.min_turns:
            counts.too_short += 1
        elif wanted.clean_by is not None and not _clean(conversation, verdicts, wanted.clean_by):
            counts.not_clean += 1
        elif flaws is not None and flaws(conversation):
            counts.flawed += 1
        elif not wanted.keep_duplicates and known.has(conversation):
            counts.near_duplicates += 1
        else:
            counts.written += 1
            marks = _collect_detected_spans(verdicts, judges)
            counts.not_judged += len(conversation.turns) - len(marks) if judges else 0
            yield Marked(conversation, marks, [one for one in verdicts if one.detector in judges])


def _clean(conversation: Conversation, verdicts: Iterable[Verdict], detector: str) -> bool:
    """Return whether the detector scored every turn and found nothing; a failure is not clean."""
    clean = {
        one.turn
        for one in verdicts
        if one.detector == detector and one.outcome == "scored" and not one.flagged and not one.spans
    }
    return all(turn.index in clean for turn in conversation.turns)


def _collect_detected_spans(
    verdicts: Iterable[Verdict], judges: Collection[str]
) -> Mapping[int, list[DetectedSpan]]:
    """Return the spans of each turn; none is clean unless all judges scored it and said where."""
    found: dict[int, list[DetectedSpan]] = defaultdict(list)
    scored: Counter[int] = Counter()
    for one in verdicts:
        if one.detector in judges and one.localised:
            scored[one.turn] += 1
            found[one.turn] += [
                DetectedSpan(detector=one.detector, start=span.start, end=span.end, text=span.text)
                for span in one.spans or ()
            ]
    return {turn: spans for turn, spans in found.items() if spans or scored[turn] == len(judges)}
