"""Work that a thread does in batches: what comes while it is busy waits, and is then done together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batches(Generic[Item, Result]):
    """Hands items to a worker thread, all that wait at a time.

    Args:
        work: the results of a batch's items, in their order; called in `thread`, one batch at a time.
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
        """The item's result, or what `work` raised for its batch; may be cancelled while it waits."""
        future: Future[Result] = Future()
        self._waiting.put((item, future))
        # One call for each item, though the first takes all: the rest find nothing, and none is forgotten.
        self._thread.submit(self._do_waiting)
        return future

    def _do_waiting(self) -> None:
        batch = self._take()
        if not batch:
            return
        try:
            results = self._work([item for item, _ in batch])
        except BaseException as error:  # noqa: BLE001 - handed on: nobody may wait for ever
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
