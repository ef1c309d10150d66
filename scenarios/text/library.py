"""The sentences of a collection of documents, and the names in them, to make false text of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from hallulab.scenarios.packs.pack import Document
from hallulab.scenarios.text.items import Item, find_items
from hallulab.scenarios.text.spans import split_sentences
from hallulab.scenarios.text.word_forms import TOKEN

_WORDS = (6, 45)
"""Fewest and most words of a whole sentence: shorter ones say too little, longer ones too much."""


@dataclass(frozen=True)
class SentenceBank:
    """The sentences of all documents; errors are taken from them."""

    sentences: tuple[tuple[str, str], ...]
    """Section and sentence; sentences of the same section apply to the same cases."""

    @cached_property
    def names(self) -> tuple[tuple[str, bool], ...]:
        """The names that occur, each once, and whether `the` stands before it."""
        found: dict[tuple[str, bool], None] = {}
        for _, sentence in self.sentences:
            for item in find_items(sentence):
                if item.kind == "name" and is_distinct_name(item.text):
                    found[item.text, is_after_the(sentence, item)] = None
        return tuple(found)

    @cached_property
    def rules(self) -> tuple[tuple[str, str], ...]:
        """Those that say what must or may be done, with a deadline, an amount or a contact."""
        return tuple((section, sentence) for section, sentence in self.sentences if _is_rule(sentence))


def _is_rule(sentence: str) -> bool:
    return bool({"must", "may", "shall", "cannot", "can"} & set(sentence.split())) and any(
        item.kind in ("quantity", "contact", "date") for item in find_items(sentence)
    )


def is_distinct_name(name: str) -> bool:
    """Return whether a name stands for one thing: `Reserve Bank`, `RERA`, not `Directive` or `A and B`."""
    return " and " not in name if " " in name else name.isupper() and len(name) > 2


def is_after_the(text: str, item: Item) -> bool:
    """Return whether `the` stands before an item."""
    return text[: item.start].lower().endswith("the ")


# Planting asks for the same passages again and again; a pack has a few hundred.
@lru_cache(maxsize=10_000)
def find_whole_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text that can stand alone: no headings, list items or fragments."""
    found = []
    for region in split_sentences(text):
        sentence = region.of(text)
        length = sum(1 for _ in TOKEN.finditer(sentence))
        plain = "\n" not in sentence and '"' not in sentence
        if plain and sentence[:1].isupper() and sentence.endswith(".") and _WORDS[0] <= length <= _WORDS[1]:
            found.append(sentence)
    return tuple(found)


def collect_sentences(documents: Sequence[Document]) -> SentenceBank:
    """Return the sentences of documents, by the sector of their document, or else by the document."""
    return SentenceBank(
        tuple(
            (document.sector or document.name, sentence)
            for document in documents
            for sentence in find_whole_sentences(document.text)
        )
    )
