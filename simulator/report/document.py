"""All results of a run as `report.json`, counted in one pass over its journals."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from hallulab.agents.models.endpoints import Answered, ReadHow
from hallulab.agents.served_model import ClaimChecks
from hallulab.chatbots.guarded.record import AGAIN, CALLS
from hallulab.scenarios.attacks.attack import AttackRecord
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import choose_main_error, explain_error, read_text
from hallulab.scenarios.files.json_text import parse_json
from hallulab.scenarios.transcript import Call, Conversation, Frozen
from hallulab.simulator.measure.agreement import Agreement, Flagged, Flagging, Flags, mark_self_judged
from hallulab.simulator.measure.attacks import Attacked, AttackRow
from hallulab.simulator.measure.comparison import Comparison, Finding, build_findings, compare
from hallulab.simulator.measure.conversations import (
    Audit,
    Auditing,
    ChatStatistics,
    Concentration,
    Concentrations,
    Lengths,
    TurnFlaw,
)
from hallulab.simulator.measure.costs import Cost, CostCounter, Efficiency, Guarding, Safeguards
from hallulab.simulator.measure.fixed_prefix import FixedPrefix
from hallulab.simulator.measure.hallucinations import ByDetector, Counting, Row, build_rows
from hallulab.simulator.measure.intervals import LEAST_FOR_INTERVAL
from hallulab.simulator.measure.prediction_powered import Annotations, JudgedTurns
from hallulab.simulator.measure.prevalence import DetectorErrors
from hallulab.simulator.report.correct import UNKNOWN, CorrectedRow, correct


class Failure(Frozen):
    """A chatbot with failed conversations, and the error of the first by identifier."""

    chatbot: str
    conversations: int
    failed: int
    first_error: str


class CutReplies(Frozen):
    """A chatbot with replies that have a text that ended at the limit of tokens."""

    chatbot: str
    replies: int
    cut: int


class RunCounts:
    """Everything that a report counts.

    Args:
        chatbots: names of all chatbots of the run, in the order of the rows.
        detectors: names of all detectors, likewise. One without verdicts has rows with coverage 0.
        planted: what an attack put into the scenario; None without one.
        annotations: hallucinations that people found in the turns that they looked at.
    """

    def __init__(
        self,
        chatbots: Sequence[str],
        detectors: Sequence[str],
        planted: AttackRecord | None = None,
        annotations: Annotations | None = None,
    ) -> None:
        self.chatbots, self.detectors = chatbots, detectors
        self.tallying = Counting(chatbots, detectors)
        self.judged = JudgedTurns(annotations or {})
        self.costs = CostCounter(chatbots, detectors)
        self.flags = Flags(detectors)
        self.flagging = Flagging(detectors)
        self.lengths = Lengths()
        self.auditing = Auditing()
        self.guarding = Guarding(detectors)
        self.attacked = None if planted is None else Attacked(planted)
        self.endings = Endings()
        self.concentrations = Concentrations(detectors)
        self.scenarios: set[str] = set()
        self.models: set[str] = set()
        self.personas: set[str] = set()
        self.conversations = self.turns = 0

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Sequence[TurnFlaw]) -> None:
        """Count a conversation.

        Args:
            conversation: it.
            verdicts: those on it.
            flaws: those of the simulated user in it.
        """
        self.tallying.add(conversation, verdicts)
        self.judged.add(conversation, verdicts)
        self.costs.add(conversation, verdicts)
        self.flags.add(verdicts)
        self.flagging.add(conversation, verdicts)
        self.lengths.add(conversation)
        self.auditing.add(conversation, flaws)
        self.guarding.add(conversation, verdicts)
        if self.attacked is not None:
            self.attacked.add(conversation)
        self.endings.add(conversation)
        self.concentrations.add(conversation, verdicts)
        self.scenarios.add(conversation.scenario)
        self.models.add(conversation.model)
        self.personas.add(conversation.persona)
        self.conversations += 1
        self.turns += len(conversation.turns)


class Endings:
    """Counts failed conversations and cut replies, conversation by conversation."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)
        self._first: dict[str, tuple[str, str]] = {}
        """Chatbot → identifier and error of the first failed conversation."""

    def add(self, conversation: Conversation) -> None:
        """Count a conversation."""
        name, failed = conversation.chatbot, conversation.stop_reason == "error"
        cut = sum(any(map(_is_cut, turn.calls)) for turn in conversation.turns)
        self._counts[name].update(
            conversations=1, failed=int(failed), replies=len(conversation.turns), cut=cut
        )
        if failed:
            error = (conversation.error or "").removeprefix(f"chatbot {name}: ")
            self._first[name] = min(self._first.get(name, (conversation.id, error)), (conversation.id, error))

    def failures(self, chatbots: Sequence[str]) -> tuple[Failure, ...]:
        """Return the chatbots with failed conversations."""
        return tuple(
            Failure(
                chatbot=name,
                conversations=self._counts[name]["conversations"],
                failed=self._counts[name]["failed"],
                first_error=self._first[name][1],
            )
            for name in chatbots
            if name in self._first
        )

    def cut_replies(self, chatbots: Sequence[str]) -> tuple[CutReplies, ...]:
        """Return the chatbots with cut replies."""
        return tuple(
            CutReplies(chatbot=name, replies=self._counts[name]["replies"], cut=self._counts[name]["cut"])
            for name in chatbots
            if self._counts[name]["cut"]
        )


