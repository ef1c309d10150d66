"""Choose sentences, have a model write errors into them, here or in workers, and collect what it wrote."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, starmap

from hallulab.agents.concurrency import gather_results
from hallulab.agents.models.adaptive import AdaptiveLimits
from hallulab.agents.models.model import ModelPool
from hallulab.scenarios.errors import OperationalError
from hallulab.scenarios.text.edits import find_whole_sentences
from hallulab.scenarios.text.spans import Region, split_sentences
from hallulab.simulator.engine.executors import SingleEventTask, TaskExecutor, perform_single
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.stress.kinds import PlantedError, ask_again
from hallulab.simulator.stress.material import Clean
from hallulab.simulator.stress.plant import TRIES, Planting, build_labelled_pair, take_turns
from hallulab.simulator.stress.rewrite import NO_ANSWER, RewritePlace, generate_error


@dataclass(frozen=True)
class SentenceRewritten:
    """A model wrote an error, or none that passes the checks."""

    outcome: PlantedError | str
    """The error, or why there is none."""
    failure: str | None = None
    """Of a request that failed; None: none did."""


@dataclass(frozen=True)
class RewriteTask(SingleEventTask):
    """A sentence that a model rewrites (a `WorkTask`)."""

    place: RewritePlace

    def fail(self, reason: str) -> Iterable[SentenceRewritten]:
        """See `WorkTask`."""
        yield SentenceRewritten(reason)


class RewriteExecutor:
    """Has sentences rewritten in this process.

    Args:
        pool: its default model writes.
        seed: of the model's answers.
    """

    def __init__(self, pool: ModelPool, seed: int) -> None:
        self._pool, self._seed = pool, seed

    async def perform(self, task: RewriteTask, emit: Callable[[SentenceRewritten], None]) -> None:
        """See `TaskExecutor`."""
        session = self._pool.session("planter", self._seed)
        outcome = await generate_error(task.place, session)
        failed = (call.error for call in session.calls if call.error is not None)
        emit(SentenceRewritten(outcome, next(failed, None)))


@dataclass(frozen=True)
class RewriteWork:
    """Sentences are rewritten (an `ExecutorMaker`)."""

    seed: int

    def make_executor(
        self, experiment: Experiment, pool: ModelPool, limits: AdaptiveLimits | None
    ) -> RewriteExecutor:
        """See `ExecutorMaker`."""
        return RewriteExecutor(pool, self.seed)


async def plant_fluently(
    streams: Sequence[Iterator[Clean]],
    kinds: Sequence[str],
    count: int,
    seed: int,
    executor: TaskExecutor,
    on_done: Callable[[], object] = lambda: None,
) -> Planting:
    """Let a model write errors of the kinds in turn, into the streams in turn.

    What fails its checks is written once more with another seed, and then dropped.

    Args:
        streams: endless replies to plant into.
        kinds: names of `ORDERS`.
        count: sentences to rewrite, over all kinds.
        seed: of the choice of sentences.
        executor: performs a `RewriteTask`.
        on_done: called after every sentence.

    Raises:
        OperationalError: no request had an answer.
    """
    done = Planting()
    places = list(_draw_places(streams, kinds, count, seed, done))

    async def write(number: int, place: RewritePlace) -> SentenceRewritten:
        rewritten = await perform_single(executor, RewriteTask(place, group=number))
        on_done()
        return rewritten

    found = await gather_results(starmap(write, enumerate(places)))
    for place, one in zip(places, found, strict=True):
        if isinstance(one.outcome, PlantedError):
            done.replies += build_labelled_pair(place.name, place.kind, one.outcome, "model")
        else:
            done.dropped[place.kind, one.outcome] += 1
    if places and all(one.outcome == NO_ANSWER for one in found):
        error = next(one.failure for one in found if one.failure is not None)
        raise OperationalError(f"the model rewrote no sentence: {error}")
    return done


def _draw_places(
    streams: Sequence[Iterator[Clean]], kinds: Sequence[str], count: int, seed: int, done: Planting
) -> Iterator[RewritePlace]:
    """Yield sentences, each once for a kind; count in `done` what finds none."""
    generator = random.Random(seed)  # noqa: S311 - a seeded choice of data
    seen: set[tuple[str, str]] = set()
    for name, kind, turn in take_turns(kinds, streams, count, done.lacking):
        offered = (
            (clean, region)
            for stream in turn
            for given in islice(stream, TRIES)
            if (clean := ask_again(given) if kind == "contradiction" else given) is not None
            for region in _shuffle_sentences(clean.reply, generator)
            if (kind, region.of(clean.reply)) not in seen
        )
        found = next(offered, None)
        if found is None:
            done.lacking[kind] += 1
            continue
        clean, region = found
        seen.add((kind, region.of(clean.reply)))
        yield RewritePlace(name, kind, clean, region)


def _shuffle_sentences(reply: str, generator: random.Random) -> list[Region]:
    """Return the whole sentences of a reply, in random order."""
    said = split_sentences(reply)
    whole = [region for region in said if find_whole_sentences(region.of(reply)) == (region.of(reply),)]
    return generator.sample(whole, len(whole))
