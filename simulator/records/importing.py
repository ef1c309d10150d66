"""Import conversations of other tools as a run folder: experiment.json and the journal of conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version as installed
from itertools import islice
from pathlib import Path

from hallulab.agents.progress import bars, showing, shown_progress
from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.agents.retrieval.word_search import SEARCHED_BY_WORDS, WordSearch, can_search_by_vectors
from hallulab.chatbots.evidence import EvidenceSource
from hallulab.detectors.base.protocol import find_misfit
from hallulab.scenarios.chats.formats import format_of, list_formats, read_chats
from hallulab.scenarios.chats.reading import Reading, parse_mapping
from hallulab.scenarios.chats.record import SCENARIO
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.atomic import write_whole_folder
from hallulab.scenarios.files.json_text import LineWriter
from hallulab.scenarios.near_names import suggest_name
from hallulab.scenarios.packs.documents import ANYWHERE, Boundary, Folder, copy_documents, read_folder
from hallulab.scenarios.packs.labels import DocumentDefaults
from hallulab.scenarios.packs.pack import Document, Scenario
from hallulab.scenarios.packs.pack_files import DEFAULT_SPECIALISTS, load_scenario, locate_pack
from hallulab.scenarios.transcript import Conversation, Turn, Verdict
from hallulab.scenarios.turn_views import Retriever
from hallulab.simulator.options.data import ImportOptions
from hallulab.simulator.options.groups import to_path
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.experiment_json import Imported, SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.outputs import check_outputs, name_folder_by_time

KIND = "imported"
"""Kind of the chatbots of imported conversations: none that can be asked."""

DOCUMENTS = "documents"
"""Folder in the run folder with a copy of the documents. Its references to other folders are ignored: it may
be a stranger's."""

_AT_ONCE = 64
"""Conversations whose evidence is searched together."""


@dataclass
class ImportCounts:
    """Counts of an import."""

    conversations: int = 0
    turns: int = 0
    with_evidence: int = 0
    """Turns whose passages are in the file."""
    searched: int = 0
    """Turns whose passages were found in documents."""
    searched_by: str | None = None
    """`vectors` or `words`; None: there are no documents."""
    without_reply: int = 0
    """Conversations left out because they have no reply."""
    chatbots: dict[str, None] = field(default_factory=dict, repr=False)
    detectors: dict[str, str] = field(default_factory=dict, repr=False)
    """Versions of the detectors whose verdicts are in the file: one that hallulab exported."""
    seeds: set[int] = field(default_factory=set, repr=False)

    @property
    def without_evidence(self) -> int:
        """Turns without passages."""
        return self.turns - self.with_evidence - self.searched


def build_imported_scenario(documents: Sequence[Document]) -> Scenario:
    """Return documents in the form of a scenario without personas."""
    return Scenario(
        name=SCENARIO,
        title="Imported chats",
        description="Chats that were imported.",
        domain="the chats' subject",
        assistant="answer",
        specialists=DEFAULT_SPECIALISTS,
        documents=tuple(documents),
        personas=(),
    )


def open_documents(pack: Scenario, embedding_model: str) -> Retriever:
    """Return who searches documents for evidence: by vectors, or without the extra `local` by words."""
    if can_search_by_vectors():
        return KnowledgeBase(pack, embedding_model=embedding_model)
    return WordSearch(pack)


def _read_folder(folder: Path, boundary: Boundary = ANYWHERE, *, strict: bool = False) -> Folder:
    if not folder.is_dir():
        there = "this is a file" if folder.is_file() else "there is no such folder"
        raise UsageError(f"{folder}: {there}. Name the folder with the documents.")
    return read_folder(folder, DocumentDefaults(), boundary, strict=strict)


def load_imported_scenario(folder: RunFolder) -> Scenario | None:
    """Return the documents of a folder with imported conversations; None where a scenario pack has them.

    Raises:
        UsageError: experiment.json is damaged, or the documents are not there any more.
    """
    saved = folder.read_experiment()
    if saved is None or saved.imported is None or saved.experiment.scenario != SCENARIO:
        return None
    if saved.imported.documents is None:
        return build_imported_scenario(())
    # What was noted of them stands in experiment.json since the import.
    return build_imported_scenario(_read_folder(folder.path / DOCUMENTS, Boundary(folder.path)).documents)


