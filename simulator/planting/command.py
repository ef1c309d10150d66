"""Plant errors into clean replies, and write both: `hallulab make-data planted`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hallulab.agents.progress import bars, showing
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.data_files import expand_home
from hallulab.simulator.bench.build import write_labelled
from hallulab.simulator.bench.planted import FILE
from hallulab.simulator.engine.models import RunSettings, open_pool, open_recording, serve_models
from hallulab.simulator.engine.worker_lines import configure_workers, start_workers
from hallulab.simulator.options.data import PlantOptions
from hallulab.simulator.options.groups import to_path
from hallulab.simulator.planting.fluent import ORDERS, RewriteExecutor, RewriteWork, plant_fluently
from hallulab.simulator.planting.kinds import KINDS, require_kinds
from hallulab.simulator.planting.material import Material, load_material
from hallulab.simulator.planting.plant import RULES, Planting, plant
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.outputs import check_outputs


async def plant_from_options(options: PlantOptions) -> Planting:
    """Write errors and their clean twins; only when all are planted.

    Raises:
        UsageError: the source or a kind does not exist, nothing in it is clean, no error found a place, or
            options of a model are given although none is asked.
        OperationalError: server, endpoint or model failed, nothing that the model wrote passed the checks,
            or the file cannot be written.
    """
    if options.fluent:
        return await _plant_fluently(options)
    _refuse_models(options)
    kinds = _check_kinds(options, RULES) or tuple(KINDS)
    material = load_material(options.source, options.turns, options.contexts, options.seed)
    done = plant_material(material, options.source, kinds, options.count, options.seed)
    write_labelled(Path(options.out) / FILE, done.replies)
    return done


def _refuse_models(options: PlantOptions) -> None:
    """Raise UsageError if anything is given that only a model needs."""
    given = [options.config, options.record, options.replay, *options.collect_model_fields().values()]
    shared = options.workers != 1 or options.ray is not None or options.ray_resources
    if options.server_flags or shared or any(value is not None for value in given):
        raise UsageError(
            "without --fluent, no model is asked: leave out the options of models, workers and recordings, "
            "or add --fluent."
        )


def plant_material(read: Material, source: str, kinds: Sequence[str], count: int, seed: int) -> Planting:
    """Plant errors by rules into what `load_material` read of a source; nothing is written.

    Raises:
        UsageError: nothing in it is clean, or no error found a place.
    """
    return _check_planted(source, plant(*read, kinds, count, seed))


async def _plant_fluently(options: PlantOptions) -> Planting:
    """Write the errors that the experiment's default model writes, and their clean twins."""
    experiment = load_experiment(options.config_path, options.collect_model_fields())
    settings = RunSettings.from_options(options)
    kinds = _check_kinds(options, ORDERS) or tuple(ORDERS)
    with showing("reading the replies", options.quiet):
        streams, _ = load_material(options.source, options.turns, options.contexts, options.seed)
    async with (
        start_workers(settings, experiment, searches=False) as workers,
        open_pool(experiment, open_recording(settings)) as pool,
        serve_models(pool, settings),
    ):
        if workers is not None:
            # The first answer to a question counts for all workers, as it does in one process.
            work = RewriteWork(options.seed)
            configure_workers(workers, settings, experiment, pool, work, asks_model=True, recorded=True)
        executor = workers or RewriteExecutor(pool, options.seed)
        with bars(options.quiet) as shown:
            task = shown.add_task("sentences", total=options.count)
            done = await plant_fluently(
                streams, kinds, options.count, options.seed, executor, lambda: shown.advance(task)
            )
    if not done.replies and done.dropped:
        reasons = "; ".join(dict.fromkeys(reason for _, reason in done.dropped))
        raise OperationalError(f"nothing that the model wrote is an error, nothing is written: {reasons}.")
    write_labelled(Path(options.out) / FILE, _check_planted(options.source, done).replies)
    return done


def _check_kinds(options: PlantOptions, known: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the kinds that are asked for; empty: all."""
    require_kinds(options.kinds, known)
    inputs = (expand_home(options.source), to_path(options.replay), to_path(options.record))
    check_outputs({"--out": Path(options.out) / FILE}, inputs)
    return tuple(options.kinds)


def _check_planted(source: str, done: Planting) -> Planting:
    if not done.replies:
        raise UsageError(
            f"{source}: no error found a place in these texts. Give other --kinds, or longer texts."
        )
    return done
