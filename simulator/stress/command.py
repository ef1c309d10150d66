"""What `hallulab plant` does: find clean replies, plant errors into them, write both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scenarios.datasets import load_labelled
from scenarios.errors import UsageError
from scenarios.files.paths import expanded, is_file, is_folder
from scenarios.packs.pack_files import load_scenario
from scenarios.text.library import Library, library_of
from simulator.bench.labelled_file import write_labelled
from simulator.bench.planted import FILE
from simulator.runs.folder import RunFolder
from simulator.runs.outputs import check_outputs
from simulator.stress.kinds import KINDS
from simulator.stress.material import Clean, clean_replies, grounded_streams, library_of_replies
from simulator.stress.planting import Planting, plant
from simulator.stress.run_material import quoting_replies, turns_of


@dataclass(frozen=True)
class PlantSettings:
    """The command's arguments."""

    source: str
    """Run folder, labelled file, or scenario pack by name or folder."""
    out: Path
    """Folder to write into."""
    count: int
    """Errors wanted."""
    kinds: Sequence[str]
    """Kinds of errors; none: all."""
    turns: Sequence[int]
    """Turns before the reply, where replies are made of documents."""
    contexts: Sequence[int]
    """Passages of the evidence, likewise."""
    seed: int
    """Seed of all choices."""


def plant_command(settings: PlantSettings) -> Planting:
    """Write the errors and their clean twins; only when all are planted.

    Raises:
        UsageError: the source or a kind does not exist, nothing in it is clean, or no error found a place.
        OperationalError: the file cannot be written.
    """
    for kind in settings.kinds:
        if kind not in KINDS:
            raise UsageError(f"--kinds {kind}: there is no such kind. Give some of: {', '.join(KINDS)}.")
    target = settings.out / FILE
    check_outputs({"--out": target}, (expanded(settings.source),))
    streams, library = _material(settings)
    done = plant(streams, library, tuple(settings.kinds) or tuple(KINDS), settings.count, settings.seed)
    if not done.replies:
        raise UsageError(
            f"{settings.source}: no error found a place in these texts. Give other --kinds, or longer texts."
        )
    write_labelled(target, done.replies)
    return done


def _material(settings: PlantSettings) -> tuple[Sequence[Iterator[Clean]], Library]:
    path = expanded(settings.source)
    if is_folder(path) and is_file(path / "conversations.jsonl"):
        turns = turns_of(RunFolder(path))
        clean = any(turn.label is False for turn in turns)
        streams = [clean_replies(turns, settings.seed)] if clean else []
        return [*streams, quoting_replies(turns, settings.seed)], library_of_replies(turns)
    if is_file(path):
        replies = list(load_labelled(settings.source))
    else:
        scenario = load_scenario(settings.source)
        streams = grounded_streams(scenario, settings.turns, settings.contexts, settings.seed)
        return streams, library_of(scenario)
    return [clean_replies(replies, settings.seed)], library_of_replies(replies)
