"""Do several preparations at once: they wait for the network, each for another file."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def run_side_by_side(*works: Callable[[], Any]) -> list[Any]:
    """Do all works at once, each in a thread; return what they returned, in their order.

    The threads are daemons: an interrupted command does not wait for them. So what they start must not
    outlive this process (`hallulab.agents.machine.supervised`).

    Raises:
        BaseException: the error of the first work that has one; the others are ended before.
    """
    results: list[Any] = [None] * len(works)
    errors: list[BaseException | None] = [None] * len(works)

    def do(number: int) -> None:
        try:
            results[number] = works[number]()
        except BaseException as error:  # noqa: BLE001 (raised again below)
            errors[number] = error

    threads = [threading.Thread(target=do, args=(number,), daemon=True) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        if error is not None:
            raise error
    return results
