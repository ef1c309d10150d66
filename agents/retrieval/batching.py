"""Work that a thread does in batches: items that come while it is busy wait and are then done together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batches(Generic[Item, Result]):
    """Hands all waiting items to a worker thread at once.

    Args:
        work: returns the results of a batch's items, in their order; called in `thread`, one batch at a time.
        thread: an executor of one thread.
        largest: items of a batch at most.
    """

    def __init__(
        self, work: Callable[[Sequence[Item]], Sequence[Result]], thread: ThreadPoolExecutor, largest: int
    ) -> None:
        self._work = work
        self._thread = thread
        self._largest = largest
        self._waiting: SimpleQueue[tuple[Item, Future[Result]]] = SimpleQueue()

    def submit(self, item: Item) -> Future[Result]:
        """Queue an item; return a future of its result. The future can be cancelled while it waits."""
        future: Future[Result] = Future()
        self._waiting.put((item, future))
        # One call for each item, so that none is forgotten; the first call takes all, the rest find nothing.
        self._thread.submit(self._do_waiting)
        return future

    def _do_waiting(self) -> None:
        batch = self._take()
        if not batch:
            return
        try:
            results = self._work([item for item, _ in batch])
        except BaseException as error:  # noqa: BLE001 - passed on, so that nobody waits for ever
            for _, future in batch:
                future.set_exception(error)
        else:
            for (_, future), result in zip(batch, results, strict=True):
                future.set_result(result)

    def _take(self) -> list[tuple[Item, Future[Result]]]:
        batch: list[tuple[Item, Future[Result]]] = []
        while len(batch) < self._largest:
            try:
                item, future = self._waiting.get_nowait()
            except Empty:
                break
            if future.set_running_or_notify_cancel():
                batch.append((item, future))
        return batch
