"""Describe a file in no format of chats: one sentence with what was seen, and the remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hallulab.scenarios.chats.chat_format import FileStart
from hallulab.scenarios.chats.csv import find_encoding, find_separator
from hallulab.scenarios.text.wording import shorten_line

_TABLE = "Make it a table with a row a message: columns session_id, role, content and time"

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
    (("guild", "channel"), "an export of Discord"),
)
"""Keys of the first object → the tool that writes them, which is not read."""

_CHAT_LINE = re.compile(
    r"\[?\d{1,4}[./-]\d{1,2}[./-]\d{2,4},? \d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?: ?[AaPp]\.?[Mm]\.?)?"
    r"(?:\]| -) ?[^:\n]{1,80}: "
)
_LONGEST_LINE = 500


def is_chat_of_people(data: bytes) -> bool:
    """Return whether a text is a chat that WhatsApp or its like has written: time, name, message."""
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
    if data[:400].count(0) > 20:
        return "it is no text, or in UTF-16 or UTF-32 without a mark. Save it as UTF-8."
    if start.value is not None:
        return _describe_object(start.value)
    if text[:1] == "[":
        return "it is a list of something else than objects. Give a list of objects, or JSON lines."
    if text[:1] == "<":
        return "it is HTML or XML. Save it as CSV, JSON lines or .xlsx."
    return _describe_text(text)


def _describe_object(value: Mapping[str, Any]) -> str:
    for keys, tool in _SHAPES:
        if value.keys() >= set(keys):
            return f"it looks like {tool}: it is not read. {_TABLE}."
    if value and all(isinstance(one, list) for one in value.values()):
        return (
            f"it holds columns ({shorten_line(', '.join(value))}), and not rows. Write a JSON object a row "
            "(pandas: `to_json(orient='records')`)."
        )
    return (
        f"its first object has the keys {shorten_line(', '.join(value)) or '(none)'}, in which no chat is "
        "known. Say what they are: --map user=NAME,reply=NAME."
    )


def _describe_text(text: str) -> str:
    lines = text.splitlines()[:2]
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
        "are: --map user=NAME,reply=NAME."
    )
