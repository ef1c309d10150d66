"""What a report's numbers leave out: cut replies, and turns that no detector scored or placed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Self

from hallulab.chatbots.guarded.record import AGAIN, CALLS
from hallulab.scenarios.text.wording import choose_noun, format_count
from hallulab.scenarios.transcript import Call, Conversation, Frozen
from hallulab.simulator.metrics.hallucinations import ByDetector, Row
from hallulab.simulator.metrics.metric import Flaws, Metric, RunFacts, Tallied
from hallulab.simulator.metrics.run_report import RunReport


class CutReplies(Frozen):
    """A chatbot with replies that may not be whole."""

    chatbot: str
    replies: int
    cut: int
    """Those with a text that ended at the limit of tokens."""
    unclear: int = 0
    """Those with a text of which the endpoint did not say, in a word that is known, why it ended."""


class OmissionSection(Frozen):
    """Fields of `report.json`."""

    cut_replies: tuple[CutReplies, ...]
    """Chatbots with texts that ended at the limit of tokens, or nobody knows why."""


class Omissions(Metric):
    """Counts cut replies."""

    SECTION = OmissionSection
    ORDER = 25

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count a conversation."""
        ends = [
            {call.finish_reason for call in turn.calls if _wrote_text(call)} for turn in conversation.turns
        ]
        self._counts[conversation.chatbot].update(
            replies=len(ends),
            cut=sum("length" in one for one in ends),
            unclear=sum("unknown" in one for one in ends),
        )

    def merge(self, other: Self) -> None:
        """Add the counts of other conversations."""
        for name, counts in other._counts.items():
            self._counts[name].update(counts)

    def result(self, tallied: Tallied) -> OmissionSection:
        """Return the chatbots with replies that may not be whole."""
        counts = {name: self._counts[name] for name in self.run.chatbots}
        cut = tuple(
            CutReplies(chatbot=name, replies=own["replies"], cut=own["cut"], unclear=own["unclear"])
            for name, own in counts.items()
            if own["cut"] or own["unclear"]
        )
        return OmissionSection(cut_replies=cut)

    @classmethod
    def notes(cls, report: RunReport) -> Sequence[str]:
        """Say of chatbots what was cut off, and of detectors what they did not score or place."""
        section = report.of(OmissionSection)
        found = []
        for line in section.cut_replies:
            replies = f"{line.replies} {choose_noun(line.replies, 'reply', 'replies')}"
            if line.cut:
                found.append(
                    f"{line.chatbot}: {line.cut} of {replies} reached the limit of tokens and may be cut off "
                    "(`reply_tokens`, or the chatbot's `max_tokens`)."
                )
            if line.unclear:
                found.append(
                    f"{line.chatbot}: of {line.unclear} of {replies} it is not known why the text ended, "
                    "as the endpoint did not say so in a word that is known. It may be cut off."
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


def _wrote_text(call: Call) -> bool:
    """Return whether a call wrote a chatbot's text, whose end matters.

    Decisions have one token; queries and a guard's judgements may be cut.
    """
    purpose = call.purpose.replace(AGAIN, "chatbot.")
    wrote = purpose.startswith("chatbot.") and purpose != "chatbot.reformulate"
    wrote = wrote and not purpose.startswith(CALLS)
    return wrote and call.completion_tokens != 1
