"""Features of sentences and words on literal texts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hallulab.detectors.features.extended import EXTRA_FEATURES, WORD_FEATURES
from hallulab.detectors.features.features import KNOWN, MISMATCH, NOVEL, PAPER_FEATURES, Features, measure
from hallulab.detectors.features.matching import DocumentFrequency, make_terms, match_by_bm25
from tests.detectors.features.material import batch

EVIDENCE = ("The bakery in Lyon opens at 6.", "Fresh bread costs 3 euros.")
NO_FREQUENCY = DocumentFrequency(texts=0, counts={})
"""With it every idf is 1: TF-IDF is the plain cosine."""


def measured(reply: str, *texts: str) -> Features:
    return measure(batch(reply, *(texts or EVIDENCE)), NO_FREQUENCY, "extended")


FRIDAY = "Friday: 9 to 17"
MONEY = "Fresh bread costs money in Lyon."


@pytest.mark.parametrize(
    ("reply", "texts", "feature", "expected"),
    [
        # bakery and bread are in the source, cakes is not; "the" and "has" are stop words
        ("The bakery has bread, cakes.", EVIDENCE, "lexical_coverage", [2 / 3]),
        ("Bread in Lyon.", EVIDENCE, "max_chunk_overlap", [0.5]),
        # {bakery, cakes} · {bakery, lyon, opens, 6} = 1 / (√2 · √4)
        ("Bakery cakes.", EVIDENCE, "tfidf", [1 / math.sqrt(8)]),
        ("It opens at 7, at 6.0 or at 1,000.", EVIDENCE, "numeric_mismatches", [2.0]),
        # "Bakery New Springfield" begins the sentence and goes on in capitals: one phrase; Paris the other
        ("Bakery New Springfield beats Lyon and Paris. Bread rises.", EVIDENCE, "entity_mismatches", [2, 0]),
        # a plural is no other entity
        ("It opens on Fridays and Sundays.", (FRIDAY,), "entity_mismatches", [1.0]),
        # a capital at the beginning of a sentence names nothing
        ("Cakes rise.", EVIDENCE, "entity_mismatches", [0.0]),
        # a share of the content words
        ("Fresh bread costs Lyon.", (MONEY,), "pair_novelty", [0.25]),
        # without content words a sentence is covered
        *(("It is.", EVIDENCE, name, [1.0]) for name in PAPER_FEATURES[:4]),
    ],
)
def test_a_sentence_is_measured_against_its_source(
    reply: str, texts: tuple[str, ...], feature: str, expected: list[float]
) -> None:
    assert measured(reply, *texts).column(feature).tolist() == pytest.approx(expected)


def test_overlap_is_that_of_the_best_chunk_which_the_sentence_is_attributed_to() -> None:
    features = measured("Bread costs 3. Opens in Lyon.")
    assert features.column("max_chunk_overlap").tolist() == [1.0, 1.0]
    assert features.matches["lexical"].chunk.tolist() == [1, 0]


def test_what_matches_nothing_is_attributed_to_nothing() -> None:
    features = measured("Zebras gallop.")
    assert [match.chunk.tolist() for match in features.matches.values()] == [[-1]] * 3
    assert [match.score.tolist() for match in features.matches.values()] == [[0.0]] * 3


def test_bm25_is_the_librarys_as_a_share_of_its_limit() -> None:
    import bm25s

    evidence = ("Bread costs money. Bread rises.", "Lyon sells bread.", "The oven stands outside Lyon.")
    made = batch("Lyon bread rises, oven cakes.", *evidence)
    library = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    library.index(
        [
            ["bread", "costs", "money", "bread", "rises"],
            ["lyon", "sells", "bread"],
            ["oven", "stands", "outside", "lyon"],
        ],
        show_progress=False,
    )
    expected = library.get_scores(["lyon", "bread", "rises", "oven", "cakes"])
    # lyon and bread are in 2 of 3 chunks, rises and oven in 1, cakes in none
    limit = sum(math.log(1 + (3 - df + 0.5) / (df + 0.5)) for df in (2, 2, 1, 1, 0))
    found = match_by_bm25(make_terms(made), made)
    assert found.score[0] == pytest.approx(max(expected) / limit, rel=1e-5)
    assert found.chunk[0] == int(np.argmax(expected))


def test_rare_words_weigh_more_in_tfidf() -> None:
    frequency = DocumentFrequency(texts=9, counts={"bakery": 9})
    assert frequency.idf(["bakery", "cakes"]).tolist() == [1.0, pytest.approx(math.log(10) + 1)]


def test_fields_without_a_value_deny_their_words() -> None:
    record = "outdoor seating: no\nparking: garage yes, valet no\nmusic: not stated\nbar: full"
    features = measured(
        "It has outdoor seating, valet parking. There is no music. The bar has a garage.", record
    )
    assert features.column("denied_words").tolist() == [3.0, 1.0, 0.0]
    assert features.column("denied_words_affirmed").tolist() == [3.0, 0.0, 0.0]


def test_stems_forgive_inflection_and_clock_times_are_compared_on_24_hours() -> None:
    features = measured("The bakeries opened at 5 PM.", "The bakery opens 17:0-21:0.")
    assert features.column("lexical_coverage").tolist() == [0.0]
    assert features.column("rare_coverage").tolist() == [1.0]
    assert features.column("novel_words").tolist() == [0.0]


def test_a_sentence_knows_its_place_and_its_neighbours() -> None:
    features = measured("Bread costs 3. Zebras gallop: Bakery opens.")
    assert features.column("place").tolist() == [0.0, 1.0]
    assert features.column("position").tolist() == [0.0, 0.5]
    assert features.column("coverage_after").tolist() == [0.5, 1.0]
    assert features.column("coverage_before").tolist() == [1.0, 1.0]
    assert features.column("reply_worst_coverage").tolist() == [0.5, 0.5]


def test_every_column_has_its_name() -> None:
    features = measured("Bread.")
    assert features.words is not None
    assert features.sentences.shape == (1, 6 + len(EXTRA_FEATURES)) == (1, len(features.columns))
    assert features.words.shape == (1, len(WORD_FEATURES))


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (
            "The bakery sells cakes in Paris at 7 - daily",
            [KNOWN, KNOWN, NOVEL, NOVEL, KNOWN, MISMATCH, KNOWN, MISMATCH, KNOWN, NOVEL],
        ),
        # both words of a clock time are judged by it
        ("Opens at 5 PM.", [KNOWN, KNOWN, MISMATCH, MISMATCH]),
    ],
)
def test_words_without_support_have_more_evidence_against_them(reply: str, expected: list[float]) -> None:
    assert measured(reply).evidence.tolist() == expected
