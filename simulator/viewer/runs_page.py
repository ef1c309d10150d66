"""The page of all runs, and the page of a run, which follows it while it grows and says how far it is."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.packs.pack_files import load_without_documents
from hallulab.simulator.metrics.findings import find_set_aside
from hallulab.simulator.records.choices import count_users
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.viewer.index import Rate
from hallulab.simulator.viewer.launcher import Launcher
from hallulab.simulator.viewer.responses import answer_page, find_run
from hallulab.simulator.viewer.results import RunReports
from hallulab.simulator.viewer.runs import ShownRun, ShownRuns, look_at_files

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route


LOOK_S = 1.0
"""Seconds between two looks at a run that somebody watches."""

READ_S = 0.5
"""Seconds in which the page of all runs reads what was added to them; the rest is read in the background."""


@dataclass(frozen=True)
class RunStatus:
    """How far a run is."""

    state: str
    """`running`, `stopping`, `elsewhere` (a process that this viewer did not start writes it), `complete`,
    `ended` (complete, and this viewer started it), `stopped`, `failed` or `unfinished`."""
    conversations: int
    """Those that have ended without an error."""
    planned: int | None
    """Those that there shall be; None: not known."""
    error: str = ""
    """The last line of a command that failed, or why the page does not go on with the run."""
    can_resume: bool = False


class RunPages:
    """Answers the addresses of all runs and of a run."""

    def __init__(self, runs: ShownRuns, launcher: Launcher) -> None:
        self._runs = runs
        self._launcher = launcher
        self._reports = RunReports()
        self._watcher = RunWatcher(lambda run: describe_state(run, self._reports, launcher))

    def list_routes(self) -> list[Route]:
        """Return the addresses."""
        from starlette.routing import Route

        return [
            Route("/", self.show_runs),
            Route("/runs/{run}", self.show_run),
            Route("/runs/{run}/live", self.show_live),
            Route("/runs/{run}/events", self.stream_events),
        ]

    def show_runs(self, request: Request) -> Response:
        """Show the runs."""
        shown: list[dict[str, Any]] = []
        until = time.monotonic() + READ_S
        for run in self._runs.list():
            try:
                run.updater.update(time.monotonic() < until)
                rates = () if run.updater.is_working else run.index.rate()
                row = {"fewest": find_fewest(rates), "counts": run.updater.count(), "problem": ""}
                shown.append({"run": run, "saved": run.folder.read_experiment(), **row})
            except (UsageError, OperationalError) as error:  # the others can be shown
                shown.append({"run": run, "problem": str(error)})
        reading = sum(one["run"].updater.is_working for one in shown)
        return answer_page("runs.html", shown=shown, reading=reading)

    def show_run(self, request: Request) -> Response:
        """Show a run."""
        run = find_run(self._runs, request.path_params["run"], update=False)
        seen = describe_state(run, self._reports, self._launcher)  # first: the page may then know more
        shown = self._describe(run)
        # A late report may be ready before the first event, whose state would then be the one that was seen.
        return answer_page("run.html", seen="" if shown["report"].is_late else seen, **shown)

    def show_live(self, request: Request) -> Response:
        """Show the part of a run's page that changes while it grows."""
        return answer_page("live.html", **self._describe(find_run(self._runs, request.path_params["run"])))

    async def stream_events(self, request: Request) -> Response:
        """Say when a run has grown, until the browser leaves."""
        from starlette.responses import StreamingResponse

        run = find_run(self._runs, request.path_params["run"], update=False)
        return StreamingResponse(_watch(run, self._watcher, request), media_type="text/event-stream")

    def _describe(self, run: ShownRun) -> dict[str, Any]:
        return {
            "run": run,
            "counts": run.updater.count(),
            "rates": () if run.updater.is_working else run.index.rate(),
            "report": self._reports.find(run),
            "status": read_status(run, self._launcher),
        }


class Fewest(NamedTuple):
    """The chatbots with the fewest hallucinations per turn, by a detector."""

    detector: str
    chatbots: Sequence[str]
    """All that tie."""
    hpt: float
    is_tie: bool = False
    """True if all that are ranked have the same number: then none has the fewest."""


