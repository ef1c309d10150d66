"""The failures of a run, their number and most frequent reason: what every command says first.

The rule of all commands that show numbers of a run or of detectors; docs/experiment.md has it for users:

- No conversation succeeded, or a detector failed on every reply that it judged: the command writes and shows
  what there is, says what failed and why, and exits with 1.
- More than `MUCH` of a chatbot's conversations, or of a detector's verdicts, failed; all conversations of one
  chatbot failed; or a detector abstained from every reply: a sentence says so first, and the command exits
  as it would without.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from hallulab.scenarios.errors import OperationalError
from hallulab.scenarios.text.wording import choose_noun, format_count, shorten_line
from hallulab.scenarios.transcript import Conversation, Frozen, Judgement
from hallulab.simulator.metrics.hallucinations import ByDetector, index_by_detector
from hallulab.simulator.metrics.metric import Flaws, Metric, RunFacts, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.statistics.sums import Mergeable

MUCH = 0.1
"""Share of failures above which a sentence says so first."""
MOST_REASONS = 1_000
"""Different reasons that are counted apart for one chatbot or detector; a run may have millions of errors."""

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Failure(Frozen):
    """A chatbot with failed conversations."""

    chatbot: str
    conversations: int
    failed: int
    first_error: str
    """The error of the first by identifier."""
    reason: str = ""
    """The most common error; errors that differ in numbers only are one."""
    with_reason: int = 0
    """Failed conversations with it."""


class Unscored(Frozen):
    """A detector that failed on replies, or abstained from some."""

    detector: str
    replies: int
    scored: int
    failed: int
    abstained: int
    """Those from which it abstained."""
    reason: str
    """Why it failed most often, else why it abstained; reasons that differ in numbers only are one."""
    with_reason: int
    """Replies with that reason."""


class RunFailures(Frozen):
    """The failures of a run: fields of `report.json`."""

    failures: tuple[Failure, ...] = ()
    """Chatbots with failed conversations."""
    unscored: tuple[Unscored, ...] = ()
    """Detectors that did not score every reply that they judged."""
    warnings: tuple[str, ...] = ()
    """The first sentences of a report; none where little failed."""
    failed: str | None = None
    """Why commands on the run exit with 1; None: they do not."""


class Reasons:
    """Counts reasons; those that differ in numbers only count together."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._texts: dict[str, str] = {}
        """The first text of each kind, by the alphabet."""

    def add(self, text: str, times: int = 1) -> None:
        """Count a reason."""
        line = shorten_line(text)
        kind = _NUMBER.sub("0", line)
        if kind in self._counts or len(self._counts) < MOST_REASONS:
            self._counts[kind] += times
            self._texts[kind] = min(self._texts.get(kind, line), line)

    def merge(self, other: Reasons) -> None:
        """Add what another one counted."""
        for kind, times in other._counts.items():
            self.add(other._texts[kind], times)

    def find_commonest(self) -> tuple[str, int]:
        """Return the most common reason and how often it is there; of equally common ones the first by name.

        >>> found = Reasons()
        >>> for reason in ("no answer in 31 s", "out of order", "no answer in 30 s"):
        ...     found.add(reason)
        >>> found.find_commonest()
        ('no answer in 30 s', 2)
        """
        if not self._counts:
            return "", 0
        kind = min(self._counts, key=lambda kind: (-self._counts[kind], self._texts[kind]))
        return self._texts[kind], self._counts[kind]


