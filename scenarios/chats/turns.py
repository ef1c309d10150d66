"""Turns of a chat, built from its messages, with the passages found in them.

Turns of what was said in a chat: messages of users, assistants, tools and the system.
A turn is a message of the user and the reply to it. Other messages become part of a turn:

- user messages that follow each other are one, and so are messages of the assistant: joined by a blank line;
- what a tool gave is evidence of the reply that comes after it: a passage;
- system messages, calls of tools, and a greeting before the user's first message are steps of the next turn;
  what stands behind the last reply belongs to that one;
- a last message of the user without a reply is left out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hallulab.scenarios.chats.cells import count_words, is_nothing
from hallulab.scenarios.chats.evidence import (
    WORDS,
    FoundEvidence,
    are_names,
    build_passages,
    extract_evidence,
    find_other,
    require_words,
)
from hallulab.scenarios.chats.message_parts import SILENT, MessageParts, read_parts, shorten_value
from hallulab.scenarios.chats.reading import NAMES, Reading, fold_keys, fold_name, fold_names
from hallulab.scenarios.chats.values import FormatError, NoWordsError, get_object, get_text
from hallulab.scenarios.text.thoughts import leave_out_thoughts
from hallulab.scenarios.text.wording import join_names, shorten_line
from hallulab.scenarios.transcript import Step, Turn

Role = Literal["system", "user", "assistant", "call", "tool"]

_SPEAKERS: Mapping[Role, str] = {
    "system": "system developer system_message",
    "user": "user human prompter customer client visitor question human_message human_message_chunk end_user "
    "user_message user_proxy",
    "assistant": "assistant answer gpt bot chatbot chatgpt model ai agent llm bing bard claude gemini gpt3 "
    "gpt4 gpt-3.5 gpt-4 gpt-4o ai_message ai_message_chunk ai_assistant ai_agent virtual_assistant machine "
    "assistant_message bot_message api_message",
    "call": "function_call tool_call tool_calls tool_call_message",
    "tool": "tool function observation ipython tool_message function_message tool_response tool_result "
    "tool_call_result tool_return_message tool_output knowledge",
}
ROLES: Mapping[str, Role] = {name: role for role, names in _SPEAKERS.items() for name in names.split()}
"""Names of speakers in formats; they count without case, `_`, `-` and spaces."""

_FOLDED = {fold_name(name): role for name, role in ROLES.items()}
_KNOWN = "`user`, `assistant`, `system` or `tool`"
_ROLE_KEYS = ("role", "from", "speaker", "sender", "author", "type", "message_type")
_GAVE = ("content", "result", "output", "tool_return")
"""Keys of what a tool gave."""
_CONTENT_KEYS = ("content", "value", "text", "message", "parts", "body", "blocks", "items", "contents")
_CALL_KEYS = ("tool_calls", "toolCalls", "tool_call")
_DELETED = fold_names("deleted is_deleted")
_SHOWN = {
    **dict.fromkeys(fold_names("public is_public"), False),
    **dict.fromkeys(fold_names("private is_private internal is_internal internal_note"), True),
    **dict.fromkeys(_DELETED, True),
}
"""Name → the truth value with which a message is not shown to the user."""
_THOUGHT = {"channel": ("analysis",), **dict.fromkeys(("type", "messagetype"), SILENT)}
"""Name → the values of a message that is no word of the speaker; gpt-oss has a channel for these."""
_ASIDE = fold_names("verbose follow_up")
"""Kinds of messages that Coze has beside a reply."""
_SOURCES = ("sources", "references", "reference", "docs")
"""Names of sources, of which only those with words are evidence; `citations` may quote the reply."""
_TRUTHS = {True: ("true", "yes", "1", "t", "y"), False: ("false", "no", "0", "f", "n")}
_JOINT = "\n\n"
_STEPS: dict[Role, str] = {"system": "system", "call": "tool_call"}
GREETING = "greeting"
"""Step with what the assistant said before the user's first message."""
SYSTEM = _STEPS["system"]
THOUGHTS = "thoughts"
"""Step with a reply as the file has it, from which the thoughts of a model were left out."""
TOPIC = "topic"
"""Step with the topic that a file gives for a turn."""


