"""What personas' conversations came to, as far as a decision needs it: HPT by chatbot, and tokens."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.metrics.hallucinations import ByDetector, count_verdicts
from hallulab.simulator.metrics.spending import sum_calls, sum_known

Key = tuple[str, str]


class Talks:
    """Counts conversations under the detector that decides.

    A persona's HPT with a chatbot is that of the report: hallucinations over scored turns, over all seeds.

    Args:
        detector: its name.
    """

    def __init__(self, detector: str) -> None:
        self._detector = detector
        self._found: dict[Key, tuple[int, int]] = {}
        """Hallucinations and scored turns."""
        self._held: Counter[Key] = Counter()
        """Conversations, without those that lack a verdict."""
        self._tokens: dict[str, list[int | None]] = defaultdict(list)
        """Tokens of all calls in a persona's conversations."""

    def add(self, conversation: Conversation, verdicts: ByDetector) -> None:
        """Count a conversation, with the verdicts of all detectors on it."""
        key = (conversation.persona, conversation.chatbot)
        tally = count_verdicts(conversation, verdicts.get(self._detector, {}))
        over, under = self._found.get(key, (0, 0))
        self._found[key] = over + tally.hallucinations, under + tally.scored_turns
        judged = tally.scored_turns + tally.failed + tally.abstained + tally.not_localised
        self._held[key] += judged == tally.turns
        calls = [*conversation.calls, *(call for turn in conversation.turns for call in turn.calls)]
        calls += [call for found in verdicts.values() for verdict in found.values() for call in verdict.calls]
        if calls:
            self._tokens[conversation.persona].append(sum_calls(calls).tokens)

    def merge(self, other: Talks) -> None:
        """Add what another one counted of other personas."""
        self._found.update(other._found)
        self._held.update(other._held)
        self._tokens.update(other._tokens)

    def are_held(self, persona: str, chatbots: Iterable[str], seeds: int) -> bool:
        """Return whether a persona talked with all these chatbots, with so many seeds, and was judged."""
        return all(self._held[persona, chatbot] >= seeds for chatbot in chatbots)

    def rates(self, persona: str, chatbots: Sequence[str]) -> Mapping[str, float | None]:
        """Return the HPT of chatbots with a persona; None where no turn was scored."""
        found = {chatbot: self._found.get((persona, chatbot), (0, 0)) for chatbot in chatbots}
        return {chatbot: over / under if under else None for chatbot, (over, under) in found.items()}

    def tokens(self, personas: Iterable[str]) -> int | None:
        """Return the tokens of all calls with personas; None where no server reported any."""
        return sum_known([count for persona in personas for count in self._tokens.get(persona, ())])
