"""A sheet: a YAML file with turns of a run, in which an annotator fills in what is hallucinated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import yaml
from pydantic import Field, field_validator

from hallulab.scenarios.datasets.annotations import (
    PERSON,
    Annotation,
    Quotation,
    TurnPlace,
    find_replies,
    locate_spans,
    read_annotations,
    require_annotator,
)
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import LineWriter
from hallulab.scenarios.files.yaml_text import LARGEST, PlainDumper, read_yaml
from hallulab.scenarios.text.wording import render_one_line
from hallulab.scenarios.transcript import Conversation, Frozen, Turn
from hallulab.simulator.records.folder import RunFolder

SCHEMA = "docs/annotate.md"
"""Where a sheet is described."""
HEAD = """\
# Read each reply, and fill in `spans` below it:
#   spans: []                  nothing in it is hallucinated
#   spans:                     else the words of the reply, a severity (1: harmless, 5: critical), and why
#   - quote: It is Rs 500.
#     severity: 4
#     reason: The fee is Rs 200.
# Leave `spans:` empty where you did not look. Then: {command}
"""


def name_command(run: Path, sheet: Path) -> str:
    """Return the command that adds a sheet, as a shell takes it."""
    return f"hallulab annotate {quote(str(run))} --add {quote(str(sheet))}"


class SheetTurn(Annotation):
    """A turn of a sheet: a line of annotations.jsonl to be, with what an annotator has to read."""

    spans: tuple[Quotation, ...] | None  # type: ignore[assignment]  # not yet filled in
    """The hallucinations; `[]`: none; None: nobody looked."""
    history: str = ""
    """The dialogue before the question."""
    question: str = ""
    passages: tuple[str, ...] = ()
    reply: str = ""


class Sheet(Frozen):
    """A sheet."""

    annotator: str = PERSON
    """Who fills it in: `person`, or `model:` and its name."""
    guideline: str | None = Field(None, min_length=1)
    turns: tuple[SheetTurn, ...]

    @field_validator("annotator")
    @classmethod
    def _require_annotator(cls, name: str) -> str:
        return require_annotator(name)


@dataclass(frozen=True)
class Added:
    """What came of a sheet's turns."""

    added: int
    """Lines added to annotations.jsonl."""
    known: int
    """Turns that were there already, with the same labels."""
    empty: int
    """Turns that nobody looked at."""


def build_sheet_turn(conversation: Conversation, turn: Turn, drawn: Mapping[str, Any]) -> dict[str, Any]:
    """Return a turn as a sheet has it.

    Args:
        drawn: `draw`, `stratum` and `propensity`.
    """
    history = "\n".join(f"{one.role}: {one.text}" for one in conversation.history(turn.index))
    return {
        "conversation": conversation.id,
        "turn": turn.index,
        "key": f"{conversation.id}-{turn.index}",
        **drawn,
        **({"history": history} if history else {}),
        "question": turn.user,
        "passages": [passage.text for passage in turn.passages if passage.text],
        "reply": turn.reply,
        "spans": None,
    }


def render_sheet(
    path: Path, run: Path, annotator: str, guideline: str | None, turns: Iterable[dict[str, Any]]
) -> str:
    """Return the text of a sheet to be filled in.

    Raises:
        UsageError: it is too large to be read again.
    """
    named = {"annotator": annotator, **({} if guideline is None else {"guideline": guideline})}
    text = HEAD.format(command=render_one_line(name_command(run, path))) + _dump(named) + "turns:\n"
    text += "\n".join(_dump([turn]).replace("spans: null\n", "spans:\n") for turn in turns)
    if len(text.encode()) > LARGEST:
        raise UsageError(f"--next: the sheet would have more than {LARGEST:,} bytes. Ask for fewer turns.")
    return text


class _Dumper(PlainDumper):
    """Writes texts of several lines as such."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


def _dump(value: Any) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def add_sheet(folder: RunFolder, path: Path) -> Added:
    """Add what is filled in of a sheet at the end of the run's annotations.jsonl; no line there is changed.

    Nothing is added unless all of it can be.

    Args:
        path: of the sheet.

    Raises:
        UsageError: the sheet is wrong, or names turns or words that the run does not have, or a turn has
            other labels of the same annotator already; or another process writes into the folder.
        OperationalError: annotations.jsonl or the file of marks cannot be written.
    """
    text = read_yaml(path, SCHEMA)
    sheet = text.check(Sheet)
    with folder.claimed(), folder.labelling():
        known = read_annotations(folder.annotations) if folder.annotations.exists() else []
        there = {line.slot: line for _, line in known}
        filled = [(at, turn) for at, turn in enumerate(sheet.turns) if turn.spans is not None]
        replies = find_replies({turn.place for _, turn in filled}, folder.read_conversations())
        held = folder.find_held({turn.place for _, turn in filled} - replies.keys())
        lines: dict[TurnPlace, Annotation] = {}
        for at, turn in filled:
            line = _build_line(sheet, turn)
            place = text.place(("turns", at))
            if line.place in lines:
                raise UsageError(f"{place}: the sheet has this turn twice. Delete one of them.")
            if line.place in held:
                raise UsageError(
                    f"{place}: conversation {line.conversation} does not count any more: its next try "
                    "replaced it. Delete the turn here."
                )
            locate_spans(line, replies, place)
            before = there.get(line.slot)
            if before is not None and (before.unknown or before.spans != line.spans):
                raise UsageError(
                    f"{place}: turn {line.turn} of conversation {line.conversation} has other labels in "
                    f"{folder.annotations.name}. Delete the line there, or the turn here."
                )
            lines[line.place] = line
        new = [one for one in lines.values() if one.slot not in there]
        if new:
            with LineWriter(folder.annotations) as writer:
                for line in new:
                    writer.append(line.render_line())
    return Added(len(new), len(lines) - len(new), len(sheet.turns) - len(filled))


def _build_line(sheet: Sheet, turn: SheetTurn) -> Annotation:
    values = {name: getattr(turn, name) for name in Annotation.model_fields}
    values |= {"annotator": sheet.annotator, "guideline": sheet.guideline}
    return Annotation.model_validate(values)
