"""The threshold of a detector: given, calibrated here, tuned for a model, or published.

Keep what `hallulab calibrate` fitted: a detector's threshold, and how often the detector is wrong at it.
There is one file for each way to score, in the cache folder. A way to score is everything that decides a
detector's scores: its code, prompts, options, models, seed, and tuned numbers, but not its threshold
(`Detector.version` without it). So a fit is used exactly where scores mean what they meant when it was made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import Field, ValidationError

from hallulab.agents.machine.cache import locate_cache
from hallulab.detectors.base.protocol import Detector, ThresholdProtocol
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import choose_main_error, explain_error, read_text
from hallulab.scenarios.transcript import Count, Frozen

REMEDY = "Delete it, or run `hallulab calibrate` again"


class UnitCounts(Frozen):
    """Counts of a detector at its threshold, for the replies or the sentences of one group."""

    clean: Count
    clean_flagged: Count
    wrong: Count
    wrong_flagged: Count


class GroupCounts(Frozen):
    """A group of dependent replies, such as those made of one document."""

    replies: UnitCounts
    sentences: UnitCounts
    """Sentences of the scored and localised replies whose places of errors are known."""


class Fitted(Frozen):
    """A threshold fitted for a detector."""

    detector: str
    scoring: str
    version: str
    """Its version at the threshold."""
    threshold: float
    """Score from which a reply is flagged."""
    measured_on: str = Field(min_length=1)
    groups: tuple[GroupCounts, ...]
    """Its counts at the threshold."""


def find_fitted(scoring: str) -> Fitted | None:
    """Return what was fitted for a way to score; None: nothing.

    Raises:
        UsageError: the file was changed.
    """
    path = _locate_file(scoring)
    return _read(path) if path.is_file() else None


def find_fitted_by_version(detector: str, version: str) -> Fitted | None:
    """Return what was fitted for a detector that judged in this version; None: nothing.

    Raises:
        UsageError: a file was changed.
    """
    known = map(_read, sorted(locate_fits_folder().glob("*.json")))
    return next((fit for fit in known if (fit.detector, fit.version) == (detector, version)), None)


def locate_fitted_file(fitted: Fitted) -> tuple[Path, str]:
    """Return the file that keeps a fit, and its text."""
    return _locate_file(fitted.scoring), fitted.model_dump_json(indent=2) + "\n"


def locate_fits_folder() -> Path:
    """Return where fits are kept. It need not exist yet."""
    return locate_cache() / "calibrations"


def _locate_file(scoring: str) -> Path:
    return locate_fits_folder() / f"{scoring}.json"


def _read(path: Path) -> Fitted:
    try:
        return Fitted.model_validate_json(read_text(path))
    except ValidationError as error:
        first = choose_main_error(error)
        where = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"{path}: {f'field `{where}`: ' if where else ''}{explain_error(first)}. {REMEDY}."
        ) from None


@dataclass(frozen=True)
class ThresholdPolicy:
    """Decides which threshold holds: given > calibrated > tuned or published."""

    given: float | None
    """The one in the options; None: they have none."""
    find_default: Callable[[], tuple[float, ThresholdProtocol]]
    """Returns the tuned one, or the published one, and says which."""
    identify: Callable[[float | None], str]
    """Returns `Detector.version` with a threshold, and `Detector.scoring` with None."""

    def decide(self) -> tuple[float, ThresholdProtocol]:
        """Return the threshold, and where it comes from.

        Raises:
            UsageError: the file with the calibrated one was changed.
        """
        if self.given is not None:
            return self.given, "given"
        fitted = find_fitted(self.identify(None))
        if fitted is not None:
            return fitted.threshold, "calibrated"
        return self.find_default()


class PolicyDetector(Detector):
    """A detector whose threshold follows a policy.

    Threshold, version and way to score are found out when they are first asked for: they may depend on
    models that are served only after the detector was made.
    """

    def follow(self, policy: ThresholdPolicy) -> None:
        """Follow a policy, and forget what another one decided."""
        self._policy = policy
        for name in ("_decision", "threshold", "threshold_protocol", "version", "scoring"):
            vars(self).pop(name, None)

    @cached_property
    def _decision(self) -> tuple[float, ThresholdProtocol]:
        return self._policy.decide()

    def _read_threshold(self) -> float:
        return self._decision[0]

    def _read_protocol(self) -> ThresholdProtocol:
        return self._decision[1]

    def _compute_version(self) -> str:
        return self._policy.identify(self.threshold)

    def _compute_scoring(self) -> str:
        return self._policy.identify(None)

    # Not as decorators: mypy takes a decorated method for a read-only property, and these can be set.
    threshold = cached_property(_read_threshold)
    threshold_protocol = cached_property(_read_protocol)
    version = cached_property(_compute_version)
    scoring = cached_property(_compute_scoring)

    def use_calibrated(self, threshold: float) -> None:
        """See `Detector.use_calibrated`."""
        self.threshold = threshold
        self.threshold_protocol = "calibrated"
        self.version = self._policy.identify(threshold)
