"""Describe a file in no format of chats: one sentence with what was seen, and the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from hallulab.scenarios.chats.chat_format import FileStart
from hallulab.scenarios.chats.csv import find_encoding, find_separator
from hallulab.scenarios.chats.reading import NAMES, Reading, fold_name
from hallulab.scenarios.chats.row_kinds import is_header, is_later_header
from hallulab.scenarios.chats.turns import find_role
from hallulab.scenarios.chats.values import FormatError
from hallulab.scenarios.text.wording import join_names, shorten_line

_TABLE = "Make it a table with a row a message: columns session_id, role, content and time"

_MAP = "--map user=NAME,reply=NAME"

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "it is a ZIP archive. Unpack it, and give the file in it"),
    (b"\xd0\xcf\x11\xe0", "it is a file of an old Excel or Word (.xls, .doc). Save it as .xlsx, or as CSV"),
    (b"%PDF", "it is a PDF, and no chat. Give documents by --documents"),
    (b"SQLite format 3\x00", "it is a database of SQLite. Export its table of messages as CSV"),
    (b"ARROW1", "it is Arrow. Save it as Parquet: `Dataset.to_parquet`"),
    (b"BZh", "it is packed by bzip2. Unpack it, or pack it by gzip"),
    (b"\xfd7zXZ", "it is packed by xz. Unpack it, or pack it by gzip"),
    (b"\x28\xb5\x2f\xfd", "it is packed by zstd. Unpack it, or pack it by gzip"),
    (b"7z\xbc\xaf", "it is packed by 7-Zip. Unpack it, or pack it by gzip"),
    (b"\x80\x04", "it is a pickle of Python, which is never read. Save it as JSON lines"),
)
"""How files begin → what they are, and the remedy."""

_SHAPES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("ts", "user", "text"), "messages that Slack exported, in which nothing says who is the bot"),
    (("ticket_id", "comments"), "Zendesk's export"),
    (("bot_id", "text", "ts"), "messages that Slack exported"),
)
"""Keys of the first object → the tool that writes them, which is not read."""

_CHAT_LINE = re.compile(
    r"\[?\d{1,4}[./-]\d{1,2}[./-]\d{2,4},? \d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?: ?[AaPp]\.?[Mm]\.?)?"
    r"(?:\]| -) ?\S"
)
_LONGEST_LINE = 500
_TAR = 257
"""Place of the mark of a TAR archive."""
_LINES = 10
"""Lines at the beginning that may be the header."""
_DEEPEST, _MOST_LISTS = 3, 3
_TEXTS = frozenset(map(fold_name, NAMES["text"]))


def is_chat_of_people(data: bytes) -> bool:
    """Return whether a text is a chat that WhatsApp or its like has written: a time, then who or what."""
    first = data.decode("utf-8-sig", "replace").lstrip("\ufeff\u200e\u200f \r\n")[:_LONGEST_LINE]
    return _CHAT_LINE.match(first.replace("\u202f", " ")) is not None


def describe_unknown(start: FileStart) -> str:
    """Return what a file is that is in no format, and what to do, without its name."""
    data = start.data
    for magic, told in _MAGIC:
        if data.startswith(magic):
            return f"{told}."
    if is_chat_of_people(data):
        return f"it looks like a chat that WhatsApp exported, which does not say who is the bot. {_TABLE}."
    encoding = find_encoding(data)
    text = data.decode(encoding, "replace").lstrip()
    if text[:1] in ("{", "[") and encoding != "utf-8-sig":
        return "it is JSON in UTF-16. Save it as UTF-8."
    if data[_TAR : _TAR + 5] == b"ustar":
        return "it is a TAR archive. Unpack it, and give the file in it."
    if data[:400].count(0) > 20:
        return "it is no text, or in UTF-16 or UTF-32 without a mark. Save it as UTF-8."
    if start.value is not None:
        return _describe_object(start.value)
    if text[:2] == "[[" or re.match(r"\[\s*\[", text):
        return 'it is a list of lists. Write each as an object: {"messages": […]}.'
    if text[:1] == "[":
        return "it is a list of something else than objects. Give a list of objects, or JSON lines."
    if re.match(r"\"[\[{]", text):
        return "it is JSON within a text of JSON. Write it once as JSON, not twice."
    if text[:1] == "<":
        return "it is HTML or XML. Save it as CSV, JSON lines or .xlsx."
    return _describe_text(text)


def _describe_object(value: Mapping[str, Any]) -> str:
    for keys, tool in _SHAPES:
        if value.keys() >= set(keys):
            return f"it looks like {tool}: it is not read. {_TABLE}."
    if value and all(isinstance(one, list) and not _holds_objects(one) for one in value.values()):
        return (
            f"it holds columns ({shorten_line(', '.join(value))}), and not rows. Write a JSON object a row "
            "(pandas: `to_json(orient='records')`)."
        )
    names = shorten_line(", ".join(value)) or "(none)"
    seen = f"its first object has the keys {names}, in which no chat is known"
    lists = dict(_find_lists(value, "", _DEEPEST))
    messages = [path for path, listed in lists.items() if all(map(find_role, listed[:2]))]
    if len(messages) == 1:
        return f"{seen}. If `{messages[0]}` has its messages, say so: --map messages={messages[0]}."
    if messages:
        told = join_names([f"`{path}`" for path in messages[:_MOST_LISTS]])
        return (
            f"{seen}, for it has several lists of messages, such as {told}. Write each as an object: "
            '{"messages": […]}; or say which of them counts: --map messages=NAME.'
        )
    asked = _suggest_mapping(value)
    if asked != _MAP:  # a message or a reply is known
        return f"{seen}. Say what they are: {asked}."
    # Conversations are no messages, but have such.
    chats = [
        path
        for path, (first, *_) in lists.items()
        if is_header(first) or (any(_find_lists(first, "", 1)) and not _has_text(first))
    ]
    if chats:
        return f"{seen}. If `{chats[0]}` has the conversations, give that list alone."
    if lists:
        path, listed = max(lists.items(), key=lambda item: _has_text(item[1][0]))
        return (
            f"{seen}. If `{path}` has its messages, it is not known who speaks in them "
            f"({shorten_line(', '.join(listed[0]))}). {_TABLE}."
        )
    return f"{seen}. Say what they are: {asked}."


def _find_lists(value: Any, path: str, levels: int) -> Iterator[tuple[str, list[Any]]]:
    """Yield (path, list) of the lists of objects in an object, those that stand less deep first."""
    inside = list[tuple[str, Any]]()
    for key, one in value.items() if isinstance(value, Mapping) else ():
        if "." in key:
            continue
        if isinstance(one, list) and _holds_objects(one):
            yield f"{path}{key}", one
        inside.append((f"{path}{key}.", one))
    if levels > 1:
        for place, one in inside:
            yield from _find_lists(one, place, levels - 1)


def _has_text(message: Mapping[str, Any]) -> bool:
    return any(fold_name(name) in _TEXTS for name in message)


def _holds_objects(listed: list[Any]) -> bool:
    return bool(listed) and all(isinstance(one, Mapping) for one in listed)


def _suggest_mapping(names: Iterable[str]) -> str:
    """Return how to say which names are a message and its reply, as far as they are not known.

    >>> _suggest_mapping(("message", "response"))
    '--map user=message'
    """
    chosen = dict[str, str]()
    for field in ("user", "reply", "text"):
        with suppress(FormatError):
            chosen |= Reading().choose(tuple(names), field)
    said = {"user": chosen.get("text", "NAME") if "reply" in chosen else "NAME", "reply": "NAME"}
    return "--map " + ",".join(f"{field}={name}" for field, name in said.items() if field not in chosen)


def _describe_text(text: str) -> str:
    lines = text.splitlines()[:_LINES]
    for number in range(1, len(lines)):
        if is_later_header(find_separator(lines[number : number + 2])[1]):
            return f"its header seems to be line {number + 1}. Delete the lines before it."
    separator, header = find_separator(lines)
    if len(header) < 2:
        return (
            f"it is neither JSON nor a table; it begins with "
            f"{shorten_line(lines[0] if lines else '')[:60]!r}. {_TABLE}."
        )
    told = {"\t": "tabs"}.get(separator, f"`{separator}`")
    return (
        f"it has the columns {shorten_line(', '.join(header))}, separated by {told}, in which no message "
        "with its reply, and no message with who speaks, is known. Name them in the header, or say what they "
        f"are: {_suggest_mapping(header)}."
    )
