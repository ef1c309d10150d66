"""Ten verbs, each as a plain function and as a coroutine (`simulate` and `asimulate`, …).

The plain ones work in scripts and in notebooks, whose event loop runs already: the work is done in an event
loop in its own thread. In a coroutine of your own, await the other form.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hallulab.results import Run
from hallulab.scenarios.arguments import check_arguments
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.options.commands import (
    BenchOptions,
    CalibrateOptions,
    DetectOptions,
    JudgeOptions,
    JudgeRepliesOptions,
)
from hallulab.simulator.options.data import ExportOptions, ImportOptions, PlantOptions
from hallulab.simulator.options.groups import BatchService, StrPath, to_path
from hallulab.verbs import bind_first, make_plain, make_verb

_log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from hallulab.scenarios.packs.pack import Scenario
    from hallulab.scenarios.transcript import Judgement
    from hallulab.simulator.bench.results import BenchReport
    from hallulab.simulator.calibration.fit import CalibrationReport
    from hallulab.simulator.calibration.policy import PolicyFit
    from hallulab.simulator.planting.plant import Planting
    from hallulab.simulator.records.experiment import Experiment
    from hallulab.simulator.records.folder import RunFolder
    from hallulab.simulator.report.export import ExportCounts
    from hallulab.simulator.report.selection import SelectionCounts


async def _run(
    judge: bool,
    /,
    experiment: Experiment | Mapping[str, Any] | StrPath,
    *,
    out: StrPath | None = None,
    fresh: bool = False,
    record: StrPath | None = None,
    replay: StrPath | None = None,
    quiet: bool = False,
    workers: int = 1,
    ray: str | None = None,
    ray_resources: Sequence[str] = (),
    batch: BatchService | None = None,
    server_flags: Sequence[str] = (),
    **fields: Any,
) -> Run:
    """Simulate conversations, judge every reply if `judge`, and report; return the run.

    The same call with the same `out` continues it. Interrupting it (Ctrl-C, the kernel's stop) ends it.

    Your own bot is a file, such as my_bot.py in the working directory, and the chatbot `{"name": "mine",
    "kind": "callable", "options": {"target": "my_bot:reply"}}`.

    Args:
        experiment: an experiment file (docs/experiment.md), the fields of one as a mapping, or an Experiment.
        out: run folder; None: `runs/` and the time.
        fresh: start over; else continue where the folder's journals end.
        record: record every model answer and search into this file.
        replay: answer from this recording: no server, no network.
        quiet: no progress.
        workers: processes that simulate and judge, each with `concurrency` requests under way.
        ray: have actors of a Ray cluster do so: at this address, or one that `local` starts.
        ray_resources: what each actor takes, such as `["CPU=1", "GPU=0.25"]`.
        batch: ask models in waves, by `vllm run-batch` or by the batch API of the endpoint.
        server_flags: passed on to the model server, where one is started here.
        fields: fields of the experiment by name, which override `experiment`; None: not given.

    Raises:
        UsageError: experiment or folder are at fault; one sentence says how.
        OperationalError: server, endpoint or disk failed, no conversation was simulated, or a detector failed
            on every reply that it judged. The folder has what there is.
        ReplayMiss: the recording lacks an answer. It is no `Exception`.
        KeyboardInterrupt: it was interrupted; what was written is intact.
    """
    from hallulab.simulator.decide.run import run_in_folder
    from hallulab.simulator.engine.models import RunSettings
    from hallulab.simulator.records.folder import RunFolder
    from hallulab.simulator.records.outputs import name_folder_by_time

    settings = RunSettings(
        fresh=fresh,
        record=to_path(record),
        replay=to_path(replay),
        quiet=quiet,
        server_flags=tuple(server_flags),
        workers=workers,
        batch=batch,
        ray=ray,
        ray_resources=tuple(ray_resources),
    )
    folder = RunFolder(to_path(out) or name_folder_by_time())
    scenario = await run_in_folder(_resolve_experiment(experiment, fields), folder, settings, judge)
    return _open_run(folder, scenario, reports=judge)


def _open_run(folder: RunFolder, scenario: Scenario, reports: bool) -> Run:
    """Open a run that has just been held or judged; write its reports first if `reports`.

    Raises:
        OperationalError: no conversation succeeded, or a detector failed on every reply that it judged.
    """
    from hallulab.simulator.metrics.failures import RunFailures, find_failed_conversations, require_success
    from hallulab.simulator.report.write import write_reports

    if reports:
        found = write_reports(folder, folder.read_journals(), scenario).of(RunFailures)
    else:
        found = find_failed_conversations(folder)
    for warning in found.warnings if found.failed is None else ():
        _log.warning(warning)
    require_success(found)
    return Run(folder.path)


def _resolve_experiment(
    experiment: Experiment | Mapping[str, Any] | StrPath, fields: Mapping[str, Any]
) -> Experiment:
    """Return the experiment with the fields that were given (not None) over it.

    Raises:
        UsageError: it is nothing of these, or a field is wrong.
    """
    from hallulab.simulator.records.experiment import Experiment
    from hallulab.simulator.records.experiment_file import load_experiment

    given = {name: value for name, value in fields.items() if value is not None}
    if isinstance(experiment, str | Path):
        return load_experiment(Path(experiment), given)
    if isinstance(experiment, Mapping):
        return load_experiment(None, {**experiment, **given})
    if not isinstance(experiment, Experiment):
        raise UsageError(
            f"the experiment is a {type(experiment).__name__}. "
            "Give a file, a mapping of its fields or an Experiment."
        )
    values = experiment.model_dump(exclude_unset=True)
    return load_experiment(None, {**values, **given}).with_places_of(experiment)


@make_verb(DetectOptions)
async def adetect(options: DetectOptions) -> Run:
    """Judge the turns of a saved run that lack a verdict, and report, as `hallulab detect` does."""
    from hallulab.simulator.engine.command import detect_from_options

    folder, scenario = await detect_from_options(options)
    return _open_run(folder, scenario, reports=True)


@make_verb(JudgeOptions)
async def ajudge(options: JudgeOptions) -> Run:
    """Import chats, judge and report them, as `hallulab judge` does; return the run.

    `chats` is a file, rows (mappings such as `{"question": …, "contexts": […], "answer": …}`) or a pandas
    frame of them. A detector is a name, `module:Class`, a mapping with `name`, `kind` and `options`, a
    `hallulab.Detector`, or a class of it.
    """
    from hallulab.detectors.registry import offer_detectors
    from hallulab.simulator.engine.command import detect_from_options
    from hallulab.simulator.engine.judging import WORTH, name_detectors, plan_judging
    from hallulab.simulator.records.given_chats import open_chats
    from hallulab.simulator.records.importing import import_from_options

    _, factories = name_detectors(options.detectors or ())
    with offer_detectors(factories), open_chats(options.chats) as (file, called):
        plan = await plan_judging(options, file)
        await import_from_options(plan.imports, called)
        with plan.naming_continuation():
            folder, scenario = await detect_from_options(plan.detects)
    if plan.asks_no_model:
        _log.warning(WORTH)
    return _open_run(folder, scenario, reports=True)


@make_verb(JudgeRepliesOptions)
async def ajudge_replies(options: JudgeRepliesOptions) -> list[Judgement]:
    """Judge replies with a detector, without a run folder; return one judgement a reply, in their order.

    A detector that raises on a reply gives a failed judgement of it, which is never a clean one. `views` are
    the replies, each with the dialogue before it and its evidence: a `TurnView`, or a mapping with its
    fields. `detector` is a name, or a mapping with `name`, `kind` and `options`.
    """
    from hallulab.simulator.engine.replies import judge_views
    from hallulab.simulator.metrics.failures import find_failed_judgements

    judgements = await judge_views(options)
    name = options.detector if isinstance(options.detector, str) else str(options.detector.get("name"))
    for warning in find_failed_judgements({name: judgements}).warnings:
        _log.warning(warning)
    return judgements


@make_verb(BenchOptions)
async def abench(options: BenchOptions) -> BenchReport:
    """Measure detectors on labelled data next to the lexical floor, as `hallulab bench` does.

    `frame()` of the report makes a pandas frame of its rows. Nothing is printed.
    """
    from hallulab.simulator.bench.command import run_bench, write_results

    results = await run_bench(options)
    write_results(options, results)
    return results.report


@make_verb(PlantOptions)
async def aplant(options: PlantOptions) -> Planting:
    """Plant errors of known kinds into clean replies, and write them with their clean twins.

    `bench` measures detectors on the folder that it writes.
    """
    from hallulab.simulator.planting.command import plant_from_options

    return await plant_from_options(options)


@make_verb(CalibrateOptions)
async def acalibrate(options: CalibrateOptions) -> CalibrationReport | PolicyFit:
    """Fit the detectors' thresholds on planted errors and their clean twins, and keep the fits.

    With `policy` and `out`, fit the thresholds of the policy's topics instead, and write it.
    """
    from hallulab.simulator.calibration.policy import calibrate_from_options

    return await calibrate_from_options(options)


@make_verb(ImportOptions)
async def aimport_chats(options: ImportOptions) -> Run:
    """Write your own chats as a run folder, as `hallulab import` does, and open it."""
    from hallulab.simulator.records.importing import import_from_options

    folder, *_ = await import_from_options(options)
    return Run(folder.path)


@make_verb(ExportOptions)
async def aexport_chats(options: ExportOptions) -> SelectionCounts | ExportCounts | dict[Path, int]:
    """Write the conversations of a run in a format of other tools, or its replies for `bench`.

    Return how many were written and left out, and why; of tables, how many rows each file has.
    """
    from hallulab.simulator.report.export import export_from_options

    return await asyncio.to_thread(export_from_options, options)


@check_arguments
def load_run(path: StrPath) -> Run:
    """Open the run in a folder, whoever wrote it. Nothing is written there.

    Raises:
        UsageError: it is no run folder, or a file of it is damaged; names file, line and field.
    """
    return Run(path)


_SIMULATES = (
    "Simulate the conversations of an experiment, as `hallulab run --no-judge` does; `detect` judges them."
)
_RUNS = "Simulate conversations, judge every reply, and report, as `hallulab run` does; return the run."

asimulate = check_arguments(bind_first(_run, False, "asimulate", _SIMULATES))
arun = check_arguments(bind_first(_run, True, "arun", _RUNS))

simulate = make_plain(asimulate)
run = make_plain(arun)
detect = make_plain(adetect)
judge = make_plain(ajudge)
judge_replies = make_plain(ajudge_replies)
bench = make_plain(abench)
plant = make_plain(aplant)
calibrate = make_plain(acalibrate)
export_chats = make_plain(aexport_chats)
import_chats = make_plain(aimport_chats)
