"""`report.json`: all results of a run. Equal journals give equal bytes."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from agents.claim_check import ClaimChecks
from agents.models.abilities import ReadHow
from chatbots.guarded.record import AGAIN, CALLS
from scenarios.attacks.attacked import Planted
from scenarios.errors import UsageError
from scenarios.files.data_files import in_words, main_error, read_text
from scenarios.files.json_text import parse_json
from scenarios.transcript import Call, Conversation, Frozen, Verdict
from simulator.measure.agreement import Agreement, agreement
from simulator.measure.attacks import AttackRow, attack_rows
from simulator.measure.compare import Comparison, compare
from simulator.measure.conversations import Audit, ChatStatistics, Flaws, audit_report, chat_statistics
from simulator.measure.costs import Cost, Efficiency, efficiency, ledger
from simulator.measure.finding import Finding, findings
from simulator.measure.fixed_prefix import FixedPrefix, side_by_side
from simulator.measure.judged_turns import Annotations, judged_turns
from simulator.measure.metrics import Row, rows, tally_all
from simulator.measure.prevalence import Known
from simulator.measure.safeguards import Safeguards, safeguards
from simulator.measure.self_judging import mark_self_judged
from simulator.measure.statistics import LEAST_FOR_INTERVAL
from simulator.report.correcting import UNKNOWN, CorrectedRow, correct
from simulator.runs.experiment_json import BranchedFrom
from simulator.runs.journals import Journals


class Intervals(Frozen):
    """Requirements of intervals."""

    least: int = LEAST_FOR_INTERVAL
    """Conversations, or pairs of them, below which there is none."""


class Reading(Frozen):
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


class RunReport(Frozen):
    """The results of a run: `report.json`."""

    layout: Literal[1] = Field(default=1, alias="schema")
    """Version of the layout; higher when a field changes its meaning or goes away."""
    intervals: Intervals = Intervals()
    """Requirements of intervals."""
    findings: tuple[Finding, ...]
    """Which chatbot hallucinates least, by detector."""
    rows: tuple[Row, ...]
    """Each chatbot under each detector."""
    corrected: tuple[CorrectedRow, ...] = ()
    """The rows corrected for the detectors' mistakes, and one for all chatbots of each detector."""
    corrected_by_depth: tuple[CorrectedRow, ...] = ()
    """The same for turns with so many exchanges before them."""
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
    read_how: tuple[Reading, ...]
    """How the models' answers were read."""
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
        first = main_error(error)
        flaw = f"field `{'.'.join(map(str, first['loc']))}`: {in_words(first)}"
    except ValueError as error:
        flaw = f"not valid JSON ({error})"
    raise UsageError(f"{path}: {flaw}. Make it anew with `hallulab report` on its run folder.")


