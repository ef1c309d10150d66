"""Judge replies that are given as they are, without a run folder."""

from __future__ import annotations

import asyncio

from hallulab.detectors.base.protocol import run_detector
from hallulab.scenarios.transcript import Judgement
from hallulab.simulator.engine.models import RunSettings, open_pool, open_recording, serve_models, warn_of
from hallulab.simulator.engine.participants import is_model_needed, make_detectors
from hallulab.simulator.engine.views import read_views
from hallulab.simulator.options.commands import JudgeOptions
from hallulab.simulator.records.experiment_file import load_experiment


async def judge_views(options: JudgeOptions) -> list[Judgement]:
    """Return a judgement of each reply, in their order.

    Raises:
        UsageError: the replies, the detector, its options or the models are at fault.
        OperationalError: server or endpoint failed.
    """
    fields = {"detectors": [options.detector], "seed": options.seed}
    views = read_views(options.views)
    experiment = load_experiment(options.config_path, {**options.collect_model_fields(), **fields})
    settings = RunSettings.from_options(options)
    async with open_pool(experiment, open_recording(settings)) as pool:
        [detector] = make_detectors(experiment, pool, {})
        if not views:
            return []
        async with serve_models(pool, settings, is_model_needed([detector])):
            warn_of([detector])
            if detector.traits.batch:
                return await run_detector(detector, views)
            places = asyncio.Semaphore(experiment.at_once)

            async def judge_reply(number: int) -> Judgement:
                async with places:
                    [judgement] = await run_detector(detector, [views[number]])
                    return judgement

            return list(await asyncio.gather(*map(judge_reply, range(len(views)))))
