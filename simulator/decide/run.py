"""Run until it is decided: personas are drawn in batches, and after each the chatbots are compared.

The order of the personas is drawn from the experiment's seed and kept in experiment.json, those that were
drawn before first. All else is found out anew from the journals, so a run that was killed goes on as if it
had not been.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack import Scenario
from hallulab.simulator.engine import command
from hallulab.simulator.engine.execution import execute
from hallulab.simulator.engine.executors import Executor
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.plan import plan
from hallulab.simulator.engine.run import Run
from hallulab.simulator.metrics.decision import PersonaTally, SequentialTest, split_batches
from hallulab.simulator.metrics.hallucinations import index_by_detector
from hallulab.simulator.options.commands import RunOptions
from hallulab.simulator.records.choices import select_personas
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_json import ComponentVersions, Drawn
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journals import Journals


async def run_until_decided(
    run: Run, executor: Executor, made_by: ComponentVersions, journals: Journals
) -> None:
    """Have conversations simulated and judged in batches, until it is clear which chatbots are better.

    Raises:
        UsageError: the budget is one of tokens, and no server reports any.
        OperationalError, ReplayMiss: see `execute`.
    """
    experiment, folder = run.experiment, run.folder
    until = experiment.until_decided
    assert until is not None
    pool = [persona.id for persona in select_personas(experiment, run.scenario)]
    saved = folder.read_experiment()
    drawn = (saved and saved.drawn) or Drawn()
    order = draw_order(pool, drawn.personas, experiment.seed)
    test = SequentialTest(until, [bot.name for bot in experiment.chatbots], len(order))
    for number, batch in enumerate(split_batches(order[: until.most("personas")])):
        reached = test.decision.persons + len(batch)
        personas = order[: max(reached, len(drawn.personas))]
        drawn = _note(folder, drawn, personas=tuple(personas), of=len(order))
        began = monotonic()
        bots = tuple(bot for bot in experiment.chatbots if bot.name in test.chatbots)
        part = experiment.model_copy(update={"personas": tuple(batch), "limit": None, "chatbots": bots})
        wanted = plan(part, run.scenario, made_by)
        own = _pick(journals, batch)
        await execute(run.participants.detectors, wanted, folder, run.progress, own, executor)
        if until.most("minutes") is not None and len(drawn.seconds) == number:
            drawn = _note(folder, drawn, seconds=(*drawn.seconds, monotonic() - began))
        journals = folder.read_journals()
        tally = PersonaTally(experiment.detectors[0].name)
        for conversation, verdicts in _pick(journals, batch).current(folder.read_experiment()).judged():
            tally.add(conversation, index_by_detector(verdicts))
        test.add_batch(batch, tally, drawn.seconds)
        run.progress.show(test.describe())
        if until.most("tokens") is not None and test.tokens is None:
            raise UsageError(
                "the budget is one of tokens, and no server reports how many it read and wrote. Give "
                "personas or minutes."
            )
        if test.ending is not None:
            return


def _note(folder: RunFolder, drawn: Drawn, **newer: Any) -> Drawn:
    """Keep who is drawn in experiment.json; return it."""
    changed = drawn.model_copy(update=newer)
    saved = folder.read_experiment()
    assert saved is not None
    if changed != saved.drawn:
        folder.write_experiment(saved.model_copy(update={"drawn": changed}))
    return changed


def _pick(journals: Journals, personas: Sequence[str]) -> Journals:
    """Return what is about some personas: a later batch must not try again what failed in an earlier one."""
    wanted = frozenset(personas)
    return journals.about(lambda head: head.persona in wanted)


def draw_order(pool: Sequence[str], drawn: Sequence[str], seed: int) -> list[str]:
    """Return personas in the order in which they are drawn: first those that were drawn before.

    >>> draw_order(["asha", "dev", "ravi"], ["ravi"], 0)
    ['ravi', 'dev', 'asha']
    """
    known = set(pool)
    first = [persona for persona in drawn if persona in known]
    shuffled = random.Random(seed).sample(pool, len(pool))  # noqa: S311 - a seeded choice of data
    return list(dict.fromkeys([*first, *shuffled]))


async def run_from_options(
    options: RunOptions, on_start: Callable[[], object] | None = None
) -> tuple[RunFolder, Scenario]:
    """Hold the conversations of an experiment, judge them unless `no_judge`; return run folder and pack.

    Args:
        on_start: called when all is found to be right, before a model is served or asked.

    Raises:
        UsageError, OperationalError: see `hallulab.simulator.engine.command.run_from_options`.
    """
    return await command.run_from_options(options, run_until_decided, on_start)


async def run_in_folder(
    experiment: Experiment, folder: RunFolder, settings: RunSettings, judge: bool
) -> Scenario:
    """Hold the conversations of an experiment in a folder, and judge them if `judge`; return the pack.

    Raises:
        UsageError, OperationalError: see `hallulab.simulator.engine.command.run_in_folder`.
    """
    return await command.run_in_folder(experiment, folder, settings, judge, run_until_decided)
