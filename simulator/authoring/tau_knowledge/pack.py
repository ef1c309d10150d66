"""Choose documents and customers of tau-Knowledge, and write them as a scenario pack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import yaml

from hallulab.agents.retrieval.word_search import WordSearch
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.atomic import write_whole_folder
from hallulab.scenarios.files.yaml_text import dump_yaml
from hallulab.scenarios.packs.pack import Document, Persona, Scenario
from hallulab.scenarios.packs.pack_files import (
    DEFAULT_SPECIALISTS,
    SCENARIO_FILE,
    load_scenario,
    name_pack,
    render_persona_block,
    render_personas_file,
)
from hallulab.scenarios.text.wording import render_one_line
from hallulab.simulator.authoring.tau_knowledge.layout import (
    KnowledgeSource,
    SourceDocument,
    SourceUser,
    make_slug,
    read_source,
)
from hallulab.simulator.authoring.tau_knowledge.personas import UnreadableCustomer, make_persona

ADDRESS = "https://github.com/sierra-research/tau2-bench"


class Customer(NamedTuple):
    """A customer and the persona that the rules made."""

    user: SourceUser
    persona: Persona


@dataclass(frozen=True)
class WrittenPack:
    """Counts of a pack that was written."""

    documents: int
    personas: int
    left_out: tuple[str, ...]
    """Customers of whom the rules make no persona, each with the reason."""


async def write_tau_knowledge(
    folder: Path, target: Path, documents: int | None, users: int | None, commit: str | None
) -> WrittenPack:
    """Make a pack of a checkout of tau2-bench and write it, whole or not at all.

    The same arguments give the same files. Customers whose required documents are fewest come first, then
    those with the lower number. Each of them in turn adds the document that BM25 puts nearest to the
    customer's goals among those that are not chosen yet, until there are `documents`.

    Args:
        target: a new or empty folder.
        documents: number of documents; None: all.
        users: number of customers at most; None: all that the rules can read.
        commit: commit of the checkout, for the notice; None: not known.

    Raises:
        UsageError: a file of the checkout is wrong, the numbers do not fit, or the target is not empty.
        OperationalError: the folder cannot be written.
    """
    source = read_source(folder)
    ranked = sorted(source.users, key=lambda user: len(set(user.required_documents)))
    customers: list[Customer] = []
    left_out: list[str] = []
    for user in ranked:
        if len(customers) == users:
            break
        sectors = Counter(source.documents[one].sector for one in user.required_documents)
        try:
            instructions, name = user.user_scenario.instructions, make_slug(user.id)
            customers.append(Customer(user, make_persona(name, instructions, sectors.most_common(1)[0][0])))
        except UnreadableCustomer as error:
            left_out.append(f"{render_one_line(user.id)}: {error}")
    if not customers:
        raise UsageError(f"{folder}: no customer can be read. The first: {left_out[0]}.")
    chosen = await _choose_documents(source, customers, documents)
    _write(target, source, chosen, customers, commit)
    return WrittenPack(len(chosen), len(customers), tuple(left_out))


async def _choose_documents(
    source: KnowledgeSource, customers: Sequence[Customer], wanted: int | None
) -> list[SourceDocument]:
    """Return the documents that customers require, and the nearest others, by identifier."""
    if wanted is None:
        return list(source.documents.values())
    chosen = {one for user, _ in customers for one in user.required_documents}
    if not len(chosen) <= wanted <= len(source.documents):
        raise UsageError(
            f"--documents {wanted}: the {len(customers)} customers require {len(chosen)} documents, "
            f"and there are {len(source.documents)}. Give a number between."
        )
    ids = {one.name: one.id for one in source.documents.values()}
    search = WordSearch(
        Scenario(
            name="tau-knowledge",
            title="",
            description="",
            domain="",
            assistant="",
            specialists=DEFAULT_SPECIALISTS,
            documents=tuple(_convert(one) for one in source.documents.values()),
            personas=(),
        )
    )
    ranks = []
    for _, persona in customers:
        found = await search.search(" ".join(persona.goals), len(search.passages))
        ranks.append(list(dict.fromkeys(ids[passage.document] for passage in found)))
    rest = [one for one in source.documents if one not in chosen]
    while len(chosen) < wanted:
        before = len(chosen)
        for rank in ranks:
            nearest = next((one for one in rank if one not in chosen), None)
            if nearest is not None and len(chosen) < wanted:
                chosen.add(nearest)
        if len(chosen) == before:  # no word of a goal is in any of the others
            chosen.update([one for one in rest if one not in chosen][: wanted - before])
    return [source.documents[one] for one in source.documents if one in chosen]


def _convert(document: SourceDocument) -> Document:
    return Document(
        name=document.name,
        title=render_one_line(document.title),
        source=f"Rho-Bank, {render_one_line(document.id)} (tau2-bench, banking_knowledge)",
        topic=document.topic,
        sector=document.sector,
        text=document.content.strip(),
    )


def _write(
    target: Path,
    source: KnowledgeSource,
    documents: Sequence[SourceDocument],
    customers: Sequence[Customer],
    commit: str | None,
) -> None:
    origin = f"{ADDRESS}, domain banking_knowledge"
    if commit is not None:
        origin += f", commit {render_one_line(commit)}"
    how = f"by `hallulab make-data tau-knowledge` from {origin}, by rules, without a model"
    licence = "MIT" if source.licence.startswith("MIT License\n") else "see LICENSE.txt"
    values = {"schema": 1, "name": name_pack(target), "licence": licence}
    values |= yaml.safe_load(files(__package__).joinpath(SCENARIO_FILE).read_text(encoding="utf-8"))
    values |= {"documents": "documents", "personas": "personas.yaml"}
    names = {one.id: one.name for one in documents}
    blocks = [
        render_persona_block(
            persona, [f"{user.id}; documents: {', '.join(names[one] for one in user.required_documents)}"], ()
        )
        for user, persona in customers
    ]
    texts = {
        SCENARIO_FILE: f"# Written {how}.\n{dump_yaml(values)}",
        "personas.yaml": render_personas_file(blocks, how),
        "LICENSE.txt": f"Documents and personas are made from {origin}. Its licence:\n\n{source.licence}",
    }
    with write_whole_folder(target) as beside:
        (beside / "documents").mkdir()
        for name, text in texts.items():
            (beside / name).write_text(text, encoding="utf-8")
        for document in map(_convert, documents):
            labels = {key: getattr(document, key) for key in ("title", "source", "sector", "topic")}
            text = f"---\n{dump_yaml(labels)}---\n\n{document.text}\n"
            (beside / "documents" / f"{document.name}.md").write_text(text, encoding="utf-8")
        load_scenario(beside)
