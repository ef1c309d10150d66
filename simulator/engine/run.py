"""Run an experiment into its folder."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack import Scenario
from hallulab.simulator.engine.fixed_prefix import Branching, branch_jobs
from hallulab.simulator.engine.manifest import check_folder, warn_of_made_anew, write_manifest
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.plan import Job, Plan, plan
from hallulab.simulator.engine.request import RunRequest, load_request
from hallulab.simulator.engine.stage import Performance, open_stage
from hallulab.simulator.records.audit_log import read_chain
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.records.leads import list_leads, list_leads_of_components, require_told
from hallulab.simulator.records.makers import ComponentVersions
from hallulab.simulator.records.recipients import UserWords, list_asked, list_foreign

Conduct = Callable[[RunRequest, ComponentVersions, Performance, Journals], Coroutine[Any, Any, None]]
"""Has the conversations of a run held and judged; `hallulab.simulator.decide.run` does so in batches."""


async def run_experiment(
    experiment: Experiment,
    folder: RunFolder,
    settings: RunSettings,
    simulate: bool,
    judge: bool = True,
    branching: Branching | None = None,
    conduct: Conduct | None = None,
    words: UserWords | None = None,
) -> Scenario:
    """Run an experiment into its folder, and return the pack that it was run with.

    All errors of usage are found before anything of the folder or the recording is written.

    Args:
        experiment: what is asked for.
        folder: where it goes; what it holds already is not made again.
        settings: how it is run.
        simulate: see `RunRequest`, like `judge` and `branching`.
        conduct: has the conversations held and judged; None: all that are planned, at once.
        words: whom the user has named, where the experiment is a run folder's; None: all of it is the user's.

    Raises:
        UsageError: the experiment has a contradiction, or does not fit the folder.
        OperationalError: server, endpoint or disk failed.
    """
    folder.refuse_recording(settings.record)
    request = load_request(experiment, folder, simulate, judge, branching)
    if words is not None:
        words.require(request.experiment, list_foreign(request.experiment, simulate))
        require_told(words, list_leads_of_components(request.experiment, simulate), simulate)
    async with open_stage(request, settings) as stage:
        if words is not None and stage.asks_model and not stage.pool.recording.replaying:
            words.require(request.experiment, list_asked(request.experiment, simulate))
            require_told(words, list_leads(request.experiment), simulate)
        if simulate and not settings.fresh:
            check_folder(request.experiment, request.scenario, folder, branching)
        with folder.claimed():
            journals = _read_journals(folder, settings.fresh, simulate)
            async with stage.serve(folder) as revision:
                manifest = stage.describe(revision)
                jobs = plan_run(request, manifest.made_by)
                if not settings.fresh:
                    warn_of_made_anew(folder, journals, stage.participants.detectors, manifest.made_by)
                write_manifest(folder, manifest, settings.fresh)
                async with stage.performing(folder) as performance:
                    counting = journals.of(folder.read_makers())
                    if conduct is None or manifest.made_by is None:
                        await performance.perform(jobs, counting)
                    else:
                        await conduct(request, manifest.made_by, performance, counting)
    return request.scenario


def plan_run(request: RunRequest, made_by: ComponentVersions | None) -> Sequence[Job] | Plan:
    """Return the conversations wanted; none if nobody makes any."""
    if made_by is None:
        return []
    if request.branching is None:
        return plan(request.experiment, request.scenario, made_by)
    return branch_jobs(request.branching.prefixes, request.experiment, request.scenario, made_by)


def _read_journals(folder: RunFolder, fresh: bool, simulate: bool) -> Journals:
    """Read the folder's journals; they are empty if they are to be deleted.

    Raises:
        UsageError: a journal is damaged, or it is to be judged and is empty.
        OperationalError: the audit log was edited.
    """
    if not fresh:
        read_chain(folder.audit)
    journals = Journals([], []) if fresh else folder.read_all_journals()
    if not simulate and not journals.of(folder.read_makers()).heads:
        raise UsageError(f"{folder.conversations} is empty: there is nothing to judge yet.")
    return journals