class FailureCounts(Mergeable):
    """Counts what failed, conversation by conversation."""

    COUNTS = ("_talks", "_errors", "_verdicts", "_replies")

    def __init__(self) -> None:
        self._talks: dict[str, Counter[str]] = defaultdict(Counter)
        self._first: dict[str, tuple[str, str]] = {}
        """Chatbot → identifier and error of the first failed conversation."""
        self._errors: dict[str, Reasons] = defaultdict(Reasons)
        self._verdicts = VerdictCounts()
        self._replies = 0

    def add(self, conversation: Conversation, verdicts: ByDetector) -> None:
        """Count a conversation and the verdicts on it."""
        name = conversation.chatbot
        self._talks[name]["held"] += conversation.stop_reason != "error"
        self._talks[name]["failed"] += conversation.stop_reason == "error"
        self._replies += len(conversation.turns)
        if conversation.stop_reason == "error":
            error = (conversation.error or "").removeprefix(f"chatbot {name}: ")
            self._first[name] = min(self._first.get(name, (conversation.id, error)), (conversation.id, error))
            self._errors[name].add(error)
        for detector, found in verdicts.items():
            for verdict in found.values():
                self._verdicts.add(detector, verdict)

    def merge(self, other: Self) -> None:
        """Add what another one counted of other conversations."""
        super().merge(other)
        for name, first in other._first.items():
            self._first[name] = min(self._first.get(name, first), first)

    def find(self, chatbots: Sequence[str], detectors: Sequence[str]) -> RunFailures:
        """Return what failed of these chatbots and detectors, in their order."""
        talks = {name: self._talks[name] for name in chatbots if name in self._talks}
        failures = tuple(self._describe(name, counts) for name, counts in talks.items() if counts["failed"])
        unscored = self._verdicts.find(dict.fromkeys(detectors, self._replies))
        dead = self._explain_nothing_held(failures, sum(map(Counter.total, talks.values())))
        warnings = [dead] if dead else [*_warn_of_talks(failures)]
        warnings += [line for one in unscored if (line := describe_unscored(one))]
        fatal = [*([dead] if dead else []), *list_failed_detectors(unscored)]
        return RunFailures(
            failures=failures,
            unscored=unscored,
            warnings=tuple(map(capitalise, warnings)),
            failed=fatal[0] if fatal else None,
        )

    def _describe(self, name: str, counts: Mapping[str, int]) -> Failure:
        reason, times = self._errors[name].find_commonest()
        return Failure(
            chatbot=name,
            conversations=counts["held"] + counts["failed"],
            failed=counts["failed"],
            first_error=self._first[name][1],
            reason=reason,
            with_reason=times,
        )

    def _explain_nothing_held(self, failures: Sequence[Failure], conversations: int) -> str:
        """Say that no conversation succeeded; empty where one was, or none was begun."""
        failed = sum(one.failed for one in failures)
        if not conversations or (failed < conversations and self._replies):
            return ""
        pooled = Reasons()
        for one in failures:
            pooled.merge(self._errors[one.chatbot])
        said = f"every conversation failed: {failed} of {conversations}"
        if not self._replies:
            said = f"no conversation got as far as a reply: {failed} of {conversations} failed"
        return f"{said}.{format_reason(*pooled.find_commonest(), failed)}"


class VerdictCounts(Mergeable):
    """Counts judgements without a score, and why there is none."""

    COUNTS = ("_outcomes", "_reasons")

    def __init__(self) -> None:
        self._outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self._reasons: dict[tuple[str, str], Reasons] = defaultdict(Reasons)

    def add(self, detector: str, judgement: Judgement) -> None:
        """Count a judgement."""
        self._outcomes[detector][judgement.outcome] += 1
        if judgement.outcome != "scored":
            self._reasons[detector, judgement.outcome].add(judgement.error or "")

    def find(self, replies: Mapping[str, int]) -> tuple[Unscored, ...]:
        """Return the detectors that did not score every reply that they judged, of so many replies each."""
        found = []
        for name, number in replies.items():
            counts = self._outcomes.get(name, Counter())
            if counts["failed"] or counts["abstained"]:
                why = "failed" if counts["failed"] else "abstained"
                reason, times = self._reasons[name, why].find_commonest()
                found.append(
                    Unscored(
                        detector=name,
                        replies=number,
                        scored=counts["scored"],
                        failed=counts["failed"],
                        abstained=counts["abstained"],
                        reason=reason,
                        with_reason=times,
                    )
                )
        return tuple(found)


def find_failed_judgements(judgements: Mapping[str, Sequence[Judgement]]) -> RunFailures:
    """Return what failed of judgements, by the detector's name, of replies that belong to no run."""
    counts = VerdictCounts()
    for detector, own in judgements.items():
        for judgement in own:
            counts.add(detector, judgement)
    unscored = counts.find({detector: len(own) for detector, own in judgements.items()})
    failed = list_failed_detectors(unscored)
    return RunFailures(
        unscored=unscored,
        warnings=tuple(capitalise(line) for one in unscored if (line := describe_unscored(one))),
        failed=failed[0] if failed else None,
    )


def find_failed_conversations(folder: RunFolder) -> RunFailures:
    """Return what failed of a run's conversations, whatever its verdicts are.

    Raises:
        UsageError: a journal or experiment.json is damaged.
    """
    counts, chatbots = FailureCounts(), dict[str, None]()
    for part in folder.iterate_journals():
        for conversation in part.conversations:
            counts.add(conversation, {})
            chatbots[conversation.chatbot] = None
    return counts.find([*chatbots], [])


