"""Fit detectors' thresholds to planted errors and labelled replies, and keep the fits.

The threshold has the largest balanced accuracy: the mean of the share of hallucinated replies that are
flagged and the share of clean ones that are not. F1 would depend on how many errors were planted. Each data
set counts the same, whatever its size.

How good the threshold is, is measured on replies that it was not fitted to: the groups are dealt out to five
parts, and each part is judged by the threshold of the other four.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from hallulab.agents.progress import bars, showing
from hallulab.detectors.base.protocol import Detector, ThresholdProtocol
from hallulab.detectors.base.thresholds import (
    Fitted,
    GroupCounts,
    UnitCounts,
    locate_fits_folder,
    locate_fitted_file,
)
from hallulab.detectors.registry import find_detector
from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.atomic import write_together
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.wording import choose_noun, format_count
from hallulab.scenarios.transcript import Frozen, Judgement
from hallulab.simulator.bench.evaluate import Evaluation, evaluate
from hallulab.simulator.bench.levels import get_gold_labels, list_located_ends, mark_touched, split_items
from hallulab.simulator.bench.split import split_into_folds
from hallulab.simulator.engine.models import RunSettings, open_pool, open_recording, serve_models
from hallulab.simulator.engine.participants import is_model_needed, make_detectors
from hallulab.simulator.options.commands import CalibrateOptions
from hallulab.simulator.planting.command import plant_material
from hallulab.simulator.planting.kinds import KINDS
from hallulab.simulator.planting.material import is_of_replies, load_material
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.statistics.detection import Booleans
from hallulab.simulator.statistics.intervals import Floats, Rounded

PARTS = 5
LEAST = 20
"""Fewest clean, and fewest hallucinated replies that a threshold is fitted to."""
TOO_FEW_GROUPS = f"the replies are of fewer than {PARTS} groups (documents), so none can be held out"


class FittedThreshold(Frozen):
    """A threshold, and how the thresholds of the other parts do on each part, over all of them."""

    threshold: float
    sensitivity: Rounded
    """Share of the hallucinated replies that are flagged; each data set counts the same."""
    specificity: Rounded
    """Share of the clean replies that are not, likewise."""
    balanced_accuracy: Rounded


def fit_threshold(evaluation: Evaluation, seed: int) -> FittedThreshold | str:
    """Fit a threshold to labelled replies, each `dataset` counting the same; return why there is none."""
    judged = [
        (reply, judgement.score)
        for reply, judgement in zip(evaluation.replies, evaluation.judgements, strict=True)
        if judgement.outcome == "scored" and judgement.score is not None
    ]
    replies = [reply for reply, _ in judged]
    labels = np.array([reply.hallucinated for reply in replies], dtype=bool)
    scores = np.array([score for _, score in judged], dtype=np.float64)
    wrong, clean = int(labels.sum()), int((~labels).sum())
    if min(wrong, clean) < LEAST:
        return (
            f"it scored {wrong} hallucinated and {clean} clean replies, and a threshold takes {LEAST} of each"
        )
    weights = _compute_weights(replies, labels)
    try:
        parts = split_into_folds(replies, PARTS, seed)
    except UsageError:
        return TOO_FEW_GROUPS
    flags = np.zeros(len(labels), dtype=bool)
    for part in parts:
        groups = part.tested_groups
        inside = np.array([reply.group in groups for reply in replies])
        if labels[~inside].all() or not labels[~inside].any():
            return "the replies outside a part of the groups are all hallucinated, or all clean"
        cut = find_best_cut(labels[~inside], scores[~inside], weights[~inside])
        flags[inside] = scores[inside] >= cut
    sensitivity = float((weights * flags)[labels].sum() / weights[labels].sum())
    specificity = float((weights * ~flags)[~labels].sum() / weights[~labels].sum())
    return FittedThreshold(
        threshold=find_best_cut(labels, scores, weights),
        sensitivity=sensitivity,
        specificity=specificity,
        balanced_accuracy=(sensitivity + specificity) / 2,
    )


def find_best_cut(labels: Booleans, scores: Floats, weights: Floats) -> float:
    """Return the threshold with the largest balanced accuracy; of equals, the highest.

    It lies half-way to the next lower score, rounded to six decimals where that changes no flag.

    Args:
        labels: (replies,), of both kinds.
        scores: (replies,)
        weights: (replies,), positive.
    """
    order = np.argsort(-scores, kind="stable")
    found = np.cumsum((weights * labels)[order]) / weights[labels].sum()
    alarms = np.cumsum((weights * ~labels)[order]) / weights[~labels].sum()
    last = np.append(np.diff(scores[order]) != 0, True)
    levels = scores[order][last]
    # Rounded, so that noise of the floats does not choose among equals; argmax takes the first, the highest.
    best = int(np.argmax(np.round((found - alarms)[last], 12)))
    if best + 1 == len(levels):
        return float(levels[best])
    middle = float(levels[best] + levels[best + 1]) / 2
    rounded = round(middle, 6)
    return rounded if levels[best + 1] < rounded <= levels[best] else middle


def count_groups(evaluation: Evaluation) -> tuple[GroupCounts, ...]:
    """Count what the detector says of the replies of each group, and of their sentences.

    A sentence is wrong if a gold span touches it, and flagged if a located span does. Sentences count where
    the reply has gold spans and the detector gave places.
    """
    groups: dict[str, list[tuple[LabelledReply, Judgement]]] = defaultdict(list)
    for reply, judgement in zip(evaluation.replies, evaluation.judgements, strict=True):
        if judgement.outcome == "scored":
            groups[reply.group].append((reply, judgement))
    return tuple(
        GroupCounts(
            replies=_count_units((reply.hallucinated, bool(said.flagged)) for reply, said in judged),
            sentences=_count_units(pair for reply, said in judged for pair in _pair_sentences(reply, said)),
        )
        for _, judged in sorted(groups.items())
    )


def _compute_weights(replies: Sequence[LabelledReply], labels: Booleans) -> Floats:
    """Return weights, shape (replies,): each data set's hallucinated replies weigh the same together.

    So do its clean ones.
    """
    kinds = list(zip((reply.dataset for reply in replies), labels.tolist(), strict=True))
    sizes = Counter(kinds)
    return np.array([len(replies) / sizes[kind] for kind in kinds])


def _pair_sentences(reply: LabelledReply, said: Judgement) -> Iterator[tuple[bool, bool]]:
    gold = get_gold_labels(reply, "sentence")
    if gold is None or not said.localised:
        return
    sentences = split_items(reply.reply, "sentence")
    flagged = mark_touched(reply.reply, list_located_ends(said), sentences)
    yield from zip(gold.tolist(), flagged.tolist(), strict=True)


def _count_units(pairs: Iterable[tuple[bool, bool]]) -> UnitCounts:
    """Count pairs of label and flag."""
    number = Counter(pairs)
    return UnitCounts(
        clean=number[False, False] + number[False, True],
        clean_flagged=number[False, True],
        wrong=number[True, False] + number[True, True],
        wrong_flagged=number[True, True],
    )


TURNS = (0, 2, 4)
CONTEXTS = (1, 4, 8)
"""Turns before a reply, and passages of its evidence, as by `hallulab make-data planted`."""

QUOTED = (
    "the clean twins are sentences copied from the documents. A chatbot says things in its own words, which "
    "detectors that compare words flag more often: fit these on a run folder with replies that no detector "
    "flags, or give labelled replies with --data"
)


class Calibrated(Frozen):
    """The result for a detector; docs/metrics.md explains the fields."""

    detector: str
    scored: int
    replies: int
    coverage: Rounded
    before: float | None
    before_protocol: ThresholdProtocol
    threshold: float | None = None
    sensitivity: Rounded | None = None
    specificity: Rounded | None = None
    balanced_accuracy: Rounded | None = None
    not_fitted: str | None = None


class CalibrationReport(Frozen):
    """The result of `hallulab calibrate`."""

    measured_on: str
    kept_in: str
    detectors: tuple[Calibrated, ...]
    notes: tuple[str, ...] = ()


async def calibrate_detectors(options: CalibrateOptions, experiment: Experiment) -> CalibrationReport:
    """Fit the threshold of each detector; keep all fits, or nothing.

    Args:
        options: what errors are planted into, and how many.
        experiment: its detectors, their options and models, and the seed.

    Raises:
        UsageError: source, data, detectors or models are wrong, or a detector's threshold cannot be fitted.
        OperationalError: server, endpoint or disk failed, or no threshold could be fitted.
    """
    for chosen in experiment.detectors:
        with experiment.placing_errors(chosen):
            kind = find_detector(chosen.kind)
        # Before any detector is made: that may load weights.
        if isinstance(kind, type):
            _require_threshold(kind, chosen.name)
    settings, source = RunSettings.from_options(options), options.source or experiment.scenario
    with showing("reading the replies", options.quiet):
        read = load_material(source, TURNS, CONTEXTS, experiment.seed)
    given = [(name, _load_replies(name)) for name in options.data]
    async with open_pool(experiment, open_recording(settings)) as pool:
        with showing("loading the detectors", options.quiet):
            detectors = make_detectors(experiment, pool, {})
        for detector in detectors:
            _require_threshold(type(detector), detector.name)
        replies = list(plant_material(read, source, tuple(KINDS), options.count, experiment.seed).replies)
        sources = [f"{format_count(len(replies) // 2, 'error')} planted into {source}, with clean twins"]
        for name, labelled in given:
            sources.append(f"{len(labelled)} {choose_noun(len(labelled), 'reply', 'replies')} of {name}")
            replies += labelled
        measured_on = "; ".join(sources)
        async with serve_models(pool, settings, is_model_needed(detectors)):
            found = []
            with bars(options.quiet) as shown:
                for detector in detectors:
                    judged = partial(shown.advance, shown.add_task(detector.name, total=len(replies)))
                    found.append(
                        await _calibrate_detector(detector, replies, experiment, judged, measured_on)
                    )
    fits = [fitted for _, fitted in found if fitted is not None]
    report = CalibrationReport(
        measured_on=measured_on,
        kept_in=str(locate_fits_folder()),
        detectors=tuple(row for row, _ in found),
        notes=() if options.data or is_of_replies(source, read) else (QUOTED,),
    )
    if not fits:
        reasons = "; ".join(f"{row.detector}: {row.not_fitted}" for row in report.detectors)
        raise OperationalError(f"no threshold could be fitted, nothing is kept: {reasons}.")
    write_together(dict(map(locate_fitted_file, fits)))
    return report


def _load_replies(name: str) -> list[LabelledReply]:
    """Return the labelled replies of a file, under its own name, so that each file counts the same."""
    found = [
        reply.model_copy(update={"dataset": name}) for reply in load_labelled(name) if reply.label is not None
    ]
    if not found:
        raise UsageError(f"--data {name}: there is no labelled reply in it.")
    return found


def _require_threshold(kind: type, name: str) -> None:
    """Raise UsageError if a threshold cannot be fitted for detectors of a class."""
    if getattr(kind, "use_calibrated", None) is Detector.use_calibrated:
        raise UsageError(f"detector {name}: its threshold cannot be fitted. Leave it out with --detectors.")


async def _calibrate_detector(
    detector: Detector,
    replies: Sequence[LabelledReply],
    experiment: Experiment,
    judged: partial[None],
    measured_on: str,
) -> tuple[Calibrated, Fitted | None]:
    """Fit a detector's threshold, and judge again by it: the pool still has the model's answers."""
    first = await evaluate(detector, replies, experiment.measured_at_once, judged)
    fitted = fit_threshold(first, experiment.seed)
    scored = sum(judgement.outcome == "scored" for judgement in first.judgements)
    row = Calibrated(
        detector=detector.name,
        scored=scored,
        replies=len(replies),
        coverage=scored / len(replies),
        before=first.threshold,
        before_protocol=first.threshold_protocol,
    )
    if not isinstance(fitted, FittedThreshold):
        return row.model_copy(update={"not_fitted": fitted}), None
    detector.use_calibrated(fitted.threshold)
    again = await evaluate(detector, replies, experiment.measured_at_once)
    assert detector.scoring is not None
    kept = Fitted(
        detector=detector.name,
        scoring=detector.scoring,
        version=detector.version,
        threshold=fitted.threshold,
        measured_on=measured_on,
        groups=count_groups(again),
    )
    return row.model_copy(update=dict(fitted)), kept
