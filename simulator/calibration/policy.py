"""Fit a safeguard's threshold for each sensitive topic: `hallulab calibrate --policy`.

A safeguard must not flag the truth. A grounded control is a reply in the documents' own words: the clean
twin of a planted error. The threshold of a topic stays as it is if at most `MOST_FLAGGED` of the controls
reach it; else it becomes the lowest one that no more of them reach. Documents are held out in folds to
measure it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hallulab.agents.progress import bars, showing
from hallulab.chatbots.guarded.policy import GuardedOptions, Policy, Topic, load_policy
from hallulab.chatbots.guarded.topics import TopicSubject, match_topics_by_rules
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.scenarios.files.data_files import expand_home
from hallulab.scenarios.files.yaml_text import dump_yaml
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.packs.pack import choose_threshold
from hallulab.scenarios.text.wording import shorten_line
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.bench.evaluate import Evaluation, evaluate
from hallulab.simulator.bench.planted import TWIN
from hallulab.simulator.bench.split import Split, split_into_folds
from hallulab.simulator.calibration.fit import (
    CONTEXTS,
    PARTS,
    TOO_FEW_GROUPS,
    TURNS,
    CalibrationReport,
    calibrate_detectors,
)
from hallulab.simulator.engine.models import RunSettings, open_pool, open_recording, serve_models
from hallulab.simulator.engine.participants import is_model_needed, make_detectors
from hallulab.simulator.options.commands import CalibrateOptions
from hallulab.simulator.planting.command import plant_material
from hallulab.simulator.planting.kinds import KINDS
from hallulab.simulator.planting.material import Material, load_material, load_topic_thresholds
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.outputs import check_outputs
from hallulab.simulator.statistics.intervals import Rounded

MOST_FLAGGED = 0.1
"""Share of the grounded controls that may be flagged."""
LEAST_CONTROLS = 60
"""Different grounded controls of a topic below which nothing is fitted."""
_STEPS = 1000
"""Thresholds are whole multiples of 1 / `_STEPS`."""


class TopicRow(Frozen):
    """A sensitive topic; docs/metrics.md explains the fields."""

    topic: str
    controls: int
    errors: int
    before: Rounded | None
    flagged_before: Rounded | None = None
    recall_before: Rounded | None = None
    threshold: Rounded | None = None
    flagged: Rounded | None = None
    recall: Rounded | None = None
    flagged_held_out: Rounded | None = None
    recall_held_out: Rounded | None = None
    not_fitted: str | None = None


@dataclass(frozen=True)
class _TopicScores:
    """The scores of a topic's replies, with their groups."""

    controls: tuple[tuple[str, float], ...]
    errors: tuple[tuple[str, float], ...]

    def select(self, groups: set[str], *, inside: bool) -> _TopicScores:
        """Return those inside some groups, or outside."""
        return _TopicScores(
            tuple(one for one in self.controls if (one[0] in groups) == inside),
            tuple(one for one in self.errors if (one[0] in groups) == inside),
        )


def build_topic_rows(
    evaluation: Evaluation, policy: Policy, labels: Mapping[str, float], folds: Sequence[Split]
) -> list[TopicRow]:
    """Fit a threshold for each sensitive topic.

    Args:
        evaluation: judgements of planted errors and their twins.
        labels: the scenario's thresholds by topic; these topics are sensitive, too.
        folds: each tests some groups.
    """
    subjects = (TopicSubject(reply.question, None, reply.passages) for reply in evaluation.replies)
    tagged = [set(match_topics_by_rules(policy.topics, labels, subject)) for subject in subjects]
    sensitive = [name for name, topic in policy.topics.items() if topic.sensitive]
    return [
        _build_row(
            topic, _collect_scores(evaluation, [topic in found for found in tagged]), policy, labels, folds
        )
        for topic in dict.fromkeys([*sensitive, *labels])
    ]


def _collect_scores(evaluation: Evaluation, chosen: Sequence[bool]) -> _TopicScores:
    """Return the scores of planted errors, and of different twins."""
    controls: dict[str, tuple[str, float]] = {}
    errors = []
    for reply, judgement, wanted in zip(evaluation.replies, evaluation.judgements, chosen, strict=True):
        if not wanted or judgement.score is None or TWIN not in reply.meta:
            continue
        if reply.label:
            errors.append((reply.group, judgement.score))
        else:
            controls.setdefault(reply.reply, (reply.group, judgement.score))
    return _TopicScores(tuple(controls.values()), tuple(errors))


