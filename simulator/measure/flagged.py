"""What was found in a run's replies: how many all detectors flag, whose they are, how many are disputed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hallulab.detectors.base.wrong_items.explanation import Explanation, explain
from hallulab.scenarios.transcript import Conversation, Frozen, Span, Turn
from hallulab.simulator.measure.metrics import ByDetector

MOST_EXPLAINED = 200
"""Replies flagged by all detectors that are looked through for an example; large runs have thousands."""
LONGEST = 500
"""Characters of a sentence at most that is looked at: nobody reads a longer example, and it takes long."""
SHORT_ITEM = 40
"""Characters up to which a wrong item is short: a number, a name, not half a sentence."""


class Example(Frozen):
    """A flagged sentence of a reply that all detectors flag, and what is wrong with it."""

    conversation: str
    """Identifier of the conversation."""
    chatbot: str
    """Who said it."""
    turn: int
    """Index of the turn."""
    text: str
    """The sentence."""
    reason: str
    """What is wrong, by text rules (`hallulab.detectors.base.wrong_items`)."""


class Flagged(Frozen):
    """What all detectors of a run flag together: `flagged` in `report.json`."""

    replies: int
    """All replies."""
    scored: int
    """Those that every detector scored."""
    by_all: int
    """Those of them that every detector flags."""
    by_some: int
    """Those of them on which the detectors disagree."""
    most_often: tuple[str, ...]
    """The chatbots with the largest share of replies that every detector flags, in the order of the rows;
    empty where there is none, or all chatbots have the same."""
    their_share: tuple[int, int] | None
    """Such replies of each of them, and its scored ones; None where these numbers differ or are none."""
    example: Example | None
    """One such reply, of a chatbot that is most often flagged if there is one."""


class Flagging:
    """Counts flagged replies, conversation by conversation.

    Args:
        detectors: names of the run's detectors.
    """

    def __init__(self, detectors: Sequence[str]) -> None:
        self._detectors = tuple(detectors)
        self._replies = self._disputed = self._explained = 0
        self._scored: Counter[str] = Counter()
        self._by_all: Counter[str] = Counter()
        self._examples: dict[str, tuple[int, Example]] = {}

    def add(self, conversation: Conversation, verdicts: ByDetector) -> None:
        """Count a conversation's replies, by the verdicts on it."""
        self._replies += len(conversation.turns)
        for turn in conversation.turns:
            found = [verdicts.get(name, {}).get(turn.index) for name in self._detectors]
            scored = [verdict for verdict in found if verdict is not None and verdict.flagged is not None]
            if not scored or len(scored) < len(self._detectors):
                continue
            flags = {verdict.flagged for verdict in scored}
            self._scored[conversation.chatbot] += 1
            self._by_all[conversation.chatbot] += flags == {True}
            self._disputed += len(flags) > 1
            if flags == {True} and self._explained < MOST_EXPLAINED:
                self._explained += 1
                for span in (span for verdict in scored for span in verdict.spans or ()):
                    if len(span.text) <= LONGEST:
                        self._keep_if_better(conversation, turn, span)

    def _keep_if_better(self, conversation: Conversation, turn: Turn, span: Span) -> None:
        found = explain(span.text, turn.passages, _join_user_messages(conversation, turn))
        worth, kept = _score_example(found), self._examples.get(conversation.chatbot)
        if kept is None or worth > kept[0]:
            self._examples[conversation.chatbot] = (
                worth,
                Example(
                    conversation=conversation.id,
                    chatbot=conversation.chatbot,
                    turn=turn.index,
                    text=span.text,
                    reason=found.reason,
                ),
            )

    def flagged(self, chatbots: Sequence[str]) -> Flagged:
        """Return the counts; `chatbots` are those of the run, in the order of the rows."""
        shares = {name: self._by_all[name] / self._scored[name] for name in chatbots if self._scored[name]}
        highest = max(shares.values(), default=0.0)
        most = tuple(name for name, share in shares.items() if share == highest > 0)
        most = most if len(most) < len(shares) else ()
        counts = {(self._by_all[name], self._scored[name]) for name in most}
        examples = [self._examples[name] for name in most or chatbots if name in self._examples]
        return Flagged(
            replies=self._replies,
            scored=self._scored.total(),
            by_all=self._by_all.total(),
            by_some=self._disputed,
            most_often=most,
            their_share=counts.pop() if len(counts) == 1 else None,
            example=max(examples, key=lambda one: one[0])[1] if examples else None,
        )


def _join_user_messages(conversation: Conversation, turn: Turn) -> str:
    """Return every message of the user up to a turn, which a reply may repeat."""
    earlier = [message.text for message in conversation.given if message.role == "user"]
    return "\n".join([*earlier, *(one.user for one in conversation.turns if one.index <= turn.index)])


def _score_example(found: Explanation) -> int:
    """Return how well an example shows what is wrong: best a short number with the right one beside it."""
    if not found.items:
        return 0
    first = found.items[0]
    is_short = len(first.text) <= SHORT_ITEM
    has_number = any(character.isdigit() for character in first.text)
    return 1 + is_short + 2 * (is_short and has_number) + bool(first.instead)