@dataclass(frozen=True)
class ChatMessageRecord:
    """A message of a chat."""

    role: Role
    text: str
    """The message; empty: nothing but what stands below."""
    evidence: tuple[FoundEvidence, ...] = ()
    """Passages given to the assistant; of a tool, its output."""


@dataclass
class _Open:
    """A turn that is not over."""

    asked: list[str] = field(default_factory=list)
    replied: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    evidence: list[FoundEvidence] = field(default_factory=list)

    def take_in(self, later: _Open) -> None:
        """Add what was said behind a reply, and empty it."""
        self.steps += later.steps
        self.evidence += later.evidence
        later.steps, later.evidence = [], []


def build_turns(chat: Iterable[ChatMessageRecord], *, as_said: bool = False) -> tuple[Turn, ...]:
    """Put messages together to turns; a model's thoughts within a reply become a step.

    Args:
        chat: the messages.
        as_said: leave each reply as it is: verdicts of ours point into it.
    """
    done: list[_Open] = []
    now, later = _Open(), _Open()
    for said in chat:
        if said.role == "user":
            if now.replied:
                done.append(now)
                now, later = later, _Open()
            now.asked.append(said.text)
        elif said.role == "assistant":
            now.take_in(later)
            spoken = said.text if as_said else leave_out_thoughts(said.text).text
            if spoken != said.text:
                now.steps.append(Step(name=THOUGHTS, text=said.text))
            if now.asked:
                now.replied.append(spoken)
            elif spoken:
                now.steps.append(Step(name=GREETING, text=spoken))
        beside = later if now.replied and said.role != "assistant" else now
        if said.role in _STEPS:
            beside.steps.append(Step(name=_STEPS[said.role], text=said.text))
        beside.evidence += said.evidence
    now.take_in(later)
    if now.replied:
        done.append(now)
    return tuple(
        Turn(
            index=index,
            user=_JOINT.join(turn.asked),
            passages=build_passages(turn.evidence),
            reply=_JOINT.join(filter(None, turn.replied)),
            steps=tuple(turn.steps),
        )
        for index, turn in enumerate(done)
    )


def says_role(message: Mapping[str, Any]) -> bool:
    """Return whether a message says who speaks, known or not."""
    return any(message.get(key) is not None for key in _ROLE_KEYS)


def find_role(message: Any) -> Role | None:
    """Return who speaks in a message; None: that is not known."""
    if not isinstance(message, Mapping):
        return None
    message = unwrap_langchain(message)
    role = message.get(_find_key(message, _ROLE_KEYS))
    return _FOLDED.get(fold_name(role)) if isinstance(role, str) else None