def build_report(
    conversations: Sequence[Conversation],
    verdicts: Sequence[Verdict],
    *,
    chatbots: Sequence[str],
    detectors: Sequence[str],
    flaws: Flaws,
    personas: Collection[str] | None = None,
    claim_checks: ClaimChecks | None = None,
    read_how: Sequence[ReadHow] = (),
    planted: Planted | None = None,
    branched_from: BranchedFrom | None = None,
    free: Journals | None = None,
    mistakes: Mapping[str, Known] | None = None,
    annotations: Annotations | None = None,
    why_unknown: str = UNKNOWN,
) -> RunReport:
    """Compute the report of a run.

    Args:
        conversations: the conversations of the run, in any order.
        verdicts: the verdicts of the run; those on other conversations are left out.
        chatbots: names of all chatbots of the run, in the order of the rows.
        detectors: names of all detectors, likewise. One without verdicts has rows with coverage 0.
        flaws: flaws of the simulated user, by conversation id.
        personas: identifiers of the personas that the audit knew; None: it needed none.
        claim_checks: how chatbots and detectors check claims; None: not known.
        read_how: how the models' answers were read; empty: not known.
        planted: what an attack put into the scenario; None without one.
        branched_from: the run that the conversations branch off from; None: there is none.
        free: the conversations of that run, and the verdicts by these versions of the detectors.
        mistakes: those of detectors, by name, as far as they are known.
        annotations: hallucinations that people found in the turns that they looked at.
        why_unknown: why others are not.

    Raises:
        UsageError: the journals contradict each other or hold two configurations of the same thing.
    """
    known = {item.id for item in conversations}
    ordered = sorted(conversations, key=lambda item: item.id)
    about = sorted(
        (item for item in verdicts if item.conversation in known),
        key=lambda item: (item.conversation, item.detector, item.turn),
    )
    checks = claim_checks or ClaimChecks()
    tallies = tally_all(ordered, about, chatbots, detectors)
    found = mark_self_judged(rows(tallies), checks)
    judged = judged_turns(ordered, about, annotations or {})
    corrected = correct(judged, chatbots, detectors, mistakes or {}, why_unknown)
    comparisons = compare(tallies, chatbots, detectors)
    audit = audit_report(ordered, tallies, flaws, chatbots)
    sound = mark_self_judged(audit.rows_without_affected, checks)
    unknown = set() if personas is None else {item.persona for item in ordered} - set(personas)
    return RunReport(
        findings=findings(tallies, found, comparisons),
        rows=found,
        corrected=tuple(row for row in corrected if row.depth is None),
        corrected_by_depth=tuple(row for row in corrected if row.depth is not None),
        comparisons=comparisons,
        fixed_prefix=None
        if branched_from is None
        else side_by_side(
            branched_from, free or Journals([], []), Journals(ordered, about), chatbots, detectors
        ),
        agreement=agreement(about, detectors),
        ledger=ledger(ordered, about),
        efficiency=efficiency(ordered, about, chatbots, detectors),
        conversations=chat_statistics(ordered, chatbots),
        safeguards=safeguards(ordered, about, chatbots, detectors),
        read_how=tuple(map(_reading, read_how)),
        failures=_failures(ordered, chatbots),
        cut_replies=_cut_replies(ordered, chatbots),
        unknown_personas=tuple(sorted(unknown)),
        simulator_audit=audit.model_copy(update={"rows_without_affected": sound}),
        attacks=None if planted is None else attack_rows(ordered, planted, chatbots),
    )


def _reading(read_how: ReadHow) -> Reading:
    if read_how.log_probabilities:
        decisions = "log-probabilities"
    elif read_how.decision_samples == 1:
        decisions = "printed word"
    else:
        decisions = f"share of {read_how.decision_samples} printed words"
    return Reading(
        model=read_how.model,
        decisions=decisions,
        seed=read_how.seed,
        json="JSON schema" if read_how.json_schema else "asked for in the prompt",
        asked=read_how.asked,
    )


def _failures(conversations: Sequence[Conversation], chatbots: Sequence[str]) -> tuple[Failure, ...]:
    found = []
    for name in chatbots:
        own = [item for item in conversations if item.chatbot == name]
        failed = [item for item in own if item.stop_reason == "error"]
        if failed:
            error = (failed[0].error or "").removeprefix(f"chatbot {name}: ")
            found.append(Failure(chatbot=name, conversations=len(own), failed=len(failed), first_error=error))
    return tuple(found)


def _cut_replies(conversations: Sequence[Conversation], chatbots: Sequence[str]) -> tuple[CutReplies, ...]:
    found = []
    for name in chatbots:
        turns = [turn for item in conversations if item.chatbot == name for turn in item.turns]
        cut = sum(any(map(_was_cut, turn.calls)) for turn in turns)
        if cut:
            found.append(CutReplies(chatbot=name, replies=len(turns), cut=cut))
    return tuple(found)


def _was_cut(call: Call) -> bool:
    """Return whether a chatbot's text ended at its limit.

    Decisions have one token; queries and a guard's judgements may be cut.
    """
    purpose = call.purpose.replace(AGAIN, "chatbot.")
    wrote = purpose.startswith("chatbot.") and purpose != "chatbot.reformulate"
    wrote = wrote and not purpose.startswith(CALLS)
    return wrote and call.finish_reason == "length" and call.completion_tokens != 1
