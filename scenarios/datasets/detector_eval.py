"""Chats of several turns with annotated hallucinations, as in DetectorEval (HalluDetect, section 3.3).

HalluDetect describes the data set but does not publish its format. Ours has what the paper describes:
turns of a user and a chatbot, and for each reply the exact hallucinated sentences, with a justification
(section 3.2, "Output Format").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Self

from pydantic import Field, model_validator

from hallulab.scenarios.datasets.jsonl import PassageInputs, build_input_passages
from hallulab.scenarios.datasets.loader import (
    SCHEMA,
    DatasetInfo,
    LoadRequest,
    locate_quotations,
    make_repeated_id_error,
)
from hallulab.scenarios.files.data_files import read_records
from hallulab.scenarios.labelled import GoldSpan, LabelledData, LabelledReply
from hallulab.scenarios.transcript import Frozen, Message

FILE = "chats.jsonl"

_UNLABELLED = "unlabelled"
_NO_EVIDENCE = "no evidence"


class _Hallucination(Frozen):
    """A hallucination that annotators found."""

    text: str = Field(min_length=1)
    reason: str = ""
    label: str = Field(default="hallucination", min_length=1)


class _Exchange(Frozen):
    """A message and the reply to it."""

    user: str
    reply: str = Field(min_length=1)
    passages: PassageInputs = ()
    hallucinations: tuple[_Hallucination, ...] | None = None
    """The annotation; `[]`: none found, None: not annotated."""

    @model_validator(mode="after")
    def _hallucinations_are_quoted(self) -> Self:
        for found, place in self._placed():
            if found.text not in self.reply:
                raise ValueError(f"the hallucination {found.text!r} does not stand in the reply")
            if place is None:
                raise ValueError(
                    f"the hallucination {found.text!r} is given more often than it stands in the reply"
                )
        return self

    def _placed(self) -> Iterator[tuple[_Hallucination, tuple[int, int] | None]]:
        found = self.hallucinations or ()
        return zip(found, locate_quotations(self.reply, [one.text for one in found]), strict=True)

    def spans(self) -> tuple[GoldSpan, ...]:
        """Return the places of the hallucinations; the n-th equal quotation has the n-th place."""
        return tuple(
            GoldSpan(start=place[0], end=place[1], label=found.label)
            for found, place in self._placed()
            if place is not None
        )


class _ChatLine(Frozen):
    """A line of the file."""

    id: str = Field(min_length=1)
    turns: tuple[_Exchange, ...] = Field(min_length=1)
    model: str | None = None


def load_chats(request: LoadRequest) -> LabelledData:
    """Load the annotated replies of all chats, each with the dialogue before it. A chat is a group.

    Turns without annotation or evidence are left out and counted. They stay in the dialogue of later turns.

    Args:
        request: its folder holds `chats.jsonl`; there are no parts.

    Raises:
        UsageError: the request or a line of the file is wrong.
    """
    path = request.file(FILE)
    request.without_parts()
    chats: dict[str, _ChatLine] = {}
    left_out: Counter[str] = Counter()
    for number, chat in read_records(path, _ChatLine, SCHEMA):
        if chat.id in chats:
            raise make_repeated_id_error(path, number, chat.id)
        chats[chat.id] = chat
        for turn in chat.turns:
            if reason := _explain_left_out(turn):
                left_out[reason] += 1
    replies = tuple(reply for chat in chats.values() for reply in _label_turns(chat))
    return LabelledData(replies, dict(left_out))


def _explain_left_out(turn: _Exchange) -> str | None:
    if turn.hallucinations is None:
        return _UNLABELLED
    return None if turn.passages else _NO_EVIDENCE


def _label_turns(chat: _ChatLine) -> Iterator[LabelledReply]:
    history: list[Message] = []
    for position, turn in enumerate(chat.turns):
        if _explain_left_out(turn) is None:
            spans = turn.spans()
            yield LabelledReply(
                id=f"{chat.id}-{position}",
                dataset="detector-eval",
                task="dialogue",
                question=turn.user,
                history=tuple(history),
                passages=build_input_passages(turn.passages),
                reply=turn.reply,
                label=bool(spans),
                spans=spans,
                group=chat.id,
                meta={"conversation": chat.id, "model": chat.model, "turn": position},
            )
        history += [Message(role="user", text=turn.user), Message(role="assistant", text=turn.reply)]


INFO = DatasetInfo(load=load_chats, levels=("reply", "span"))