def read_chat_message(
    message: Any, where: str, keys: tuple[str, str] | None = None, reading: Reading | None = None
) -> list[ChatMessageRecord]:
    """Return what a message says, with the calls of tools that it makes.

    Args:
        message: an object with a role and a content, a text or a list of parts; or a message that LangChain
            wrote.
        where: its place in the value, for errors.
        keys: the keys of role and content; None, or where these are missing: the first known ones.
        reading: notes what is taken for what, and the parts without words that are left out; None: such a
            part is refused.

    Raises:
        FormatError: it has no known role or no text.
    """
    if not isinstance(message, Mapping):
        raise FormatError(
            f"{where}: a message must be an object with `role` and `content`, or the like. Correct it."
        )
    message = unwrap_langchain(message)
    role_key = _find_key(message, ((keys[0],) if keys else ()) + _ROLE_KEYS)
    key = keys[1] if keys and keys[1] in message else _find_key(message, _CONTENT_KEYS)
    role = _read_role(message.get(role_key), f"{where}.{role_key}")
    if role == "assistant":
        role = _find_tool_role(message) or role
    if role == "tool" and message.get(key) is None:
        key = _find_key(message, _GAVE)
    content, at = message.get(key), f"{where}.{key}"
    parts = read_parts(content, at)
    _tell_left_out(parts, at, reading)
    # Vercel's AI SDK 4 has the calls of tools beside the words, and again among `parts`.
    beside = message.get("toolInvocations")
    if isinstance(beside, list) and key != "parts":
        parts.read_tools(beside)
    text = parts.join()
    if text is None:
        text = get_text(message, "refusal") or get_text(message.get("audio"), "transcript")
    given = (*parts.documents, *find_evidence(message))
    if role == "tool" and not parts.results:
        name = message.get("name")
        given = (*extract_evidence(content, name if isinstance(name, str) and name else "tool"), *given)
        text = text or ""
    called: Any = next((message[key] for key in _CALL_KEYS if message.get(key)), [])
    legacy = message.get("function_call")
    own = [*(called if isinstance(called, list) else [called]), *([legacy] if legacy else [])]
    calls = [*(json.dumps(call, ensure_ascii=False) for call in own), *parts.calls]
    beside = [
        *(ChatMessageRecord("call", call) for call in calls),
        *(ChatMessageRecord("tool", "", gave) for gave in parts.results),
    ]
    if reading is not None:
        place, _, number = where.rpartition(".")
        speaker = f"{place if number.isdecimal() else where} ({role_key} {message.get(role_key)})"
        _note_taken(reading, speaker, role if text is not None else None, bool(given), bool(parts.results))
    if role == "call" and not text and beside:
        return beside
    if text is None and not beside and parts.left_out:
        raise NoWordsError(f"{at}: has only parts without words. Put its words there as text.")
    # A message that only calls a tool, or only has what one gave, is no reply and no question.
    if text is None and (beside or (given and role != "assistant")):
        return [*beside, *([ChatMessageRecord("tool", "", given)] if given else [])]
    if text is None and role != "assistant":
        raise FormatError(f"{at}: is missing or null. Give a text, or delete the message.")
    return [*beside, ChatMessageRecord(role, text or "", given)]


def _find_tool_role(message: Mapping[str, Any]) -> Role | None:
    """Return `call` or `tool` where the kind of a message of the assistant says so, as Coze's does.

    Raises:
        FormatError: its name is the user's.
    """
    name = message.get("name")
    if isinstance(name, str) and _FOLDED.get(fold_name(name)) == "user":
        raise FormatError(
            f"a message of {shorten_line(name)!r} has the role `assistant`: AutoGen 0.2 writes roles as one "
            "of its agents sees them. Write `user` for the user, and `assistant` for the others."
        )
    kind = _FOLDED.get(fold_name(get_text(message, "type") or ""))
    return kind if kind in ("call", "tool") else None


