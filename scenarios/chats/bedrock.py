"""Logs of Amazon Bedrock: model invocations, and answers of `RetrieveAndGenerate` with their citations.

As in the API reference of October 2026. Requests of Converse alone are lines with `messages` (`openai`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat
from hallulab.scenarios.chats.evidence import extract_evidence
from hallulab.scenarios.chats.messages import build_chat, list_unread
from hallulab.scenarios.chats.openai import read_openai
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.sessions import read_log
from hallulab.scenarios.chats.turns import ChatMessageRecord
from hallulab.scenarios.chats.values import FormatError, list_in
from hallulab.scenarios.transcript import Conversation

_READ = ("messages", "response", "input", "output", "citations", "request", "ResponseMetadata")


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of the requests; those of one session are one."""
    return read_log(path, reading, _flatten, _READ, _read_request)


def _flatten(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a log of an invocation as a line with `messages` and `response`."""
    asked, replied = (_find_body(value.get(side), side) for side in ("input", "output"))
    if not isinstance(asked, Mapping) or "messages" not in asked:
        return value
    named = {"model": value.get("modelId"), "id": value.get("requestId")}
    return {**named, "timestamp": value.get("timestamp"), **asked, "response": replied}


def _find_body(side: Any, name: str) -> Any:
    return side.get(f"{name}BodyJson") if isinstance(side, Mapping) else None


def _read_request(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    if "messages" in value:
        return read_openai(value, name, reading)
    request = value.get("request")
    asked = value.get("input") or (request.get("input") if isinstance(request, Mapping) else None)
    question = asked.get("text") if isinstance(asked, Mapping) else asked
    output = value.get("output")
    reply = output.get("text") if isinstance(output, Mapping) else None
    if not isinstance(question, str) or not isinstance(reply, str):
        raise FormatError(
            "an answer of RetrieveAndGenerate, without its question. Add the request's: "
            '`"input": {"text": …}`.'
        )
    reading.take("user", "input.text")
    reading.take("reply", "output.text")
    cited = [
        reference
        for citation in list_in(value, "citations")
        if isinstance(citation, Mapping)
        for reference in list_in(citation, "retrievedReferences")
    ]
    if cited:
        reading.take("passages", "citations.retrievedReferences")
    found = list({one.text: one for one in extract_evidence(cited, "citation")}.values()) if cited else []
    said = [
        ChatMessageRecord("user", question), ChatMessageRecord("assistant", reply, tuple(found)),
    ]  # fmt: skip
    return build_chat(value, list_unread(value, *_READ), said, name, reading)


def recognize(start: FileStart) -> bool:
    """Return whether the first object is the log of an invocation, or has citations of a knowledge base."""
    value = start.value
    if value is None:
        return False
    output = value.get("output")
    cites = isinstance(value.get("citations"), list) and isinstance(output, Mapping) and "text" in output
    return cites or ("messages" in _flatten(value) and "messages" not in value)


INFO = ChatFormat(
    name="bedrock",
    about="logs of Amazon Bedrock: model invocations, and answers with citations",
    endings=(".jsonl", ".json"),
    read=read,
    recognize=recognize,
    rank=0,
)
