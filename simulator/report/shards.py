"""Count the shards of a run by several workers, a shard at a time each, and merge the counts.

A worker returns sums, names and places of lines, and no text, so memory is that of as many shards as there
are workers.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from hallulab.agents.concurrency import gather_results, run_in_daemon_thread, run_side_by_side
from hallulab.scenarios.errors import OperationalError
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.transcript import Pairing
from hallulab.simulator.engine.executors import SingleEventTask, perform_single
from hallulab.simulator.engine.worker_lines import ProcessLine
from hallulab.simulator.engine.workers import Driver, WorkerConfig, WorkerExecutor
from hallulab.simulator.metrics.annotations import Annotations
from hallulab.simulator.metrics.hallucinations import index_by_detector
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journal_lines import LineHeader
from hallulab.simulator.records.journals import Journals, join_journals
from hallulab.simulator.records.run_files import SHARDS
from hallulab.simulator.report.build import RunCounts
from hallulab.simulator.report.facts import (
    build_facts,
    build_flaw_finder,
    get_personas,
    index_second_verdicts,
    order_names,
)

MOST_PROCESSES = 4
"""Shards that are counted at the same time, on a machine with as many cores."""

SHOWN = 10_000
"""Conversations of a very large run that its page shows, and the rest of the last case."""


@dataclass(frozen=True, kw_only=True)
class ShardTask(SingleEventTask):
    """A shard to be counted (a `WorkTask`)."""

    folder: Path
    shard: int
    chatbots: tuple[str, ...]
    """Names of all chatbots of the run, as far as they are known."""
    detectors: tuple[str, ...]
    """Names of all detectors, as far as they are known."""
    annotations: Annotations
    scenario: Scenario | None
    """The run's pack; None: it is not here, or cannot be read."""

    def fail(self, reason: str) -> Iterable[Counted]:
        """See `WorkTask`.

        Raises:
            OperationalError: always; a report without a shard would be a wrong one.
        """
        raise OperationalError(
            f"shard {self.shard} of {self.folder} cannot be counted: {reason}. If the memory was full, close "
            "other programs and start again."
        )


@dataclass(frozen=True)
class Counted:
    """The counts of a shard."""

    chatbots: frozenset[str]
    judged: frozenset[tuple[str, str]]
    """The detectors that judged in it, and their versions."""
    counts: RunCounts | None
    """None: names in it were not known."""
    shown: Journals | None = None


@dataclass(frozen=True)
class CountedRun:
    """The counts of all shards."""

    chatbots: tuple[str, ...]
    detectors: tuple[str, ...]
    judged: frozenset[tuple[str, str]]
    """The detectors that judged, and their versions."""
    counts: RunCounts
    shown: Journals


class ShardWork:
    """Shards are counted (a `Work`)."""

    @asynccontextmanager
    async def start(self, driver: Driver) -> AsyncIterator[ShardWork]:
        """See `Work`."""
        yield self

    async def perform(self, task: ShardTask, emit: Callable[[Counted], None]) -> None:
        """See `TaskExecutor`."""
        # A daemon thread: the worker ends at once if the process that started it has ended.
        emit(await run_in_daemon_thread(partial(count_part, task)))


def count_part(part: ShardTask) -> Counted:
    """Count a shard.

    Raises:
        UsageError: a journal is damaged.
    """
    folder = RunFolder(part.folder)
    saved = folder.read_experiment()
    journals = folder.read_shard(part.shard).current(saved)
    chatbots = frozenset(head.chatbot for head in journals.heads)
    judged = frozenset((key.detector, key.version) for key in journals.keys)
    if chatbots - set(part.chatbots) or {name for name, _ in judged} - set(part.detectors):
        return Counted(chatbots, judged, None)
    personas = get_personas(saved, part.scenario)
    facts = build_facts(saved, part.chatbots, part.detectors, part.annotations, personas, part.scenario)
    counts = RunCounts(replace(facts, again=index_second_verdicts(folder, journals)))
    flaws_of = build_flaw_finder(saved, personas)
    for conversation, found in journals.judged():
        counts.add(conversation, index_by_detector(found), flaws_of(conversation))
    return Counted(chatbots, judged, counts, choose_shown(journals))


def count_shards(
    folder: Path,
    chatbots: Sequence[str],
    detectors: Sequence[str],
    annotations: Annotations,
    scenario: Scenario | None,
) -> CountedRun:
    """Count all shards of a run, and add them up.

    If a shard has names that were not known, all are counted again.

    Args:
        chatbots: names in the experiment; others are found.
        detectors: names in the experiment; others are found.
        scenario: the run's pack; None: it is not here, or cannot be read.

    Raises:
        UsageError: a journal is damaged.
        OperationalError: workers died.
    """
    bots, judged = set[str](), set[tuple[str, str]]()
    while True:
        names = order_names(chatbots, bots), order_names(detectors, {name for name, _ in judged})
        parts = [
            ShardTask(
                folder=folder,
                shard=number,
                group=number,
                chatbots=names[0],
                detectors=names[1],
                annotations=annotations,
                scenario=scenario,
            )
            for number in range(SHARDS)
        ]
        found = _count_each(parts)
        bots = set().union(*(one.chatbots for one in found))
        judged = set().union(*(one.judged for one in found))
        counts = [one.counts for one in found if one.counts is not None]
        if len(counts) == SHARDS:
            for one in counts[1:]:
                counts[0].merge(one)
            shown = choose_shown(join_journals([one.shown for one in found if one.shown is not None]))
            return CountedRun(*names, frozenset(judged), counts[0], shown)


def _count_each(parts: Sequence[ShardTask]) -> list[Counted]:
    """Return the counts of each, in their order."""

    async def count_all() -> list[Counted]:
        number = min(MOST_PROCESSES, os.cpu_count() or 1)
        free = asyncio.Semaphore(number)
        async with WorkerExecutor(number, 1, partial(ProcessLine, ())) as workers:
            workers.configure(WorkerConfig(ShardWork()))

            async def count(part: ShardTask) -> Counted:
                async with free:  # else each worker would get a quarter at once, fast or slow
                    return await perform_single(workers, part)

            return await gather_results(map(count, parts))

    # In a thread of its own, because a notebook has an event loop in this one.
    found: list[list[Counted]] = run_side_by_side(lambda: asyncio.run(count_all()))
    return found[0]


def choose_shown(journals: Journals) -> Journals:
    """Return the cases with the lowest hashes. All parts of a run together have the cases of the run."""
    chosen = choose_cases(journals.heads)
    return journals.about(lambda head: head.pairing in chosen)


def choose_cases(heads: Iterable[LineHeader]) -> set[Pairing]:
    """Return the cases with the lowest hashes that have `SHOWN` conversations; all if there are fewer.

    They are as good as drawn at random, and the same for each order of the conversations.
    """
    sizes = Counter(head.pairing for head in heads)
    chosen: set[Pairing] = set()
    shown = 0
    for case in sorted(sizes, key=lambda case: hashlib.sha256("\0".join(map(str, case)).encode()).digest()):
        if shown >= SHOWN:
            break
        chosen.add(case)
        shown += sizes[case]
    return chosen
