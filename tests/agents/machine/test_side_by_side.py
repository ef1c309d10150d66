"""Several preparations at once: their results in order, and their first error."""

from __future__ import annotations

import threading

import pytest

from hallulab.agents.concurrency import run_side_by_side
from hallulab.scenarios.errors import OperationalError


def test_works_go_on_at_the_same_time_and_return_in_order() -> None:
    both = threading.Barrier(2, timeout=120)

    def work(name: str) -> str:
        both.wait()
        return name

    assert run_side_by_side(lambda: work("environment"), lambda: work("weights")) == [
        "environment",
        "weights",
    ]


def test_the_first_error_is_raised_when_all_have_ended() -> None:
    ended = []

    def fails(reason: str) -> None:
        ended.append(reason)
        raise OperationalError(reason)

    with pytest.raises(OperationalError, match=r"^no network$"):
        run_side_by_side(lambda: ended.append("done"), lambda: fails("no network"), lambda: fails("no disk"))
    assert sorted(ended) == ["done", "no disk", "no network"]
