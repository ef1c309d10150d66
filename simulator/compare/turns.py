"""Which hallucinated turns are new, gone, worse or better in another run, and which by noise alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Literal

from hallulab.scenarios.transcript import Frozen, Number
from hallulab.simulator.compare.summary import ConversationSummary, RunSummary, TurnSummary, VerdictSummary

ChangeKind = Literal["new", "gone", "worse", "better"]
"""What has become of a hallucinated turn."""

KINDS: tuple[ChangeKind, ...] = ("new", "gone", "worse", "better")
"""In the order in which they are told."""


class FoundInTurn(Frozen):
    """What a detector found in a turn of one run."""

    outcome: Literal["scored", "not localised", "abstained", "failed", "missing"] = "missing"
    """What came of it; `missing`: there is no verdict, or no such turn."""
    flagged: bool = False
    """Whether the reply is flagged."""
    spans: int = 0
    severity: Number | None = None
    """The highest severity; None: the detector rates none."""

    @property
    def judged(self) -> bool:
        """Whether there is a verdict that says whether the turn is hallucinated."""
        return self.outcome in ("scored", "not localised")

    @property
    def hallucinated(self) -> bool:
        """Whether there is a hallucination."""
        return self.flagged or self.spans > 0


class TurnTexts(Frozen):
    """Texts of a changed turn, shortened; known where run folders are compared."""

    user: str
    """The user's message in the run; where the turn is gone, in the reference."""
    reply_before: str | None = None
    """The reply in the reference; None: not known."""
    reply_after: str | None = None
    """The reply in the run; None: not known."""
    spans_before: tuple[str, ...] = ()
    """What was flagged in the reference."""
    spans_after: tuple[str, ...] = ()
    """What is flagged in the run."""


class ChangedTurn(Frozen):
    """A turn whose hallucination is new, gone, worse or better."""

    kind: ChangeKind
    """Which. `new`: hallucinated now and not before; `gone`: the other way round, and judged in both runs;
    `worse`, `better`: hallucinated in both, with a higher or lower severity, or else more or fewer
    hallucinations."""
    noise: bool
    """Whether message, reply, passages, history and documents are the same in both runs, so that only the
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
    """Identifier in the run."""
    before: FoundInTurn
    """What the detector found in the reference."""
    after: FoundInTurn
    """What it found in the run."""
    texts: TurnTexts | None = None
    """Its texts; None: not read, or not known."""


class TurnCounts(Frozen):
    """How many turns of a chatbot have changed under a detector."""

    chatbot: str
    detector: str
    compared: int
    """Turns with the same persona, seed and number that are judged in both runs."""
    same_reply: int
    """Those of them with the same message, reply, passages and history."""
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
    """Those of `new` that the reference lacks or did not judge."""
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


Place = tuple[str, str, int, int]
"""Scenario, persona, seed, and the turn at which a conversation branches off, else -1."""


def list_changed_turns(
    before: RunSummary, after: RunSummary, chatbots: Sequence[str], detectors: Sequence[str]
) -> TurnChanges:
    """List the turns whose hallucinations have changed, in conversations with the same persona and seed."""
    held = _index_conversations(before, chatbots)
    others = _index_conversations(after, chatbots)
    shared = [key for key in held if key in others]
    same = before.setup.scenario_version == after.setup.scenario_version
    counts: dict[tuple[str, str], Counter[str]] = {
        (chatbot, detector): Counter() for chatbot in chatbots for detector in detectors
    }
    turns: list[ChangedTurn] = []
    for key in shared:
        one, other = held[key], others[key]
        for detector in detectors:
            counting = counts[one.chatbot, detector]
            turns += _compare_conversations(one, other, detector, counting, same)
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


def _index_conversations(
    summary: RunSummary, chatbots: Collection[str]
) -> dict[tuple[str, Place], ConversationSummary]:
    return {
        (one.chatbot, (one.scenario, one.persona, one.seed, -1 if one.branch is None else one.branch)): one
        for one in summary.conversations
        if one.chatbot in chatbots
    }


def _compare_conversations(
    before: ConversationSummary, after: ConversationSummary, detector: str, counting: Counter[str], same: bool
) -> Iterator[ChangedTurn]:
    """Yield the changed turns of two conversations, and count what is compared.

    Args:
        before: the conversation in the reference.
        after: that in the run.
        detector: its name.
        counting: is added to.
        same: whether the documents are the same.
    """
    for index in range(max(len(before.turns), len(after.turns))):
        one, other = (chat.turns[index] if index < len(chat.turns) else None for chat in (before, after))
        same = (
            same
            and one is not None
            and other is not None
            and (one.user, one.reply) == (other.user, other.reply)
        )
        noise = same and one is not None and other is not None and one.passages == other.passages
        found, now = _find(one, detector), _find(other, detector)
        counting["compared"] += found.judged and now.judged
        counting["same_reply"] += noise and found.judged and now.judged
        counting["unjudged"] += found.hallucinated and not now.judged
        counting["unlike"] += _is_unlike(one, other, detector)
        kind = judge_change(found, now)
        if kind is not None:
            counting[kind] += 1
            counting["by_noise"] += noise and found.judged
            counting["new_unjudged"] += not found.judged
            yield ChangedTurn(
                kind=kind,
                noise=noise,
                chatbot=after.chatbot,
                detector=detector,
                scenario=after.scenario,
                persona=after.persona,
                seed=after.seed,
                turn=index + (after.branch or 0),
                index=index,
                conversation_before=before.id,
                conversation_after=after.id,
                before=found,
                after=now,
            )


def _is_unlike(before: TurnSummary | None, after: TurnSummary | None, detector: str) -> bool:
    """Return whether texts or verdict differ; also where only one run has the turn."""
    if before is None or after is None:
        return True
    texts = [(turn.user, turn.reply, turn.passages) for turn in (before, after)]
    return texts[0] != texts[1] or before.verdicts.get(detector) != after.verdicts.get(detector)


def _find(turn: TurnSummary | None, detector: str) -> FoundInTurn:
    verdict: VerdictSummary | None = None if turn is None else turn.verdicts.get(detector)
    if verdict is None:
        return FoundInTurn()
    return FoundInTurn(
        outcome=verdict.outcome, flagged=verdict.flagged, spans=verdict.spans, severity=verdict.severity
    )


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
