"""What a report's numbers leave out: failed conversations, cut replies, and turns that no detector scored."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Self

from hallulab.chatbots.guarded.record import AGAIN, CALLS
from hallulab.scenarios.text.wording import choose_noun, format_count, shorten_line
from hallulab.scenarios.transcript import Call, Conversation, Frozen
from hallulab.simulator.measure.hallucinations import ByDetector, Row
from hallulab.simulator.report.document import RunReport
from hallulab.simulator.report.metrics.metric import Flaws, Metric, RunFacts, Tallied


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


class OmissionSection(Frozen):
    """Fields of `report.json`."""

    failures: tuple[Failure, ...]
    """Chatbots with failed conversations."""
    cut_replies: tuple[CutReplies, ...]
    """Chatbots with texts that ended at the limit of tokens."""


class Omissions(Metric):
    """Counts failed conversations and cut replies."""

    SECTION = OmissionSection
    ORDER = 25

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)
        self._first: dict[str, tuple[str, str]] = {}
        """Chatbot → identifier and error of the first failed conversation."""

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count a conversation."""
        name, failed = conversation.chatbot, conversation.stop_reason == "error"
        cut = sum(any(map(_is_cut, turn.calls)) for turn in conversation.turns)
        self._counts[name].update(
            conversations=1, failed=int(failed), replies=len(conversation.turns), cut=cut
        )
        if failed:
            error = (conversation.error or "").removeprefix(f"chatbot {name}: ")
            self._first[name] = min(self._first.get(name, (conversation.id, error)), (conversation.id, error))

    def merge(self, other: Self) -> None:
        """Add the counts of other conversations."""
        for name, counts in other._counts.items():
            self._counts[name].update(counts)
        for name, first in other._first.items():
            self._first[name] = min(self._first.get(name, first), first)

    def result(self, tallied: Tallied) -> OmissionSection:
        """Return the chatbots with failed conversations, and those with cut replies."""
        counts = {name: self._counts[name] for name in self.run.chatbots}
        failures = tuple(
            Failure(
                chatbot=name,
                conversations=counts[name]["conversations"],
                failed=counts[name]["failed"],
                first_error=self._first[name][1],
            )
            for name in counts
            if name in self._first
        )
        cut = tuple(
            CutReplies(chatbot=name, replies=own["replies"], cut=own["cut"])
            for name, own in counts.items()
            if own["cut"]
        )
        return OmissionSection(failures=failures, cut_replies=cut)

    @classmethod
    def notes(cls, report: RunReport) -> Sequence[str]:
        """Say of chatbots what failed or was cut off, and of detectors what they did not score or place."""
        section = report.of(OmissionSection)
        found = [
            f"{line.chatbot}: {line.failed} of {format_count(line.conversations, 'conversation')} failed: "
            f"{shorten_line(line.first_error)}"
            for line in section.failures
        ]
        for line in section.cut_replies:
            replies = f"{line.replies} {choose_noun(line.replies, 'reply', 'replies')}"
            found.append(
                f"{line.chatbot}: {line.cut} of {replies} reached the limit of tokens and may be cut off "
                "(`reply_tokens`, or the chatbot's `max_tokens`)."
            )
        for detector in report.detectors:
            found += _describe_gaps(detector, report.by(detector))
        return found


def _describe_gaps(detector: str, rows: Sequence[Row]) -> Iterator[str]:
    gaps = {
        words: total
        for field, words in (
            ("failed", "failed"),
            ("abstained", "abstained"),
            ("not_localised", "scored without places"),
            ("missing", "not judged"),
        )
        if (total := sum(getattr(row, field) for row in rows))
    }
    if gaps:
        turns = format_count(sum(row.turns for row in rows), "turn")
        listed = ", ".join(f"{total} {words}" for words, total in gaps.items())
        they_count = "it counts" if sum(gaps.values()) == 1 else "they count"
        yield f"{detector}: of {turns} {listed}; {they_count} neither in HPT nor in TokAcc."
    unlocated = sum(row.unlocated for row in rows)
    if unlocated:
        total = format_count(sum(row.hallucinations for row in rows), "hallucination")
        were, they_count = ("was", "it counts") if unlocated == 1 else ("were", "they count")
        yield (
            f"{detector}: {unlocated} of {total} {were} not found verbatim in the reply; "
            f"{they_count} in HPT, not in TokAcc."
        )


def _is_cut(call: Call) -> bool:
    """Return whether a chatbot's text ended at its limit.

    Decisions have one token; queries and a guard's judgements may be cut.
    """
    purpose = call.purpose.replace(AGAIN, "chatbot.")
    wrote = purpose.startswith("chatbot.") and purpose != "chatbot.reformulate"
    wrote = wrote and not purpose.startswith(CALLS)
    return wrote and call.finish_reason == "length" and call.completion_tokens != 1
