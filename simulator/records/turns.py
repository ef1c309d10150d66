"""The journal of turns: what a conversation that is cut off goes on from.

A turn is a line of `turns.jsonl` from when it ends until its conversation stands in the journal of
conversations. So the file is empty or missing unless a run is under way or was cut off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.scenarios.files.json_text import LineWriter, read_lines
from hallulab.scenarios.transcript import Frozen, Turn
from hallulab.simulator.records.stored import describe_flaw

MOST_DEAD_LINES = 1000
"""Lines of ended conversations in the file, above which it is written anew; more if more lines are alive."""


class TurnLine(Frozen):
    """A line of `turns.jsonl`."""

    conversation: str
    """Identifier of the conversation."""
    turn: Turn


def read_turns(path: Path, ended: Container[str] = ()) -> dict[str, list[Turn]]:
    """Read the turns of conversations that were cut off.

    Args:
        path: the file; it need not exist.
        ended: identifiers of conversations that stand in their journal, and are left out here.

    Raises:
        UsageError: a line is wrong, or a turn before it is missing; names the line.
    """
    found: dict[str, list[Turn]] = {}
    for number, value in read_lines(path):
        try:
            line = TurnLine.model_validate(value)
        except ValidationError as error:
            raise UsageError(describe_flaw(path, number, error)) from error
        if line.conversation in ended:
            continue
        turns = found.setdefault(line.conversation, [])
        if line.turn.index == 0:
            turns.clear()  # a worker that died may have begun the conversation anew
        if line.turn.index != len(turns):
            raise UsageError(
                f"{path}, line {number}: field `turn.index`: turn {line.turn.index} follows {len(turns)} "
                f"turns of conversation {line.conversation!r}. Delete the conversation's lines: it then "
                "begins anew."
            )
        turns.append(line.turn)
    return found


class TurnJournal:
    """Appends turns, and removes those of conversations that have ended.

    Args:
        path: the file.
        earlier: what stands in it and counts (`read_turns`).

    Raises:
        OperationalError: the file cannot be opened or written.
    """

    def __init__(self, path: Path, earlier: Mapping[str, Sequence[Turn]]) -> None:
        self.path = path
        self._alive = Counter({conversation: len(turns) for conversation, turns in earlier.items()})
        """Lines of each conversation that has not ended."""
        self._dead = 0
        if path.exists():
            self._write(earlier)
        self._file = LineWriter(path)

    def append(self, conversation: str, turn: Turn) -> None:
        """Write a turn. The operating system has it before this returns."""
        self._file.append(TurnLine(conversation=conversation, turn=turn).model_dump_json())
        self._alive[conversation] += 1

    def remove(self, conversation: str) -> None:
        """Remove the turns of a conversation, which stands in its own journal by now.

        Its lines may stay for a while. Whoever reads them knows that they do not count any more.
        """
        self._dead += self._alive.pop(conversation, 0)
        if not self._alive:
            self._file.clear()
            self._dead = 0
        elif self._dead > max(MOST_DEAD_LINES, self._alive.total()):
            self._file.close()
            self._drop_dead_lines()
            self._file = LineWriter(self.path)

    def close(self) -> None:
        """Close the file, and remove what does not count in it, or the file."""
        self._file.close()
        if not self._alive:
            self.path.unlink(missing_ok=True)
        elif self._dead:
            self._drop_dead_lines()

    def _drop_dead_lines(self) -> None:
        self._write({one: turns for one, turns in read_turns(self.path).items() if one in self._alive})
        self._dead = 0

    def _write(self, turns: Mapping[str, Sequence[Turn]]) -> None:
        lines = (
            TurnLine(conversation=conversation, turn=turn).model_dump_json()
            for conversation, held in turns.items()
            for turn in held
        )
        write_atomically(self.path, "".join(f"{line}\n" for line in lines))
