"""Where an annotator's marks become lines of a run's annotations.jsonl, one key at a time.

The mark is written first, then what it makes of the turn. A process that is killed in between has lost
nothing: the next key finds the turn of the last mark, and writes what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hallulab.scenarios.datasets.annotations import (
    AnnotationLine,
    Draw,
    TurnPlace,
    choose_guideline,
    find_spans,
    read_annotations,
)
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import LineWriter
from hallulab.scenarios.files.yaml_text import read_yaml
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.annotate.marks import (
    FlagMark,
    Found,
    Labeller,
    MarkedFlag,
    conclude,
    list_flags,
    read_marks,
)
from hallulab.simulator.annotate.sheet import SCHEMA, Sheet
from hallulab.simulator.records.folder import RunFolder

ReadChat = Callable[[str], tuple[Conversation, Sequence[Verdict]] | None]
"""Returns a conversation and the verdicts on it; None: there is none.

It raises UsageError while that is not known yet."""


@dataclass(frozen=True)
class DrawnTurn:
    """A turn of a sheet: to be labelled, and drawn with a known probability."""

    place: TurnPlace
    key: str
    drawn: Draw | None


class Desk:
    """The place at a run of one annotator, who labels by one guideline."""

    def __init__(
        self,
        folder: RunFolder,
        read_chat: ReadChat,
        labeller: Labeller,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._folder = folder
        self._read_chat = read_chat
        self._labeller = labeller
        self._clock = clock

    def press(self, place: TurnPlace, said: Mapping[str, Any], adjudicating: bool = False) -> FlagMark:
        """Write a mark, and what it makes of its turn; return the mark.

        Args:
            said: `kind`, and what else that kind of mark has.
            adjudicating: whether it settles the different labels of annotators.

        Raises:
            UsageError: there is no such turn, flag or place; there is nothing to settle, or somebody else
                settled it; or a file leads out of the folder or is wrong.
            OperationalError: a file cannot be written.
        """
        with self._folder.labelling():
            marks = read_marks(self._folder.marks, self._labeller)
            if marks and self._has(marks[-1].place):
                self._settle(marks[-1], marks, marks[:-1])
            mark = self._build(place, {**said, **self._adjudicate(place, said)} if adjudicating else said)
            self._write_mark(mark)
            self._settle(mark, [*marks, mark], marks)
        return mark

    def undo(self) -> FlagMark | None:
        """Take back the annotator's last mark, and return it; None: there is none.

        A line about a conversation that does not count any more stays as it is.

        Raises:
            UsageError: a file leads out of the folder or is wrong.
            OperationalError: a file cannot be written.
        """
        with self._folder.labelling():
            marks = read_marks(self._folder.marks, self._labeller)
            if not marks:
                return None
            last = marks[-1]
            there = self._has(last.place)
            if there:
                self._settle(last, marks, marks[:-1])
            self._write_mark(self._sign(last.place, {"kind": "undo"}))
            if there:
                self._settle(last, marks[:-1], marks)
        return last

    def read_lines(self) -> dict[TurnPlace, AnnotationLine]:
        """Return the annotator's own lines of annotations.jsonl that were not taken back.

        Raises:
            UsageError: a line is wrong.
        """
        return {
            line.place: line
            for line in read_standing_lines(self._folder)
            if (line.annotator, line.guideline) == self._labeller and not line.adjudicates
        }

    def read_decisions(self) -> dict[TurnPlace, AnnotationLine]:
        """Return the lines that settle turns under the desk's guideline, whoever wrote them.

        Raises:
            UsageError: a line is wrong.
        """
        return {line.place: line for line in self._read_of_guideline() if line.adjudicates}

    def read_labels(self, place: TurnPlace) -> dict[str, AnnotationLine]:
        """Return the annotators' own lines of a turn under the desk's guideline, of those who could tell.

        Raises:
            UsageError: a line is wrong.
        """
        own = [line for line in self._read_of_guideline() if line.place == place and not line.adjudicates]
        return {
            line.annotator: line for line in sorted(own, key=lambda one: one.annotator) if not line.unknown
        }

    def list_next(self) -> list[DrawnTurn]:
        """Return the turns of the run's sheets that the annotator has not labelled, in their order.

        Turns of conversations that do not count any more are left out.

        Raises:
            UsageError: a sheet or a line is wrong.
        """
        done = self.read_lines()
        waiting = [turn for turn in read_drawn(self._folder).values() if turn.place not in done]
        gone = {chat for chat in {turn.place[0] for turn in waiting} if self._is_gone(chat)}
        return [turn for turn in waiting if turn.place[0] not in gone]

    def _read_of_guideline(self) -> list[AnnotationLine]:
        return [one for one in read_standing_lines(self._folder) if one.guideline == self._labeller[1]]

    def _adjudicate(self, place: TurnPlace, said: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a mark that settles a turn has more: whose labels it settles, and which it takes."""
        labels = self.read_labels(place)
        if len(labels) < 2:
            raise UsageError("Fewer than two annotators labelled this turn, so there is nothing to settle.")
        before = self.read_decisions().get(place)
        if before is not None and before.annotator != self._labeller[0]:
            raise UsageError(f"{before.annotator} settled this turn. Only they can take it back, with `z`.")
        if said.get("kind") != "take":
            return {"adjudicates": tuple(labels)}
        taken = labels.get(said.get("takes") or "")
        if taken is None:
            raise UsageError(f"{said.get('takes')} did not label this turn. Reload the page.")
        reply, _ = self._read_turn(place)
        spans = find_spans(reply, taken, self._folder.annotations.name)
        pinned = [
            quoted.model_copy(update={"start": span.start})
            for quoted, span in zip(taken.spans, spans, strict=True)
        ]
        return {"adjudicates": tuple(labels), "spans": tuple(pinned)}

    def _build(self, place: TurnPlace, said: Mapping[str, Any]) -> FlagMark:
        mark = self._sign(place, said)
        reply, flags = self._read_turn(place)
        if mark.kind == "missed" and (not mark.text.strip() or not _is_in_reply(mark, reply)):
            raise UsageError("These words do not stand in the reply. Select some of it.")
        if mark.kind in ("right", "wrong") and mark.flag not in flags:
            raise UsageError(f"{mark.detector} does not flag that. Reload the page.")
        if mark.kind == "right" and not _is_in_reply(mark, reply):
            raise UsageError(
                "The flagged words do not stand in the reply. Select the words that are meant and press `a`, "
                "then mark this flag wrong."
            )
        return mark

    def _sign(self, place: TurnPlace, said: Mapping[str, Any]) -> FlagMark:
        annotator, guideline = self._labeller
        signed = {"annotator": annotator, "guideline": guideline, "time": self._clock()}
        return FlagMark.model_validate({**said, "conversation": place[0], "turn": place[1], **signed})

    def _write_mark(self, mark: FlagMark) -> None:
        with LineWriter(self._folder.marks) as writer:
            writer.append(mark.model_dump_json(exclude_defaults=True))

    def _has(self, place: TurnPlace) -> bool:
        """Return whether a turn's conversation can be read: it may have been replaced since."""
        return self._read_chat(place[0]) is not None

    def _is_gone(self, chat: str) -> bool:
        """Return whether a conversation does not count any more, as far as that is known already."""
        with suppress(UsageError):
            return self._read_chat(chat) is None
        return False

    def _read_turn(self, place: TurnPlace) -> tuple[str, list[MarkedFlag]]:
        """Return the reply of a turn, and its flags."""
        chat, verdicts = self._read_chat(place[0]) or (None, ())
        replies = [] if chat is None else [turn.reply for turn in chat.turns if turn.index == place[1]]
        if not replies:
            raise UsageError(f"the run has no turn {place[1]} of conversation {place[0]}.")
        return replies[0], list_flags(verdicts, place[1])

    def _settle(self, about: FlagMark, after: Sequence[FlagMark], before: Sequence[FlagMark]) -> None:
        """Make the line that a mark is about what the marks say. A line that they do not speak of stays.

        That line is the annotator's own of the turn, or the one that settles it.
        """
        place = about.place
        reply, flags = self._read_turn(place)
        kept, earlier = (
            [one for one in marks if one.place == place and bool(one.adjudicates) == bool(about.adjudicates)]
            for marks in (after, before)
        )
        flags = [] if about.adjudicates else flags
        was, now = conclude(earlier, flags, reply), conclude(kept, flags, reply)
        names = kept[-1].adjudicates if kept else ()
        there = (self.read_decisions() if about.adjudicates else self.read_lines()).get(place)
        if there is None and now is None:
            return
        if there is not None:
            same = now == Found(there.spans, there.unknown) and names == there.adjudicates
            if same or (now is None and was is None):
                return
        with LineWriter(self._folder.annotations) as writer:
            if there is not None:
                gone = there.model_copy(update={"withdrawn": True, "time": self._clock()})
                writer.append(gone.render_line())
            if now is not None:
                writer.append(self._build_line(place, now, there, names).render_line())

    def _build_line(
        self, place: TurnPlace, found: Found, there: AnnotationLine | None, names: tuple[str, ...]
    ) -> AnnotationLine:
        annotator, guideline = self._labeller
        drawn = read_drawn(self._folder).get(place)
        draw = drawn.drawn if drawn is not None else None if there is None else there.drawn
        how = {} if draw is None else dict(zip(("draw", "stratum", "propensity"), draw, strict=True))
        key = drawn.key if drawn is not None else f"{place[0]}-{place[1]}" if there is None else there.key
        return AnnotationLine.model_validate(
            {
                **{"conversation": place[0], "turn": place[1], "key": key, "spans": found.spans},
                **{"annotator": annotator, "guideline": guideline, "time": self._clock()},
                **how,
                "unknown": found.unknown,
                "adjudicates": names,
            }
        )