def _is_cut(call: Call) -> bool:
    """Return whether a chatbot's text ended at its limit.

    Decisions have one token; queries and a guard's judgements may be cut.
    """
    purpose = call.purpose.replace(AGAIN, "chatbot.")
    wrote = purpose.startswith("chatbot.") and purpose != "chatbot.reformulate"
    wrote = wrote and not purpose.startswith(CALLS)
    return wrote and call.finish_reason == "length" and call.completion_tokens != 1


class Intervals(Frozen):
    """Requirements of intervals."""

    least: int = LEAST_FOR_INTERVAL
    """Personas below which there is none."""


class ModelReading(Frozen):
    """How one model's answers were read, in words."""

    model: str
    """Name under which it is served."""
    decisions: str
    """Source of decisions."""
    seed: Literal["kept", "ignored", "refused"]
    """What the endpoint does with a seed."""
    json_by: str = Field(alias="json")
    """How answers are made JSON."""
    asked: bool
    """Whether the endpoint was asked; else this is assumed."""


class RunReport(Frozen):
    """The results of a run: `report.json`."""

    layout: Literal[1] = Field(default=1, alias="schema")
    """Version of the layout; higher when a field changes its meaning or goes away."""
    intervals: Intervals = Intervals()
    """Requirements of intervals."""
    imported: bool = False
    """Whether the conversations were imported, so that there is no simulated user to audit."""
    flagged: Flagged | None = None
    """What all detectors flag together; None: an earlier version of hallulab wrote the report."""
    findings: tuple[Finding, ...]
    """Which chatbot hallucinates least, by detector."""
    rows: tuple[Row, ...]
    """Each chatbot under each detector."""
    corrected: tuple[CorrectedRow, ...] = ()
    """The rows corrected for the detectors' mistakes, and one for all chatbots of each detector."""
    corrected_by_depth: tuple[CorrectedRow, ...] = ()
    """The same for turns with so many exchanges before them."""
    concentration: tuple[Concentration, ...] = ()
    """Where hallucinated replies are."""
    comparisons: tuple[Comparison, ...]
    """Every two chatbots under each detector."""
    fixed_prefix: FixedPrefix | None = None
    """Where conversations branch off from another run: both runs side by side. None: they do not."""
    agreement: Agreement
    """Agreement of the detectors on the same turns."""
    ledger: tuple[Cost, ...]
    """Costs by role."""
    efficiency: tuple[Efficiency, ...]
    """Costs of a conversation."""
    conversations: tuple[ChatStatistics, ...]
    """Lengths of conversations, by chatbot."""
    safeguards: tuple[Safeguards, ...] = ()
    """What guarded chatbots did; empty without one."""
    read_how: tuple[ModelReading, ...]
    """How the models' answers were read."""
    endpoints: tuple[Answered, ...] = ()
    """What each of several endpoints did; empty: there was one, or nothing is known."""
    failures: tuple[Failure, ...]
    """Chatbots with failed conversations."""
    cut_replies: tuple[CutReplies, ...]
    """Chatbots with texts that ended at the limit of tokens."""
    unknown_personas: tuple[str, ...]
    """Personas unknown to the audit of the simulated user."""
    simulator_audit: Audit
    """Flaws of the simulated user."""
    attacks: tuple[AttackRow, ...] | None = None
    """What each chatbot did with what an attack planted; None without an attack."""

    @property
    def chatbots(self) -> list[str]:
        """Names of the chatbots, in the order of the rows."""
        return list(dict.fromkeys(row.chatbot for row in self.rows))

    @property
    def detectors(self) -> list[str]:
        """Names of the detectors, likewise."""
        return list(dict.fromkeys(row.detector for row in self.rows))

    @property
    def is_corrected(self) -> bool:
        """Whether any number is corrected."""
        return any(row.source is not None for row in self.corrected)

    def by(self, detector: str) -> list[Row]:
        """Return the rows of a detector."""
        return [row for row in self.rows if row.detector == detector]

    def text(self) -> str:
        """Return the text of `report.json`."""
        values = self.model_dump(mode="json", by_alias=True)
        return json.dumps(values, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_report(path: str | Path) -> RunReport:
    """Read a `report.json`.

    Raises:
        UsageError: it cannot be read, or another version of hallulab wrote it.
    """
    try:
        return RunReport.model_validate(parse_json(read_text(Path(path))))
    except ValidationError as error:
        first = choose_main_error(error)
        flaw = f"field `{'.'.join(map(str, first['loc']))}`: {explain_error(first)}"
    except ValueError as error:
        flaw = f"not valid JSON ({error})"
    raise UsageError(f"{path}: {flaw}. Make it anew with `hallulab report` on its run folder.")


def build_report(
    counts: RunCounts,
    *,
    personas: Collection[str] | None = None,
    claim_checks: ClaimChecks | None = None,
    read_how: Sequence[ReadHow] = (),
    endpoints: Sequence[Answered] = (),
    fixed_prefix: FixedPrefix | None = None,
    mistakes: Mapping[str, DetectorErrors] | None = None,
    why_unknown: str = UNKNOWN,
    imported: bool = False,
) -> RunReport:
    """Compute the report of a run.

    Args:
        counts: the run, counted.
        personas: identifiers of the personas that the audit knew; None: it needed none.
        claim_checks: how chatbots and detectors check claims; None: not known.
        read_how: how the models' answers were read; empty: not known.
        endpoints: what each of several endpoints did; empty: there was one, or nothing is known.
        fixed_prefix: the run beside the one that its conversations branch off from; None: they do not.
        mistakes: those of detectors, by name, as far as they are known.
        why_unknown: why others are not.
        imported: whether the conversations were imported.

    Raises:
        UsageError: the journals hold two configurations of the same thing.
    """
    chatbots, detectors = counts.chatbots, counts.detectors
    checks = claim_checks or ClaimChecks()
    tallies = counts.tallying.tallies()
    found = mark_self_judged(build_rows(tallies), checks)
    corrected = correct(counts.judged.turns(), chatbots, detectors, mistakes or {}, why_unknown)
    comparisons = compare(tallies, chatbots, detectors)
    audit = counts.auditing.audit(tallies, chatbots)
    sound = mark_self_judged(audit.rows_without_affected, checks)
    unknown = set() if personas is None else counts.personas - set(personas)
    return RunReport(
        imported=imported,
        flagged=counts.flagging.flagged(chatbots),
        findings=build_findings(tallies, found, comparisons),
        rows=found,
        corrected=tuple(row for row in corrected if row.depth is None),
        corrected_by_depth=tuple(row for row in corrected if row.depth is not None),
        concentration=counts.concentrations.rows(),
        comparisons=comparisons,
        fixed_prefix=fixed_prefix,
        agreement=counts.flags.agreement(),
        ledger=counts.costs.ledger(),
        efficiency=counts.costs.efficiency(),
        conversations=counts.lengths.statistics(chatbots),
        safeguards=counts.guarding.safeguards(chatbots),
        read_how=tuple(map(_build_model_reading, read_how)),
        endpoints=tuple(endpoints),
        failures=counts.endings.failures(chatbots),
        cut_replies=counts.endings.cut_replies(chatbots),
        unknown_personas=tuple(sorted(unknown)),
        simulator_audit=audit.model_copy(update={"rows_without_affected": sound}),
        attacks=None if counts.attacked is None else counts.attacked.rows(chatbots),
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
    )
