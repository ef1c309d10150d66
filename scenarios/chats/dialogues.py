"""Messages in what a program was given, or gave: texts, messages, and objects with either under some key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from hallulab.scenarios.chats.cells import unpack_cell
from hallulab.scenarios.chats.message_parts import SILENT
from hallulab.scenarios.chats.reading import fold_keys, fold_name
from hallulab.scenarios.chats.turns import ChatMessageRecord, read_chat_message
from hallulab.scenarios.chats.values import get_text

_ANY = ("text", "content", "value")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "user": (
        "messages", "question", "query", "input", "prompt", "message", "user_input", "inputs", "chat_history",
        *_ANY,
    ),
    "assistant": (
        "messages", "choices", "message", "answer", "output", "response", "reply", "result", "outputs",
        "generations", "content", *_ANY,
    ),
}  # fmt: skip
"""Who speaks in a text alone → names under which it stands."""
_ENDS = {
    "user": ("question", "query", "message", "prompt", "input"),
    "assistant": ("answer", "response", "reply", "output"),
}
"""Ends of names that programs invent: `final_answer`."""
_CALL = {"args", "kwargs"}
_FAILED = {"error", "errors", "exception", "detail", "status"}
"""Names under which nothing is said to the user."""
_DEEPEST = 8


class DialoguePart(NamedTuple):
    """Messages, and where they stood."""

    said: tuple[ChatMessageRecord, ...] = ()
    keys: tuple[str, ...] = ()


def extract_dialogue_part(
    value: Any, role: Literal["user", "assistant"], wanted: str | None = None, levels: int = _DEEPEST
) -> DialoguePart:
    """Return the messages in what a program was given, or gave.

    Args:
        value: a text, a message, a list of messages, or an object with one of these under a known key; also
            the arguments of a function of Python, `args` and `kwargs`, if one alone can be the message.
        role: who speaks in a text alone.
        wanted: the key that has it, as the user says; None: a known one.
        levels: how deep objects may stand in each other.

    Raises:
        FormatError: a message is wrong.
    """
    value = unpack_cell(value)
    if isinstance(value, str):
        return DialoguePart((ChatMessageRecord(role, value),)) if value.strip() else DialoguePart()
    if not levels:
        return DialoguePart()
    if isinstance(value, list):
        return _extract_from_list(value, role, wanted, levels - 1)
    return (
        _extract_from_object(value, role, wanted, levels - 1)
        if isinstance(value, Mapping)
        else DialoguePart()
    )


def _extract_from_list(
    value: list[Any], role: Literal["user", "assistant"], wanted: str | None, levels: int
) -> DialoguePart:
    if value and all(isinstance(one, Mapping) and _is_message(one) for one in value):
        found = [extract_dialogue_part(one, role, wanted, levels) for one in value]
        return DialoguePart(tuple(said for part in found for said in part.said))
    kinds = {fold_name(get_text(one, "type") or "") for one in value}
    if "text" in kinds and kinds <= {"text", *SILENT}:
        return DialoguePart(tuple(read_chat_message({"role": role, "content": value}, "message")))
    # Batches of one request.
    return extract_dialogue_part(value[0], role, wanted, levels) if len(value) == 1 else DialoguePart()


def _extract_from_object(
    value: Mapping[str, Any], role: Literal["user", "assistant"], wanted: str | None, levels: int
) -> DialoguePart:
    content = next((key for key in ("content", "message", "parts") if key in value), "content")
    if _is_message(value) and (content != "message" or ("role" in value and get_text(value, "message"))):
        return DialoguePart(
            tuple(read_chat_message(_rename_parts(value, content), "message", ("role", content)))
        )
    names = fold_keys({name: name for name in value})
    own = fold_keys(value)
    if _CALL & own.keys() and not own.keys() - {*_CALL, "self", "tags", "metadata"}:
        return _extract_from_call(own, role, wanted, levels)
    keys = [fold_name(key) for key in _KEYS[role]]
    ends = [key for key in own if key.endswith(_ENDS[role]) and key not in keys]
    only = list(own) if len(own) == 1 and not own.keys() & _FAILED else []
    for key in ([fold_name(wanted)] if wanted else []) + keys + (ends if len(ends) == 1 else only):
        if own.get(key) and not isinstance(own[key], int | float):
            found = extract_dialogue_part(own[key], role, wanted, levels)
            if found.said:
                return DialoguePart(found.said, (str(names[key]), *found.keys))
    return DialoguePart()


def _extract_from_call(
    own: Mapping[str, Any], role: Literal["user", "assistant"], wanted: str | None, levels: int
) -> DialoguePart:
    """Return the message among the arguments of a function; nothing where several could be it."""
    named = extract_dialogue_part(own.get("kwargs"), role, wanted, levels)
    if named.said:
        return DialoguePart(named.said, ("kwargs", *named.keys))
    args = own.get("args")
    # Objects of Python are logged by their representation: `<bot.Bot object at 0x7f>`.
    given = (
        [one for one in args if not (isinstance(one, str) and one.startswith("<"))]
        if isinstance(args, list)
        else []
    )
    found = [part for one in given if (part := extract_dialogue_part(one, role, wanted, levels)).said]
    return DialoguePart(found[0].said, ("args", *found[0].keys)) if len(found) == 1 else DialoguePart()


def _is_message(value: Mapping[str, Any]) -> bool:
    """Return whether a value says who speaks, perhaps as LangChain does."""
    if "role" in value or "message" in value:
        return True
    said = value.get("content", value.get("data", value.get("kwargs")))
    return said is not None and (isinstance(value.get("type"), str) or isinstance(value.get("id"), list))


def _rename_parts(message: Mapping[str, Any], content: str) -> Mapping[str, Any]:
    """Return a message whose parts are called as elsewhere: Vercel's are `tool-call`, `tool-result`."""
    parts = message.get(content)
    if not isinstance(parts, list):
        return message
    renamed = []
    for part in parts:
        if "-" in (kind := get_text(part, "type") or ""):
            output = part.get("output", part.get("result"))
            gave = output.get("value", output) if isinstance(output, Mapping) else output
            part = {**part, "type": kind.replace("-", "_"), "response": gave}
        renamed.append(part)
    return {**message, content: renamed}
