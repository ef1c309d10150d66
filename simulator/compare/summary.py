"""The summary of a run: what it is compared by, small enough to be committed as a baseline, without texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import is_folder, read_text
from hallulab.scenarios.files.json_text import parse_json, replace_surrogates
from hallulab.scenarios.transcript import (
    Conversation,
    Count,
    Frozen,
    Number,
    Pairing,
    Seconds,
    Seed,
    Turn,
    Verdict,
)
from hallulab.simulator.compare.setup import RunSetup, describe_setup
from hallulab.simulator.metrics.failures import FailureCounts, RunFailures
from hallulab.simulator.metrics.hallucinations import ByDetector, Tally, index_by_detector, is_answer
from hallulab.simulator.metrics.spending import Spent, sum_calls
from hallulab.simulator.metrics.tokens import count_hallucinated, count_tokens
from hallulab.simulator.records.experiment_file import describe
from hallulab.simulator.records.folder import RunFolder

LARGEST = 1_000_000_000
"""Bytes that a baseline may have at most."""


VerdictOutcome = Literal["scored", "not localised", "abstained", "failed"]


class CostSummary(Frozen):
    """Cost of calls, added up."""

    calls: Count = 0
    prompt_tokens: Count | None = 0
    """Tokens read; None: no server reported them."""
    completion_tokens: Count | None = 0
    """Tokens written, likewise."""
    seconds: Seconds = 0.0
    untold: Count = 0
    """Answered calls whose tokens the server did not report."""

    def spent(self) -> Spent:
        """Return it as the measures add costs up."""
        return Spent(**dict(self))


class BriefVerdict(Frozen):
    """Verdict of a detector on a turn, in brief."""

    outcome: VerdictOutcome | Literal["missing"]
    """`not localised`: it was scored without saying where, so that neither HPT nor TokAcc
    counts it. `missing`: there is no verdict, or no such turn."""
    flagged: bool = False
    spans: Count = 0

    @property
    def hallucinated(self) -> bool:
        """The detector found a hallucination."""
        return self.flagged or self.spans > 0


class VerdictSummary(BriefVerdict):
    """A detector's verdict on a turn, without texts. Where there is none, the verdict is missing."""

    outcome: VerdictOutcome = "scored"
    unlocated: Count = 0
    """Spans whose text is not in the reply."""
    tokens: Count = 0
    """Tokens of the reply under a span."""
    severities: tuple[Number, ...] = ()
    """Severities of the hallucinations, as far as the detector rates them, highest first."""

    @property
    def severity(self) -> float | None:
        """The highest severity; None: it rates none."""
        return max(self.severities, default=None)


class TurnSummary(Frozen):
    """A turn of a conversation."""

    user: str
    """Hash of the user's message."""
    reply: str
    passages: str
    """Hash of the passages that the chatbot was given."""
    tokens: Count
    """Tokens of the reply, by the shared tokenizer."""
    answers: bool | None = None
    """True: it answers; False: it declines; None: neither, or a baseline file of before this field."""
    verdicts: dict[str, VerdictSummary] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _spans_are_in_the_reply(self) -> Self:
        for name, verdict in self.verdicts.items():
            if (
                verdict.tokens > self.tokens
                or max(verdict.unlocated, len(verdict.severities)) > verdict.spans
            ):
                raise ValueError(f"the verdict of {name!r} has more under its spans than there is")
        return self


