"""The run folder of conversations that a person holds. It is whole after each turn and each verdict.

A conversation is a line from its first turn on, and the line is replaced when a turn is added. So a kill
loses the turn under way and nothing else, and every command reads the folder while the conversation goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.scenarios.files.json_text import LineWriter
from hallulab.scenarios.files.opening import read_file
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.records.experiment_json import SavedExperiment
from hallulab.simulator.records.folder import RunFolder


class LiveJournal:
    """Writes one conversation, behind those that the folder has.

    Args:
        folder: the run folder, which nobody else writes to (`open_journal`).
        saved: what its experiment.json says from the first turn on.
        earlier: the lines of the conversations that it has.
    """

    def __init__(self, folder: RunFolder, saved: SavedExperiment, earlier: str) -> None:
        self.folder = folder
        self._saved = saved
        self._earlier = earlier
        self._verdicts: LineWriter | None = None

    @property
    def is_written(self) -> bool:
        """True if something of the conversation is on disk."""
        return self._verdicts is not None

    @property
    def number(self) -> int:
        """The conversation's place in the folder, from 1."""
        return self._earlier.count("\n") + 1

    def write(self, conversation: Conversation) -> None:
        """Write the conversation as it is now.

        Raises:
            OperationalError: it cannot be written; what was written is intact.
        """
        if self._verdicts is None:
            self.folder.write_experiment(self._saved)
            self._verdicts = LineWriter(self.folder.verdicts)
        write_atomically(self.folder.conversations, f"{self._earlier}{conversation.model_dump_json()}\n")

    def add(self, verdict: Verdict) -> None:
        """Add a verdict on a turn that was written.

        Raises:
            OperationalError: as `write`.
        """
        assert self._verdicts is not None, "its turn was not written"
        self._verdicts.append(verdict.model_dump_json())

    def close(self) -> None:
        """Close the files."""
        if self._verdicts is not None:
            self._verdicts.close()


@contextmanager
def open_journal(path: Path, saved: SavedExperiment) -> Iterator[LiveJournal]:
    """Lock a folder and yield the journal of one more conversation. Nothing is written before its first turn.

    Args:
        path: a new or empty folder, or one of earlier live conversations.
        saved: what experiment.json says of this conversation; what it says of earlier ones stays.

    Raises:
        UsageError: the folder holds something else, or somebody writes to it.
        OperationalError: it cannot be made.
    """
    folder = RunFolder(path)
    with folder.claimed():
        joined = _join(folder, saved)
        earlier = read_file(folder.conversations).decode() if folder.conversations.is_file() else ""
        journal = LiveJournal(folder, joined, earlier)
        try:
            yield journal
        finally:
            journal.close()


def _join(folder: RunFolder, saved: SavedExperiment) -> SavedExperiment:
    """Return what experiment.json says of the conversations that are there and of the one to come."""
    before = folder.read_experiment()
    if before is None and not folder.has_journal:
        return saved
    if before is None or before.live is None:
        raise UsageError(f"{folder.path} holds a run that nobody held live. Give another --out.")
    kept, now = _name_components(before), _name_components(saved)
    differing = sorted(name for name in kept.keys() & now.keys() if kept[name] != now[name])
    if differing:
        raise UsageError(
            f"{folder.path} holds conversations of another experiment (it differs in "
            f"{', '.join(differing)}). Give another --out."
        )
    chatbots = {bot.name: bot for bot in (*before.experiment.chatbots, *saved.experiment.chatbots)}
    detectors = {one.name: one for one in (*before.experiment.detectors, *saved.experiment.detectors)}
    both = {"chatbots": tuple(chatbots.values()), "detectors": tuple(detectors.values())}
    checks, more = before.claim_checks, saved.claim_checks
    return saved.model_copy(
        update={
            "experiment": saved.experiment.model_copy(update=both),
            "identity": {**before.identity, **saved.identity},
            "detectors": {**before.detectors, **saved.detectors},
            "methods": {**before.methods, **saved.methods},
            "seeds": tuple(sorted({*before.seeds, *saved.seeds})),
            "read_how": tuple(dict.fromkeys((*before.read_how, *saved.read_how))),
            "claim_checks": checks.model_copy(
                update={
                    "chatbots": {**checks.chatbots, **more.chatbots},
                    "detectors": {**checks.detectors, **more.detectors},
                }
            ),
        }
    )


def _name_components(saved: SavedExperiment) -> dict[str, Any]:
    """Return what must stay the same in a folder, by its name."""
    return {
        **saved.identity,
        **{f"chatbot {bot.name}": (bot.kind, bot.options) for bot in saved.experiment.chatbots},
    }
