"""Synonyms of English words from WordNet 3.0, for METEOR.

The file holds the words without blanks and hyphens (`benchmarks/wordnet_synonyms.py` makes it); its licence
stands beside it. It comes with the package, so a score is the same on every machine.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

FILE = "wordnet.txt.gz"
"""Name of the file, beside this module."""

_ENDINGS: Mapping[str, Sequence[tuple[str, str]]] = {
    "noun": (
        ("s", ""),
        ("ses", "s"),
        ("ves", "f"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "verb": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}
"""Part of speech → endings of inflected forms and what stands in their place (WordNet's Morphy)."""


@dataclass
class _PartOfSpeech:
    """The words of one part of speech."""

    synonyms: dict[str, set[str]] = field(default_factory=dict)
    """Word in lower case → words that share a synset with it, as they are spelt."""
    exceptions: dict[str, list[str]] = field(default_factory=dict)
    """Irregular form → its base forms."""


@cache
def find_synonyms(word: str) -> frozenset[str]:
    """Return the words of all synsets of a word in any of its base forms, as they are spelt.

    Args:
        word: in lower case.
    """
    return frozenset(
        synonym
        for part, words in _load_wordnet().items()
        for form in _find_base_forms(word, words, _ENDINGS[part])
        for synonym in words.synonyms[form]
    )


def _find_base_forms(word: str, part: _PartOfSpeech, endings: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the known base forms of a word, itself among them, as Morphy finds them in one step."""
    regular = [word.removesuffix(old) + new for old, new in endings if word.endswith(old)]
    for form in dict.fromkeys((word, *part.exceptions.get(word, regular))):
        if form in part.synonyms:
            yield form


@cache
def _load_wordnet() -> Mapping[str, _PartOfSpeech]:
    parts = {name: _PartOfSpeech() for name in _ENDINGS}
    for heading, line in _load_lines():
        name, _, kind = heading.partition(" ")
        words, part = line.split(" "), parts[name]
        if kind == "exceptions":
            part.exceptions[words[0]] = words[1:]
        else:
            for word in words:
                part.synonyms.setdefault(word.lower(), set()).update((word,) if kind == "alone" else words)
    return parts


def _load_lines() -> Iterator[tuple[str, str]]:
    """Yield (heading, line) of the file."""
    heading = ""
    packed = files(__package__).joinpath(FILE).read_bytes()
    for line in gzip.decompress(packed).decode().splitlines():
        if line.startswith("# "):
            heading = line.removeprefix("# ")
        elif line:
            yield heading, line
