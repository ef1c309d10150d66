from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from hallulab.agents.retrieval.embeddings import Batches


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
