"""Short hand for conversations, verdicts and labelled replies in tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hallulab.scenarios.labelled import GoldSpan, LabelledReply
from hallulab.scenarios.transcript import Branch, Call, Conversation, Message, Passage, Span, Turn, Verdict

EVIDENCE = Passage(id="p#0", document="p", text="Evidence.")


def labelled(reply: str = "A reply.", label: bool | None = False, **fields: Any) -> LabelledReply:
    """A labelled reply with a passage; `fields` are others of `LabelledReply`."""
    given = {"id": "x", "dataset": "d", "task": "dialogue", "passages": (EVIDENCE,), "group": "g"}
    return LabelledReply.model_validate({**given, "reply": reply, "label": label, **fields})


def places(*ends: tuple[int, int]) -> tuple[GoldSpan, ...]:
    """Gold spans by their ends."""
    return tuple(GoldSpan(start=start, end=end) for start, end in ends)


def call(purpose: str, prompt: int | None = 10, completion: int | None = 2, seconds: float = 0.5) -> Call:
    return Call(
        purpose=purpose,
        model="m",
        prompt_tokens=prompt,
        completion_tokens=completion,
        latency_s=seconds,
        finish_reason="stop",
    )


def conversation(
    id: str,
    replies: Sequence[str],
    chatbot: str = "vanilla",
    persona: str = "asha",
    seed: int = 0,
    calls: Sequence[Call] = (),
    **fields: Any,
) -> Conversation:
    """A conversation with those replies; each turn spent `calls`. `fields` are others of `Conversation`."""
    turns = tuple(
        Turn(index=index, user="Hi there", reply=reply, calls=tuple(calls))
        for index, reply in enumerate(replies)
    )
    said = {"id": id, "persona": persona, "chatbot": chatbot, "seed": seed, "turns": turns}
    given = {"scenario": "s", "model": "m", "stop_reason": "max_turns"}
    return Conversation.model_validate({**given, **said, **fields})


def branched(id: str, reply: str, turn: int, chatbot: str = "vanilla", **fields: Any) -> Conversation:
    """A conversation of one reply that branches off at a turn; `fields` are those of `conversation`."""
    said = (Message(role="user", text="Hi there"), Message(role="assistant", text="Hello."))
    branch = Branch(conversation="source", turn=turn, history=said * turn)
    return conversation(id, [reply], chatbot, branch=branch, **fields)


def scored(
    conversation: str,
    turn: int,
    places: Sequence[tuple[int, int] | None] | None = (),
    detector: str = "d",
    calls: Sequence[Call] = (),
) -> Verdict:
    """A scored verdict with a span at each place; None as a place is an unlocated span."""
    spans = None
    if places is not None:
        spans = tuple(
            Span(start=place[0] if place else None, end=place[1] if place else None, text="x")
            for place in places
        )
    return Verdict(
        conversation=conversation,
        turn=turn,
        detector=detector,
        version="1",
        outcome="scored",
        score=1.0 if spans else 0.0,
        flagged=bool(spans),
        spans=spans,
        calls=tuple(calls),
    )


def unscored(conversation: str, turn: int, outcome: str = "failed", detector: str = "d") -> Verdict:
    return Verdict.model_validate(
        {
            "conversation": conversation,
            "turn": turn,
            "detector": detector,
            "version": "1",
            "outcome": outcome,
            "error": "because",
        }
    )


def judge(conversation: str, *hallucinations: int | None) -> list[Verdict]:
    """A verdict on each turn: so many hallucinations, all of the first word; None is a failed verdict."""
    return [
        unscored(conversation, turn) if count is None else scored(conversation, turn, [(0, 3)] * count)
        for turn, count in enumerate(hallucinations)
    ]


def journal(folder: Path, *lines: dict[str, str]) -> Path:
    """The journal of a folder without experiment.json: conversations without turns, as `lines` say."""
    held = [
        conversation(str(number), []).model_copy(update=changes).model_dump_json()
        for number, changes in enumerate(lines)
    ]
    path = folder / "conversations.jsonl"
    path.write_text("".join(f"{line}\n" for line in held))
    return path
