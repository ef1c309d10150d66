"""Replies that all detectors of a run flag, and an example: the first headline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Self

from hallulab.detectors.explanations.explanation import Explanation, explain
from hallulab.scenarios.text.wording import choose_noun, join_names, shorten_line
from hallulab.scenarios.transcript import Conversation, Frozen, Span, Turn
from hallulab.simulator.metrics.failures import MUCH
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import Flaws, Metric, RunFacts, Tallied
from hallulab.simulator.metrics.run_report import RunReport

MOST_EXPLAINED = 200
"""Replies flagged by all detectors that are looked through for an example; large runs have thousands."""
LONGEST = 500
"""Characters of a sentence at most that is looked at: nobody reads a longer example, and it takes long."""
SHORT_ITEM = 40
"""Characters up to which a wrong item is short: a number, a name, not half a sentence."""


Place = tuple[str, str, int, int, str, int]
"""Where a reply stands in a report: scenario, persona, seed, depth, conversation and turn."""


class Example(Frozen):
    """A flagged sentence of a reply that all detectors flag, and what is wrong with it."""

    conversation: str
    chatbot: str
    turn: int
    text: str
    reason: str
    """The error, by text rules (`hallulab.detectors.explanations`)."""


class DetectorFlags(Frozen):
    """Replies that one detector flags."""

    detector: str
    scored: int
    flagged: int


class Flagged(Frozen):
    """Replies that all detectors of a run flag: `flagged` in `report.json`."""

    replies: int
    scored: int
    """Those that every detector scored."""
    by_all: int
    """Replies that every detector flags."""
    by_some: int
    """Replies on which the detectors disagree."""
    most_often: tuple[str, ...]
    """The chatbots with the largest share of replies that every detector flags, in the order of the rows;
    empty where there is none, or all chatbots have the same."""
    their_share: tuple[int, int] | None
    """Such replies of each of them, and its scored ones; None where these numbers differ or are none."""
    example: Example | None
    """One such reply, of a chatbot that is most often flagged if there is one."""
    alone: tuple[DetectorFlags, ...] = ()


class FlaggedSection(Frozen):
    """Fields of `report.json`."""

    flagged: Flagged | None = None
    """Replies that all detectors flag; None: an earlier version of hallulab wrote the report."""


class FlaggedReplies(Metric):
    """Counts flagged replies."""

    SECTION = FlaggedSection
    ORDER = 5

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._replies = self._disputed = 0
        self._alone: Counter[tuple[str, bool]] = Counter()
        """Scored replies by detector and whether it flags them."""
        self._scored: Counter[str] = Counter()
        self._by_all: Counter[str] = Counter()
        self._examples: list[tuple[Place, tuple[tuple[int, Example], ...]]] = []
        """Of the first replies that all detectors flag, what they flag, and how good an example each is."""

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count a conversation's replies, by the verdicts on it."""
        self._replies += len(conversation.turns)
        for turn in conversation.turns:
            found = [verdicts.get(name, {}).get(turn.index) for name in self.run.detectors]
            scored = [verdict for verdict in found if verdict is not None and verdict.flagged is not None]
            self._alone.update((verdict.detector, bool(verdict.flagged)) for verdict in scored)
            if not scored or len(scored) < len(self.run.detectors):
                continue
            flags = {verdict.flagged for verdict in scored}
            self._scored[conversation.chatbot] += 1
            self._by_all[conversation.chatbot] += flags == {True}
            self._disputed += len(flags) > 1
            if flags == {True} and len(self._examples) < MOST_EXPLAINED:
                spans = (span for verdict in scored for span in verdict.spans or ())
                explained = (
                    _explain(conversation, turn, span) for span in spans if len(span.text) <= LONGEST
                )
                self._examples.append((find_place(conversation, turn), tuple(explained)))

    def merge(self, other: Self) -> None:
        """Add the replies of other conversations."""
        self._replies += other._replies
        self._disputed += other._disputed
        self._alone.update(other._alone)
        self._scored.update(other._scored)
        self._by_all.update(other._by_all)
        found = sorted([*self._examples, *other._examples], key=lambda one: one[0])
        self._examples = found[:MOST_EXPLAINED]

    def _choose_examples(self) -> dict[str, tuple[int, Example]]:
        """Return the first of the best examples of each chatbot."""
        best: dict[str, tuple[int, Example]] = {}
        for worth, example in (one for _, explained in self._examples for one in explained):
            kept = best.get(example.chatbot)
            if kept is None or worth > kept[0]:
                best[example.chatbot] = (worth, example)
        return best

    def result(self, tallied: Tallied) -> FlaggedSection:
        """Return the counts, and the example that shows best what is wrong."""
        chatbots = self.run.chatbots
        shares = {name: self._by_all[name] / self._scored[name] for name in chatbots if self._scored[name]}
        highest = max(shares.values(), default=0.0)
        most = tuple(name for name, share in shares.items() if share == highest > 0)
        most = most if len(most) < len(shares) else ()
        counts = {(self._by_all[name], self._scored[name]) for name in most}
        best = self._choose_examples()
        examples = [best[name] for name in most or chatbots if name in best]
        found = Flagged(
            replies=self._replies,
            scored=self._scored.total(),
            by_all=self._by_all.total(),
            by_some=self._disputed,
            most_often=most,
            their_share=counts.pop() if len(counts) == 1 else None,
            example=max(examples, key=lambda one: one[0])[1] if examples else None,
            alone=tuple(
                DetectorFlags(
                    detector=name,
                    scored=self._alone[name, True] + self._alone[name, False],
                    flagged=self._alone[name, True],
                )
                for name in self.run.detectors
            ),
        )
        return FlaggedSection(flagged=found)

    @classmethod
    def headlines(cls, report: RunReport) -> Sequence[str]:
        """Say what was found in the replies, and where to look first."""
        flagged = report.of(FlaggedSection).flagged
        if flagged is None or not flagged.replies:
            return ()
        said = [_describe_flagged(flagged, report.detectors)]
        scores = any(one.scored for one in flagged.alone)
        if len(flagged.alone) > 1 and scores and flagged.replies - flagged.scored > MUCH * flagged.replies:
            told = [
                f"{one.detector} flags {one.flagged} of {_format_replies(one.scored)}"
                if one.scored
                else f"{one.detector} scored none"
                for one in flagged.alone
            ]
            said.append(f"Each by itself: {join_names(told)}.")
        if flagged.by_some:
            replies = _format_replies(flagged.by_some)
            said.append(f"The detectors disagree on {replies}, which the page lists.")
        return said