def _is_in_reply(mark: FlagMark, reply: str) -> bool:
    return mark.start is not None and bool(mark.text) and reply[mark.start : mark.end] == mark.text


def read_standing_lines(folder: RunFolder) -> list[AnnotationLine]:
    """Return the lines of annotations.jsonl that were not taken back; none without the file.

    Raises:
        UsageError: a line is wrong.
    """
    path = folder.annotations
    return [line for _, line in read_annotations(path)] if path.exists() else []


def read_drawn(folder: RunFolder) -> dict[TurnPlace, DrawnTurn]:
    """Return the turns of the run's sheets, those of the first draw first.

    Raises:
        UsageError: a sheet is wrong.
    """
    found: dict[TurnPlace, DrawnTurn] = {}
    for path in list_sheets(folder):
        for turn in read_yaml(path, SCHEMA).check(Sheet).turns:
            found.setdefault(turn.place, DrawnTurn(turn.place, turn.key, turn.drawn))
    return found


def list_sheets(folder: RunFolder) -> list[Path]:
    """Return the run's sheets, in the order of their draws."""
    found = [path for path in folder.path.glob("to-annotate-*.yaml") if path.stem[12:].isdecimal()]
    return sorted(found, key=lambda path: int(path.stem[12:]))


def find_guideline(folder: RunFolder) -> str | None:
    """Return the guideline of a run's labels if none is given: that of most lines, else of the last sheet.

    Raises:
        UsageError: a sheet or a line is wrong.
    """
    lines = read_standing_lines(folder)
    if lines:
        return choose_guideline(lines)
    sheets = list_sheets(folder)
    return read_yaml(sheets[-1], SCHEMA).check(Sheet).guideline if sheets else None
