"""Features beyond the paper's: more of coverage, retrieval and mismatch, and a sentence's place and form.

Here words are compared by stems and weighted by rarity (idf), so that a paraphrase's inflection or a common
word counts less than an invented noun. docs/studies/published-methods.md compares them with the paper's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hallulab.detectors.features.batch import (
    Batch,
    Flags,
    Integers,
    Numbers,
    compute_content_share,
    compute_ratio,
    find_worst_by_word,
    sum_by_sentence,
)
from hallulab.detectors.features.matching import (
    Terms,
    find_denied_tokens,
    find_entity_mismatches,
    make_terms,
    match_by_overlap,
)

EXTRA_FEATURES = (
    "rare_coverage",  # share of content stems, by rarity, that the source holds
    "rare_chunk_overlap",  # the same of the nearest chunk
    "rarest_novel",  # idf of the rarest stem that the source lacks
    "pair_novelty",  # share of content words whose pair with the word before is not in the source
    "chunk_numeric_mismatches",  # numbers that the nearest chunk lacks
    "stem_entity_mismatches",  # entity phrases with a stem that the source lacks
    "novel_words",
    "content_words",
    "tokens",
    "denied_words",  # words that the source has only in fields without a value
    "negations",
    "denied_words_affirmed",  # denied words of a sentence without a negation
    "hedges",  # words such as some, may, overall
    "announces",  # ends in a colon
    "list_item",
    "line_breaks",
    "commas",
    "quotation_marks",
    "place",  # sentences before it
    "position",  # the same as a share
    "reply_sentences",
    "reply_coverage",
    "reply_worst_coverage",
    "reply_pair_novelty",
    "reply_numeric_mismatches",
    "reply_tokens",
    "reply_line_breaks",
    "reply_announces",
    "source_tokens",
    "coverage_before",  # rare_coverage of the sentence before
    "coverage_after",
)

WORD_FEATURES = (
    "novel",
    "stem_novel",
    "novel_number",
    "novel_entity",
    "content",
    "rarity",
    "novel_rarity",
    "outside_chunk",  # a content word that the nearest chunk does not hold
    "pair_before_novel",
    "pair_after_novel",
    "novel_around",  # share of novel words among the two before and the two after
    "denied",
    "sentence_novelty",
    "position",
    "capital",
    "number",
)
"""Features of a word; if it has several tokens, the largest value."""

_NEGATIONS = frozenset({"no", "not", "without", "lack", "lacks", "nor", "neither", "none", "never", "cannot"})
_HEDGES = frozenset(
    {"some", "may", "might", "could", "seem", "seems", "appear", "appears", "likely"}
    | {"overall", "also", "however", "generally", "often", "various"}
)
_REACH = 2


@dataclass(frozen=True)
class Stemmed:
    """Arrays that sentence and word features both build on. They have shape (tokens,) unless noted."""

    rarity: Numbers
    """idf of content stems, 0 of other words."""
    novel: Flags
    """Content words whose stem the source lacks."""
    outside: Flags
    """Content words whose stem the nearest chunk lacks."""
    pair_before: Flags
    """Content words that nowhere in the source follow the content word before them."""
    pair_after: Flags
    """Content words that nowhere in the source precede the content word after them."""
    denied: Flags
    """Words that the source has only in fields without a value."""
    entities: Numbers
    """(sentences,): number of entity phrases with a stem that the source lacks."""
    overlap: Numbers
    """(sentences,): best overlap with a chunk, by rarity."""
    coverage: Numbers
    """(sentences,): share of the content words, by rarity, that the source holds."""


def compare_stems(batch: Batch, idf: Numbers) -> Stemmed:
    """Compare replies and sources by stems.

    Args:
        idf: of the batch's forms.
    """
    tokens, terms = batch.tokens, make_terms(batch, stems=True)
    known = terms.known[terms.token]
    near = match_by_overlap(terms, idf[terms.form])
    pair_before, pair_after = _novel_pairs(batch, terms)
    width = len(terms.form) + 1
    held = batch.chunk_tokens.text * width + terms.chunk_token
    inside = np.isin(near.chunk[batch.token_sentence] * width + terms.token, held)
    return Stemmed(
        rarity=idf[tokens.stem] * tokens.content,
        novel=tokens.content & ~known,
        outside=tokens.content & ~inside,
        pair_before=pair_before,
        pair_after=pair_after,
        denied=find_denied_tokens(batch),
        entities=find_entity_mismatches(batch, known)[1],
        overlap=near.score,
        coverage=compute_content_share(batch, known, idf[tokens.stem]),
    )


def measure_extra_features(batch: Batch, stemmed: Stemmed) -> Numbers:
    """Return (sentences, EXTRA_FEATURES)."""
    tokens, forms = batch.tokens, batch.lexicon.forms
    content = sum_by_sentence(batch, tokens.content)
    rarest = np.zeros(len(batch.sentences))
    np.maximum.at(rarest, batch.token_sentence, stemmed.rarity * stemmed.novel)
    denied = sum_by_sentence(batch, stemmed.denied)
    negations = sum_by_sentence(batch, _is_any(forms, _NEGATIONS, "n't")[tokens.exact])
    local = [
        stemmed.coverage,
        stemmed.overlap,
        rarest,
        compute_ratio(sum_by_sentence(batch, stemmed.pair_before), content, empty=0.0),
        sum_by_sentence(batch, tokens.number & stemmed.outside),
        stemmed.entities,
        sum_by_sentence(batch, stemmed.novel),
        content,
        sum_by_sentence(batch, np.ones(len(tokens.text))),
        denied,
        negations,
        denied * (negations == 0),
        sum_by_sentence(batch, _is_any(forms, _HEDGES)[tokens.exact]),
        *_form(batch),
    ]
    wrong_numbers = sum_by_sentence(batch, tokens.number & stemmed.novel)
    return np.column_stack([*local, *_around(batch, local, wrong_numbers)])


def measure_word_features(batch: Batch, stemmed: Stemmed, exact_novel: Flags, entities: Flags) -> Numbers:
    """Return (words, WORD_FEATURES).

    Args:
        exact_novel: (tokens,) content words whose exact form the source lacks.
        entities: (tokens,) in an entity that the source lacks.
    """
    tokens, sentence = batch.tokens, batch.token_sentence
    size = sum_by_sentence(batch, np.ones(len(tokens.text)))
    inside = np.arange(len(sentence)) - np.searchsorted(sentence, sentence)
    by_token = (
        exact_novel,
        stemmed.novel,
        stemmed.novel & tokens.number,
        entities,
        tokens.content,
        stemmed.rarity,
        stemmed.rarity * stemmed.novel,
        stemmed.outside,
        stemmed.pair_before,
        stemmed.pair_after,
        _novel_around(stemmed.novel, sentence),
        stemmed.denied,
        (1 - stemmed.coverage)[sentence],
        inside / size[sentence],
        tokens.capital,
        tokens.number,
    )
    return np.column_stack(
        [find_worst_by_word(batch, np.asarray(values, dtype=float)) for values in by_token]
    )


def _is_any(forms: list[str], wanted: frozenset[str], ending: str | None = None) -> Flags:
    return np.array(
        [form in wanted or (ending is not None and form.endswith(ending)) for form in forms], bool
    )


def _form(batch: Batch) -> list[Numbers]:
    """Return how a sentence is written: announces, list_item, line_breaks, commas, quotation_marks."""
    parts = batch.sentences
    texts = [
        batch.cases[reply].reply[start:end]
        for reply, start, end in zip(
            parts.reply.tolist(), parts.start.tolist(), parts.end.tolist(), strict=True
        )
    ]
    rows = [
        (
            text.endswith(":"),
            text.startswith(("-", "*", "•")) or text.split(" ", 1)[0].rstrip(".)").isdigit(),
            text.count("\n"),
            text.count(","),
            text.count('"'),
        )
        for text in texts
    ]
    return list(np.array(rows, dtype=float).reshape(-1, 5).T)


def _around(batch: Batch, local: list[Numbers], wrong_numbers: Numbers) -> list[Numbers]:
    """Return what the rest of the reply says of a sentence: the features from `place` on."""
    reply, replies = batch.sentences.reply, len(batch.cases)
    named = dict(zip(EXTRA_FEATURES, local, strict=False))
    coverage = named["rare_coverage"]
    in_reply = np.bincount(reply, minlength=replies)
    place = np.arange(len(reply)) - np.searchsorted(reply, reply)

    def total(values: Numbers) -> Numbers:
        return np.bincount(reply, weights=values, minlength=replies)[reply].astype(float)

    count = in_reply[reply].astype(float)
    worst = np.ones(replies)
    np.minimum.at(worst, reply, coverage)
    breaks = np.array([case.reply.count("\n") for case in batch.cases], dtype=float)
    source_size = np.bincount(
        batch.chunk_source[batch.chunk_tokens.text], minlength=int(batch.source.max(initial=-1)) + 1
    )
    return [
        place.astype(float),
        place / count,
        count,
        total(coverage) / count,
        worst[reply],
        total(named["pair_novelty"]) / count,
        total(wrong_numbers),
        total(named["tokens"]),
        breaks[reply],
        total(named["announces"]),
        source_size[batch.source[reply]].astype(float),
        np.where(place > 0, np.roll(coverage, 1), 1.0),
        np.where(place < count - 1, np.roll(coverage, -1), 1.0),
    ]


def _novel_pairs(batch: Batch, terms: Terms) -> tuple[Flags, Flags]:
    """Return for each content word whether its pair with the word before, and after, is new. Two (tokens,).

    A pair is new if the source nowhere has the two in this order next to each other. Pairs are within a
    sentence; other words between the two do not count.
    """
    width = len(terms.form) + 1
    source, reply = batch.chunk_tokens, batch.tokens

    def pairs(term: Integers, content: Flags, group: Integers) -> tuple[Integers, Integers, Integers]:
        at = np.flatnonzero(content)
        together = group[at[1:]] == group[at[:-1]]
        left, right = at[:-1][together], at[1:][together]
        return left, right, term[left] * width + term[right]

    _, _, known = pairs(terms.chunk_token, source.content, source.text)
    left, right, ours = pairs(terms.token, reply.content, batch.token_sentence)
    new = ~np.isin(ours, known)
    before, after = np.zeros(len(reply.text), dtype=bool), np.zeros(len(reply.text), dtype=bool)
    before[right[new]] = True
    after[left[new]] = True
    return before, after


def _novel_around(novel: Flags, sentence: Integers) -> Numbers:
    total, seen = np.zeros(len(novel)), np.zeros(len(novel))
    for shift in range(1, _REACH + 1):
        for here, there in (
            (slice(shift, None), slice(None, -shift)),
            (slice(None, -shift), slice(shift, None)),
        ):
            together = sentence[here] == sentence[there]
            total[here] += together * novel[there]
            seen[here] += together
    return compute_ratio(total, seen, empty=0.0)