def _build_row(
    topic: str, scored: _TopicScores, policy: Policy, labels: Mapping[str, float], folds: Sequence[Split]
) -> TopicRow:
    before = policy.decision([topic], labels, False).threshold
    row = TopicRow(topic=topic, controls=len(scored.controls), errors=len(scored.errors), before=before)
    if before is None:
        return row.model_copy(update={"not_fitted": "the detector itself decides there"})
    row = row.model_copy(
        update={
            "flagged_before": _share(scored.controls, before),
            "recall_before": _share(scored.errors, before),
        }
    )
    if row.controls < LEAST_CONTROLS:
        reason = f"{row.controls} grounded controls, and {LEAST_CONTROLS} are needed (--count plants more)"
        return row.model_copy(update={"not_fitted": reason})
    threshold = raise_threshold([score for _, score in scored.controls], before)
    if threshold is None:
        reason = f"more than {MOST_FLAGGED:.0%} of the grounded controls have the highest score"
        return row.model_copy(update={"not_fitted": reason})
    flagged, recall = _test_held_out(scored, before, folds)
    return row.model_copy(
        update={
            "threshold": threshold,
            "flagged": _share(scored.controls, threshold),
            "recall": _share(scored.errors, threshold),
            "flagged_held_out": flagged,
            "recall_held_out": recall,
        }
    )


def raise_threshold(controls: Sequence[float], before: float) -> float | None:
    """Return `before`, or the lowest threshold that at most `MOST_FLAGGED` of the controls reach.

    None: that would be above 1.

    Args:
        controls: scores of grounded replies, from 0 to 1.
    """
    allowed = math.floor(MOST_FLAGGED * len(controls))
    highest_kept = sorted(controls, reverse=True)[allowed]
    if highest_kept < before:
        return before
    # One step above the score: a reply is flagged from the threshold on, the threshold included.
    lowest = (math.floor(highest_kept * _STEPS) + 1) / _STEPS
    return lowest if lowest <= 1 else None


def _test_held_out(
    scored: _TopicScores, before: float, folds: Sequence[Split]
) -> tuple[float | None, float | None]:
    """Return the shares of controls and errors that reach thresholds fitted to other documents.

    None: a fold's other documents have no control, or no threshold.
    """
    flagged = found = 0
    for fold in folds:
        inside = scored.select(fold.tested_groups, inside=True)
        others = [score for _, score in scored.select(fold.tested_groups, inside=False).controls]
        threshold = raise_threshold(others, before) if others else None
        if threshold is None:
            return None, None
        flagged += sum(score >= threshold for _, score in inside.controls)
        found += sum(score >= threshold for _, score in inside.errors)
    # At least `LEAST_CONTROLS` controls are there, but perhaps no error.
    return flagged / len(scored.controls), found / len(scored.errors) if scored.errors else None


def _share(scores: Sequence[tuple[str, float]], threshold: float) -> float | None:
    return sum(score >= threshold for _, score in scores) / len(scores) if scores else None


def apply_thresholds(policy: Policy, rows: Sequence[TopicRow]) -> Policy:
    """Return the policy with the fitted thresholds; topics that only the scenario knows are added."""
    topics = dict(policy.topics)
    for row in rows:
        if row.threshold is not None:
            known = topics.get(row.topic, Topic(sensitive=True))
            topics[row.topic] = known.model_copy(update={"threshold": row.threshold})
    return policy.model_copy(update={"topics": topics})


LEAST_COVERAGE = 0.9
"""Share of the replies below which the detector scored too few: the others may be the hard ones."""
_PLANTED_FOR_ONE = 4
"""Pairs planted for one that is judged, so that as many clean twins as possible are different."""


class PolicyFit(Frozen):
    """The result of `hallulab calibrate --policy`."""

    detector: str
    """The detector whose scores the thresholds are for."""
    source: str
    pairs: int
    """Errors, each with a clean twin."""
    rows: tuple[TopicRow, ...]


async def calibrate_from_options(options: CalibrateOptions) -> CalibrationReport | PolicyFit:
    """Fit the detectors' thresholds to planted errors, or a policy's to its topics if one is named.

    Raises:
        UsageError: source, data, detectors, models or policy are wrong, or a threshold cannot be fitted.
        OperationalError: server, endpoint or disk failed, or no threshold could be fitted.
    """
    fields = {**options.collect_model_fields(), "detectors": options.detectors, "seed": options.seed}
    experiment = load_experiment(options.config_path, fields)
    if options.policy is None and options.out is None:
        return await calibrate_detectors(options, experiment)
    if options.policy is None or options.out is None:
        raise UsageError("--policy and --out go together: name the policy, and the file to write it into.")
    if options.detectors is None and "detectors" not in experiment.model_fields_set:
        kind = GuardedOptions().detector.kind
        experiment = experiment.model_copy(update={"detectors": (Component(name=kind, kind=kind),)})
    return await _calibrate_policy(options, experiment, str(options.policy), Path(options.out))


