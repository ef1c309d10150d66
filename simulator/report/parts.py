"""Count the shards of a run by several processes, a shard at a time each, and merge the counts.

A process returns sums and names, and no text, so memory is that of as many shards as there are processes. It
gets its tasks by a pipe, and ends when the pipe ends.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Self, cast

from hallulab.scenarios.errors import HallulabError, OperationalError
from hallulab.scenarios.packs.pack import Scenario
from hallulab.simulator.metrics.annotations import Annotations
from hallulab.simulator.metrics.hallucinations import index_by_detector
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journal_files import SHARDS
from hallulab.simulator.records.journals import Journals, join_journals
from hallulab.simulator.report.build import RunCounts
from hallulab.simulator.report.facts import (
    build_facts,
    build_flaw_finder,
    get_personas,
    order_names,
)
from hallulab.simulator.report.sample import choose_shown

MOST_PROCESSES = 4
"""Shards that are counted at the same time, on a machine with as many cores."""

# The path of this process, so that the same modules are found whatever the working directory holds.
_BEGIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from hallulab.simulator.report.parts import main; main()"
)


@dataclass(frozen=True)
class ShardTask:
    """A shard to be counted."""

    folder: Path
    shard: int
    chatbots: tuple[str, ...]
    """Names of all chatbots of the run, as far as they are known."""
    detectors: tuple[str, ...]
    """Likewise of the detectors."""
    annotations: Annotations
    scenario: Scenario | None
    """The run's pack; None: it is not here, or cannot be read."""


@dataclass(frozen=True)
class Counted:
    """What came of a shard."""

    chatbots: frozenset[str]
    """Names of the chatbots in it."""
    judged: frozenset[tuple[str, str]]
    """The detectors that judged in it, and their versions."""
    counts: RunCounts | None
    """Its counts; None: names in it were not known."""
    shown: Journals | None = None
    """Conversations for the page."""


@dataclass(frozen=True)
class CountedRun:
    """What came of all shards."""

    chatbots: tuple[str, ...]
    detectors: tuple[str, ...]
    judged: frozenset[tuple[str, str]]
    """The detectors that judged, and their versions."""
    counts: RunCounts
    shown: Journals
    """Conversations for the page."""


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
    counts = RunCounts(
        build_facts(saved, part.chatbots, part.detectors, part.annotations, personas, part.scenario)
    )
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

    Shards that were counted before all names were known are counted again.

    Args:
        folder: the run folder.
        chatbots: names in the experiment; others are found.
        detectors: likewise.
        annotations: what annotators found.
        scenario: the run's pack; None: it is not here, or cannot be read.

    Raises:
        UsageError: a journal is damaged.
        OperationalError: a process died.
    """
    bots, judges = set[str](), set[str]()
    while True:
        names = order_names(chatbots, bots), order_names(detectors, judges)
        parts = [ShardTask(folder, number, *names, annotations, scenario) for number in range(SHARDS)]
        one = _merge(_count_each(parts), *names)
        if isinstance(one, CountedRun):
            return one
        bots |= one.chatbots
        judges |= {name for name, _ in one.judged}


def _merge(
    found: Iterable[Counted], chatbots: tuple[str, ...], detectors: tuple[str, ...]
) -> CountedRun | Counted:
    """Add up what came of the shards; return the first that has unknown names."""
    merged: RunCounts | None = None
    shown: list[Journals] = []
    judged: frozenset[tuple[str, str]] = frozenset()
    for one in found:
        if one.counts is None or one.shown is None:
            return one
        judged |= one.judged
        shown = [choose_shown(join_journals([*shown, one.shown]))]
        if merged is None:
            merged = one.counts
        else:
            merged.merge(one.counts)
    if merged is None:
        raise ValueError("there are no shards")
    return CountedRun(chatbots, detectors, judged, merged, shown[0])


def _count_each(parts: Sequence[ShardTask]) -> Iterator[Counted]:
    """Yield what comes of each, in their order; the processes end when nobody asks any more."""
    number = min(MOST_PROCESSES, os.cpu_count() or 1)
    with ExitStack() as opened, ThreadPoolExecutor(number) as threads:
        idle = SimpleQueue[_Process]()
        processes = [opened.enter_context(_Process()) for _ in range(number)]
        for process in processes:
            idle.put(process)

        def count(part: ShardTask) -> Counted:
            process = idle.get()
            try:
                return process.count(part)
            finally:
                idle.put(process)

        waiting = [threads.submit(count, part) for part in parts]
        try:
            for one in waiting:
                yield one.result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.end()


class _Process:
    """A process that counts one shard after the other."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", "-c", _BEGIN, json.dumps(sys.path)]
        self._process = subprocess.Popen(  # noqa: S603 (ours)
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def count(self, part: ShardTask) -> Counted:
        """Count a shard.

        Raises:
            HallulabError: what `count_part` raises, or the process died.
        """
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: PT018 - pipes
        try:
            pickle.dump(part, self._process.stdin)
            self._process.stdin.flush()
            found = pickle.load(self._process.stdout)  # noqa: S301 - of our own process
        except (EOFError, OSError) as error:
            raise OperationalError(
                f"the process that counted shard {part.shard} of {part.folder} died. If the memory was full, "
                "close other programs and start again."
            ) from error
        if isinstance(found, HallulabError):
            raise found
        return cast(Counted, found)

    def end(self) -> None:
        """End it, whatever it does."""
        self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        with suppress(BrokenPipeError), self._process:  # closes the pipes, and waits
            pass


def main() -> None:
    """Count each shard that stands on the standard input, and answer on the standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not disturb the answer
    tasks = SimpleQueue[ShardTask]()
    Thread(target=_read_tasks, args=(tasks,), daemon=True).start()
    while True:
        found: Counted | HallulabError
        try:
            found = count_part(tasks.get())
        except HallulabError as error:
            found = error
        pickle.dump(found, answers)
        answers.flush()


def _read_tasks(tasks: SimpleQueue[ShardTask]) -> None:
    """Put what stands on the standard input into a queue; end the process with the one that asks."""
    with suppress(EOFError):
        while True:
            tasks.put(pickle.load(sys.stdin.buffer))  # noqa: S301 - of our own process
    os._exit(0)
