"""Sheets: YAML files with turns of a run, drawn to be annotated, in which an annotator fills in the spans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import yaml
from pydantic import Field, field_validator

from hallulab.scenarios.datasets.annotations import (
    PERSON,
    Annotation,
    Quotation,
    TurnPlace,
    find_replies,
    locate_spans,
    read_annotated_turns,
    read_annotations,
    require_annotator,
)
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.atomic import write_together
from hallulab.scenarios.files.data_files import read_text
from hallulab.scenarios.files.json_text import LineWriter, digest
from hallulab.scenarios.files.yaml_text import LARGEST, PlainDumper, read_yaml
from hallulab.scenarios.near_names import suggest_name
from hallulab.scenarios.text.wording import join_names, render_one_line
from hallulab.scenarios.transcript import Conversation, Frozen, Turn
from hallulab.simulator.annotate.plan import Cell, DrawPlan, ScoredTurn, draw_cells, plan_draw
from hallulab.simulator.metrics.annotations import Annotations, count_annotations
from hallulab.simulator.metrics.failures import find_failures, require_success
from hallulab.simulator.metrics.hallucinations import index_by_detector
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.report.facts import order_names
from hallulab.simulator.report.late_evidence import find_late_evidence

SCHEMA = "docs/annotate.md"
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
    """The result of adding a sheet."""

    added: int
    known: int
    """Turns that were there already, with the same labels."""
    empty: int
    """Turns that nobody looked at."""


def build_sheet_turn(conversation: Conversation, turn: Turn, drawn: Mapping[str, Any]) -> dict[str, Any]:
    """Return a turn as a sheet has it; `drawn` has `draw`, `stratum` and `propensity`."""
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
    # An empty field invites to be filled in; `null` does not.
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
        replaced = folder.find_held({turn.place for _, turn in filled} - replies.keys())
        lines: dict[TurnPlace, Annotation] = {}
        for at, turn in filled:
            values = {name: getattr(turn, name) for name in Annotation.model_fields}
            values |= {"annotator": sheet.annotator, "guideline": sheet.guideline}
            line = Annotation.model_validate(values)
            place = text.place(("turns", at))
            if line.place in lines:
                raise UsageError(f"{place}: the sheet has this turn twice. Delete one of them.")
            if line.place in replaced:
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


def collect_scored_turns(journals: Journals, detector: str, annotations: Annotations) -> list[ScoredTurn]:
    """Return the turns that a detector scored and localised, in the order of the conversations.

    Raises:
        UsageError: a turn has two verdicts of the detector.
    """
    found: list[ScoredTurn] = []
    for conversation, verdicts in journals.judged(by_case=False):
        own = index_by_detector(verdicts).get(detector, {})
        for turn in conversation.turns:
            verdict = own.get(turn.index)
            if verdict is not None and verdict.spans is not None and verdict.localised:
                found.append(
                    ScoredTurn(
                        conversation.id,
                        turn.index,
                        conversation.chatbot,
                        len(verdict.spans),
                        verdict.score or 0.0,
                        annotations.counts.get((conversation.id, turn.index)),
                    )
                )
    return found


@dataclass(frozen=True)
class DrawOptions:
    """Options of `hallulab annotate --next`."""

    number: int
    detector: str | None = None
    """Whose scores matter; None: of the first detector of the run that scored any turn."""
    seed: int = 0
    """Seed of the draw, with its number."""
    annotator: str = "person"
    guideline: Path | None = None
    """File with the guideline; None: not known."""


@dataclass(frozen=True)
class DrawnSheet:
    """The result of a draw."""

    path: Path
    detector: str
    turns: Mapping[str, tuple[int, int, int]]
    """Chatbot → turns that were scored, annotated before, and drawn now."""
    plan: DrawPlan


def draw_turns(folder: RunFolder, options: DrawOptions) -> DrawnSheet:
    """Draw turns, and write a sheet of them into the run folder.

    Raises:
        UsageError: there is nothing to draw from, the sheet of this draw is there already, or an option or a
            file of the run is wrong.
        OperationalError: the run has no conversation, a detector failed on every reply and none scored any,
            or the sheet cannot be written.
    """
    try:
        require_annotator(options.annotator)
    except ValueError as error:
        raise UsageError(f"--annotator: {error}.") from error
    guideline = None if options.guideline is None else read_text(options.guideline)
    find_late_evidence(folder)
    saved = folder.read_experiment()
    journals = folder.read_journals().current(saved)
    looked, number = Annotations(), 1
    if folder.annotations.exists():
        found = read_annotated_turns(folder.annotations, journals.conversations, folder.find_held)
        looked = count_annotations(found.turns)
        lines = [line for _, line in read_annotations(folder.annotations)]
        number += max((line.draw for line in lines if line.drawn is not None), default=0)
    path = folder.path / f"to-annotate-{number}.yaml"
    if path.exists():
        raise UsageError(
            f"{path} is there, and none of its turns is in {folder.annotations.name}. Fill it in and add it "
            f"(`{name_command(folder.path, path)}`), or delete it."
        )
    names = order_names(list(saved.detectors) if saved else [], (key.detector for key in journals.keys))
    detector, turns = _find_scored(folder, journals, options.detector, names, looked)
    plan = plan_draw(turns, options.number)
    drawn = draw_cells(plan, np.random.default_rng((options.seed, number)))
    hash_of = None if guideline is None else digest(guideline)[:12]
    kept = folder.path / f"guideline-{hash_of}.md"
    folder.refuse_links_out([path, kept])
    sheet = _render(
        folder, journals, path, options.annotator, hash_of, number, [(turns[at], cell) for cell, at in drawn]
    )
    # The guideline first: where the sheet is, the command is refused, so nothing may be lacking then.
    write_together({**({} if guideline is None else {kept: guideline}), path: sheet})
    return DrawnSheet(path, detector, _count(turns, [at for _, at in drawn]), plan)


def _find_scored(
    folder: RunFolder, journals: Journals, wanted: str | None, names: tuple[str, ...], looked: Annotations
) -> tuple[str, list[ScoredTurn]]:
    """Return the detector and the turns that it scored; some of them have no annotation."""
    if wanted is not None and wanted not in names:
        known = f"Give one of: {', '.join(names)}." if names else "No detector judged it."
        near = suggest_name(wanted, names)
        raise UsageError(f"--detector {wanted}: it did not judge {folder.path}{near}. {known}")
    for name in names if wanted is None else (wanted,):
        turns = collect_scored_turns(journals, name, looked)
        if all(turn.annotated is not None for turn in turns) and turns:
            raise UsageError(f"{folder.path}: each turn that {name} scored is annotated already.")
        if turns:
            return name, turns
    require_success(find_failures(folder))
    by = join_names(list(names)) if names and wanted is None else wanted or "a detector"
    raise UsageError(
        f"{folder.path} has no turn that {by} scored and localised. Have its turns judged: "
        f"`hallulab detect {quote(str(folder.path))} --detectors NAME`."
    )


def _render(
    folder: RunFolder,
    journals: Journals,
    path: Path,
    annotator: str,
    guideline: str | None,
    number: int,
    drawn: list[tuple[ScoredTurn, Cell]],
) -> str:
    """Return the text of the sheet, its turns in the order in which they were drawn."""
    wanted: dict[TurnPlace, Cell] = {(turn.conversation, turn.turn): cell for turn, cell in drawn}
    chats = {conversation for conversation, _ in wanted}
    found = {}
    for conversation in journals.about(lambda head: head.id in chats).conversations:
        for turn in conversation.turns:
            cell = wanted.get((conversation.id, turn.index))
            if cell is not None:
                how = {"draw": number, "stratum": cell.stratum, "propensity": cell.propensity}
                found[conversation.id, turn.index] = build_sheet_turn(conversation, turn, how)
    return render_sheet(path, folder.path, annotator, guideline, (found[place] for place in wanted))


def _count(turns: list[ScoredTurn], drawn: list[int]) -> dict[str, tuple[int, int, int]]:
    """Count the turns of each chatbot: all, annotated, drawn."""
    chosen = set(drawn)
    return {
        name: (
            sum(turn.chatbot == name for turn in turns),
            sum(turn.chatbot == name and turn.annotated is not None for turn in turns),
            sum(turn.chatbot == name and at in chosen for at, turn in enumerate(turns)),
        )
        for name in sorted({turn.chatbot for turn in turns})
    }
