"""The parts of messages, as the APIs of OpenAI, Anthropic, Bedrock, Gemini and Vercel have them.

A part names its kind under `type`, or by its only key: `{"toolUse": {…}}`. Names count as in `reading`,
without case, `_` and `-`, so that `tool_use` and `toolUse` are one kind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hallulab.scenarios.chats.evidence import FoundEvidence, extract_evidence
from hallulab.scenarios.chats.reading import fold_name, fold_names
from hallulab.scenarios.chats.values import FormatError, get_text
from hallulab.scenarios.text.wording import shorten_line

_TEXTS = fold_names("text input_text output_text refusal")
_CALLS = fold_names("tool_call tool_use server_tool_use mcp_tool_use function_call executable_code")
_RESULTS = fold_names(
    "tool_call_response tool_result tool_call_result web_search_tool_result web_fetch_tool_result "
    "mcp_tool_result code_execution_tool_result bash_code_execution_tool_result "
    "text_editor_code_execution_tool_result tool_search_tool_result function_response "
    "function_call_output code_execution_result"
)
_DOCUMENTS = fold_names("document search_result")
SILENT = fold_names(
    "reasoning thinking think thought redacted_thinking reasoning_content reasoning_message cache_point "
    "step_start hidden_reasoning_message"
)
"""Kinds of parts that are no words of the speaker."""
_KINDS = (*_TEXTS, *_CALLS, *_RESULTS, *_DOCUMENTS, *SILENT, "citationscontent")
_WORDS = ("text", "content", "refusal", "value")
_GAVE = ("response", "result", "content", "output", "tool_result")


@dataclass
class MessageParts:
    """Content of the parts of a message."""

    texts: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    results: list[tuple[FoundEvidence, ...]] = field(default_factory=list)
    documents: list[FoundEvidence] = field(default_factory=list)
    """Documents that the message brings, and what its words cite from the web."""
    left_out: list[str] = field(default_factory=list)
    """Kinds of parts that have no words, such as images."""
    cites: bool = False
    """True if a text names its sources, so that sentences go on from one part to the next."""

    def read_tools(self, used: list[Any]) -> None:
        """Add calls of tools, with what they gave, as Vercel's AI SDK has them (`toolName`, `result`)."""
        for one in used:
            if isinstance(one, Mapping):
                self.calls.append(json.dumps(one, ensure_ascii=False))
                gave = one.get("output", one.get("result"))
                if gave is not None:
                    self.results.append(tuple(extract_evidence(gave, _name_tool(one))))

    def join(self) -> str | None:
        """Return the texts as one; None: there is none."""
        return ("" if self.cites else "\n").join(self.texts) if self.texts else None


def read_parts(content: Any, where: str) -> MessageParts:
    """Return what the content of a message says: a text, or a list of parts; null says nothing.

    Raises:
        FormatError: it is something else, or a part of text has none.
    """
    found = MessageParts()
    if content is None:
        return found
    if isinstance(content, str):
        found.texts.append(content)
        return found
    if isinstance(content, Mapping):
        content = content["parts"] if isinstance(content.get("parts"), list) else [content]
    if not isinstance(content, list):
        raise FormatError(
            f"{where}: must be text or a list of parts, not {shorten_value(content)}. Correct it."
        )
    for number, part in enumerate(content):
        _read_part(part, f"{where}.{number}", found)
    return found


