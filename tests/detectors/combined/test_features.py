"""What `combined` measures, on texts small enough to count by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.detectors.combined.copying import COPY_FEATURES, measure_copying
from hallulab.detectors.combined.model import TASKS, compute_mean_max_min, measure_all, summarize_word_scores
from hallulab.detectors.features.batch import ReplyWithEvidence, make_batch
from hallulab.detectors.features.extended import EXTRA_FEATURES, WORD_FEATURES
from hallulab.detectors.features.features import PAPER_FEATURES
from hallulab.detectors.features.matching import DocumentFrequency
from tests.detectors.features.material import passages

NO_COUNTS = DocumentFrequency(texts=0, counts={})


def copied(reply: str, *evidence: str) -> dict[str, float]:
    measured = measure_all([ReplyWithEvidence(reply, passages(*evidence), "qa")], NO_COUNTS)
    return dict(zip(COPY_FEATURES, measured.replies[0, -len(COPY_FEATURES) :].tolist(), strict=True))


def test_copying_is_counted_in_words_pairs_and_triples() -> None:
    found = copied("The red fox sleeps", "The red fox runs.")
    assert found["new_words"] == 0.25
    assert found["new_pairs"] == pytest.approx(1 / 3)
    assert found["new_triples"] == 0.5
    assert found["longest_copy"] == 2
    assert found["longest_copy_share"] == 0.5
    assert found["words"] == 4


def test_a_pair_across_two_passages_is_new() -> None:
    assert copied("red fox", "A red", "fox runs.")["new_pairs"] == 1.0


def test_the_best_sentence_and_the_one_that_adds_most() -> None:
    found = copied("red fox sleeps deep", "Red fox runs. A cat sleeps. Deep waters.")
    assert found["outside_best"] == 0.5
    assert found["outside_best_two"] == 0.25


def test_nothing_is_copied_from_no_evidence() -> None:
    found = copied("red fox")
    assert (found["new_words"], found["outside_best"], found["outside_best_two"]) == (1.0, 1.0, 1.0)


def test_of_no_replies_nothing_is_measured() -> None:
    assert measure_copying(make_batch([])).shape == (0, len(COPY_FEATURES))


TEXTS = st.lists(st.sampled_from(["red", "fox", "runs.", "A"]), max_size=6).map(" ".join)


@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS, max_size=2)), max_size=4))
def test_what_is_copied_does_not_depend_on_the_other_replies(drawn: list[tuple[str, list[str]]]) -> None:
    cases = [ReplyWithEvidence(reply, passages(*evidence), "qa") for reply, evidence in drawn]
    alone = [measure_copying(make_batch([case]))[0].tolist() for case in cases]
    assert measure_copying(make_batch(cases)).tolist() == alone


def test_inputs_of_words_sentences_and_replies() -> None:
    measured = measure_all(
        [ReplyWithEvidence("Bread costs 3. Jam, too.", passages("Bread costs 3."), "qa")], NO_COUNTS
    )
    of_sentence = len(PAPER_FEATURES) + len(EXTRA_FEATURES)
    assert measured.sentences.shape == (2, of_sentence + len(TASKS))
    assert measured.words(slice(None)).shape == (5, len(WORD_FEATURES) + of_sentence + len(TASKS))
    assert measured.replies.shape == (1, 3 * of_sentence + len(TASKS) + len(COPY_FEATURES))
    assert measured.sentences[:, -3:].tolist() == [[1.0, 0.0, 0.0]] * 2


def test_mean_max_min_of_an_owner_without_rows_are_0() -> None:
    values, owner = np.array([[1.0], [3.0]]), np.array([0, 0])
    assert compute_mean_max_min(values, owner, 2).tolist() == [[2.0, 3.0, 1.0], [0.0, 0.0, 0.0]]


def test_word_scores_are_summed_up_by_reply() -> None:
    found = summarize_word_scores(np.array([0.5, 0.0, 0.25, 0.5]), np.array([0, 0, 0, 1]), 2)
    mean, largest, smallest, doubt, log_doubt, *rest = found[0].tolist()
    assert (mean, largest, smallest) == (0.25, 0.5, 0.0)
    assert doubt == pytest.approx(-np.log(0.5) - np.log(0.75))
    assert log_doubt == pytest.approx(np.log1p(doubt))
    assert rest[:4] == [0.25] * 4  # means of the worst 3, 5, 10 and 20
    assert rest[4:9] == [2.0, 2.0, 2.0, 1.0, 1.0]  # words from 0.05, 0.1, 0.2, 0.3 and 0.5 on
    assert rest[9] == 3.0


def test_the_worst_words_are_averaged_over_as_many_as_there_are() -> None:
    scores = np.array([0.1, 0.9, 0.5, 0.7, 0.3])
    found = summarize_word_scores(scores, np.zeros(5, dtype=int), 1)[0]
    assert found[5] == pytest.approx((0.9 + 0.7 + 0.5) / 3)
    assert found[6] == pytest.approx(0.5)
    assert found[7] == pytest.approx(0.5)