async def import_from_options(
    options: ImportOptions, called: str | None = None, quiet: bool = True
) -> tuple[RunFolder, str, ImportCounts, Reading]:
    """Write chats as a run folder with evidence; return it, the format, the counts, and how they were read.

    Args:
        called: name of the file in the run folder; None: as it was given.
        quiet: no progress.

    Raises:
        UsageError: an option or something in the file is wrong, or the folder is not empty.
        OperationalError: the folder cannot be written, or the search failed.
    """
    if options.documents is not None and options.scenario is not None:
        raise UsageError("--documents and --scenario: give one of them.")
    if options.format is not None and options.format not in list_formats():
        near = suggest_name(options.format, list_formats())
        raise UsageError(
            f"--format {options.format}: unknown{near}. Give one of: {', '.join(list_formats())}."
        )
    if options.skip_bad < 0:
        raise UsageError(f"--skip-bad {options.skip_bad}: must be 0 or more. Correct it.")
    reading = Reading(parse_mapping(options.map), options.skip_bad)
    file, documents = Path(options.file), to_path(options.documents)
    folder = RunFolder(to_path(options.out) or name_folder_by_time())
    check_outputs({}, inputs=[file], folders={"--out": folder.path})
    if documents is not None and folder.path.absolute().is_relative_to(documents.absolute()):
        raise UsageError(f"{folder.path}: is in the folder of the documents. Give an --out outside of it.")
    named = options.scenario
    if options.strict and documents is None:
        raise UsageError("--strict goes with --documents only. Leave it out.")
    with showing("reading the documents", quiet):
        found = Folder({}, ()) if documents is None else _read_folder(documents, strict=options.strict)
    for note in found.notes:
        reading.note(note)
    pack = build_imported_scenario(found.documents) if named is None else load_scenario(named)
    format = options.format or format_of(file, reading)
    about = Imported(
        file=called or str(file), format=format, documents=None if documents is None else str(documents)
    )
    scenario = SCENARIO if named is None else locate_pack(named)
    source, defaults = None, Experiment()
    if pack.documents:
        source = EvidenceSource(open_documents(pack, defaults.embedding_model), defaults.top_k)
        if isinstance(source.retriever, WordSearch):
            reading.note(SEARCHED_BY_WORDS)
        elif isinstance(source.retriever, KnowledgeBase):
            with shown_progress(quiet) as on_progress:
                await asyncio.to_thread(source.retriever.build, on_progress)
    with bars(quiet, transient=True) as shown:
        imported = partial(shown.advance, shown.add_task("importing replies", total=None))
        counts = await import_chats(
            file, folder, about, scenario, source, reading, tuple(found.files), imported
        )
    return folder, format, counts, reading


async def import_chats(
    path: Path,
    out: RunFolder,
    about: Imported,
    scenario: str,
    source: EvidenceSource | None = None,
    reading: Reading | None = None,
    files: Sequence[Path] = (),
    on_reply: Callable[[], object] = lambda: None,
) -> ImportCounts:
    """Write a run folder with the conversations of a file, whole or not at all.

    Args:
        out: the run folder, which must be new or empty.
        about: what experiment.json says of the import, with the format and the folder of the documents.
        scenario: name or path of the scenario pack; `imported`: none.
        source: where evidence is searched that the file lacks; None: nowhere.
        reading: what the user decided; it notes what was taken for what.
        on_reply: called when a reply has its evidence, or there is none.

    Raises:
        UsageError: something in the file is wrong, or the folder is not empty.
        OperationalError: the folder cannot be written, or the search failed.
    """
    counts, reading = ImportCounts(), reading or Reading()
    if source is not None:
        counts.searched_by = "words" if isinstance(source.retriever, WordSearch) else "vectors"
    with write_whole_folder(out.path) as place:
        beside = RunFolder(place)
        chats = _read_counted(path, about.format, counts, reading)
        with LineWriter(beside.conversations) as journal, LineWriter(beside.verdicts) as verdicts:
            while batch := list(islice(chats, _AT_ONCE)):
                await _write(journal, batch, counts, source, on_reply)
                for one in batch:
                    for verdict in reading.verdicts.pop(one.id, ()):
                        _count_verdict(path, verdict, one, counts)
                        verdicts.append(verdict.model_dump_json())
        if not counts.detectors:
            beside.verdicts.unlink(missing_ok=True)
        if unused := [
            f"{field}={name}" for field, name in reading.mapping.items() if field not in reading.taken
        ]:
            raise UsageError(
                f"--map {unused[0]}: nothing of the kind is looked for in a file of the format "
                f"{about.format}. Leave it out."
            )
        if not counts.conversations:
            read = f" Read as: {reading.describe()}." if reading.describe() else ""
            raise UsageError(
                f"{path}: no conversation in it has a reply, so there is nothing to judge.{read}"
            )
        if about.documents is not None:
            copy_documents(files, Path(about.documents), place / DOCUMENTS)
        told = about.model_copy(
            update={
                "taken": {field: tuple(names) for field, names in reading.taken.items()},
                "unread": tuple(reading.unread),
                "notes": tuple(reading.notes),
                "skipped": tuple(reading.skipped),
            }
        )
        beside.write_experiment(_build_saved_experiment(counts, told, scenario))
    return counts


