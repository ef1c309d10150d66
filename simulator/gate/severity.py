"""New severe hallucinations: in turns that had none of that severity in the baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hallulab.scenarios.text.wording import format_count
from hallulab.simulator.compare.summary import ConversationSummary, RunSummary, TurnSummary
from hallulab.simulator.compare.turns import ChangedTurn, FoundInTurn
from hallulab.simulator.gate.result import GateCheck, GateLine

Place = tuple[str, str, str, int, int | None]
"""Chatbot, scenario, persona, seed and branch of a conversation."""


def find_severe(
    before: RunSummary, now: RunSummary, guard: float, lines: Iterable[GateLine]
) -> tuple[ChangedTurn, ...]:
    """Find the turns with new severe hallucinations, those by noise alone last.

    A conversation that the baseline does not have, such as one with another seed, has only new ones.

    Args:
        before: the baseline.
        now: the run.
        guard: severity from which a hallucination counts.
        lines: the chatbots and detectors that are judged.
    """
    judged = {(line.chatbot, line.detector) for line in lines}
    held = {_locate(one): one for one in before.conversations}
    same = before.setup.scenario_version == now.setup.scenario_version
    found = [
        turn
        for conversation in now.conversations
        for turn in _list_severe(conversation, held.get(_locate(conversation)), guard, same)
        if (turn.chatbot, turn.detector) in judged
    ]
    return tuple(sorted(found, key=lambda turn: (turn.noise, -(turn.after.severity or 0.0))))


def _locate(conversation: ConversationSummary) -> Place:
    return (
        conversation.chatbot,
        conversation.scenario,
        conversation.persona,
        conversation.seed,
        conversation.branch,
    )


def _list_severe(
    conversation: ConversationSummary, earlier: ConversationSummary | None, guard: float, same: bool
) -> Iterator[ChangedTurn]:
    """Yield the turns of a conversation with a severe hallucination where the baseline has none.

    Args:
        conversation: of the run.
        earlier: the same of the baseline; None: it has none.
        guard: severity from which a hallucination counts.
        same: whether the documents are the same.
    """
    for index, turn in enumerate(conversation.turns):
        other = earlier.turns[index] if earlier is not None and index < len(earlier.turns) else None
        same = same and other is not None and (other.user, other.reply) == (turn.user, turn.reply)
        for detector, verdict in turn.verdicts.items():
            old = _find(other, detector)
            if not _reaches(verdict.severity, guard) or _reaches(old.severity, guard):
                continue
            yield ChangedTurn(
                kind="worse" if old.hallucinated else "new",
                noise=same and other is not None and other.passages == turn.passages,
                chatbot=conversation.chatbot,
                detector=detector,
                scenario=conversation.scenario,
                persona=conversation.persona,
                seed=conversation.seed,
                turn=index + (conversation.branch or 0),
                index=index,
                conversation_before="" if earlier is None else earlier.id,
                conversation_after=conversation.id,
                before=old,
                after=_find(turn, detector),
            )


def _find(turn: TurnSummary | None, detector: str) -> FoundInTurn:
    verdict = None if turn is None else turn.verdicts.get(detector)
    if verdict is None:
        return FoundInTurn()
    return FoundInTurn(
        outcome=verdict.outcome, flagged=verdict.flagged, spans=verdict.spans, severity=verdict.severity
    )


def _reaches(severity: float | None, guard: float) -> bool:
    return severity is not None and severity >= guard


def check_severe(
    runs: Iterable[RunSummary], guard: float, lines: Iterable[GateLine], severe: Sequence[ChangedTurn]
) -> Iterator[GateCheck]:
    """Yield a check for each line whose detector rates severities, or one that says that none does.

    Args:
        runs: the baseline and the run.
        guard: severity from which a hallucination counts.
        lines: the chatbots and detectors that are judged.
        severe: what `find_severe` found.
    """
    rating = {name for run in runs for name in _list_rating_detectors(run)}
    judged = [line for line in lines if line.detector in rating]
    for line in judged:
        own = [turn for turn in severe if (turn.chatbot, turn.detector) == (line.chatbot, line.detector)]
        blocking = sum(not turn.noise for turn in own)
        yield GateCheck(
            rule="severe",
            chatbot=line.chatbot,
            detector=line.detector,
            outcome="failed" if blocking else "passed",
            message=f"{format_count(blocking, 'turn')} with new hallucinations of severity {guard:g} or more",
        )
    if not judged:
        yield GateCheck(
            rule="severe",
            outcome="not tested",
            message="no hallucination has a severity: no detector here rates it",
        )


def _list_rating_detectors(run: RunSummary) -> Iterator[str]:
    for conversation in run.conversations:
        for turn in conversation.turns:
            yield from (name for name, verdict in turn.verdicts.items() if verdict.severities)
