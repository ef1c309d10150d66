"""False statements in the place of true ones: documents poisoned by rules (RAG-Trust section 2.1).

A rule changes an amount, period, date, unit, name or reference of a whole sentence, as `make-data planted`
does in replies (`hallulab.scenarios.text.edits`). Of each sentence that has such a value, one is changed, so
whichever part of a poisoned document is retrieved, it misleads. RAG-Trust has a model write them; rules keep
the exact words that are false, which is needed to find them in replies.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from hallulab.scenarios.packs.pack import Document
from hallulab.scenarios.text.edits import (
    Edit,
    SentenceBank,
    find_whole_sentences,
    generate_date_edits,
    generate_number_edits,
    generate_reference_edits,
    generate_unit_edits,
    is_clean_edit,
    name_edits,
)
from hallulab.scenarios.text.items import Item, find_items
from hallulab.scenarios.text.spans import Region, split_sentences
from hallulab.scenarios.transcript import Frozen

_FEWEST_DOCUMENTS = 2
"""Documents that must hold a value before they can agree on a false one."""

Key = tuple[str, str]
"""Kind and key of an item: equal for equal values, however they are written."""


class Poison(Frozen):
    """A false statement of a document, and what it replaced."""

    document: str
    false: str
    true: str
    """The sentence that stood there."""
    false_value: str
    """The words of `false` that are false."""
    true_value: str
    """The words of `true` in their place."""


class _Change(NamedTuple):
    """An edit of a sentence that replaces a whole item by another."""

    old: Item
    new: str


def plant_poisons(
    documents: Sequence[Document], ratio: float, library: SentenceBank, seed: int, agreed: bool
) -> tuple[tuple[Document, ...], tuple[Poison, ...]]:
    """Poison a share of the documents; return all documents and the false statements.

    A document without a value that a rule can change is passed over, so there may be fewer than asked for. A
    higher ratio poisons the same documents and more, each with the same false statements unless `agreed`.

    Args:
        ratio: share to poison; above 0, at least one.
        library: where other names come from.
        agreed: whether a value that several poisoned documents hold gets the same false value in all of them.
    """
    wanted = max(1, round(ratio * len(documents))) if ratio else 0
    order = list(documents)
    random.Random(f"{seed} poison").shuffle(order)  # noqa: S311 - a seeded choice of data
    chosen: list[Document] = []
    for document in order:
        if len(chosen) == wanted:
            break
        if _plant_in_document(document, library, seed, {})[1]:
            chosen.append(document)
    falsehoods = _choose_agreed_values(chosen, library, seed) if agreed else {}
    made = {document.name: _plant_in_document(document, library, seed, falsehoods) for document in chosen}
    return (
        tuple(made[one.name][0] if one.name in made else one for one in documents),
        tuple(poison for one in documents if one.name in made for poison in made[one.name][1]),
    )


def plant_outdated(document: Document, seed: int) -> tuple[Document, tuple[Poison, ...]]:
    """Return an older version of a document, and what it says in place of the truth.

    In each whole sentence that has one, an amount, period, count or date is another. Names and references
    stay, because it is about the same thing.
    """
    kind = f"{seed} outdated {document.name}"
    made, statements = _change_sentences(document, kind, _generate_outdated_edits, {})
    return made, tuple(statements)


def list_falsehoods(document: Document, library: SentenceBank, seed: int) -> tuple[Poison, ...]:
    """Return a false statement for each whole sentence of a document that has a value to change.

    Args:
        document: it stays as it is.
        library: where other names come from.
    """
    return tuple(_plant_in_document(document, library, seed, {})[1])


def _plant_in_document(
    document: Document, library: SentenceBank, seed: int, falsehoods: Mapping[str, str]
) -> tuple[Document, list[Poison]]:
    """Make each whole sentence false that can be; sentences with values of `falsehoods` by these."""
    return _change_sentences(
        document, f"{seed} poison {document.name}", partial(_generate_edits, library), falsehoods
    )


def _change_sentences(
    document: Document,
    seed: str,
    generate: Callable[[str, random.Random], Iterator[Edit]],
    falsehoods: Mapping[str, str],
) -> tuple[Document, list[Poison]]:
    """Change each whole sentence that can be, by one of its edits, or by `falsehoods`."""
    generator = random.Random(seed)  # noqa: S311 - a seeded choice of data
    known = _collect_keys(find_items(document.text))
    text, poisons = document.text, list[Poison]()
    for region in reversed(_find_whole_sentences(document.text)):
        sentence = region.of(document.text)
        changes = [
            _Change(item, falsehoods[item.text]) for item in find_items(sentence) if item.text in falsehoods
        ]
        if not changes:
            options = list(_select_changes(sentence, generate(sentence, generator), known))
            if not options:
                continue
            changes = [generator.choice(options)]
        false = sentence
        for change in reversed(changes):
            false = Edit(change.old.start, change.old.end, change.new).of(false)
        text = text[: region.start] + false + text[region.end :]
        said = {"document": document.name, "false": false, "true": sentence}
        poisons += [Poison(**said, false_value=one.new, true_value=one.old.text) for one in changes]
    return document.model_copy(update={"text": text}), poisons[::-1]


def _choose_agreed_values(documents: Sequence[Document], library: SentenceBank, seed: int) -> dict[str, str]:
    """Return one false value for each value that several of the documents hold.

    It stands in none of them.
    """
    holders: Counter[str] = Counter()
    example: dict[str, str] = {}
    for document in documents:
        said = [region.of(document.text) for region in _find_whole_sentences(document.text)]
        found = {item.text: sentence for sentence in said for item in find_items(sentence)}
        holders.update(found.keys())
        example = {**found, **example}
    known = frozenset[Key]().union(*(_collect_keys(find_items(document.text)) for document in documents))
    falsehoods = {}
    for value, count in sorted(holders.items()):
        generator = random.Random(f"{seed} agreed {value}")  # noqa: S311 - a seeded choice of data
        edits = _generate_edits(library, example[value], generator)
        changes = _select_changes(example[value], edits, known)
        options = [change.new for change in changes if change.old.text == value]
        if count >= _FEWEST_DOCUMENTS and options:
            falsehoods[value] = generator.choice(options)
    return falsehoods


def _generate_outdated_edits(sentence: str, generator: random.Random) -> Iterator[Edit]:
    yield from generate_number_edits(sentence, generator)
    yield from generate_date_edits(sentence, generator)


def _generate_edits(library: SentenceBank, sentence: str, generator: random.Random) -> Iterator[Edit]:
    yield from _generate_outdated_edits(sentence, generator)
    yield from generate_unit_edits(sentence, generator)
    yield from name_edits(sentence, library, generator)
    yield from generate_reference_edits(sentence, generator)


def _select_changes(sentence: str, edits: Iterable[Edit], known: frozenset[Key]) -> Iterator[_Change]:
    """Yield the sound changes of one value: another item of the same kind that is not among `known`."""
    items = find_items(sentence)
    for edit in edits:
        false = edit.of(sentence)
        old = next((item for item in items if item.start <= edit.start < edit.end <= item.end), None)
        if old is None or not is_clean_edit(sentence, false):
            continue
        end = old.end + len(false) - len(sentence)
        for new in find_items(false):
            if (new.start, new.end, new.kind) == (old.start, end, old.kind) and _get_key(new) not in known:
                yield _Change(old, new.text)


def _find_whole_sentences(text: str) -> list[Region]:
    regions = split_sentences(text)
    return [one for one in regions if find_whole_sentences(one.of(text)) == (one.of(text),)]


def _collect_keys(items: Sequence[Item]) -> frozenset[Key]:
    return frozenset(map(_get_key, items))


def _get_key(item: Item) -> Key:
    return item.kind, item.key
