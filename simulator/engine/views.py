"""Replies to judge as people write them in Python: views, mappings or rows of tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import AliasChoices, Field, ValidationError, field_validator

from hallulab.scenarios.chats.reading import AmbiguousNameError, Reading
from hallulab.scenarios.datasets.jsonl import PassageInput, build_input_passages, wrap_texts
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import choose_main_error, explain_error
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Frozen, Message, Origin, Passage, Retriever, TurnView

_TAKES = (
    "Give a TurnView, or a mapping with `question`, `passages`, `reply` and, if there was a dialogue before, "
    "`history` (docs/python.md)"
)


_FIELDS = {"question": "user", "passages": "passages", "reply": "reply"}
"""Our name → what a reading looks for."""


class MessageInput(Frozen):
    """A message in the form that people write."""

    role: Literal["user", "assistant"]
    text: str = Field(validation_alias=AliasChoices("text", "content"))


class ViewInput(Frozen):
    """A reply in the form that people write; its fields are those of `TurnView`."""

    question: str
    passages: tuple[Passage | PassageInput, ...]
    """The evidence: passages, objects with a `text`, plain texts, or one of them."""
    reply: str
    history: tuple[MessageInput, ...] = ()
    knowledge: Retriever | None = None
    origin: Origin = Origin()

    @field_validator("passages", mode="before")
    @classmethod
    def _a_text_is_a_passage(cls, value: Any) -> Any:
        listed = [value] if isinstance(value, str) else value
        return wrap_texts([*listed] if isinstance(listed, tuple) else listed)

    @field_validator("history", mode="before")
    @classmethod
    def _a_message_is_an_object(cls, value: Any) -> Any:
        listed = isinstance(value, list | tuple)
        return [one.model_dump() if isinstance(one, Message) else one for one in value] if listed else value

    def view(self) -> TurnView:
        """Return what a detector is given of it."""
        return TurnView(
            history=tuple(Message(role=one.role, text=one.text) for one in self.history),
            question=self.question,
            passages=tuple(_number_passages(self.passages)),
            reply=self.reply,
            knowledge=self.knowledge,
            origin=self.origin,
        )


def _number_passages(given: Sequence[Passage | PassageInput]) -> Iterable[Passage]:
    """Return passages; those without an identifier get one by position."""
    plain = [PassageInput(text="-") if isinstance(one, Passage) else one for one in given]
    for one, made in zip(given, build_input_passages(plain), strict=True):
        yield one if isinstance(one, Passage) else made


def read_views(given: Any) -> tuple[TurnView, ...]:
    """Return the replies to judge, from whatever people write.

    A key may have another of the names that `hallulab import` knows, such as `answer`.

    >>> [view] = read_views([{"question": "The fee?", "context": ["It is 5."], "answer": "It is 6."}])
    >>> view.reply, view.passages[0].text
    ('It is 6.', 'It is 5.')

    Raises:
        UsageError: they are no replies; names the first that is none, and its field.
    """
    if isinstance(given, str | bytes | Mapping | TurnView) or not hasattr(type(given), "__iter__"):
        raise UsageError(
            f"judge: `views` is {_describe_kind(given)}, and not a list of replies. {_TAKES} for each."
        )
    if hasattr(given, "columns"):
        raise UsageError("judge: `views` is a table. Give its rows: `table.to_dict('records')`.")
    return tuple(_read_view(number, one) for number, one in enumerate(given))


def _read_view(number: int, given: Any) -> TurnView:
    try:
        if isinstance(given, TurnView):  # one made without checks would fail in the detector
            return TurnView.model_validate({name: getattr(given, name) for name in TurnView.model_fields})
        if isinstance(given, LabelledReply):
            return given.view
        if not hasattr(given, "keys"):
            raise UsageError(f"judge: item {number} of `views` is {_describe_kind(given)}. {_TAKES}.")
        return ViewInput.model_validate(_rename(dict(given))).view()
    except AmbiguousNameError as error:
        ours = next(name for name, field in _FIELDS.items() if field == error.field)
        told = error.describe(error.names, ours)
        raise UsageError(f"judge: item {number} of `views`: {told} Call that one `{ours}`.") from error
    except ValidationError as error:
        first = choose_main_error(error)
        field = ".".join(str(part) for part in first["loc"])
        flaw = {"missing": "is missing", "extra_forbidden": "is none of a reply"}.get(first["type"])
        flaw = flaw or f"is wrong: {explain_error(first)}"
        raise UsageError(f"judge: item {number} of `views`: `{field}` {flaw}. {_TAKES}.") from error


def _rename(given: dict[Any, Any]) -> dict[str, Any]:
    """Return the keys by the names of `TurnView`, without what a table calls missing."""
    held = {str(key): value for key, value in given.items() if value is not None and not _is_nan(value)}
    fields = [field for name, field in _FIELDS.items() if name not in held]
    for field, name in Reading().choose(held, *fields).items():
        ours = next(one for one, other in _FIELDS.items() if other == field)
        held[ours] = held.pop(name)
    return held


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _describe_kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