def find_place(conversation: Conversation, turn: Turn) -> Place:
    """Return where a reply stands."""
    return (*conversation.pairing, conversation.depth(0), conversation.id, turn.index)


def _explain(conversation: Conversation, turn: Turn, span: Span) -> tuple[int, Example]:
    """Return what is wrong with a span of a reply, and how good an example it is."""
    # A reply may repeat what the user said.
    said = [message.text for message in conversation.given if message.role == "user"]
    said += [one.user for one in conversation.turns if one.index <= turn.index]
    found = explain(span.text, turn.passages, "\n".join(said))
    example = Example(
        conversation=conversation.id,
        chatbot=conversation.chatbot,
        turn=turn.index,
        text=span.text,
        reason=found.reason,
    )
    return _score_example(found), example


def _score_example(found: Explanation) -> int:
    """Return how well an example shows what is wrong: best a short number with the right one beside it."""
    if not found.items:
        return 0
    first = found.items[0]
    is_short = len(first.text) <= SHORT_ITEM
    has_number = any(character.isdigit() for character in first.text)
    return 1 + is_short + 2 * (is_short and has_number) + bool(first.instead)


def _describe_flagged(flagged: Flagged, detectors: Sequence[str]) -> str:
    """Say how many replies all detectors flag, whose they are, and what is wrong with one."""
    by = detectors[0] if len(detectors) == 1 else "both detectors" if len(detectors) == 2 else "all detectors"
    replies = _format_replies(flagged.scored)
    left = flagged.replies - flagged.scored
    apart = f"; {left} more {'was' if left == 1 else 'were'} not scored by {by}" if left else ""
    if not detectors:
        return f"No detector has judged the {_format_replies(flagged.replies)}."
    if not flagged.scored:
        return f"None of {_format_replies(flagged.replies)} was scored by {by}."
    if not flagged.by_all:
        return f"None of {replies} is flagged by {by}{apart}."
    often = (
        f", in this run most often those of {join_names(flagged.most_often)}" if flagged.most_often else ""
    )
    if flagged.their_share is not None:
        each = " each" if len(flagged.most_often) > 1 else ""
        often += " ({} of {}{})".format(*flagged.their_share, each)
    example = ""
    if flagged.example is not None:
        one = flagged.example
        said = shorten_line(one.text)
        stop = "." if said[-1:].isalnum() else ""
        example = f' For example, {one.chatbot} says "{said}"{stop} {one.reason}'
    are = "is" if flagged.by_all == 1 else "are"
    return f"{flagged.by_all} of {replies} {are} flagged by {by}{often}{apart}.{example}"


def _format_replies(number: int) -> str:
    return f"{number} {choose_noun(number, 'reply', 'replies')}"
