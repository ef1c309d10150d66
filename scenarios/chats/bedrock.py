"""Logs of Amazon Bedrock: model invocations, and answers of `RetrieveAndGenerate` with their citations.

As in the API reference of October 2026. Requests of Converse alone are lines with `messages` (`openai`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, recognize_object
from hallulab.scenarios.chats.evidence import extract_evidence
from hallulab.scenarios.chats.messages import build_chat, list_unread
from hallulab.scenarios.chats.openai import read_openai
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.sessions import read_log
from hallulab.scenarios.chats.turns import ChatMessageRecord
from hallulab.scenarios.chats.values import FormatError, get_object, list_in, list_objects
from hallulab.scenarios.transcript import Conversation

_READ = ("messages", "response", "input", "output", "citations", "request", "ResponseMetadata")


def _flatten(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a log of an invocation as a line with `messages` and `response`."""
    asked = get_object(get_object(value, "input"), "inputBodyJson")
    if "messages" not in asked:
        return value
    named = {"model": value.get("modelId"), "id": value.get("requestId")}
    replied = get_object(value, "output").get("outputBodyJson")
    return {**named, "timestamp": value.get("timestamp"), **asked, "response": replied}


def _read_request(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    if "messages" in value:
        return read_openai(value, name, reading)
    asked = value.get("input") or get_object(value, "request").get("input")
    question = asked.get("text") if isinstance(asked, Mapping) else asked
    reply = get_object(value, "output").get("text")
    if not isinstance(question, str) or not isinstance(reply, str):
        raise FormatError(
            "an answer of RetrieveAndGenerate, without its question. Add the request's: "
            '`"input": {"text": …}`.'
        )
    reading.take("user", "input.text")
    reading.take("reply", "output.text")
    cited = [
        reference
        for citation in list_objects(value, "citations")
        for reference in list_in(citation, "retrievedReferences")
    ]
    if cited:
        reading.take("passages", "citations.retrievedReferences")
    found = list({one.text: one for one in extract_evidence(cited, "citation")}.values()) if cited else []
    said = [
        ChatMessageRecord("user", question), ChatMessageRecord("assistant", reply, tuple(found)),
    ]  # fmt: skip
    return build_chat(value, list_unread(value, *_READ), said, name, reading)


INFO = ChatFormat(
    name="bedrock",
    about="logs of Amazon Bedrock: model invocations, and answers with citations",
    endings=(".jsonl", ".json"),
    read=partial(read_log, prepare=_flatten, known=_READ, convert=_read_request),
    recognize=recognize_object(
        lambda value: (
            ("messages" in _flatten(value) and "messages" not in value)
            or (isinstance(value.get("citations"), list) and "text" in get_object(value, "output"))
        )
    ),
    rank=0,
)
