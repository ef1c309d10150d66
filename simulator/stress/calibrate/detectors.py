"""What `hallulab calibrate` does: plant errors, judge them, fit each detector's threshold, keep the fits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hallulab.agents.progress import bars
from hallulab.detectors.base.protocol import Detector, ThresholdProtocol
from hallulab.detectors.base.thresholds import Fitted, locate_fits_folder, locate_fitted_file
from hallulab.detectors.registry import find_detector
from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.atomic import write_together
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.wording import choose_noun, format_count
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.bench.evaluate import evaluate
from hallulab.simulator.engine.models import RunSettings, open_pool, open_recording, serve_models
from hallulab.simulator.engine.participants import is_model_needed, make_detectors
from hallulab.simulator.options.commands import CalibrateOptions
from hallulab.simulator.records.config import Experiment
from hallulab.simulator.statistics.intervals import Rounded
from hallulab.simulator.stress.calibrate.fit import FittedThreshold, count_groups, fit_threshold
from hallulab.simulator.stress.command import Material, is_of_replies, load_material, plant_material
from hallulab.simulator.stress.kinds import KINDS

TURNS = (0, 2, 4)
CONTEXTS = (1, 4, 8)
"""Turns before a reply, and passages of its evidence, as by `hallulab make-data planted`."""

QUOTED = (
    "the clean twins are sentences copied from the documents. A chatbot says things in its own words, which "
    "detectors that compare words flag more often: fit these on a run folder with replies that no detector "
    "flags, or give labelled replies with --data"
)


class Calibrated(Frozen):
    """What became of a detector."""

    detector: str
    scored: int
    replies: int
    """Replies that it was given."""
    coverage: Rounded
    """Scored over given."""
    before: float | None
    """Its threshold until now."""
    before_protocol: ThresholdProtocol
    threshold: float | None = None
    """The fitted one; None: there is none."""
    sensitivity: Rounded | None = None
    """Share of the hallucinated replies that are flagged, see `HeldOutResult`."""
    specificity: Rounded | None = None
    """Share of the clean replies that are not."""
    balanced_accuracy: Rounded | None = None
    """Mean of both."""
    not_fitted: str | None = None
    """Why there is none."""


class CalibrationReport(Frozen):
    """What `hallulab calibrate` prints."""

    measured_on: str
    kept_in: str
    detectors: tuple[Calibrated, ...]
    """In the experiment's order."""
    notes: tuple[str, ...] = ()
    """What to know of the replies."""


async def calibrate_detectors(options: CalibrateOptions, experiment: Experiment) -> CalibrationReport:
    """Fit the threshold of each detector; keep all fits, or nothing.

    Args:
        options: what errors are planted into, and how many.
        experiment: its detectors, their options and models, and the seed.

    Raises:
        UsageError: source, data, detectors or models are wrong, or a detector's threshold cannot be fitted.
        OperationalError: server, endpoint or disk failed, or no threshold could be fitted.
    """
    _require_kinds(experiment)
    settings, source = RunSettings.from_options(options), options.source or experiment.scenario
    read = load_material(source, TURNS, CONTEXTS, experiment.seed)
    given = [(name, _load_replies(name)) for name in options.data]
    async with open_pool(experiment, open_recording(settings)) as pool:
        detectors = make_detectors(experiment, pool, {})
        for detector in detectors:
            _require_threshold(type(detector), detector.name)
        replies, measured_on = _collect_replies(source, options.count, read, given, experiment.seed)
        async with serve_models(pool, settings, is_model_needed(detectors)):
            with bars(options.quiet) as shown:
                found = []
                for detector in detectors:
                    task = shown.add_task(detector.name, total=len(replies))
                    judged = partial(shown.advance, task)
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


def _collect_replies(
    source: str,
    count: int,
    read: Material,
    given: Sequence[tuple[str, Sequence[LabelledReply]]],
    seed: int,
) -> tuple[list[LabelledReply], str]:
    """Return the replies to judge, planted ones and those of files, and what they are in words."""
    replies = list(plant_material(read, source, tuple(KINDS), count, seed).replies)
    told = [f"{format_count(len(replies) // 2, 'error')} planted into {source}, with clean twins"]
    for name, labelled in given:
        told.append(f"{len(labelled)} {choose_noun(len(labelled), 'reply', 'replies')} of {name}")
        replies += labelled
    return replies, "; ".join(told)


def _load_replies(name: str) -> list[LabelledReply]:
    """Return the labelled replies of a file, under its own name, so that each file counts the same."""
    found = [
        reply.model_copy(update={"dataset": name}) for reply in load_labelled(name) if reply.label is not None
    ]
    if not found:
        raise UsageError(f"--data {name}: there is no labelled reply in it.")
    return found


def _require_kinds(experiment: Experiment) -> None:
    """Check the detectors as far as it goes without making one: that may load weights.

    Raises:
        UsageError: one is unknown, or its threshold cannot be fitted.
    """
    for chosen in experiment.detectors:
        with experiment.placing_errors(chosen):
            factory = find_detector(chosen.kind)
        if isinstance(factory, type):
            _require_threshold(factory, chosen.name)


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
    return row.model_copy(update={"threshold": fitted.threshold, **dict(fitted.held_out)}), kept