class ConversationSummary(Frozen):
    """A conversation, without texts."""

    id: str
    scenario: str
    persona: str
    chatbot: str
    seed: Seed
    branch: Count | None = None
    """The turn at which it branches off from another one; None: it does not."""
    failed: bool = False
    """It ended with an error."""
    turns: tuple[TurnSummary, ...] = ()
    cost: CostSummary = CostSummary()
    judging: dict[str, CostSummary] = Field(default_factory=dict)
    """Detector → what it cost."""

    @property
    def branched_at(self) -> int:
        """The turn at which it branches off; -1: it does not."""
        return -1 if self.branch is None else self.branch

    @property
    def pairing(self) -> Pairing:
        """Scenario, persona and seed, which conversations of several chatbots with one user share."""
        return self.scenario, self.persona, self.seed

    def tally(self, detector: str) -> Tally:
        """Return what `hallulab.simulator.metrics.hallucinations.count_verdicts` counts, costs in brief."""
        found = [(turn, turn.verdicts[detector]) for turn in self.turns if detector in turn.verdicts]
        scored = [(turn, verdict) for turn, verdict in found if verdict.outcome == "scored"]
        outcomes = [verdict.outcome for _, verdict in found]
        return Tally(
            conversation=self.id,
            pairing=self.pairing,
            branched_at=self.branch,
            turns=len(self.turns),
            scored_turns=len(scored),
            failed=outcomes.count("failed"),
            abstained=outcomes.count("abstained"),
            not_localised=outcomes.count("not localised"),
            hallucinations=sum(verdict.spans for _, verdict in scored),
            unlocated=sum(verdict.unlocated for _, verdict in scored),
            tokens=sum(turn.tokens for turn, _ in scored),
            flagged_tokens=sum(verdict.tokens for _, verdict in scored),
            answers=[turn.answers for turn in self.turns].count(True),
            declines=[turn.answers for turn in self.turns].count(False),
            chatbot_calls=self.cost.calls,
            chatbot_tokens=0,
            chatbot_untold=self.cost.calls,
            spent=self.judging.get(detector, CostSummary()).spent(),
        )


class RunSummary(Frozen):
    """Everything a run is compared by: the content of a baseline file."""

    model_config = ConfigDict(populate_by_name=True)

    layout: Literal[1] = Field(default=1, alias="schema")
    name: str
    setup: RunSetup
    conversations: tuple[ConversationSummary, ...]
    """Its conversations, by scenario, persona, seed and chatbot."""
    failures: RunFailures = Field(default=RunFailures(), exclude=True)
    """Failures and their reasons. A baseline file has no texts, so it has none of them."""

    @property
    def chatbots(self) -> list[str]:
        """Names of the chatbots that have conversations, in the order of the experiment."""
        found = {one.chatbot for one in self.conversations}
        return [
            *(name for name in self.setup.chatbots if name in found),
            *sorted(found - set(self.setup.chatbots)),
        ]

    @property
    def detectors(self) -> list[str]:
        """Names of the detectors that judged, in the order of the experiment."""
        judging = {name for one in self.conversations for turn in one.turns for name in turn.verdicts}
        known = self.setup.detectors
        return [*(name for name in known if name in judging), *sorted(judging - set(known))]

    def text(self) -> str:
        """Return the text of a baseline file: a line for each conversation, so that a diff can be read."""
        head = self.model_dump(mode="json", by_alias=True, exclude={"conversations"}, exclude_defaults=True)
        beginning = json.dumps({"schema": self.layout, **head}, indent=1, ensure_ascii=False)
        lines = ",\n".join(
            json.dumps(
                one.model_dump(mode="json", exclude_defaults=True), separators=(",", ":"), ensure_ascii=False
            )
            for one in self.conversations
        )
        return f'{beginning[:-2]},\n "conversations": [\n{lines}\n ]\n}}\n'


def read_summary(path: Path) -> RunSummary:
    """Read the summary of a run folder, or a baseline file that was made of one.

    Raises:
        UsageError: it is neither, or is damaged; names the file and the remedy.
    """
    if is_folder(path):
        return summarize_run(RunFolder(path))
    try:
        return RunSummary.model_validate(parse_json(read_text(path, LARGEST)))
    except ValidationError as error:
        flaw = describe(error)
    except ValueError as error:
        flaw = f"it is not valid JSON ({error})."
    raise UsageError(f"{path}: {flaw} Give a run folder, or a file of `hallulab compare RUN --save FILE`.")