def _read_counted(path: Path, format: str, counts: ImportCounts, reading: Reading) -> Iterator[Conversation]:
    """Yield the conversations with a reply, and count."""
    known: set[str] = set()
    for place, one in read_chats(path, format, reading):
        if not one.turns:
            counts.without_reply += 1
            continue
        if one.id in known:
            error = UsageError(
                f"{place}: another conversation is called {one.id!r}, too. Rename one of them."
            )
            reading.skip(error, place)
            continue
        known.add(one.id)
        counts.conversations += 1
        counts.turns += len(one.turns)
        counts.chatbots[one.chatbot] = None
        counts.seeds.add(one.seed)
        yield one


def _count_verdict(path: Path, verdict: Verdict, conversation: Conversation, counts: ImportCounts) -> None:
    """Count a verdict of the file.

    Raises:
        UsageError: it does not fit the reply, or another version of its detector has judged, too.
    """
    found = f"{path}: conversation {conversation.id!r}, verdict of {verdict.detector!r}"
    if verdict.conversation != conversation.id or verdict.turn >= len(conversation.turns):
        raise UsageError(f"{found}: it is about no turn of it. Correct or delete it.")
    if (misfit := find_misfit(verdict, conversation.turns[verdict.turn].reply)) is not None:
        raise UsageError(f"{found}: field `{misfit[0]}`: {misfit[1]}. Correct or delete it.")
    if counts.detectors.setdefault(verdict.detector, verdict.version) != verdict.version:
        raise UsageError(f"{found}: verdicts are of several versions of it. Delete those of all but one.")


async def _write(
    journal: LineWriter,
    batch: Sequence[Conversation],
    counts: ImportCounts,
    source: EvidenceSource | None,
    on_reply: Callable[[], object],
) -> None:
    async def complete(turn: Turn) -> Turn:
        """Return a turn with passages: its own, or those nearest to the message and the reply together.

        The chatbot's own are unknown then. Of what the documents say, these bear on the reply.
        """
        if turn.passages:
            counts.with_evidence += 1
        elif source is not None and turn.reply.strip():
            passages = await source.retriever.search(f"{turn.user}\n{turn.reply}", source.top_k)
            counts.searched += bool(passages)
            turn = turn.model_copy(update={"passages": passages})
        on_reply()
        return turn

    turns = [turn for one in batch for turn in one.turns]
    found = iter(await asyncio.gather(*map(complete, turns)))
    for one in batch:
        own = tuple(next(found) for _ in one.turns)
        journal.append(one.model_copy(update={"turns": own}).model_dump_json())


def _build_saved_experiment(counts: ImportCounts, about: Imported, scenario: str) -> SavedExperiment:
    experiment = Experiment(
        scenario=scenario, chatbots=tuple(Component(name=name, kind=KIND) for name in sorted(counts.chatbots))
    )
    return SavedExperiment(
        experiment=experiment,
        hallulab=installed("hallulab"),
        # Differs from that of every simulation, so that none is added to the folder.
        identity={"scenario": f"imported from {about.file}"},
        seeds=tuple(sorted(counts.seeds)),
        detectors=dict(counts.detectors),
        imported=about,
    )
