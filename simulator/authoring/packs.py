"""Write a scenario pack from documents with a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from hallulab.agents.machine.cache import replacing
from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.models.session import Session
from hallulab.agents.progress import bars, showing
from hallulab.agents.retrieval.embeddings import Embedder, SentenceEmbedder, topics
from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.agents.users.personas import About, write_about
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.extras import require_extra
from hallulab.scenarios.packs.documents import Boundary, copy_documents, read_folder
from hallulab.scenarios.packs.labels import DocumentDefaults
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.packs.pack_files import (
    DEFAULT_SPECIALISTS,
    load_scenario,
    name_pack,
    render_persona_block,
    render_personas_file,
    render_scenario_file,
)
from hallulab.scenarios.transcript import Passage
from hallulab.simulator.authoring.chats import Chat, ChatPersonas
from hallulab.simulator.authoring.personas import TRIES, PersonaBatch, PersonaMaker
from hallulab.simulator.engine.models import (
    RunSettings,
    build_knowledge,
    open_pool,
    open_recording,
    serve_models,
)
from hallulab.simulator.records.experiment import Experiment


@dataclass(frozen=True)
class PackRequest:
    """The pack that is wanted."""

    target: Path
    """A new or empty folder."""
    documents: Path
    personas: int | Sequence[Chat]
    """Number of personas, or real chats that become one each."""
    shares: tuple[float, float, float]
    """Shares of goals that the documents answer, answer in part, and do not answer; chats have their own."""
    strict: bool = False
    """True if a document that cannot be read is an error."""

    @property
    def number(self) -> int:
        """Number of personas."""
        return self.personas if isinstance(self.personas, int) else len(self.personas)


@dataclass(frozen=True)
class Written:
    """Result of writing a pack."""

    making: PersonaBatch
    topics: int | None
    """Topics found; None: none were looked for."""
    notes: tuple[str, ...]
    """Parts of the documents that were left out or are doubtful."""
    uncovered: tuple[str, ...]
    """Documents that no goal was written from; with chats, those that tell nothing of what people wanted."""


async def write_pack(wanted: PackRequest, experiment: Experiment, settings: RunSettings) -> Written:
    """Make a pack and write it, whole or not at all.

    Args:
        experiment: its models, embedding model and seed are used.

    Raises:
        UsageError: the target is no empty folder, or a document cannot be read.
        OperationalError: server, endpoint or model failed, the model described nothing, no persona passed its
            checks, or the folder cannot be written.
    """
    _require_new(wanted)
    require_extra("local", "lancedb", "sentence_transformers", use="Search by vectors")
    boundary = Boundary(wanted.documents)
    with showing("reading the documents", settings.quiet):
        found = read_folder(wanted.documents, DocumentDefaults(), boundary, strict=wanted.strict)
    documents = found.documents
    # Only searched: the model describes the documents meanwhile.
    scenario = Scenario(
        name="new",
        title="",
        description="",
        domain="",
        assistant="",
        specialists=DEFAULT_SPECIALISTS,
        documents=documents,
        personas=(),
    )
    embedder = SentenceEmbedder(experiment.embedding_model)
    async with open_pool(experiment, open_recording(settings)) as pool, serve_models(pool, settings):
        knowledge = KnowledgeBase(scenario, recording=pool.recording, embedder=embedder)
        await build_knowledge(knowledge, settings.quiet)
        session = partial(pool.session, "personas", experiment.seed, experiment.roles.get("user"))
        describing = _describe_documents(session(), [document.title for document in documents])
        with bars(settings.quiet) as shown:
            # From the start: the model describes the documents, and their topics are found, before the first.
            written = partial(shown.advance, shown.add_task("writing personas", total=wanted.number))
            async with _run_beside(describing) as described:
                groups = None
                if isinstance(wanted.personas, int):
                    groups = await _group_by_topic(knowledge.passages, embedder, wanted.personas)

                    async def get_domain() -> str:
                        return (await described).domain

                    maker = PersonaMaker(
                        session, knowledge, embedder, groups, get_domain, experiment.seed, experiment.language
                    )
                    make = partial(maker.make, wanted.personas, wanted.shares)
                else:
                    reader = ChatPersonas(session, knowledge, (await described).domain, experiment.seed)
                    make = partial(reader.make, wanted.personas)
                making = await make(written)
                about = await described
        model = pool.get(experiment.roles.get("user")).endpoint.model
    if not making.made:
        raise OperationalError(
            f"no persona passed its checks, so nothing was written. The last: {making.failed[-1]} "
            f"Use a larger model{'' if groups is None else ', or documents that state facts'}."
        )
    _write(
        wanted,
        tuple(found.files),
        about,
        making,
        f"by {model} from {len(documents)} documents, seed {experiment.seed}",
        experiment.language,
    )
    used = {goal.passage.document for one in making.made for goal in one.goals if goal.passage}
    uncovered = tuple(document.name for document in documents if document.name not in used)
    return Written(making, None if groups is None else len(groups), found.notes, uncovered)


@asynccontextmanager
async def _run_beside(work: Coroutine[Any, Any, About]) -> AsyncIterator[asyncio.Task[About]]:
    """Do something beside the block; it is cancelled if the block ends before it."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _require_new(wanted: PackRequest) -> None:
    if wanted.target.exists() and (not wanted.target.is_dir() or any(wanted.target.iterdir())):
        raise UsageError(f"{wanted.target}: this is no empty folder. Name a new one.")
    if not wanted.documents.is_dir():
        raise UsageError(f"--documents {wanted.documents}: there is no such folder.")
    if wanted.target.absolute().is_relative_to(wanted.documents.absolute()):
        raise UsageError(f"{wanted.target}: is in the folder of the documents. Name a folder outside of it.")


async def _describe_documents(session: Session, titles: Sequence[str]) -> About:
    for attempt in range(TRIES):
        try:
            return await write_about(session, titles, attempt)
        except UnparseableAnswer as error:
            last = error
    raise OperationalError(f"the model did not describe the documents: {last} Use a larger model.") from last


async def _group_by_topic(
    passages: Sequence[Passage], embedder: Embedder, number: int
) -> list[list[Passage]]:
    """Return the passages of each topic: the first ones of its documents, then the second ones, and so on."""
    of: dict[str, list[Passage]] = {}
    for passage in passages:
        of.setdefault(passage.document, []).append(passage)
    firsts = [found[0].text for found in of.values()]
    groups = topics(await asyncio.to_thread(embedder.passages, firsts), number)
    listed = list(of.values())
    return [
        [one for one in chain(*zip_longest(*(listed[row] for row in rows))) if one is not None]
        for rows in groups
    ]


def _write(
    wanted: PackRequest,
    files: Sequence[Path],
    about: About,
    making: PersonaBatch,
    how: str,
    language: str | None,
) -> None:
    target = wanted.target.absolute()
    blocks = [
        render_persona_block(one.persona, one.notes, [goal.note for goal in one.goals]) for one in making.made
    ]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as folder:
            copy_documents(files, wanted.documents, folder / "documents")
            described = render_scenario_file(name_pack(target), about.model_dump(mode="json"), how, language)
            (folder / "scenario.yaml").write_text(described, encoding="utf-8")
            (folder / "personas.yaml").write_text(render_personas_file(blocks, how), encoding="utf-8")
            load_scenario(folder)
    except OSError as error:
        raise OperationalError(f"cannot write {wanted.target}: {error.strerror or error}.") from error
