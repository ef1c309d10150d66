"""Which hallucinated turns are new, gone, worse or better in another run, and which by noise alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hallulab.scenarios.transcript import Frozen, Number, Pairing
from hallulab.simulator.compare.summary import (
    BriefVerdict,
    ConversationSummary,
    RunSummary,
    TurnSummary,
    VerdictOutcome,
)

ChangeKind = Literal["new", "gone", "worse", "better"]

KINDS: tuple[ChangeKind, ...] = ("new", "gone", "worse", "better")
"""In the order in which they are shown."""


class FoundInTurn(BriefVerdict):
    """Verdict of a detector on a turn of one run."""

    outcome: VerdictOutcome | Literal["missing"] = "missing"
    severity: Number | None = None
    """The highest severity; None: the detector rates none."""

    @property
    def judged(self) -> bool:
        """There is a verdict on the turn."""
        return self.outcome in ("scored", "not localised")


class TurnTexts(Frozen):
    """Texts of a changed turn, shortened; known where run folders are compared."""

    user: str
    """The user's message in the run; where the turn is gone, in the reference."""
    reply_before: str | None = None
    """The reply in the reference; None: not known."""
    reply_after: str | None = None
    """The reply in the run; None: not known."""
    spans_before: tuple[str, ...] = ()
    """Flagged texts of the reference."""
    spans_after: tuple[str, ...] = ()
    """Flagged texts of the run."""


class ChangedTurn(Frozen):
    """A turn whose hallucination is new, gone, worse or better."""

    kind: ChangeKind
    """Which. `new`: hallucinated now and not before; `gone`: the other way round, and judged in both runs;
    `worse`, `better`: hallucinated in both, with a higher or lower severity, or else more or fewer
    hallucinations."""
    noise: bool
    """Message, reply, passages, history and documents are the same in both runs, so that only the
    detector's noise can be the reason."""
    chatbot: str
    detector: str
    scenario: str
    persona: str
    seed: int
    turn: int
    """Number of the turn from 0, given ones included."""
    index: int
    """Its place in its own conversation."""
    conversation_before: str
    """Identifier of the conversation in the reference."""
    conversation_after: str
    before: FoundInTurn
    after: FoundInTurn
    texts: TurnTexts | None = None
    """Its texts; None: not read, or not known."""


class TurnCounts(Frozen):
    """How many turns of a chatbot have changed under a detector."""

    chatbot: str
    detector: str
    compared: int
    """Turns with the same persona, seed and number that are judged in both runs."""
    same_reply: int
    """Turns of these with the same message, reply, passages and history."""
    new: int
    """Turns that are hallucinated now and were not before, those included that were not judged before."""
    gone: int
    """Turns that were hallucinated before and are not now."""
    worse: int
    """Turns that are hallucinated in both runs, and worse now."""
    better: int
    """Turns that are hallucinated in both runs, and better now."""
    by_noise: int
    """Changed turns that `same_reply` counts: the detector's noise."""
    unjudged: int
    """Turns that were hallucinated before and are not judged now, or are not there."""
    new_unjudged: int = 0
    """Turns of `new` without a verdict in the reference."""
    unlike: int = 0
    """Turns whose message, reply, passages or verdict are not the same, judged or not; one that only one run
    has is among them."""


class TurnChanges(Frozen):
    """The changed turns of a run."""

    conversations: int
    """Conversations with the same chatbot, persona and seed in both runs."""
    counts: tuple[TurnCounts, ...]
    turns: tuple[ChangedTurn, ...]
    """The turns: by kind, those by noise last, the severest first."""


@dataclass(frozen=True)
class TurnPair:
    """A turn of a run beside the same turn of the reference, under one detector."""

    conversation: ConversationSummary
    conversation_before: str
    """Identifier of that of the reference; empty: it has none."""
    index: int
    detector: str
    turn_before: TurnSummary | None
    turn_after: TurnSummary | None
    noise: bool
    """Message, reply, passages, history and documents are the same."""
    before: FoundInTurn
    after: FoundInTurn

    @property
    def is_unlike(self) -> bool:
        """Texts or verdict differ; also where only one run has the turn."""
        before, after = self.turn_before, self.turn_after
        if before is None or after is None:
            return True
        texts = [(turn.user, turn.reply, turn.passages) for turn in (before, after)]
        return texts[0] != texts[1] or before.verdicts.get(self.detector) != after.verdicts.get(self.detector)

    def describe(self, kind: ChangeKind) -> ChangedTurn:
        """Return the turn as one that has changed."""
        chat = self.conversation
        return ChangedTurn(
            kind=kind,
            noise=self.noise,
            chatbot=chat.chatbot,
            detector=self.detector,
            scenario=chat.scenario,
            persona=chat.persona,
            seed=chat.seed,
            turn=self.index + (chat.branch or 0),
            index=self.index,
            conversation_before=self.conversation_before,
            conversation_after=chat.id,
            before=self.before,
            after=self.after,
        )


