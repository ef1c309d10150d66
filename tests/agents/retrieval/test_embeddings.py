from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import pytest

from hallulab.agents.retrieval.embeddings import Batches, SentenceEmbedder, topics
from hallulab.scenarios.errors import OperationalError


def test_an_item_that_is_cancelled_while_it_waits_is_not_done() -> None:
    entered, release = threading.Event(), threading.Event()
    done: list[list[int]] = []

    def work(items: Sequence[int]) -> list[int]:
        entered.set()
        assert release.wait(120)
        done.append(list(items))
        return [item * 10 for item in items]

    with ThreadPoolExecutor(1) as thread:
        batches = Batches(work, thread, largest=8)
        first = batches.submit(1)
        assert entered.wait(120)
        cancelled, last = batches.submit(2), batches.submit(3)
        assert cancelled.cancel()
        release.set()
        assert (first.result(), last.result()) == (10, 30)
    assert done == [[1], [3]]


def test_a_single_item_is_done_at_once() -> None:
    with ThreadPoolExecutor(1) as thread:
        assert Batches(lambda items: [item + 1 for item in items], thread, largest=8).submit(1).result() == 2


def test_code_beside_an_embedding_models_weights_is_not_run(tmp_path: Path) -> None:
    """The experiment.json of a stranger's run folder may name any folder."""
    ran = tmp_path / "ran"
    (tmp_path / "modules.json").write_text(
        json.dumps([{"idx": 0, "name": "0", "path": "", "type": "theirs.Module"}])
    )
    (tmp_path / "config_sentence_transformers.json").write_text("{}")
    (tmp_path / "theirs.py").write_text(f"open({str(ran)!r}, 'w')\nclass Module:\n    pass\n")
    with pytest.raises(OperationalError, match="cannot load the embedding model"):
        SentenceEmbedder(str(tmp_path)).queries(["a"])
    assert not ran.exists()


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
