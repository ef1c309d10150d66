"""Count the events that reach the command in a second, by a pipe and by Ray (`--workers-only`)."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Iterable
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from typing import Any

from hallulab.agents.machine.ray_cluster import join_cluster
from hallulab.scenarios.transcript import Turn
from hallulab.simulator.engine.executors import TurnDone

EVENT = ("event", 1, TurnDone("c" * 32, Turn(index=0, user="Is it? " * 20, reply="It is. " * 400)))
"""A turn of three kilobytes."""


class Talker:
    """An actor that sends events."""

    def speak(self, number: int) -> Iterable[Any]:
        """Yield so many."""
        for _ in range(number):
            yield EVENT


def count_events(number: int) -> dict[str, float]:
    """Return how many events a second reach this process by each way.

    Args:
        number: how many are sent.
    """
    ray = importlib.import_module("ray")
    with join_cluster("local", 1, {"CPU": 1.0}):
        talker = ray.remote(Talker).remote()
        list(talker.speak.options(num_returns="streaming").remote(10))
        started = time.perf_counter()
        for message in talker.speak.options(num_returns="streaming").remote(number):
            ray.get(message)
        by_ray = round(number / (time.perf_counter() - started), 1)
    found = {"events_per_second_by_pipe": _count_by_pipe(number), "events_per_second_by_ray": by_ray}
    print(f"{number} events of a turn: {found}", flush=True)
    return found


def _count_by_pipe(number: int) -> float:
    here, there = Pipe()
    process = get_context("spawn").Process(target=_send, args=(there, number))
    process.start()
    here.recv()
    started = time.perf_counter()
    for _ in range(number):
        here.recv()
    seconds = time.perf_counter() - started
    process.join()
    return round(number / seconds, 1)


def _send(there: Connection, number: int) -> None:
    there.send(os.getpid())
    for _ in range(number):
        there.send(EVENT)
