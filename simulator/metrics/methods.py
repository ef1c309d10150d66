"""By which variant of its method, and from which threshold on, each detector of a run judged.

It also counts signs that the model behind a printed-word reading is too small for it. The catalogue says of
few models that they are small; of any other model the answers show it. Two signs were measured, with the
default 1.5B model on ten replies, and with a strong general-purpose language model
(`tests/benchmarks/test_small_model_signs.py` counts them in both recordings):

| sign | 1.5B | strong model |
|---|---|---|
| MetaRAG says YES to a fact's synonym and to its opposite | 10 of 19 facts | 0 of 212 facts |
| HalluDetect's filter keeps an objection | 13 of 14 | 75 of 88 (`gold`), 92 of 191 (headline) |

On `gold` 84% of the replies are hallucinated, so a filter has little to remove there. The share of sentences
that the analysis lists is no sign: 14 of 21 with the 1.5B, 89 of 113 with the strong model on `gold`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field

from hallulab.agents.models.abilities import ReadHow
from hallulab.agents.models.replicas import Answered
from hallulab.detectors.base.protocol import JudgingMethod
from hallulab.detectors.halludetect.strategies import PAPER_THRESHOLD
from hallulab.scenarios.text.wording import NOTHING, format_count, format_number, shorten_line
from hallulab.scenarios.transcript import Conversation, Count, Frozen, Unit
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import CsvTable, Flaws, Metric, RunFacts, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.show.columns import Column

Sign = Literal["agrees with opposites", "filters nothing"]

LEAST = {"agrees with opposites": 10, "filters nothing": 14}
"""Facts or objections from which a sign counts; the second are as many as were measured."""
SHARES = {"agrees with opposites": 0.2, "filters nothing": 0.9}
"""Shares from which a model's answers look like a small model's."""


@dataclass
class SignCount:
    """How often a sign was met."""

    met: int = 0
    seen: int = 0

    def is_small(self, sign: Sign) -> bool:
        """Return whether the answers look like those of a small model."""
        return self.seen >= LEAST[sign] and self.met >= SHARES[sign] * self.seen


def find_signs(units: Iterable[Unit]) -> Iterable[tuple[Sign, bool]]:
    """Yield each sign that a unit of a verdict by printed words can show, and whether it does."""
    for unit in units:
        if "refiner" in unit.details and unit.score is not None:
            yield "filters nothing", unit.score >= PAPER_THRESHOLD
        said = {key for key, value in unit.details.items() if key.endswith("P(YES)") and value == 1.0}
        printed = {key for key, value in unit.details.items() if " P(" in key}
        if printed and all(unit.details[key] == 1.0 for key in printed):
            both = all(any(key.startswith(kind) for key in said) for kind in ("synonym", "antonym"))
            yield "agrees with opposites", both


_SOURCES = {
    "published": "the paper's",
    "untuned": "not tuned for this model",
    "tuned": "tuned on labelled data",
    "calibrated": "calibrated here",
    "given": "given in the options",
}
_SIGNS: dict[Sign, str] = {
    "agrees with opposites": "{detector}: of {met} of {seen} facts its model affirmed both a rewording and "
    "its opposite, as small models do: its verdicts tell little (docs/studies/published-methods.md).",
    "filters nothing": "{detector}: its filter kept {met} of {seen} objections, as with small models, whose "
    "grades are all alike: expect many false alarms (docs/studies/published-methods.md).",
}
METHODS = (
    Column("Variant", "variant", "variant of its method, such as a reading; empty: there is only one",
           kind="text"),
    Column("As published", "as_published", "yes if that is the paper's; empty: no paper, or unknown",
           kind="text"),
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
    """The sign, see `hallulab.simulator.metrics.methods`."""
    met: Count
    seen: Count
    """How often it could have been."""


_ORDERS_NOTHING = (
    "On 130 replies of five chatbots, `mixture` agreed with the published method on a capable model little "
    "better than by chance (kappa 0.16). Let a capable model judge before you say which chatbot hallucinates "
    "least (docs/studies/trust.md)."
)
"""Note about HalluDetect's reading for the default model; `python -m benchmarks.second_judge`."""


class MethodSection(Frozen):
    """Fields of `report.json`."""

    judged_by: tuple[DetectorMethod, ...] = ()
    """How the detectors judged, as far as it is known."""
    small_model_signs: tuple[SmallModelSign, ...] = ()


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


class ModelReading(Frozen):
    """How one model's answers were read, in words."""

    model: str
    """Name under which it is served."""
    decisions: str
    seed: Literal["kept", "ignored", "refused"]
    """The endpoint's use of a seed."""
    json_by: str = Field(alias="json")
    """How answers are made JSON."""
    asked: bool
    """True if the endpoint was asked; else this is assumed."""
    asked_with: tuple[str, ...] = ()
    """Changes of requests that its endpoint needs."""
    under_test: bool = False
    """True if it is a chatbot, of which only texts are read."""


class ModelSection(Frozen):
    """Fields of `report.json`."""

    read_how: tuple[ModelReading, ...]
    endpoints: tuple[Answered, ...] = ()
    """Answers and failures of each of several endpoints; empty: there was one, or nothing is known."""


class ModelMetric(Metric):
    """Tells of the models what the run knows of them."""

    SECTION = ModelSection

    def result(self, tallied: Tallied) -> ModelSection:
        """Return what is known of the models."""
        read_how = tuple(map(_build_model_reading, self.run.read_how))
        return ModelSection(read_how=read_how, endpoints=tuple(self.run.endpoints))

    @classmethod
    def footnotes(cls, report: RunReport) -> Sequence[str]:
        """Say how each model's answers were read, and what each of several endpoints did."""
        section = report.of(ModelSection)
        return [*map(_describe_reading, section.read_how), *map(_describe_endpoint, section.endpoints)]


def _describe_reading(one: ModelReading) -> str:
    asked = f"was asked with: {', '.join(map(shorten_line, one.asked_with))}"
    if one.under_test:
        return f"{shorten_line(one.model)} {asked}."
    return (
        f"{shorten_line(one.model)} was read by: {one.decisions}, "
        f"JSON {one.json_by.removeprefix('JSON ')}, seed {one.seed}"
        f"{'' if one.asked else ' (assumed, the endpoint did not say)'}"
        f"{f'; it {asked}' if one.asked_with else ''}."
    )


def _build_model_reading(read_how: ReadHow) -> ModelReading:
    if read_how.log_probabilities:
        decisions = "log-probabilities"
    elif read_how.decision_samples == 1:
        decisions = "printed word"
    else:
        decisions = f"share of {read_how.decision_samples} printed words"
    return ModelReading(
        model=read_how.model,
        decisions=decisions,
        seed=read_how.seed,
        json="JSON schema" if read_how.json_schema else "asked for in the prompt",
        asked=read_how.asked,
        asked_with=read_how.asked_with,
        under_test=read_how.under_test,
    )


def _describe_endpoint(did: Answered) -> str:
    failed = f", and failed {format_count(did.failed, 'time')}" if did.failed else ""
    return f"{shorten_line(did.base_url)} answered {format_count(did.answered, 'request')}{failed}."