async def _calibrate_policy(
    options: CalibrateOptions, experiment: Experiment, policy: str, out: Path
) -> PolicyFit:
    """Fit the thresholds of a policy's sensitive topics, and write the policy with them.

    Args:
        experiment: its only detector guards; else that of a guarded chatbot without options.
        policy: a built-in policy, or the path of one.
    """
    wanted = load_policy(policy)
    settings, source = RunSettings.from_options(options), options.source or experiment.scenario
    if len(experiment.detectors) != 1:
        raise UsageError("a policy is for one detector. Name it with --detectors.")
    if options.data:
        raise UsageError(f"--data {options.data[0]}: a policy is fitted to grounded replies. Leave it out.")
    inputs = (expand_home(policy), expand_home(source), options.config_path, settings.replay, settings.record)
    check_outputs({"--out": out}, inputs)
    with showing("reading the replies", options.quiet):
        read = load_material(source, TURNS, CONTEXTS, experiment.seed)
    async with open_pool(experiment, open_recording(settings)) as pool:
        with showing("loading the detector", options.quiet):
            [detector] = make_detectors(experiment, pool, {})
        if not detector.traits.probabilities:
            raise UsageError(
                f"detector {detector.name}: its scores are not from 0 to 1, as thresholds of policies are. "
                "Give it a policy with `thresholds: {general: detector, sensitive: detector}`."
            )
        replies = _plant_pairs(source, options.count, read, experiment.seed)
        try:
            folds = split_into_folds(replies, PARTS, experiment.seed)
        except UsageError as error:
            raise UsageError(f"{TOO_FEW_GROUPS}. Give more.") from error
        async with serve_models(pool, settings, is_model_needed([detector])):
            with bars(options.quiet) as shown:
                advance = partial(shown.advance, shown.add_task(detector.name, total=len(replies)))
                judged = await evaluate(detector, replies, experiment.measured_at_once, advance)
    _require_coverage(judged)
    # A fit is for one detector with one model: the other reading's thresholds are of no use to it.
    wanted = wanted.resolve(detector.reading)
    labels = {
        topic: choose_threshold(given, detector.reading)
        for topic, given in load_topic_thresholds(source).items()
    }
    rows = build_topic_rows(judged, wanted, labels, folds)
    if all(row.threshold is None for row in rows):
        reasons = "; ".join(f"{row.topic}: {row.not_fitted}" for row in rows) or "no topic is sensitive"
        raise UsageError(f"no threshold is fitted, nothing is written: {reasons}.")
    fitted = ", ".join(shorten_line(row.topic) for row in rows if row.threshold is not None)
    head = (
        "# Thresholds of topics by `hallulab calibrate --policy`: with the detector "
        f"{detector.name},\n# at most {MOST_FLAGGED:.0%} of the grounded replies that they were fitted to "
        f"reach those of: {fitted}.\n# All others are as they were.\n"
    )
    values = apply_thresholds(wanted, rows).model_dump(mode="json", exclude_defaults=True)
    write_atomically(out, head + dump_yaml(values))
    return PolicyFit(detector=detector.name, source=source, pairs=len(replies) // 2, rows=tuple(rows))


def _plant_pairs(source: str, count: int, read: Material, seed: int) -> list[LabelledReply]:
    """Return errors and twins, those first whose twin says something new."""
    planted = plant_material(read, source, tuple(KINDS), _PLANTED_FOR_ONE * count, seed).replies
    seen: Counter[str] = Counter()
    pairs = []
    for error, twin in zip(planted[::2], planted[1::2], strict=True):
        pairs.append((seen[twin.reply], error, twin))
        seen[twin.reply] += 1
    chosen = sorted(pairs, key=lambda pair: pair[0])[:count]
    return [reply for _, error, twin in chosen for reply in (error, twin)]


def _require_coverage(judged: Evaluation) -> None:
    """Raise OperationalError if too few replies were scored."""
    missing = [one for one in judged.judgements if one.outcome != "scored"]
    total = len(judged.judgements)
    if total - len(missing) < LEAST_COVERAGE * total:
        raise OperationalError(
            f"{judged.detector} scored {total - len(missing)} of {total} replies, and {LEAST_COVERAGE:.0%} "
            f"are needed; nothing is written. The first reason: {shorten_line(missing[0].error or '')}"
        )
