"""Ask detectors again about some replies that they have scored: how many verdicts are the judge's own noise.

A second verdict stands in `again.jsonl` under the key of the first one, and never takes its place. Which
replies are asked about follows from the seed alone, so a command that was cut off goes on with the same ones,
and a larger number adds to them.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from itertools import zip_longest

from hallulab.detectors.base.protocol import Detector
from hallulab.scenarios.errors import HallulabError, ReplayMiss, get_first_error
from hallulab.scenarios.files.json_text import LineWriter, digest
from hallulab.simulator.engine.execution import Observer
from hallulab.simulator.engine.executors import ConversationTask, Event, Executor, VerdictDone
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journal_lines import LineHeader, VerdictKey, build_verdict_key
from hallulab.simulator.records.journals import Journals, read_second_verdicts


async def ask_again(
    detectors: Sequence[Detector],
    folder: RunFolder,
    observer: Observer,
    executor: Executor,
    number: int,
    seed: int,
) -> None:
    """Ask each detector again about so many replies, and journal each verdict as soon as it is there.

    Second verdicts that are there already are kept, unless they failed.

    Args:
        detectors: those that gave the first verdicts.
        seed: draws them.

    Raises:
        OperationalError: the journal cannot be written. Written lines are intact.
        ReplayMiss: the recording that is replayed does not hold an answer.
        UsageError: a journal is damaged.
    """
    first = folder.read_journals()
    second = read_second_verdicts(folder.again, first)
    errors = {build_verdict_key(one): one.error for one in second.verdicts}
    chosen = choose_replies(first, detectors, number, seed)
    lacking: dict[str, list[VerdictKey]] = defaultdict(list)
    for key in chosen:
        if key not in errors or key in second.failed:
            lacking[key.conversation].append(key)
    observer.expect(0, sum(map(len, lacking.values())))
    with LineWriter(folder.again) as file:

        def emit(event: Event) -> None:
            if isinstance(event, VerdictDone):
                verdict = event.verdict
                if verdict.error is None or verdict.error != errors.get(build_verdict_key(verdict)):
                    file.append(verdict.model_dump_json())
            observer.update(event)

        try:
            async with asyncio.TaskGroup() as tasks:
                for group, (at, head) in enumerate(enumerate(first.heads)):
                    if head.id in lacking:
                        keys = tuple(lacking[head.id])
                        task = ConversationTask(None, first.conversations[at], keys, group, again=True)
                        tasks.create_task(executor.perform(task, emit))
        except* (HallulabError, ReplayMiss, OSError) as group_of_errors:
            raise get_first_error(group_of_errors) from group_of_errors


def choose_replies(
    journals: Journals, detectors: Sequence[Detector], number: int, seed: int
) -> list[VerdictKey]:
    """Choose the verdicts that each detector repeats, of each chatbot as many, at random by a seed.

    The order in which replies are drawn is the same for all detectors, so they are asked about the same ones
    as far as all have scored them. Where a chatbot has too few, the others have more.

    Args:
        detectors: those that repeat a verdict, in the version in which it was given.
        number: verdicts of each detector at most.
        seed: draws them.
    """
    heads = {head.id: head for head in journals.heads}
    scored = {build_verdict_key(one) for one in journals.verdicts if one.outcome == "scored"}
    chosen: list[VerdictKey] = []
    for detector in detectors:
        by_chatbot: dict[str, list[VerdictKey]] = defaultdict(list)
        for key in scored:
            if (key.detector, key.version) == (detector.name, detector.version):
                by_chatbot[heads[key.conversation].chatbot].append(key)
        queues = [
            sorted(by_chatbot[name], key=lambda key: _draw(heads[key.conversation], key.turn, seed))
            for name in sorted(by_chatbot)
        ]
        rounds = zip_longest(*queues)
        chosen += [key for one_of_each in rounds for key in one_of_each if key is not None][:number]
    return chosen


def _draw(head: LineHeader, turn: int, seed: int) -> tuple[str, str]:
    """Return a random place for a reply, which is the same after a change of our code."""
    return digest([seed, head.scenario, head.persona, head.seed, head.depth + turn, head.chatbot]), head.id
