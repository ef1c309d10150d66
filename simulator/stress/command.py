"""What `hallulab plant` does: find clean replies, plant errors into them, write both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hallulab.agents.progress import bars
from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.data_files import expand_home, is_file, is_folder, is_there
from hallulab.scenarios.packs.documents import Boundary, DocumentDefaults, read_documents
from hallulab.scenarios.packs.pack import Document
from hallulab.scenarios.packs.pack_files import SCENARIO_FILE, list_built_in_packs, load_scenario
from hallulab.scenarios.text.edits import SentenceBank, collect_sentences
from hallulab.simulator.bench.build import write_labelled
from hallulab.simulator.bench.planted import FILE
from hallulab.simulator.experiment.config import Experiment
from hallulab.simulator.experiment.models import RunSettings, open_pool, open_recording, serve_models
from hallulab.simulator.runs.folder import RunFolder
from hallulab.simulator.runs.outputs import check_outputs
from hallulab.simulator.stress.kinds import KINDS
from hallulab.simulator.stress.material import (
    Clean,
    build_grounded_streams,
    build_sentence_bank,
    clean_replies,
    generate_quoting_replies,
    load_turns,
)
from hallulab.simulator.stress.plant import Planting, plant
from hallulab.simulator.stress.rewrite import ORDERS, plant_fluently

CONVERSATIONS = "conversations.jsonl"
"""File by which a folder is known to be a run."""


Material = tuple[Sequence[Iterator[Clean]], SentenceBank]
"""Replies to plant into, and the sentences that errors are taken from."""


@dataclass(frozen=True)
class PlantSettings:
    """The command's arguments."""

    source: str
    """Run folder, labelled file, scenario pack by name or folder, or folder of documents."""
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
    """Write the errors that rules plant, and their clean twins; only when all are planted.

    Raises:
        UsageError: the source or a kind does not exist, nothing in it is clean, or no error found a place.
        OperationalError: the file cannot be written.
    """
    kinds = _check_kinds(settings, KINDS)
    material = load_material(settings.source, settings.turns, settings.contexts, settings.seed)
    done = plant_material(material, settings.source, kinds, settings.count, settings.seed)
    write_labelled(settings.out / FILE, done.replies)
    return done


def plant_material(read: Material, source: str, kinds: Sequence[str], count: int, seed: int) -> Planting:
    """Plant errors by rules into what `load_material` read of a source; nothing is written.

    Raises:
        UsageError: nothing in it is clean, or no error found a place.
    """
    return _check_planted(source, plant(*read, kinds, count, seed))


async def plant_fluently_command(
    settings: PlantSettings, experiment: Experiment, run: RunSettings
) -> Planting:
    """Write the errors that a model writes, and their clean twins; only when all are planted.

    Args:
        experiment: its default model writes.
        run: recording, replay, progress, flags of the model server.

    Raises:
        UsageError: as `plant_command`, or the models do not fit together.
        OperationalError: server, endpoint or model failed, or nothing that the model wrote passed the checks.
    """
    kinds = _check_kinds(settings, ORDERS, run)
    streams, _ = load_material(settings.source, settings.turns, settings.contexts, settings.seed)
    async with open_pool(experiment, open_recording(run)) as pool, serve_models(pool, run):
        with bars(run.quiet) as shown:
            task = shown.add_task("sentences", total=settings.count)
            done = await plant_fluently(
                streams, kinds, settings.count, settings.seed, pool, lambda: shown.advance(task)
            )
    if not done.replies and done.dropped:
        reasons = "; ".join(dict.fromkeys(reason for _, reason in done.dropped))
        raise OperationalError(f"nothing that the model wrote is an error, nothing is written: {reasons}.")
    write_labelled(settings.out / FILE, _check_planted(settings.source, done).replies)
    return done


def _check_kinds(
    settings: PlantSettings, known: Mapping[str, Any], run: RunSettings | None = None
) -> tuple[str, ...]:
    """Return the kinds to plant.

    Raises:
        UsageError: one does not exist, or the output cannot be written.
    """
    for kind in settings.kinds:
        if kind not in known:
            raise UsageError(f"--kinds {kind}: there is no such kind. Give some of: {', '.join(known)}.")
    recordings = () if run is None else (run.replay, run.record)
    check_outputs({"--out": settings.out / FILE}, (expand_home(settings.source), *recordings))
    return tuple(settings.kinds) or tuple(known)


def _check_planted(source: str, done: Planting) -> Planting:
    if not done.replies:
        raise UsageError(
            f"{source}: no error found a place in these texts. Give other --kinds, or longer texts."
        )
    return done


def is_of_replies(source: str) -> bool:
    """Return whether errors are planted into replies of chatbots, and not into sentences of documents."""
    path = expand_home(source)
    return is_file(path) or is_file(path / CONVERSATIONS)


def load_material(source: str, turns: Sequence[int], contexts: Sequence[int], seed: int) -> Material:
    """Read a source. Arguments as in `PlantSettings`.

    Raises:
        UsageError: the source does not exist, or is wrong.
    """
    path = expand_home(source)
    if is_folder(path) and is_file(path / CONVERSATIONS):
        said = load_turns(RunFolder(path))
        clean = any(turn.label is False for turn in said)
        streams = [clean_replies(said, seed)] if clean else []
        return [*streams, generate_quoting_replies(said, seed)], build_sentence_bank(said)
    if is_file(path):
        replies = list(load_labelled(source))
        return [clean_replies(replies, seed)], build_sentence_bank(replies)
    documents = _load_documents(source, path)
    return build_grounded_streams(documents, turns, contexts, seed), collect_sentences(documents)


def load_topic_thresholds(source: str) -> dict[str, float]:
    """Return the stricter thresholds of a scenario pack by topic; none of any other source.

    Raises:
        UsageError: the pack is wrong.
    """
    path = expand_home(source)
    if source in list_built_in_packs() or (is_folder(path) and is_there(path / SCENARIO_FILE)):
        return load_scenario(source).identity_thresholds
    return {}


def _load_documents(source: str, path: Path) -> Sequence[Document]:
    """Return the documents of a pack, or of a folder that is none."""
    if source in list_built_in_packs() or not is_folder(path) or is_there(path / SCENARIO_FILE):
        return load_scenario(source).documents
    return read_documents(path, DocumentDefaults(), Boundary(path))
