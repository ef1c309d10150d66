"""Lend models, chatbots and detectors to the conversations of the page: one run for each scenario."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from hallulab.scenarios.errors import HallulabError, ReplayMiss
from hallulab.simulator.chat.live import open_live_models, open_live_run
from hallulab.simulator.engine.models import OpenModels, RunSettings
from hallulab.simulator.engine.run import Run
from hallulab.simulator.records.experiment import Experiment

IDLE_S = 600.0
"""Seconds for which a scenario's documents, chatbots and detectors stay open when its last conversation has
ended."""


class LentRuns:
    """Lends runs to conversations. The models are served once, for all, until the viewer ends."""

    def __init__(self, experiment: Experiment, settings: RunSettings) -> None:
        self._experiment = experiment
        self._settings = settings
        self._models: asyncio.Future[OpenModels] | None = None
        self._lent: dict[str, _LentRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def scenarios(self) -> list[str]:
        """The scenarios whose runs are open, or being opened."""
        return list(self._lent)

    @asynccontextmanager
    async def lend(self, scenario: str) -> AsyncIterator[Run]:
        """Yield the run of a scenario. The first one starts the model server, if one is needed.

        Raises:
            HallulabError: it cannot be made.
        """
        lent = self._lent.get(scenario)
        if lent is None:
            lent = self._lent[scenario] = _LentRun()
            self._start(self._keep(scenario, lent))
        lent.conversations += 1
        if lent.closing is not None:
            lent.closing.cancel()
        try:
            yield await asyncio.shield(lent.run)
        finally:
            lent.conversations -= 1
            if not lent.conversations:
                loop = asyncio.get_running_loop()
                lent.closing = loop.call_later(IDLE_S, self._forget, scenario, lent)

    async def _keep(self, scenario: str, lent: _LentRun) -> None:
        try:
            if self._models is None:
                self._models = asyncio.get_running_loop().create_future()
                self._start(self._keep_models(self._models))
            models = await asyncio.shield(self._models)
            async with open_live_run(models, scenario) as run:
                lent.run.set_result(run)
                del run  # whoever borrows it has it
                await lent.unwanted.wait()
        except (HallulabError, ReplayMiss, OSError) as error:
            self._forget(scenario, lent)
            _fail(lent.run, error)

    def _forget(self, scenario: str, lent: _LentRun) -> None:
        if self._lent.get(scenario) is lent:
            del self._lent[scenario]
        lent.unwanted.set()

    async def _keep_models(self, opened: asyncio.Future[OpenModels]) -> None:
        try:
            async with open_live_models(self._experiment, self._settings) as models:
                opened.set_result(models)
                await asyncio.Event().wait()  # until the viewer ends
        except (HallulabError, OSError) as error:
            self._models = None
            _fail(opened, error)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _LentRun:
    """A run, and how many conversations use it."""

    def __init__(self) -> None:
        self.run: asyncio.Future[Run] = asyncio.get_running_loop().create_future()
        self.unwanted = asyncio.Event()
        self.conversations = 0
        self.closing: asyncio.TimerHandle | None = None


def _fail(awaited: asyncio.Future[Any], error: BaseException) -> None:
    if not awaited.done():
        awaited.set_exception(error)
        awaited.exception()  # marks it as retrieved: perhaps nobody waits
