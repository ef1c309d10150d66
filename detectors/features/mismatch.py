"""Rules of the paper's NLI-lite: entities, and fields of a record, that the source does not support."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from hallulab.detectors.features.batch import Batch
from hallulab.detectors.features.tokens import Flags, Lexicon, Numbers, find_content_stems

_DENIED = re.compile(r"(?:^|\s)(?:no|not stated|false|none|null)[ \t]*(?:,|$)", re.IGNORECASE | re.MULTILINE)
_FIELD = re.compile(r"([\w -]+): (.*)\Z")


def collect_source_entities(batch: Batch) -> Flags:
    """Return (tokens,): whether the source has the token, or an inflection of it, with a capital letter."""
    ours, theirs, forms = batch.tokens, batch.chunk_tokens, len(batch.lexicon.forms)
    named = (batch.chunk_source[theirs.text] * forms + theirs.stem)[theirs.capital]
    return np.isin(batch.source[ours.text] * forms + ours.stem, named)


def find_entity_mismatches(batch: Batch, supported: Flags) -> tuple[Flags, Numbers]:
    """Return which tokens name an unsupported entity, and each sentence's number of such phrases.

    A phrase is a run of capitalised content words with one character between them. The first word of a
    sentence counts only if a capitalised word follows: it has a capital in any case.

    Args:
        supported: (tokens,).

    Returns:
        (tokens,) and (sentences,).
    """
    tokens = batch.tokens
    if not len(tokens.text):
        return np.zeros(0, dtype=bool), np.zeros(len(batch.sentences))
    together = batch.token_sentence[1:] == batch.token_sentence[:-1]
    adjacent = together & (tokens.start[1:] == tokens.end[:-1] + 1)
    capital = tokens.capital & tokens.content
    later = np.concatenate([[False], together])
    named_next = np.concatenate([adjacent & capital[1:], [False]])
    named = capital & (later | named_next)
    begins = named & ~np.concatenate([[False], adjacent & named[:-1]])
    mismatch = named & ~supported
    phrase = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)[np.unique(phrase[mismatch])]
    counted = np.bincount(batch.token_sentence[first], minlength=len(batch.sentences))
    return mismatch, counted.astype(float)


def find_denied_tokens(batch: Batch) -> Flags:
    """Return (tokens,): whether the source has the content word only in fields without a value.

    A field is `name: value`, or one of several parts of a value: `parking: garage no, street yes`. It has no
    value when it ends in no, false, none, null or not stated.
    """
    texts: list[list[str]] = [[] for _ in range(int(batch.chunk_source.max(initial=-1)) + 1)]
    for source, text in zip(batch.chunk_source.tolist(), batch.chunks, strict=True):
        texts[source].append(text)
    size = len(batch.lexicon.forms)
    keys = [
        source * size + stem
        for source, chunks in enumerate(texts)
        for stem in _find_denied_stems("\n".join(chunks), batch.lexicon)
    ]
    ours = batch.source[batch.tokens.text] * size + batch.tokens.stem
    return batch.tokens.content & np.isin(ours, np.array(keys, dtype=np.int64))


def _find_denied_stems(text: str, lexicon: Lexicon) -> set[int]:
    if not _DENIED.search(text):
        return set()
    stems: dict[bool, set[int]] = {True: set(), False: set()}
    for part, denied in _fields(text):
        stems[denied] |= find_content_stems(part, lexicon)
    return stems[True] - stems[False]


def _fields(text: str) -> Iterator[tuple[str, bool]]:
    """Yield parts of a text, and whether they are fields without a value."""
    for line in text.splitlines():
        field = _FIELD.match(line)
        parts = field[2].split(", ") if field else []
        if len(parts) > 1 and any(_DENIED.search(part) for part in parts):
            yield from ((part, _DENIED.search(part) is not None) for part in parts)
        else:
            yield line, field is not None and _DENIED.search(line) is not None