def find_failures(folder: RunFolder) -> RunFailures:
    """Return what failed of a run's conversations and of the verdicts on them.

    Raises:
        UsageError: a journal or experiment.json is damaged.
    """
    saved = folder.read_experiment()
    counts, chatbots, detectors = FailureCounts(), dict[str, None](), dict[str, None]()
    for part in folder.iterate_journals():
        for conversation, verdicts in part.current(saved).judged(by_case=False):
            by_detector = index_by_detector(verdicts)
            counts.add(conversation, by_detector)
            chatbots[conversation.chatbot] = None
            detectors |= dict.fromkeys(by_detector)
    return counts.find([*chatbots], [*detectors])


def require_success(found: RunFailures) -> None:
    """Check that a run has what a report is about.

    Raises:
        OperationalError: no conversation succeeded, or a detector failed on every reply that it judged; says
            why.
    """
    if found.failed is not None:
        raise OperationalError(found.failed)


def _warn_of_talks(failures: Sequence[Failure]) -> Iterator[str]:
    """Yield a sentence for each chatbot of which much failed."""
    for one in failures:
        why = format_reason(one.reason, one.with_reason, one.failed)
        if one.failed == one.conversations:
            yield f"every conversation of {one.chatbot} failed: {one.failed} of {one.conversations}.{why}"
        elif one.failed > MUCH * one.conversations:
            talks = format_count(one.conversations, "conversation")
            share = one.failed / one.conversations
            yield f"{one.failed} of {talks} of {one.chatbot} failed ({share:.0%}).{why}"


def describe_unscored(one: Unscored) -> str:
    """Say that a detector failed on much, or scored nothing, and why; empty where it did not."""
    judged = one.scored + one.failed + one.abstained
    why = format_reason(one.reason, one.with_reason, one.failed or one.abstained)
    if one.failed < judged and one.scored and one.failed <= MUCH * judged:
        return ""
    every = "every reply" if judged == one.replies else "every reply that it judged"
    if one.failed == judged:
        return f"detector {one.detector} failed on {every}: {one.failed} of {one.replies}.{why}"
    if one.abstained == judged:
        return f"detector {one.detector} abstained from {every}: {one.abstained} of {one.replies}.{why}"
    replies = f"{judged} {choose_noun(judged, 'reply', 'replies')}"
    if not one.scored:
        counts = f"{one.failed} failed, {one.abstained} abstained"
        return f"detector {one.detector} scored none of {replies}: {counts}.{why}"
    share = one.failed / judged
    return f"detector {one.detector} failed on {one.failed} of {replies} ({share:.0%}).{why}"


def list_failed_detectors(unscored: Sequence[Unscored]) -> list[str]:
    """Say of each detector that failed on every reply that it judged that it did, and why."""
    return [describe_unscored(one) for one in unscored if one.failed and not one.scored + one.abstained]


def format_reason(reason: str, times: int, failed: int) -> str:
    """Return the most common reason as a sentence with a space before it; empty where there is none."""
    if not reason:
        return ""
    said = f" Reason: {reason}" if times == failed else f" Most common reason ({times} of {failed}): {reason}"
    return said if said.endswith((".", "…", "!", "?")) else f"{said}."


def capitalise(sentence: str) -> str:
    """Return a sentence with a large first letter."""
    return f"{sentence[0].upper()}{sentence[1:]}"


class Failures(Metric):
    """Counts failed conversations, and replies without a score."""

    SECTION = RunFailures
    ORDER = 1
    COUNTS = ("_counts",)

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._counts = FailureCounts()

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count a conversation and the verdicts on it."""
        self._counts.add(conversation, verdicts)

    def result(self, tallied: Tallied) -> RunFailures:
        """Return what failed of all chatbots and detectors."""
        return self._counts.find(self.run.chatbots, self.run.detectors)

    @classmethod
    def headlines(cls, report: RunReport) -> Sequence[str]:
        """Say what failed, where it is much, before anything that was found."""
        return report.of(RunFailures).warnings

    @classmethod
    def notes(cls, report: RunReport) -> Sequence[str]:
        """Say of each chatbot what failed, however little it is."""
        return [
            f"{one.chatbot}: {one.failed} of {format_count(one.conversations, 'conversation')} failed: "
            f"{one.reason or one.first_error}"
            for one in report.of(RunFailures).failures
        ]
