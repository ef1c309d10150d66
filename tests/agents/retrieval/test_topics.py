"""Topics: groups of rows that are near each other."""

from __future__ import annotations

import numpy
import pytest

from hallulab.agents.retrieval.embeddings import topics

ROWS = numpy.array([[1, 0], [0, 1], [0.8, 0.6], [0.6, 0.8], [0, 1]], dtype=numpy.float32)


@pytest.mark.parametrize(
    ("number", "groups"),
    [
        (1, [[0, 1, 2, 3, 4]]),
        (2, [[0, 2, 3], [1, 4]]),
        (3, [[1, 4], [2, 3], [0]]),
        (5, [[0], [1], [2], [3], [4]]),
        (9, [[0], [1], [2], [3], [4]]),
    ],
)
def test_near_rows_are_a_topic_and_there_are_no_more_topics_than_rows(
    number: int, groups: list[list[int]]
) -> None:
    assert topics(ROWS, number) == groups
