"""Draw turns of a run to be annotated next, and write them into a sheet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hallulab.scenarios.datasets.annotations import (
    TurnPlace,
    read_annotated_turns,
    read_annotations,
    require_annotator,
)
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.atomic import write_together
from hallulab.scenarios.files.data_files import read_text
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.text.wording import join_names
from hallulab.simulator.annotate.plan import Cell, DrawPlan, ScoredTurn, draw_cells, plan_draw
from hallulab.simulator.annotate.sheet import build_sheet_turn, name_command, render_sheet
from hallulab.simulator.annotate.turns import collect_scored_turns
from hallulab.simulator.metrics.annotations import Annotations, count_annotations
from hallulab.simulator.metrics.failures_counts import find_failures, require_success
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.report.facts import order_names
from hallulab.simulator.report.late_evidence import find_late_evidence


@dataclass(frozen=True)
class DrawOptions:
    """What `hallulab annotate --next` is asked for."""

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
    """What came of a draw."""

    path: Path
    detector: str
    turns: Mapping[str, tuple[int, int, int]]
    """Chatbot → turns that were scored, annotated before, and drawn now."""
    plan: DrawPlan
    """How they were drawn."""


def draw_turns(folder: RunFolder, options: DrawOptions) -> DrawnSheet:
    """Draw turns, and write a sheet of them into the run folder.

    Raises:
        UsageError: there is nothing to draw from, the sheet of this draw is there already, or an option or a
            file of the run is wrong.
        OperationalError: no conversation was held, a detector failed on every reply and none scored any, or
            the sheet cannot be written.
    """
    _require_name(options.annotator)
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


def _require_name(annotator: str) -> None:
    try:
        require_annotator(annotator)
    except ValueError as error:
        raise UsageError(f"--annotator: {error}.") from error


def _find_scored(
    folder: RunFolder, journals: Journals, wanted: str | None, names: tuple[str, ...], looked: Annotations
) -> tuple[str, list[ScoredTurn]]:
    """Return the detector and the turns that it scored; some of them have no annotation."""
    if wanted is not None and wanted not in names:
        known = f"Give one of: {', '.join(names)}." if names else "No detector judged it."
        raise UsageError(f"--detector {wanted}: it did not judge {folder.path}. {known}")
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
        f"`hallulab detect {folder.path} --detectors NAME`."
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
