"""Counts a run in one pass over its journals: of each conversation, only numbers are kept."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from hallulab.chatbots.guarded.record import AGAIN, CALLS
from hallulab.scenarios.attacks.attacked import AttackRecord
from hallulab.scenarios.transcript import Call, Conversation, Frozen
from hallulab.simulator.measure.agreement import Flags
from hallulab.simulator.measure.attacks import Attacked
from hallulab.simulator.measure.concentration import Concentrations
from hallulab.simulator.measure.conversations import Auditing, Lengths, TurnFlaw
from hallulab.simulator.measure.costs import CostCounter
from hallulab.simulator.measure.flagged import Flagging
from hallulab.simulator.measure.judged_turns import Annotations, JudgedTurns
from hallulab.simulator.measure.metrics import ByDetector, Counting
from hallulab.simulator.measure.safeguards import Guarding


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
