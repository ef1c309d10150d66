"""Search the evidence that is missing in a saved run, and write it into its folder.

Who judges a run does the same for what is judged (`hallulab.simulator.engine.executors`). Here it is done
for whoever looks at a run that nobody has judged yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from hallulab.agents.machine.weights import EMBEDDING_MODELS
from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.agents.retrieval.word_search import can_search_by_vectors
from hallulab.chatbots.evidence import EvidenceSource, lacks_evidence
from hallulab.scenarios.errors import HallulabError, UsageError
from hallulab.scenarios.text.wording import format_count
from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.records.experiment_json import SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.report.facts import load_pack

_log = logging.getLogger(__name__)

_AT_ONCE = 64
"""Conversations whose evidence is searched together, and written then."""


def lacks_some(conversation: Conversation) -> bool:
    """Return whether the evidence of a reply of a conversation is still to be searched."""
    return any(map(lacks_evidence, conversation.turns))


def find_late_evidence(folder: RunFolder) -> None:
    """Search the evidence that is missing in a run, and add it to its journal. Nothing that is there changes.

    A run that is under way gets none. A warning names evidence that cannot be searched.

    Raises:
        UsageError: the folder is damaged.
    """
    saved = folder.read_experiment()
    if saved is None or folder.is_claimed:  # a run under way: somebody will look at it again
        return
    if not any(map(lacks_some, folder.read_journals().conversations)):
        return
    try:
        source = _find_source(saved)
        with folder.claimed():  # by whoever comes first; another command goes on without, and is told so
            journals = folder.read_journals()  # another command may have searched meanwhile
            lacking = [at for at, one in enumerate(journals.conversations) if lacks_some(one)]
            asyncio.run(_complete(folder, journals, lacking, source))
    except HallulabError as error:
        _log.warning("%s: replies are shown without the evidence that they lack: %s", folder.path, error)


def _find_source(saved: SavedExperiment) -> EvidenceSource:
    """Return where a run searches.

    Raises:
        UsageError: its documents are not here as they were, or it names an embedding model of its own: the
            folder may be a stranger's.
    """
    experiment, scenario = saved.experiment, load_pack(saved, None)
    if scenario is None or not scenario.documents:
        raise UsageError(f"the documents of {experiment.scenario} are not here as the run knew them.")
    if experiment.embedding_model.lower() not in EMBEDDING_MODELS:
        raise UsageError(
            f"it names the embedding model {experiment.embedding_model}, which only `hallulab detect` loads."
        )
    knowledge = KnowledgeBase(
        scenario, embedding_model=experiment.embedding_model, by_words=not can_search_by_vectors()
    )
    return EvidenceSource(knowledge, experiment.top_k)


async def _complete(
    folder: RunFolder, journals: Journals, lacking: Sequence[int], source: EvidenceSource
) -> None:
    if not lacking:
        return
    _log.info("searching the evidence of %s", format_count(len(lacking), "conversation"))
    with folder.open_journals(journals, len(journals.heads)) as written:
        for start in range(0, len(lacking), _AT_ONCE):
            some = [journals.conversations[at] for at in lacking[start : start + _AT_ONCE]]
            for found in await asyncio.gather(*map(source.complete_all, some)):
                written.add_conversation(found)
