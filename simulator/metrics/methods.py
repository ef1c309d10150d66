"""By which variant of its method, and from which threshold on, each detector of a run judged.

Also, whether the answers of its model look like those of a small model, which the method does not suit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Self

from hallulab.detectors.base.protocol import JudgingMethod
from hallulab.scenarios.text.wording import NOTHING, format_number, shorten_line
from hallulab.scenarios.transcript import Conversation, Count, Frozen
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import CsvTable, Flaws, Metric, RunFacts, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.small_models import Sign, SignCount, find_signs
from hallulab.simulator.show.columns import Column

_SOURCES = {
    "published": "the paper's",
    "untuned": "not tuned for this model",
    "tuned": "tuned for this model",
    "calibrated": "calibrated here",
    "given": "given in the options",
}
_SIGNS: dict[Sign, str] = {
    "agrees with opposites": "{detector}: of {met} of {seen} facts its model affirmed both a rewording and "
    "its opposite, as small models do: its verdicts tell little (docs/methods.md).",
    "filters nothing": "{detector}: its filter kept {met} of {seen} objections, as with small models, whose "
    "grades are all alike: expect many false alarms (docs/methods.md).",
}
METHODS = (
    Column("Variant", "variant", "the variant of its method by which the detector judged, such as a reading; "
           "empty: there is only one", kind="text"),
    Column("As published", "as_published", "whether that is the paper's; empty: there is no paper, or it is "
           "not known", kind="text"),
    Column("Threshold", "threshold", "score from which a reply is flagged",
           lambda number: NOTHING if number is None else f"{number:g}"),
    Column("Threshold from", "threshold_protocol", "`published`, `untuned`, `tuned`, `calibrated` or `given`",
           kind="text"),
)  # fmt: skip


class DetectorMethod(JudgingMethod):
    """How one detector judged: an entry of `judged_by` in `report.json`."""

    detector: str


class SmallModelSign(Frozen):
    """A sign that a detector's model is too small for printed words."""

    detector: str
    sign: Sign
    """The sign, see `hallulab.simulator.metrics.small_models`."""
    met: Count
    seen: Count
    """How often it could have been."""


_ORDERS_NOTHING = (
    "On 130 replies of five chatbots, `mixture` agreed with the published method on a capable model no "
    "better than by chance (kappa 0.07). Let a capable model judge before you say which chatbot hallucinates "
    "least (docs/trust.md)."
)
"""What is known of HalluDetect's reading for the default model; `python -m benchmarks.second_judge`."""


class MethodSection(Frozen):
    """Fields of `report.json`."""

    judged_by: tuple[DetectorMethod, ...] = ()
    """How the detectors judged, as far as it is known."""
    small_model_signs: tuple[SmallModelSign, ...] = ()
    """What of their models' answers looks like a small model's."""


class MethodMetric(Metric):
    """Tells how the detectors judged, as experiment.json has it."""

    SECTION = MethodSection
    TABLES = (("How detectors judged (report.csv)", METHODS),)
    ORDER = TERMINAL_ORDER = 84

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._signs: dict[tuple[str, Sign], SignCount] = defaultdict(SignCount)

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count the signs of a small model."""
        for detector, found in verdicts.items():
            for verdict in found.values():
                for sign, met in find_signs(verdict.units):
                    self._signs[detector, sign].met += met
                    self._signs[detector, sign].seen += 1

    def merge(self, other: Self) -> None:
        """Add the signs that another one counted."""
        for key, counted in other._signs.items():
            self._signs[key].met += counted.met
            self._signs[key].seen += counted.seen

    def result(self, tallied: Tallied) -> MethodSection:
        """Return what is known of the detectors, in the order of the rows."""
        known = self.run.methods
        return MethodSection(
            judged_by=tuple(
                DetectorMethod(detector=name, **known[name].model_dump())
                for name in self.run.detectors
                if name in known
            ),
            small_model_signs=tuple(
                SmallModelSign(detector=detector, sign=sign, met=counted.met, seen=counted.seen)
                for (detector, sign), counted in sorted(self._signs.items())
                if counted.is_small(sign)
            ),
        )

    @classmethod
    def notes(cls, report: RunReport) -> Sequence[str]:
        """Say whose answers look like a small model's."""
        return [
            _SIGNS[one.sign].format(detector=shorten_line(one.detector), met=one.met, seen=one.seen)
            for one in report.of(MethodSection).small_model_signs
        ]

    @classmethod
    def footnotes(cls, report: RunReport) -> Sequence[str]:
        """Name the variant of each detector, and its threshold with its origin; warn of the default judge."""
        judged = report.of(MethodSection).judged_by
        warned = [_ORDERS_NOTHING] if any(one.variant == "mixture" for one in judged) else []
        return [*map(describe_detector_method, judged), *warned]

    @classmethod
    def beside(cls, report: RunReport) -> CsvTable | None:
        """Return the method of each row's detector; nothing of a run that does not know it."""
        known = {one.detector: one for one in report.of(MethodSection).judged_by}
        unknown = {column.value: None for column in METHODS}
        rows = [known.get(row.detector, unknown) for row in report.rows]
        return CsvTable(METHODS, rows) if known else None


def describe_detector_method(one: DetectorMethod) -> str:
    """Return a sentence on how a detector judged."""
    name = shorten_line(one.detector)
    judged = [f"{name} judged"]
    if one.variant:
        judged.append(f"by {shorten_line(one.variant)}")
    if one.as_published is not None:
        judged.append("as in its paper" if one.as_published else "which is not as in its paper")
    said = ", ".join([" ".join(judged[:2]), *judged[2:]])
    if one.threshold is None:
        return f"{said}, without a threshold."
    number = format_number(one.threshold, 3).rstrip("0").rstrip(".")
    return f"{said}, from {number} on ({_SOURCES[one.threshold_protocol]})."