def unwrap_langchain(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message that LangChain wrote with its role; another one as it is."""
    path = message.get("id")
    if isinstance(message.get("kwargs"), Mapping) and isinstance(path, list) and path:
        return {"role": path[-1], **message["kwargs"]}
    if isinstance(message.get("data"), Mapping) and "role" not in message:
        return {"role": message.get("type"), **message["data"]}
    return message


def _find_key(message: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((key for key in keys if message.get(key) is not None), keys[0])


def _tell_left_out(parts: MessageParts, where: str, reading: Reading | None) -> None:
    for kind in parts.left_out:
        if reading is None:
            raise FormatError(
                f"{where}: a part of the kind {shorten_value(kind)} is no text, and no detector reads it. "
                "Put its words there as text, or delete the conversation."
            )
        reading.count(f"Parts of messages left out, for they have no words ({shorten_line(kind)})")


_FIELDS: Mapping[Role | None, str] = {"user": "user", "assistant": "reply", "tool": "passages"}


def _note_taken(reading: Reading, speaker: str, role: Role | None, given: bool, gave: bool) -> None:
    if role in _FIELDS and (given or role != "tool"):
        reading.take(_FIELDS[role], speaker)
    if given and role != "tool":
        reading.take("passages", f"{speaker.partition(' (')[0]} (context)")
    if gave:
        reading.take("passages", f"{speaker.partition(' (')[0]} (tool results)")


def _read_role(role: Any, where: str) -> Role:
    """Return who speaks.

    Raises:
        FormatError: the role is missing or unknown.
    """
    if isinstance(role, Mapping):  # ChatGPT's `{"author": {"role": …}}`, Microsoft's `{"role": {"value": …}}`
        role = next((role[key] for key in ("role", "value") if key in role), role)
    if role is None:
        raise FormatError(f"{where}: is missing. Give {_KNOWN}.")
    known = _FOLDED.get(fold_name(role)) if isinstance(role, str) else None
    if known is None and where.endswith(".type"):  # it says what else the message is, and not who speaks
        raise FormatError(f"{where.removesuffix('type')}role: is missing. Give {_KNOWN}.")
    if known is None:
        raise FormatError(f"{where}: {shorten_value(role)} is no known role. Give {_KNOWN}.")
    return known


def note_speakers(bots: Collection[str], reading: Reading) -> None:
    """Note the names of those whose messages are replies, where they are several."""
    if len(bots) > 1:
        reading.note(
            f"Messages of {join_names([f'`{shorten_line(name)}`' for name in bots])} are all replies. If one "
            "of them is no chatbot, such as a human agent, leave its messages out."
        )


def find_hidden(message: Mapping[str, Any]) -> str | None:
    """Return what a message is that the user does not see, as it says itself; None: the user sees it."""
    for name, one in message.items():
        folded = fold_name(name)
        if (kinds := _THOUGHT.get(folded)) and isinstance(one, str) and fold_name(one) in kinds:
            return "thoughts of a model"
        if folded == "type" and isinstance(one, str) and fold_name(one) in _ASIDE:
            return "messages beside a reply"
        shown = _SHOWN.get(folded)
        if folded == "deletedat" and not is_nothing(one):
            return "deleted messages"
        if shown is not None and str(one).strip().casefold() in _TRUTHS[shown]:
            return "deleted messages" if folded in _DELETED else "internal notes"
    return None


def read_content(content: Any, where: str) -> str | None:
    """Return the text of a message's content: a text, or parts that are texts; None for null.

    Raises:
        FormatError: it is something else, or a part has no words.
    """
    parts = read_parts(content, where)
    _tell_left_out(parts, where, None)
    return parts.join()


def find_evidence(value: Mapping[str, Any], *, beside: bool = False) -> tuple[FoundEvidence, ...]:
    """Return the evidence under the first known key of a value, or of its `metadata`; nothing without one.

    Args:
        value: a message, or an object with a reply.
        beside: whether its keys are those of a program, whose `context` may be a user's name: then, as in
            `metadata`, only lists and sentences are evidence.

    Raises:
        FormatError: it has names of passages only.
    """
    for place, sure in ((value, not beside), (get_object(value, "metadata"), False)):
        own = fold_keys(place)
        for key in NAMES["passages"]:
            given = own.get(fold_name(key))
            several = isinstance(given, list) or (isinstance(given, str) and count_words(given) > 2)
            if not given or is_nothing(given) or find_other(given) or not (sure or several):
                continue
            found = tuple(extract_evidence(given, key))
            require_words(found, key)
            return found
        for key in _SOURCES:
            given = own.get(key)
            # Of the sources of a reply, most only have names and addresses.
            if isinstance(given, list) and all(isinstance(one, Mapping) for one in given):
                quoted = [one for one in given if fold_keys(one).keys() & set(WORDS)]
                found = tuple(extract_evidence(quoted, key)) if quoted else ()
                if found and not are_names(one.text for one in found):
                    return found
    return ()
