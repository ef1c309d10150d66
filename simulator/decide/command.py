"""What `hallulab run` does, up to the report: as planned, or until it is decided."""

from __future__ import annotations

from hallulab.scenarios.packs.pack import Scenario
from hallulab.simulator.decide.run import hold_until_decided
from hallulab.simulator.engine import command
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.options.commands import RunOptions
from hallulab.simulator.records.config import Experiment
from hallulab.simulator.records.folder import RunFolder


async def run_from_options(options: RunOptions) -> tuple[RunFolder, Scenario]:
    """Hold the conversations of an experiment, and judge them unless the options have `no_judge`.

    Returns:
        The run folder, and the pack.

    Raises:
        UsageError, OperationalError: see `hallulab.simulator.engine.command.run_from_options`.
    """
    return await command.run_from_options(options, hold_until_decided)


async def run_in_folder(
    experiment: Experiment, folder: RunFolder, settings: RunSettings, judge: bool
) -> Scenario:
    """Hold the conversations of an experiment in a folder, and judge them if `judge`; return the pack.

    Raises:
        UsageError, OperationalError: see `hallulab.simulator.engine.command.run_in_folder`.
    """
    return await command.run_in_folder(experiment, folder, settings, judge, hold_until_decided)
