"""Ask an experiment's models in waves (`--batch`): what that needs, and how a run is set up for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from hallulab.agents.machine.cache import Listener
from hallulab.agents.models.batch import BatchTransport
from hallulab.agents.models.batch_api import ApiRunner
from hallulab.agents.models.endpoints import SCRIPTED
from hallulab.agents.models.model import ModelPool
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.options.groups import BatchService
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.recipients import collect_endpoints, list_bot_endpoints

if TYPE_CHECKING:
    from hallulab.agents.serving.server import ServedModel

EVERYTHING = 1 << 40
"""Conversations and requests under way at once: all of them, so that a wave has as many as there are."""


def make_waves(experiment: Experiment, service: BatchService | None) -> BatchTransport | None:
    """Make what asks the models in waves; None: they are asked one by one.

    Raises:
        UsageError: the experiment asks for something that waves cannot give.
    """
    if service is None:
        return None
    if len(experiment.base_urls) > 1:
        raise UsageError("--batch: a wave goes to one endpoint. Give one --base-url.")
    endpoints = [*collect_endpoints(experiment).values()]
    endpoints += [one for bot in experiment.chatbots for one in list_bot_endpoints(bot)]
    if any(one.settings.headers or one.settings.query for one in endpoints):
        raise UsageError(
            "--batch: waves are sent without `headers` and `query`, also that of a `session`. Leave these or "
            "--batch out."
        )
    if experiment.endpoint_limits is not None:
        raise UsageError(
            "--batch: `endpoint_limits` are those of requests that are sent one by one. Leave them out; a "
            "batch API has its own."
        )
    if service == "api":
        if experiment.base_url is None:
            raise UsageError("--batch api: give the endpoint that has a batch API with --base-url.")
        for address in (experiment.base_url, *(model.base_url for model in experiment.models.values())):
            if (address or "").startswith(f"{SCRIPTED}://"):
                raise UsageError(
                    f"--batch api: a scripted model ({address}) has no batch API. Leave out --batch."
                )
        return BatchTransport(ApiRunner(experiment.timeout))
    if service != "vllm":  # from Python; on the command line, it is refused before
        raise UsageError(f"--batch {service}: give vllm or api.")
    from hallulab.agents.serving.run_batch import VllmRunner

    given = {"--base-url": experiment.base_url} | {
        f"`models.{name}.base_url`": model.base_url for name, model in experiment.models.items()
    }
    for place, url in given.items():
        if url is not None:
            raise UsageError(
                f"--batch vllm runs the model here, and {place} names {url}. Leave it out, or use "
                "--batch api if that endpoint has a batch API."
            )
    return BatchTransport(VllmRunner(experiment.timeout))


async def check_batch_apis(waves: BatchTransport, pool: ModelPool) -> None:
    """Check that every endpoint of a pool has a batch API, if that is who answers.

    Raises:
        UsageError: one has none, or its key is missing.
        OperationalError: one does not answer.
    """
    if isinstance(waves.runner, ApiRunner):
        endpoints = [pool.get(name).endpoint for name in pool.names]
        for base_url, key in dict.fromkeys((one.base_url, one.api_key()) for one in endpoints):
            await waves.runner.check(base_url, key)


@asynccontextmanager
async def serve_waves(
    waves: BatchTransport, model: str, extra_flags: Sequence[str], on_progress: Listener
) -> AsyncIterator[ServedModel]:
    """Prepare a model that answers waves here, and keep it ready while the block runs.

    Raises:
        UsageError, OperationalError: see `hallulab.agents.serving.prepare.prepare`.
    """
    from hallulab.agents.serving.prepare import prepare
    from hallulab.agents.serving.run_batch import VllmRunner

    assert isinstance(waves.runner, VllmRunner)
    prepared = prepare(model, on_progress=on_progress)
    async with waves.runner.serving(prepared, extra_flags, on_progress) as served:
        yield served
