"""Left out of a report's numbers: cut replies, and turns that no detector scored or placed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from hallulab.chatbots.guarded.record import AGAIN, CALLS
from hallulab.scenarios.text.wording import choose_noun, format_count
from hallulab.scenarios.transcript import CUT, Call, Conversation, Frozen
from hallulab.simulator.metrics.hallucinations import ByDetector, Row, count_verdicts
from hallulab.simulator.metrics.metric import Flaws, Metric, RunFacts, TableMetric, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.records.journal_lines import derive_first_try
from hallulab.simulator.show.columns import CHATBOT, DETECTOR, TWO_DECIMALS, Column
from hallulab.simulator.statistics.intervals import Interval, compute_interval, compute_ratio_of_sums
from hallulab.simulator.statistics.sums import PersonSums


class CutReplies(Frozen):
    """A chatbot with replies that may not be whole."""

    chatbot: str
    replies: int
    cut: int
    """Those with a text that ended at the limit of tokens."""
    unclear: int = 0
    """Those with a text of which the endpoint did not say, in a word that is known, why it ended."""
    ended: int = 0
    """Replies of a bot over HTTP whose answer says that the text was ended early."""


class OmissionSection(Frozen):
    """Fields of `report.json`."""

    cut_replies: tuple[CutReplies, ...]
    """Chatbots with texts that ended at the limit of tokens, or nobody knows why."""


class Omissions(Metric):
    """Counts cut replies."""

    SECTION = OmissionSection
    ORDER = 25
    COUNTS = ("_counts",)

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
            ended=sum(any(step.name == CUT for step in turn.steps) for turn in conversation.turns),
        )

    def result(self, tallied: Tallied) -> OmissionSection:
        """Return the chatbots with replies that may not be whole."""
        counts = {name: self._counts[name] for name in self.run.chatbots}
        cut = tuple(
            CutReplies(chatbot=name, **own)
            for name, own in counts.items()
            if own["cut"] or own["unclear"] or own["ended"]
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
            if line.ended:
                found.append(
                    f"{line.chatbot}: its service says that it ended {line.ended} of {replies} early."
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


class Retried(Frozen):
    """A chatbot under a detector, with first tries and retries apart: a row of `retries` in `report.json`."""

    chatbot: str
    detector: str
    first_tries: int
    first_hpt: float | None
    """HPT-1 of the first tries; None: no turn of them is scored."""
    first_hpt_ci95: Interval
    """Its 95% interval over personas; None: there are too few, or all have the same HPT-1."""
    retries: int
    retried_hpt: float | None
    retried_hpt_ci95: Interval


class Retries(TableMetric[Retried]):
    """Compares conversations that were repeated with the other ones, of chatbots that have such."""

    NAME, TITLE, LINK, ROW = "retries", "Retried conversations", "retries", Retried
    ORDER = TERMINAL_ORDER = 81
    FILE = "with rows"
    COLUMNS = (
        CHATBOT,
        DETECTOR,
        Column("First tries", "first_tries", "conversations that ran once", short="First\ntries"),
        Column("HPT-1, first tries", "first_hpt", "hallucinations over these scored turns", TWO_DECIMALS,
               beside="first_hpt_ci95", short="HPT-1"),
        Column("Retried", "retries", "conversations that were repeated after a failure", short="Retried"),
        Column("HPT-1, retried", "retried_hpt", "hallucinations over these scored turns", TWO_DECIMALS,
               beside="retried_hpt_ci95", short="HPT-1"),
    )  # fmt: skip

    COUNTS = ("_conversations", "_sums")
    HINTS = (
        "A retried conversation was repeated because its first try failed. Both kinds count in all "
        "other numbers. If failures depend on what is said, the two differ.",
    )

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._conversations: Counter[tuple[str, bool]] = Counter()
        """(Chatbot, whether it is a retry) → conversations."""
        self._sums = PersonSums(2)
        """Hallucinations and scored turns, by chatbot, detector and whether it is a retry."""

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count a conversation among the first tries or the retries of its chatbot."""
        retried = derive_first_try(conversation.id) != conversation.id
        self._conversations[conversation.chatbot, retried] += 1
        person = (conversation.scenario, conversation.persona)
        for detector in self.run.detectors:
            found = count_verdicts(conversation, verdicts.get(detector, {}))
            if found.scored_turns:
                key = (conversation.chatbot, detector, retried)
                self._sums.add(person, key, (found.hallucinations, found.scored_turns))

    def table(self, tallied: Tallied) -> Sequence[Retried]:
        """Return a row for each detector of each chatbot that has retries."""
        chatbots = [name for name in self.run.chatbots if self._conversations[name, True]]
        return [self._build_row(name, detector) for name in chatbots for detector in self.run.detectors]

    def _build_row(self, chatbot: str, detector: str) -> Retried:
        first, retried = (self._sums.list_ratios((chatbot, detector, again)) for again in (False, True))
        return Retried(
            chatbot=chatbot,
            detector=detector,
            first_tries=self._conversations[chatbot, False],
            first_hpt=compute_ratio_of_sums(first),
            first_hpt_ci95=compute_interval(first, "rate"),
            retries=self._conversations[chatbot, True],
            retried_hpt=compute_ratio_of_sums(retried),
            retried_hpt_ci95=compute_interval(retried, "rate"),
        )