def _read_part(part: Any, where: str, found: MessageParts) -> None:
    if isinstance(part, str):
        found.texts.append(part)
        return
    if not isinstance(part, Mapping):
        raise FormatError(f"{where}: a part must be text or an object, not {shorten_value(part)}. Delete it.")
    kind, body = _find_kind(part)
    if kind in SILENT or part.get("thought") is True:
        return
    if "toolCallId" in part and kind not in _RESULTS and kind not in _CALLS:
        # A part of Vercel's `UIMessage` is called as its tool: `tool-searchRules`.
        found.read_tools([{"toolName": str(part.get("type")).removeprefix("tool-"), **part}])
        return
    if kind == "toolinvocation" and isinstance(part.get("toolInvocation"), Mapping):
        found.read_tools([part["toolInvocation"]])
        return
    if kind in _CALLS:
        found.calls.append(json.dumps(part, ensure_ascii=False))
        if isinstance(part.get("result"), str) and part["result"]:
            found.results.append(tuple(extract_evidence(part["result"], _name_tool(part))))
    elif kind in _RESULTS:
        gave = next((body[key] for key in _GAVE if body.get(key) is not None), None)
        if isinstance(gave, Mapping) and len(gave) == 1:  # Gemini's `{"result": …}`
            gave = next(iter(gave.values()))
        found.results.append(tuple(extract_evidence(gave, _name_tool(body))))
    elif kind in _DOCUMENTS and _has_words(body):
        found.documents += extract_evidence(body, "document")
    elif kind == "citationscontent":
        cited = body.get("content")
        texts = (get_text(one, "text") or "" for one in (cited if isinstance(cited, list) else []))
        found.texts.append("".join(texts))
    elif kind in _TEXTS or kind is None:
        found.texts.append(_read_text(body, where))
        found.documents += _read_web_citations(part)
        found.cites |= isinstance(part.get("citations"), list)
    elif (transcript := get_text(part, "transcript")) is not None:  # of what was spoken
        found.texts.append(transcript)
    else:
        found.left_out.append(str(part.get("type") or next(iter(part))))


def _find_kind(part: Mapping[str, Any]) -> tuple[str | None, Mapping[str, Any]]:
    """Return the folded kind of a part, and the object that has its content; None: a text without a kind."""
    kind = part.get("type", part.get("block_type"))  # of LlamaIndex
    if isinstance(kind, str):
        return fold_name(kind), part
    for key, body in part.items():
        if fold_name(key) in _KINDS:
            return fold_name(key), body if isinstance(body, Mapping) else part
    return (None if not part or any(key in part for key in _WORDS) else fold_name(next(iter(part)))), part


def is_part(value: Mapping[str, Any]) -> bool:
    """Return whether an object names its kind, under `type` or by its only key."""
    return "type" in value or (len(value) == 1 and fold_name(next(iter(value))) in _KINDS)


def _name_tool(body: Mapping[str, Any]) -> str:
    origin = body.get("origin")  # of Haystack
    name = body.get("name") or body.get("toolName") or body.get("tool_name")
    if name is None and isinstance(origin, Mapping):
        name = origin.get("tool_name")
    return name if isinstance(name, str) else "tool"


def _has_words(body: Mapping[str, Any]) -> bool:
    """Return whether a document has its words with it, and not only a file's bytes or address."""
    source = body.get("source")
    if isinstance(source, Mapping):
        return source.get("type") in ("text", "content") or any(key in source for key in ("text", "content"))
    return any(isinstance(body.get(key), str | list) for key in ("text", "content"))


def _read_text(part: Mapping[str, Any], where: str) -> str:
    for key in _WORDS:
        text = part.get(key)
        # OpenAI's Assistants have `{"text": {"value": …}}`.
        text = text.get("value") if isinstance(text, Mapping) else text
        if isinstance(text, str):
            return text
    raise FormatError(f"{where}: a part has no `text`. Give one, or delete the part.")


def _read_web_citations(part: Mapping[str, Any]) -> list[FoundEvidence]:
    """Return what a text cites from the web: of Anthropic's search, nothing else is told."""
    cited = part.get("citations")
    return [
        FoundEvidence(one["cited_text"], str(one.get("title") or one.get("url") or "web"))
        for one in (cited if isinstance(cited, list) else [])
        if isinstance(one, Mapping) and one.get("type") == "web_search_result_location"
        and isinstance(one.get("cited_text"), str)
    ]  # fmt: skip


def shorten_value(value: Any) -> str:
    """Return a value as it is told in an error."""
    return shorten_line(json.dumps(value, ensure_ascii=False))