Key = tuple[str, Pairing, int]
"""Chatbot, its user, and the turn at which a conversation branches off, else -1."""


def list_changed_turns(
    before: RunSummary, after: RunSummary, chatbots: Sequence[str], detectors: Sequence[str]
) -> TurnChanges:
    """List the turns whose hallucinations have changed, in conversations with the same persona and seed."""
    held, others = index_conversations(before), index_conversations(after)
    shared = [key for key in held if key in others and key[0] in chatbots]
    same = before.setup.scenario_version == after.setup.scenario_version
    counts: dict[tuple[str, str], Counter[str]] = {
        (chatbot, detector): Counter() for chatbot in chatbots for detector in detectors
    }
    turns: list[ChangedTurn] = []
    for key in shared:
        for pair in pair_turns(held[key], others[key], detectors, same):
            counting = counts[key[0], pair.detector]
            both = pair.before.judged and pair.after.judged
            counting["compared"] += both
            counting["same_reply"] += pair.noise and both
            counting["unjudged"] += pair.before.hallucinated and not pair.after.judged
            counting["unlike"] += pair.is_unlike
            kind = judge_change(pair.before, pair.after)
            if kind is not None:
                counting[kind] += 1
                counting["by_noise"] += pair.noise and pair.before.judged
                counting["new_unjudged"] += not pair.before.judged
                turns.append(pair.describe(kind))
    return TurnChanges(
        conversations=len(shared),
        counts=tuple(
            TurnCounts(
                chatbot=chatbot,
                detector=detector,
                **{
                    name: counting[name]
                    for name in TurnCounts.model_fields
                    if name not in ("chatbot", "detector")
                },
            )
            for (chatbot, detector), counting in counts.items()
        ),
        turns=tuple(sorted(turns, key=_rank)),
    )


def judge_change(before: FoundInTurn, after: FoundInTurn) -> ChangeKind | None:
    """Return what has become of a turn; None: nothing, or it is not judged now."""
    if not after.judged:
        return None
    if not before.judged:
        return "new" if after.hallucinated else None
    if before.hallucinated != after.hallucinated:
        return "new" if after.hallucinated else "gone"
    if not after.hallucinated:
        return None
    if before.severity is not None and after.severity is not None and before.severity != after.severity:
        return "worse" if after.severity > before.severity else "better"
    if before.outcome == after.outcome == "scored" and before.spans != after.spans:
        return "worse" if after.spans > before.spans else "better"
    return None


def index_conversations(summary: RunSummary) -> dict[Key, ConversationSummary]:
    """Return the conversations of a run by what pairs them with those of another run."""
    return {(one.chatbot, one.pairing, one.branched_at): one for one in summary.conversations}


def pair_turns(
    before: ConversationSummary | None, after: ConversationSummary, detectors: Sequence[str], same: bool
) -> Iterator[TurnPair]:
    """Yield every turn of two conversations under every detector.

    Args:
        before: the conversation in the reference; None: it has none.
        same: whether the documents are the same.
    """
    old = () if before is None else before.turns
    for index in range(max(len(old), len(after.turns))):
        one, other = (turns[index] if index < len(turns) else None for turns in (old, after.turns))
        # A turn after another history is another turn, so once texts differ, no later one is the same.
        same = (
            same
            and one is not None
            and other is not None
            and (one.user, one.reply) == (other.user, other.reply)
        )
        noise = same and one is not None and other is not None and one.passages == other.passages
        for detector in detectors:
            yield TurnPair(
                conversation=after,
                conversation_before="" if before is None else before.id,
                index=index,
                detector=detector,
                turn_before=one,
                turn_after=other,
                noise=noise,
                before=_find(one, detector),
                after=_find(other, detector),
            )


def _find(turn: TurnSummary | None, detector: str) -> FoundInTurn:
    verdict = None if turn is None else turn.verdicts.get(detector)
    if verdict is None:
        return FoundInTurn()
    shared = {name: getattr(verdict, name) for name in FoundInTurn.model_fields}
    return FoundInTurn(**shared)


def _rank(turn: ChangedTurn) -> tuple[int, bool, float, int, str, str, int, str, int]:
    worst = max(found.severity or 0.0 for found in (turn.before, turn.after))
    spans = abs(turn.after.spans - turn.before.spans)
    return (
        KINDS.index(turn.kind),
        turn.noise,
        -worst,
        -spans,
        turn.persona,
        turn.chatbot,
        turn.seed,
        turn.detector,
        turn.turn,
    )
