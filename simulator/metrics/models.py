"""How the models of a run were read, and what each of several endpoints did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field

from hallulab.agents.models.abilities import ReadHow
from hallulab.agents.models.replicas import Answered
from hallulab.scenarios.text.wording import format_count, shorten_line
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.metrics.metric import Metric, Tallied
from hallulab.simulator.metrics.run_report import RunReport


class ModelReading(Frozen):
    """How one model's answers were read, in words."""

    model: str
    """Name under which it is served."""
    decisions: str
    seed: Literal["kept", "ignored", "refused"]
    """What the endpoint does with a seed."""
    json_by: str = Field(alias="json")
    """How answers are made JSON."""
    asked: bool
    """Whether the endpoint was asked; else this is assumed."""
    asked_with: tuple[str, ...] = ()
    """What its endpoint needs of requests."""
    under_test: bool = False
    """Whether it is a chatbot, of which only texts are read."""


class ModelSection(Frozen):
    """Fields of `report.json`."""

    read_how: tuple[ModelReading, ...]
    """How the models' answers were read."""
    endpoints: tuple[Answered, ...] = ()
    """What each of several endpoints did; empty: there was one, or nothing is known."""


class ModelMetric(Metric):
    """Tells of the models what the run knows of them."""

    SECTION = ModelSection

    def merge(self, other: Self) -> None:
        """Add nothing: nothing is counted."""

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