def find_fewest(rates: Sequence[Rate]) -> list[Fewest]:
    """Return for each detector that scored a turn the chatbots with the fewest hallucinations per turn.

    Those that answer less than another one with more are left out, as in the report (`find_set_aside`).
    """
    scored: dict[str, dict[str, Rate]] = {}
    for rate in rates:
        if rate.turns:
            scored.setdefault(rate.detector, {})[rate.chatbot] = rate
    found = []
    for detector, own in scored.items():
        aside = find_set_aside({name: (rate.hpt, rate.answered) for name, rate in own.items()})
        ranked = {name: rate.hpt for name, rate in own.items() if name not in aside}
        least = min(ranked.values())
        fewest = [name for name, hpt in ranked.items() if hpt == least]
        found.append(Fewest(detector, fewest, least, len(fewest) == len(ranked) > 1))
    return found


class RunWatcher:
    """Looks at runs for all that follow them: once in `LOOK_S`, however many they are."""

    def __init__(self, describe: Callable[[ShownRun], str]) -> None:
        self._describe = describe
        self._looks: dict[str, tuple[float, asyncio.Task[str]]] = {}
        """When the last look at a run began, and what was seen."""

    async def look(self, run: ShownRun) -> str:
        """Return the state of a run now or a moment ago."""
        now = time.monotonic()
        begun, looking = self._looks.get(run.id, (0.0, None))
        if looking is None or (looking.done() and now >= begun + LOOK_S):
            looking = asyncio.create_task(asyncio.to_thread(self._describe, run))
            looking.add_done_callback(lambda task: task.cancelled() or task.exception())
            self._looks[run.id] = now, looking
        return await asyncio.shield(looking)  # whoever leaves ends nobody else's look


async def _watch(run: ShownRun, watcher: RunWatcher, request: Request) -> AsyncIterator[str]:
    """Yield an event when the run has grown or its report is made, else a comment: so a closed line shows."""
    before = None
    while not await request.is_disconnected():
        state = await watcher.look(run)
        if state != before:
            before = state
            yield f"event: grown\ndata: {state}\n\n"
        else:
            yield ": nothing new\n\n"
        await asyncio.sleep(LOOK_S)


def describe_state(run: ShownRun, reports: RunReports, launcher: Launcher) -> str:
    """Bring a run up to date and return what its page follows, as JSON.

    A page is out of date if it was made at another state.
    """
    files = look_at_files(run.folder)  # before they are read: what comes meanwhile is another state
    run.updater.update()
    status = read_status(run, launcher)
    return json.dumps(
        {
            **asdict(run.updater.count()),
            "files": digest(files),
            "more": run.updater.is_working,
            "making": reports.is_making(run),
            "status": None if status is None else asdict(status),
        }
    )


def read_status(run: ShownRun, launcher: Launcher) -> RunStatus | None:
    """Return how far a run is; None: it was not planned, or what it runs is not known.

    Raises:
        UsageError: experiment.json is damaged.
        OperationalError: the index or a journal cannot be read or written.
    """
    launch, experiment = launcher.get(run.folder), launcher.find_experiment(run)
    if experiment is None:
        return None
    code = None if launch is None else launch.code
    is_running = launch is not None and code is None
    is_elsewhere = not is_running and run.folder.is_claimed
    run.updater.update()  # after the writer was looked for: one that has ended writes nothing more
    counts, planned = run.updater.count(), _count_planned(experiment, launcher.offer.scenarios)
    done = counts.conversations - counts.failed
    if launch is not None and is_running:
        return RunStatus("stopping" if launch.is_stopped else "running", done, planned)
    if is_elsewhere:
        return RunStatus("elsewhere", done, planned)
    is_judged = counts.verdicts >= counts.turns * len(experiment.detectors)
    may_lack = planned is None or run.updater.is_working or experiment.until_decided is not None
    if (planned is not None and done >= planned and is_judged) or (code == 0 and may_lack):
        return RunStatus("ended" if code == 0 else "complete", done, planned)
    state, error = "unfinished", ""
    if launch is not None and code != 0:
        state, error = ("stopped", "") if launch.is_stopped else ("failed", launch.read_last_line())
    try:
        launcher.offer.require_allowed(experiment)
    except UsageError as refusal:
        return RunStatus(state, done, planned, str(refusal))
    return RunStatus(state, done, planned, error, can_resume=True)


def _count_planned(experiment: Experiment, offered: Collection[str]) -> int | None:
    """Return how many conversations there shall be; None where that is in a pack which is not offered."""
    if experiment.scenario not in offered:
        return None
    try:
        return count_users(experiment, _load_pack(experiment.scenario)) * len(experiment.chatbots)
    except UsageError:
        return None


_load_pack = lru_cache(maxsize=8)(load_without_documents)  # a page that follows a run asks every second