def summarize_run(folder: RunFolder) -> RunSummary:
    """Summarize a run: conversation by conversation, so that no texts stay in memory.

    Raises:
        UsageError: it is no run folder, has no conversations, or a file of it is damaged.
    """
    folder.require()
    saved = folder.read_experiment()
    journals = folder.read_journals().current(saved)
    if not journals.heads:
        raise UsageError(f"{folder.conversations} is empty: there is nothing to compare yet.")
    judged = {key.detector: key.version for key in journals.keys}
    counts = FailureCounts()
    found = []
    for conversation, verdicts in journals.judged():
        by_detector = index_by_detector(verdicts)
        counts.add(conversation, by_detector)
        found.append(summarize_conversation(conversation, by_detector))
    scenarios = {head.scenario for head in journals.heads}
    made = RunSummary(
        name=replace_surrogates(folder.path.resolve().name),
        setup=describe_setup(saved, scenarios, judged),
        # Identifiers come last, since they change with any version.
        conversations=tuple(
            sorted(found, key=lambda one: (one.pairing, one.chatbot, one.branched_at, one.id))
        ),
    )
    return made.model_copy(update={"failures": counts.find(made.chatbots, made.detectors)})


def summarize_conversation(conversation: Conversation, verdicts: ByDetector) -> ConversationSummary:
    """Summarize a conversation and the verdicts on it."""
    calls = [call for turn in conversation.turns for call in turn.calls if call.role == "chatbot"]
    return ConversationSummary(
        id=conversation.id,
        scenario=conversation.scenario,
        persona=conversation.persona,
        chatbot=conversation.chatbot,
        seed=conversation.seed,
        branch=None if conversation.branch is None else conversation.branch.turn,
        failed=conversation.stop_reason == "error",
        turns=tuple(_summarize_turns(conversation.turns, verdicts)),
        cost=_summarize_cost(sum_calls(calls)),
        judging={
            detector: _summarize_cost(sum_calls([call for verdict in own.values() for call in verdict.calls]))
            for detector, own in sorted(verdicts.items())
        },
    )


def _summarize_turns(turns: Iterable[Turn], verdicts: ByDetector) -> Iterator[TurnSummary]:
    for turn in turns:
        own = {
            name: _summarize_verdict(turn, found[turn.index])
            for name, found in sorted(verdicts.items())
            if turn.index in found
        }
        yield TurnSummary(
            user=hash_text(turn.user),
            reply=hash_text(turn.reply),
            passages=hash_text("\n\n".join(passage.text for passage in turn.passages)),
            tokens=count_tokens(turn.reply),
            answers=is_answer(turn.reply),
            verdicts=own,
        )


def _summarize_verdict(turn: Turn, verdict: Verdict) -> VerdictSummary:
    if verdict.outcome != "scored":
        return _share_verdict(outcome=verdict.outcome)
    if verdict.spans is None or not verdict.localised:
        return _share_verdict(outcome="not localised", flagged=bool(verdict.flagged))
    rated = [span.severity for span in verdict.spans if span.severity is not None]
    return _share_verdict(
        flagged=bool(verdict.flagged),
        spans=len(verdict.spans),
        unlocated=sum(span.start is None for span in verdict.spans),
        tokens=count_hallucinated(turn.reply, verdict.spans),
        severities=tuple(sorted(rated, reverse=True)),
    )


@lru_cache(maxsize=4096)
def _share_verdict(**fields: Any) -> VerdictSummary:
    """Return a verdict, the same object for the same values: most verdicts of a large run are alike."""
    return VerdictSummary(**fields)


def _summarize_cost(spent: Spent) -> CostSummary:
    return CostSummary(
        calls=spent.calls,
        prompt_tokens=spent.prompt_tokens,
        completion_tokens=spent.completion_tokens,
        seconds=round(spent.seconds, 3),
        untold=spent.untold,
    )


def hash_text(text: str) -> str:
    """Return 16 hexadecimal digits of a text's SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
