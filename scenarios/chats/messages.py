"""Chats as lists of messages, as the lines of OpenAI and ShareGPT have them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

from hallulab.scenarios.chats.cells import is_nothing
from hallulab.scenarios.chats.evidence import extract_evidence, find_other, require_words
from hallulab.scenarios.chats.message_parts import shorten_value
from hallulab.scenarios.chats.reading import NAMES, Reading
from hallulab.scenarios.chats.record import (
    CHATBOT,
    KEY,
    MODEL,
    ChatContext,
    Marked,
    add_topic,
    build_chat_context,
    build_conversation,
    build_own_conversation,
    list_messages,
    read_about,
)
from hallulab.scenarios.chats.replies import is_item, read_items, read_reply
from hallulab.scenarios.chats.row_order import RowPlace, read_row_place, read_timestamp
from hallulab.scenarios.chats.turns import (
    SYSTEM,
    ChatMessageRecord,
    build_turns,
    find_evidence,
    find_hidden,
    find_role,
    note_speakers,
    read_chat_message,
)
from hallulab.scenarios.chats.values import FormatError, get_object, get_text
from hallulab.scenarios.transcript import Conversation


def build_message_line(
    marked: Marked, without: frozenset[str], key: str, said: list[dict[str, str]]
) -> dict[str, Any]:
    """Return a line with messages under a key; without all parts it has nothing else."""
    if without >= {"passages", "steps", "spans"}:
        return {key: said}
    # A text: readers of tables take the types of columns from the first lines.
    return {key: said, KEY: build_chat_context(marked, without).model_dump_json()}


def collect_messages(conversation: Conversation) -> list[tuple[str, str]]:
    """Return roles and texts of all messages; a system message before the first turn leads."""
    system = [step.text for turn in conversation.turns[:1] for step in turn.steps if step.name == SYSTEM]
    told = [("system", "\n\n".join(system))] if system else []
    return told + [(message.role, message.text) for message in list_messages(conversation)]


def read_messages(
    value: Mapping[str, Any], key: str, name: str, reading: Reading, extra: Sequence[ChatMessageRecord] = ()
) -> Conversation:
    """Make a conversation of a line with messages, and of the reply beside them.

    Args:
        value: the line.
        key: its list of messages.
        name: the conversation's identifier, if it has none.
        reading: notes what is taken for what.
        extra: system messages that stand elsewhere in the line.

    Raises:
        FormatError: something in it is wrong.
    """
    said = [*extra, *read_said(value.get(key), key, reading)]
    if KEY in value:
        return build_own_conversation(build_turns(said, as_said=True), read_about(value[KEY]), name, reading)
    names = list_unread(value, key)
    said += read_reply_beside(value, names, said, reading)
    return build_chat(value, names, said, name, reading)


def build_said(
    listed: Any, where: str, reading: Reading, name: str, id: str | None = None, model: str | None = None
) -> Conversation:
    """Make a conversation of a list of messages (`read_said`), which has its identifier `id`, else `name`."""
    about = ChatContext(id=id, model=model or MODEL)
    return build_conversation(build_turns(read_said(listed, where, reading)), about, name)


def read_said(listed: Any, where: str, reading: Reading) -> list[ChatMessageRecord]:
    """Return what the messages of a list say, in the order of their times where all have one.

    Raises:
        FormatError: it is no list, or a message is wrong.
    """
    if not isinstance(listed, list):
        raise FormatError(f"{where}: must be a list of messages. Correct it, or delete the line.")
    _check_one_conversation(listed, where)
    told = list[ChatMessageRecord]()
    # Where all were hidden, the name would say something else.
    hidden = {
        number: what
        for number, one in enumerate(listed)
        if isinstance(one, Mapping) and (what := find_hidden(one))
    }
    hidden = hidden if len(hidden) < len(listed) else {}
    named = (one for one in listed if isinstance(one, Mapping) and find_role(one) == "assistant")
    note_speakers(dict.fromkeys(name for one in named if (name := get_text(one, "name"))), reading)
    for number, message in _order_by_time(listed, where, reading):
        if number in hidden:
            reading.count(f"{hidden[number].capitalize()} left out")
        elif is_item(message):
            told += read_items([message], f"{where}.{number}", reading)
        else:
            told += read_chat_message(message, f"{where}.{number}", reading=reading)
    return told


def _check_one_conversation(listed: list[Any], where: str) -> None:
    """Raise FormatError if messages name several conversations."""
    named = defaultdict[str, set[str]](set)
    for one in listed:
        for name in one if isinstance(one, Mapping) else ():
            if name in _SESSIONS and one[name] is not None:
                named[name].add(str(one[name]))
            if len(named[name]) > 1:
                raise FormatError(
                    f"{where}: the messages are of several conversations, as `{name}` says. Give this list "
                    "alone, or as lines: then each conversation is read."
                )


def _order_by_time(listed: list[Any], where: str, reading: Reading) -> list[tuple[int, Any]]:
    """Return the messages with their numbers; APIs list the newest first."""
    numbered = list(enumerate(listed))
    known = [place for message in listed if (place := _find_time(message)) is not None]
    times = [place.at or 0.0 for place in known]
    if times == sorted(times):
        return numbered
    if len(known) < len(listed):
        reading.note(f"Some messages have no time, so messages stand as in the file ({where}).")
        return numbered
    if len({place.clock for place in known}) > 1:
        reading.note(
            f"Times of messages cannot be compared, so messages stand as in the file: {known[0].given!r}, "
            f"and {next(one.given for one in known if one.clock != known[0].clock)!r} ({where})."
        )
        return numbered
    reverse = times == sorted(times, reverse=True)
    found = numbered[::-1] if reverse else sorted(numbered, key=lambda one: times[one[0]])
    unsure = reverse and any(
        times[one] == times[other] and [find_role(before), find_role(after)] != ["user", "assistant"]
        for (one, before), (other, after) in pairwise(found)
    )
    if unsure or (not reverse and len(set(times)) < len(times) and found[0][0] > found[-1][0]):
        raise FormatError(
            f"{where}: messages run from new to old, and some have the same time, so which came first is not "
            "known. Sort them from old to new."
        )
    reading.note(f"Messages were put in the order of their times, in which they did not stand ({where}).")
    return found


def _find_time(message: Any) -> RowPlace | None:
    """Return when a message was sent; None: that is not known."""
    told = (message.get(name) for name in NAMES["time"]) if isinstance(message, Mapping) else ()
    places = (read_row_place(None, str(one)) for one in told if type(one) in (str, int, float))
    return next((place for place in places if place.at is not None), None)


def build_chat(
    value: Mapping[str, Any],
    names: Iterable[str],
    said: Sequence[ChatMessageRecord],
    name: str,
    reading: Reading,
) -> Conversation:
    """Make a conversation of what was said, and of what the line has beside it.

    Args:
        value: the line.
        names: those of its names that are not read yet.
        said: the messages.
        name: the conversation's identifier, if it has none.
        reading: notes what is taken for what.

    Raises:
        FormatError: two names could be the same, or the chatbot's name is none.
    """
    chosen = reading.choose(tuple(names), *_BESIDE)
    told = list(said)
    replies = [at for at, one in enumerate(told) if one.role == "assistant" and one.text]
    passages = chosen.get("passages")
    if passages is not None and (other := find_other(value[passages])):
        reading.drop("passages", passages, f"has {other}, and no passages")
    elif passages is not None and not is_nothing(value[passages]):
        each = value[passages]
        several = isinstance(each, list) and len(each) == len(replies) > 1
        if not several or not all(isinstance(own, list) and set(map(type, own)) <= {str} for own in each):
            # The evidence of a line is that of its last reply: RAG logs have a line for each.
            replies, each = replies[-1:], [each]
        for at, own in zip(replies, each, strict=False):
            given = () if is_nothing(own) else tuple(extract_evidence(own, passages))
            require_words(given, passages)
            told[at] = replace(told[at], evidence=(*told[at].evidence, *given))
    elif replies and not any(one.evidence for one in told):
        with suppress(FormatError):  # names of passages are no evidence
            if given := find_evidence({"metadata": value.get("metadata")}, beside=True):
                told[replies[-1]] = replace(told[replies[-1]], evidence=given)
                reading.take("passages", "metadata (context)")
    beside = {field: _find_beside(value, field, chosen) for field in ("session", "topic", "chatbot", "model")}
    ids = (place.get("id") for place in (value, get_object(value, "metadata")))
    about = ChatContext(
        id=beside["session"] or next((str(one) for one in ids if one not in (None, "")), None),
        model=beside["model"] or MODEL,
        chatbot=beside["chatbot"] or CHATBOT,
    )
    return build_conversation(add_topic(build_turns(told), beside["topic"]), about, name)


_SESSIONS = frozenset(
    ("session_id", "sessionId", "thread_id", "threadId", "conversation_id", "conversationId", "chatId")
)
"""Names of the conversation of a message in a list."""
_BESIDE = ("session", "passages", "topic", "chatbot", "model")
_READ = (KEY, "id", "metadata", "object", "system", "tools")
"""Names that are read elsewhere, or say nothing of the chat."""


def list_unread(value: Mapping[str, Any], *read: str) -> tuple[str, ...]:
    """Return the names of a line without those that are read elsewhere, or say nothing of the chat."""
    return tuple(
        name for name, one in value.items() if name not in read and name not in _READ and one is not None
    )


def read_reply_beside(
    value: Mapping[str, Any], names: Iterable[str], said: Sequence[ChatMessageRecord], reading: Reading
) -> list[ChatMessageRecord]:
    """Return the reply that stands beside the messages; nothing where they end with it, or there is none.

    Raises:
        FormatError: two names could be the reply, or no reply is found there.
    """
    spoken = [one for one in said if one.role != "system"]
    if spoken and spoken[-1].role == "assistant" and "reply" not in reading.mapping:
        return []
    if value.get("choices"):
        name: str | None = "choices"
    elif find_role(value.get("message")) == "assistant":  # of Ollama
        name = "message"
    else:
        name = reading.choose(tuple(names), "reply").get("reply")
    if name is None or is_nothing(value[name]):
        return []
    found = read_reply(value[name], name, reading)
    reading.take("reply", name)
    return found


def find_session(value: Mapping[str, Any], reading: Reading, *read: str) -> tuple[str | None, float | None]:
    """Return the session that a line of a log belongs to, and its time; None: it names none.

    Args:
        value: the line.
        reading: notes what is taken for what.
        read: names that are read elsewhere.

    Raises:
        FormatError: two names could be the same, or the time cannot be read.
    """
    if KEY in value:
        return None, None
    names = list_unread(value, *read)
    session = _find_beside(value, "session", reading.choose(names, *_BESIDE))
    name = reading.choose(names, "time").get("time") if session is not None else None
    if name is None or value[name] is None:
        return session, None
    at = read_timestamp(value[name])
    if at is None:
        raise FormatError(
            f"{name}: {shorten_value(value[name])} is no time by which the lines of a session are ordered. "
            "Give a number or a time such as 2026-10-01T09:30:00, or delete it."
        )
    return session, at


def _find_beside(value: Mapping[str, Any], field: str, chosen: Mapping[str, str]) -> str | None:
    """Return what a line says of a conversation, perhaps under `metadata`."""
    if field in chosen:
        found = value[chosen[field]]
    else:
        metadata = get_object(value, "metadata")
        found = next((metadata[name] for name in NAMES[field] if metadata.get(name) is not None), None)
    if isinstance(found, Mapping):
        found = found.get("id")
    return str(found) if isinstance(found, str | int) and str(found) else None


def follow_branch(
    nodes: Mapping[str, Mapping[str, Any]], last: Any, parent: str, reading: Reading
) -> list[str]:
    """Return the identifiers of the messages from the first to the last one of a branch.

    Args:
        nodes: identifier → message.
        last: the identifier of the last message of the branch that the program shows; one that is not among
            the nodes: the message that nothing follows, of several the last one.
        parent: the key under which a message names the one before it.
        reading: is told how many messages stand on other branches.
    """
    if not isinstance(last, str) or last not in nodes:
        parents = {before for node in nodes.values() if isinstance(before := node.get(parent), str)}
        last = next((id for id in reversed(list(nodes)) if id not in parents), None)
    path = dict[str, None]()
    while isinstance(last, str) and last in nodes and last not in path:
        path[last] = None
        last = nodes[last].get(parent)
    for _ in range(len(nodes) - len(path)):
        reading.count("Messages of other branches left out, such as regenerated answers")
    return list(reversed(path))
