"""Features of sentences and words on literal texts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hallulab.detectors.features.extended import EXTRA_FEATURES, WORD_FEATURES
from hallulab.detectors.features.features import KNOWN, MISMATCH, NOVEL, Features, measure
from hallulab.detectors.features.matching import DocumentFrequency, make_terms, match_by_bm25
from tests.detectors.features.material import batch

EVIDENCE = ("The bakery in Lyon opens at 6.", "Fresh bread costs 3 euros.")
NO_FREQUENCY = DocumentFrequency(texts=0, counts={})
"""With it every idf is 1: TF-IDF is the plain cosine."""


def measured(reply: str, *texts: str) -> Features:
    return measure(batch(reply, *(texts or EVIDENCE)), NO_FREQUENCY, "extended")


def test_coverage_is_the_share_of_content_words_in_the_source() -> None:
    # bakery and bread are in the source, cakes is not; "the" and "has" are stop words
    features = measured("The bakery has bread, cakes.")
    assert features.column("lexical_coverage").tolist() == [pytest.approx(2 / 3)]


def test_overlap_is_that_of_the_best_chunk_which_the_sentence_is_attributed_to() -> None:
    features = measured("Bread costs 3. Opens in Lyon.")
    assert features.column("max_chunk_overlap").tolist() == [1.0, 1.0]
    assert features.matches["lexical"].chunk.tolist() == [1, 0]
    assert measured("Bread in Lyon.").column("max_chunk_overlap").tolist() == [0.5]


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


def test_tfidf_is_the_largest_cosine() -> None:
    # {bakery, cakes} · {bakery, lyon, opens, 6} = 1 / (√2 · √4)
    assert measured("Bakery cakes.").column("tfidf").tolist() == [pytest.approx(1 / math.sqrt(8))]


def test_rare_words_weigh_more_in_tfidf() -> None:
    frequency = DocumentFrequency(texts=9, counts={"bakery": 9})
    assert frequency.idf(["bakery", "cakes"]).tolist() == [1.0, pytest.approx(math.log(10) + 1)]


def test_numbers_that_the_source_lacks_are_counted() -> None:
    features = measured("It opens at 7, at 6.0 or at 1,000.")
    assert features.column("numeric_mismatches").tolist() == [2.0]


def test_entity_phrases_that_the_source_lacks_are_counted() -> None:
    features = measured("Bakery New Springfield beats Lyon and Paris. Bread rises.")
    # "Bakery New Springfield" begins the sentence and goes on in capitals: one phrase; Paris the other
    assert features.column("entity_mismatches").tolist() == [2.0, 0.0]


def test_an_entity_in_the_plural_is_no_other_one() -> None:
    features = measured("It opens on Fridays and Sundays.", "Friday: 9 to 17")
    assert features.column("entity_mismatches").tolist() == [1.0]


def test_a_capital_at_the_beginning_of_a_sentence_names_nothing() -> None:
    assert measured("Cakes rise.").column("entity_mismatches").tolist() == [0.0]


def test_words_without_support_have_more_evidence_against_them() -> None:
    features = measured("The bakery sells cakes in Paris at 7 - daily")
    expected = [KNOWN, KNOWN, NOVEL, NOVEL, KNOWN, MISMATCH, KNOWN, MISMATCH, KNOWN, NOVEL]
    assert features.evidence.tolist() == expected


@pytest.mark.parametrize("feature", ["lexical_coverage", "max_chunk_overlap", "bm25", "tfidf"])
def test_a_sentence_without_content_words_is_covered(feature: str) -> None:
    assert measured("It is.").column(feature).tolist() == [1.0]


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


def test_word_pairs_that_the_source_lacks_are_a_share_of_the_content_words() -> None:
    features = measured("Fresh bread costs Lyon.", "Fresh bread costs money in Lyon.")
    assert features.column("pair_novelty").tolist() == [0.25]


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


def test_both_words_of_a_clock_time_are_judged_by_it() -> None:
    assert measured("Opens at 5 PM.").evidence.tolist() == [KNOWN, KNOWN, MISMATCH, MISMATCH]
