"""`hallulab calibrate --policy`: a safeguard's policy with thresholds that do not flag the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import yaml

from hallulab.agents.machine.progress import bars
from hallulab.chatbots.guarded.options import GuardedOptions
from hallulab.chatbots.guarded.policy import Policy, load_policy
from hallulab.detectors.base.protocol import Detector
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.paths import expand_home
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.wording import shorten_line
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.bench.calibrating import PARTS
from hallulab.simulator.bench.evaluate import Evaluation, evaluate
from hallulab.simulator.bench.split import Split, split_into_folds
from hallulab.simulator.experiment.config import Component, Experiment
from hallulab.simulator.experiment.models import RunSettings, open_pool, open_recording, serve_models
from hallulab.simulator.experiment.participants import is_model_needed, make_detectors
from hallulab.simulator.runs.folder import write_atomically
from hallulab.simulator.runs.outputs import check_outputs
from hallulab.simulator.stress.calibration import CONTEXTS, TURNS, CalibrateSettings
from hallulab.simulator.stress.command import Material, load_material, load_topic_thresholds, plant_material
from hallulab.simulator.stress.kinds import KINDS
from hallulab.simulator.stress.topic_thresholds import (
    MOST_FLAGGED,
    TopicRow,
    apply_thresholds,
    build_topic_rows,
)

LEAST_COVERAGE = 0.9
"""Share of the replies below which the detector scored too few: the others may be the hard ones."""
_PLANTED_FOR_ONE = 4
"""Pairs planted for one that is judged, so that as many clean twins as possible are different."""


class PolicyFit(Frozen):
    """What `hallulab calibrate --policy` prints."""

    detector: str
    """The detector whose scores the thresholds are for."""
    source: str
    """What errors were planted into."""
    pairs: int
    """Errors, each with a clean twin."""
    rows: tuple[TopicRow, ...]
    """The sensitive topics."""


async def calibrate_policy(
    settings: CalibrateSettings,
    experiment: Experiment,
    run: RunSettings,
    policy: str,
    out: Path,
    config: Path | None,
) -> PolicyFit:
    """Fit the thresholds of a policy's sensitive topics, and write the policy with them.

    Args:
        experiment: its only detector guards; else that of a guarded chatbot without options.
        run: recording, replay, progress, flags of the model server.
        policy: a built-in policy, or the path of one.
        out: file to write.
        config: the experiment's file.

    Raises:
        UsageError: the input is wrong or too small, or the detector's scores are on another scale.
        OperationalError: server, endpoint or disk failed, or too few replies were scored.
    """
    wanted = load_policy(policy)
    if len(experiment.detectors) != 1:
        raise UsageError("a policy is for one detector. Name it with --detectors.")
    if settings.data:
        raise UsageError(f"--data {settings.data[0]}: a policy is fitted to grounded replies. Leave it out.")
    source = expand_home(settings.source)
    check_outputs({"--out": out}, (expand_home(policy), source, config, run.replay, run.record))
    read = load_material(settings.source, TURNS, CONTEXTS, experiment.seed)
    async with open_pool(experiment, open_recording(run)) as pool:
        [detector] = make_detectors(experiment, pool, {})
        _require_probabilities(detector)
        replies = _plant_pairs(settings, read, experiment.seed)
        folds = _split_folds(replies, experiment.seed)
        async with serve_models(pool, run, is_model_needed([detector])):
            with bars(run.quiet) as shown:
                told = partial(shown.advance, shown.add_task(detector.name, total=len(replies)))
                judged = await evaluate(detector, replies, experiment.concurrency, told)
    _require_coverage(judged)
    rows = build_topic_rows(judged, wanted, load_topic_thresholds(settings.source), folds)
    if all(row.threshold is None for row in rows):
        reasons = "; ".join(f"{row.topic}: {row.not_fitted}" for row in rows) or "no topic is sensitive"
        raise UsageError(f"no threshold is fitted, nothing is written: {reasons}.")
    write_atomically(out, _format_policy(apply_thresholds(wanted, rows), detector.name))
    return PolicyFit(
        detector=detector.name, source=settings.source, pairs=len(replies) // 2, rows=tuple(rows)
    )


def add_guard_detector(experiment: Experiment, named: Sequence[str] | None) -> Experiment:
    """Return the experiment with the detector of a guarded chatbot, if none was named."""
    if named is not None or "detectors" in experiment.model_fields_set:
        return experiment
    kind = GuardedOptions().detector.kind
    return experiment.model_copy(update={"detectors": (Component(name=kind, kind=kind),)})


def _plant_pairs(settings: CalibrateSettings, read: Material, seed: int) -> list[LabelledReply]:
    """Return errors and twins, those first whose twin says something new."""
    count = _PLANTED_FOR_ONE * settings.count
    found = plant_material(read, settings.source, tuple(KINDS), count, seed).replies
    seen: Counter[str] = Counter()
    pairs = []
    for error, twin in zip(found[::2], found[1::2], strict=True):
        pairs.append((seen[twin.reply], error, twin))
        seen[twin.reply] += 1
    chosen = sorted(pairs, key=lambda pair: pair[0])[: settings.count]
    return [reply for _, error, twin in chosen for reply in (error, twin)]


def _split_folds(replies: Sequence[LabelledReply], seed: int) -> list[Split]:
    groups = {reply.group for reply in replies}
    if len(groups) < PARTS:
        raise UsageError(
            f"the replies are of fewer than {PARTS} groups (documents), so none can be held out. Give more."
        )
    return split_into_folds(replies, PARTS, seed)


def _require_probabilities(detector: Detector) -> None:
    """Raise UsageError if the detector's scores are on another scale than thresholds of policies."""
    if not detector.traits.probabilities:
        raise UsageError(
            f"detector {detector.name}: its scores are not from 0 to 1, as thresholds of policies are. Give "
            "it a policy with `thresholds: {general: detector, sensitive: detector}`."
        )


def _require_coverage(judged: Evaluation) -> None:
    """Raise OperationalError if too few replies were scored."""
    missing = [one for one in judged.judgements if one.outcome != "scored"]
    total = len(judged.judgements)
    if total - len(missing) < LEAST_COVERAGE * total:
        raise OperationalError(
            f"{judged.detector} scored {total - len(missing)} of {total} replies, and {LEAST_COVERAGE:.0%} "
            f"are needed; nothing is written. The first reason: {shorten_line(missing[0].error or '')}"
        )


def _format_policy(policy: Policy, detector: str) -> str:
    head = (
        "# Thresholds of topics by `hallulab calibrate --policy`: with the detector "
        f"{detector},\n# at most {MOST_FLAGGED:.0%} of grounded replies reach them.\n"
    )
    values = policy.model_dump(mode="json", exclude_defaults=True)
    return head + yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=110)
