"""Requests to Gemini: `contents` with `parts`, and the reply among the `candidates`.

As in the reference of `generateContent`, October 2026, in camel or snake case; logs and batches have both in
`request` and `response`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, recognize_object
from hallulab.scenarios.chats.message_parts import read_parts
from hallulab.scenarios.chats.messages import build_chat, list_unread, read_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.replies import read_candidates, read_reply
from hallulab.scenarios.chats.sessions import read_log
from hallulab.scenarios.chats.turns import ChatMessageRecord
from hallulab.scenarios.chats.values import FormatError
from hallulab.scenarios.transcript import Conversation

_SYSTEM = ("systemInstruction", "system_instruction")
_READ = ("contents", "candidates", "response", "key", *_SYSTEM)


def _flatten(value: Mapping[str, Any]) -> Mapping[str, Any]:
    request = value.get("request")
    if isinstance(request, Mapping) and "contents" not in value:
        return {**{key: one for key, one in value.items() if key != "request"}, **request}
    return value


def _read_request(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    system = next((value[key] for key in _SYSTEM if value.get(key)), None)
    parts = system.get("parts") if isinstance(system, Mapping) else system
    text = read_parts(parts, "systemInstruction").join()
    said = [] if text is None else [ChatMessageRecord("system", text)]
    contents = value.get("contents")
    if contents is None:
        raise FormatError("contents: is missing. Log the request with its contents, or delete the line.")
    listed = contents if isinstance(contents, list) else [contents]
    # A content may be a text, and lack the role of the user.
    told = ({"parts": [one]} if isinstance(one, str) else one for one in listed)
    messages = [{"role": "user", **one} if isinstance(one, Mapping) else one for one in told]
    said += read_said(messages, "contents", reading)
    if value.get("candidates"):
        said += read_candidates(value["candidates"], "candidates", reading)
    elif value.get("response"):
        said += read_reply(value["response"], "response", reading)
    return build_chat(value, list_unread(value, *_READ), said, name, reading)


INFO = ChatFormat(
    name="gemini",
    about="requests to Gemini: contents and candidates",
    endings=(".jsonl", ".json"),
    read=partial(read_log, prepare=_flatten, known=_READ, convert=_read_request),
    recognize=recognize_object(lambda value: isinstance(_flatten(value).get("contents"), list | str)),
    rank=0,
)
