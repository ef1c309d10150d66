"""Documents that are true and have nothing to do with the questions (RAG-Trust section 2.1)."""

from __future__ import annotations

import random
from functools import cache

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack import Document, Scenario
from hallulab.scenarios.packs.pack_files import list_built_in_packs, load_scenario


def choose_distractors(scenario: Scenario, count: int, seed: int) -> tuple[Document, ...]:
    """Choose documents of the other built-in packs; of equal seeds, more contain the fewer.

    Raises:
        UsageError: the other packs have fewer.
    """
    taken = {document.name for document in scenario.documents}
    titles = {document.title for document in scenario.documents}
    shelf = [
        document
        for name in list_built_in_packs()
        if name != scenario.name
        for document in _load_documents(name)
        if document.title not in titles
    ]
    if count > len(shelf):
        raise UsageError(
            f"field `attack.distractors`: {count} are asked for, and the built-in packs other than "
            f"{scenario.name} have {len(shelf)} documents. Give at most {len(shelf)}."
        )
    random.Random(f"{seed} distractors").shuffle(shelf)  # noqa: S311 - a seeded choice of data
    chosen: list[Document] = []
    for document in shelf[:count]:
        name = document.name
        while name in taken:
            name = f"{name}-2"
        taken.add(name)
        chosen.append(document.model_copy(update={"name": name}))
    return tuple(chosen)


@cache
def _load_documents(pack: str) -> tuple[Document, ...]:
    return load_scenario(pack).documents
