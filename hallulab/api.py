"""`hallulab.run`: an experiment from a script or a notebook, whose event loop may be running already."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from hallulab.results import Run
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.experiment.config import Experiment, load_experiment
from hallulab.simulator.experiment.models import RunSettings
from hallulab.simulator.experiment.run import run_experiment
from hallulab.simulator.report.write import require_a_reply, write_reports
from hallulab.simulator.runs.folder import RunFolder, name_folder_by_time
from hallulab.simulator.runs.outputs import check_outputs

Result = TypeVar("Result")


def result_of(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run the coroutine in an event loop in its own thread, wait, and return its result or raise its error.

    Raises:
        KeyboardInterrupt: Ctrl-C came, or the kernel was interrupted. The coroutine was cancelled and has
            ended. A second interrupt does not wait for that.
    """
    result: Future[Result] = Future()
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def stoppable() -> Result:
        task = asyncio.current_task()
        assert task is not None
        begun.set_result((asyncio.get_running_loop(), task))
        return await coroutine

    def work() -> None:
        try:
            result.set_result(asyncio.run(stoppable()))
        except BaseException as raised:  # noqa: BLE001 - whatever it is, it is raised where it is waited for
            result.set_exception(raised)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    try:
        return result.result()
    except KeyboardInterrupt:
        if not result.done():
            loop, task = begun.result()
            with suppress(RuntimeError):  # the loop was closed just now
                loop.call_soon_threadsafe(task.cancel)
            thread.join()
        raise


def run(
    experiment: Experiment | Mapping[str, Any] | str | Path,
    *,
    out: str | Path | None = None,
    fresh: bool = False,
    record: str | Path | None = None,
    replay: str | Path | None = None,
    quiet: bool = False,
    workers: int = 1,
    **fields: Any,
) -> Run:
    """Simulate conversations, judge every reply, and report, as `hallulab run` does; return the run.

    It is called in the same way in scripts and in notebooks. The work is done in an event loop in its own
    thread, so an event loop may already run. Interrupting it (Ctrl-C, the kernel's stop) ends the run. The
    same call, with the same `out`, continues it.

    Your own bot is a file, such as my_bot.py in the working directory, and the chatbot `{"name": "mine",
    "kind": "callable", "options": {"target": "my_bot:reply"}}`.

    Args:
        experiment: an experiment file (docs/experiment.md), the fields of one as a mapping, or an Experiment.
        out: run folder; None: `runs/` and the time.
        fresh: start over; else continue where the folder's journals end.
        record: record every model answer and search into this file.
        replay: answer from this recording: no server, no network.
        quiet: no progress.
        workers: processes that hold and judge conversations, each with `concurrency` requests under way.
        fields: fields of the experiment by name, which override `experiment`; None: not given.

    Raises:
        UsageError: experiment or folder are at fault; one sentence says how.
        OperationalError: server, endpoint or disk failed, or no conversation got as far as a reply.
        ReplayMiss: the recording lacks an answer. It is no `Exception`.
        KeyboardInterrupt: the run was interrupted; what was written is intact.
    """
    settings = RunSettings(
        fresh=fresh, record=_path(record), replay=_path(replay), quiet=quiet, workers=workers
    )
    folder = RunFolder(_path(out) or name_folder_by_time())
    wanted = _resolved(experiment, fields)
    check_outputs({}, folders={"--out": folder.path})
    scenario = result_of(run_experiment(wanted, folder, settings, simulate=True))
    journals = folder.read_journals()
    write_reports(folder, journals, scenario)
    require_a_reply(journals)
    return Run(folder.path)


def _resolved(
    experiment: Experiment | Mapping[str, Any] | str | Path, fields: Mapping[str, Any]
) -> Experiment:
    if isinstance(experiment, str | Path):
        return load_experiment(Path(experiment), fields)
    if isinstance(experiment, Mapping):
        return load_experiment(None, {**experiment, **_given(fields)})
    if not isinstance(experiment, Experiment):
        raise UsageError(
            f"the experiment is a {type(experiment).__name__}. "
            "Give a file, a mapping of its fields or an Experiment."
        )
    values = experiment.model_dump(exclude_unset=True)
    return load_experiment(None, {**values, **_given(fields)}).with_places_of(experiment)


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _path(value: str | Path | None) -> Path | None:
    return None if value is None else Path(value)
