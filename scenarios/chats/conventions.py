"""Meaning of the attributes of a span, by the conventions of the tools that write spans of models.

- OpenTelemetry GenAI: semantic-conventions-genai v0.1.0 and semantic-conventions v1.37 to v1.41, on the span
  or on its event `gen_ai.client.inference.operation.details`; v1.36 and before: an event for each message
  (`gen_ai.user.message`, `gen_ai.choice`), of the span or in the log;
- OpenInference, October 2026; Phoenix has its kind of span beside the attributes (`span_kind`);
- Traceloop's OpenLLMetry 0.4x: `gen_ai.prompt.N`, `gen_ai.completion.N`, `traceloop.entity.*`;
- the telemetry of Vercel's AI SDK 4 to 6: `ai.prompt`, `ai.response.text`, `ai.toolCall.*`;
- Langfuse's own attributes on spans of OpenTelemetry: `langfuse.observation.*`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from hallulab.scenarios.chats.cells import unpack_cell
from hallulab.scenarios.chats.message_parts import is_part
from hallulab.scenarios.chats.reading import fold_keys, fold_name
from hallulab.scenarios.chats.span_files import Attributes, build_attribute_tree
from hallulab.scenarios.chats.values import get_object, list_in

Kind = Literal["model", "agent", "evidence", "event", "other"]

RETRIEVES = re.compile(r"^(?!.*agent).*(?:retriev|(?<!re)search|rerank)", re.IGNORECASE | re.DOTALL)
"""Names of spans of no known kind that find passages; a research agent writes replies."""
KNOWN = "OpenTelemetry GenAI, OpenInference, Traceloop and Vercel's AI SDK"
"""Tools whose spans are read, for errors."""

_KINDS: Mapping[str, Mapping[str, Kind]] = {
    "gen_ai.operation.name": {
        "chat": "model", "generate_content": "model", "text_completion": "model",
        "retrieval": "evidence", "execute_tool": "evidence",
        "invoke_agent": "agent", "invoke_workflow": "agent",
    },
    "openinference.span.kind": {
        "LLM": "model", "RETRIEVER": "evidence", "TOOL": "evidence", "RERANKER": "evidence", "AGENT": "agent",
    },
    "traceloop.span.kind": {"tool": "evidence", "agent": "agent", "workflow": "agent"},
    "llm.request.type": {"chat": "model", "completion": "model", "rerank": "evidence"},
    "ai.operationId": {
        "ai.generateText": "agent", "ai.streamText": "agent", "ai.generateObject": "agent",
        "ai.streamObject": "agent", "ai.toolCall": "evidence", "ai.generateText.doGenerate": "model",
        "ai.streamText.doStream": "model", "ai.generateObject.doGenerate": "model",
        "ai.streamObject.doStream": "model",
    },
    "langfuse.observation.type": {
        "generation": "model", "retriever": "evidence", "tool": "evidence", "agent": "agent",
    },
}  # fmt: skip
"""Attribute → its value → who works in the span."""
_GIVEN = (
    "gen_ai.input.messages", "events", "llm.input_messages", "gen_ai.prompt", "ai.prompt.messages",
    "ai.prompt", "input.value", "traceloop.entity.input", "langfuse.observation.input",
    "langfuse.trace.input", "pydantic_ai.all_messages",
)  # fmt: skip
_GAVE = (
    "gen_ai.output.messages", "events", "llm.output_messages", "gen_ai.completion", "ai.response.text",
    "ai.response.object", "output.value", "traceloop.entity.output", "langfuse.observation.output",
    "langfuse.trace.output", "final_result",
)  # fmt: skip
_FOUND = (
    "retrieval.documents", "reranker.output_documents", "gen_ai.retrieval.documents", "db.query.result",
    "gen_ai.tool.call.result", "tool_response", "ai.toolCall.result", "output.value",
    "traceloop.entity.output", "langfuse.observation.output",
)  # fmt: skip
_MODELS = (
    "gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "ai.model.id",
    "langfuse.observation.model.name",
)  # fmt: skip
_SESSIONS = ("gen_ai.conversation.id", "session.id", "langfuse.session.id")
_SESSION_ENDS = ("session_id", "conversation_id", "thread_id", "chat_id")
_TOPICS = ("topic", "metadata.topic")

_DETAILS = "gen_ai.client.inference.operation.details"
_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_CHOICE = "gen_ai.choice"
_PROMPT, _COMPLETION = "gen_ai.content.prompt", "gen_ai.content.completion"


class SpanContent(NamedTuple):
    """Content of the attributes and events of a span."""

    kind: Kind
    given: Any
    gave: Any
    """Its output; of evidence, the passages found."""
    system: Any
    """Instructions to the model, where they stand apart."""
    texts: Mapping[str, str]
    """`session`, `model`, `topic` and `tool`, as far as they are there."""
    names: Mapping[str, str]
    """Field → the attribute that has it."""


def read_content_of(
    attributes: Attributes, events: Iterable[tuple[str, Attributes]], kind: str | None = None
) -> SpanContent:
    """Read the attributes and events of a span.

    Args:
        attributes: by their full names.
        events: names and attributes.
        kind: OpenInference's kind of span, where it stands beside the attributes.

    Raises:
        FormatError: an attribute's name has too many parts, or something is no list.
    """
    asked, replied, results = list[Any](), list[Any](), list[Any]()
    found = fold_keys(attributes)
    for name, inner in events:
        if name == _DETAILS:
            found |= fold_keys(inner)
        elif name == "db.query.result":
            results.append({key.rpartition(".")[2]: one for key, one in inner.items()})
        elif (message := read_event(name, inner, None)) is not None:
            (replied if name in (_CHOICE, _COMPLETION) else asked).append(message)
    if kind is not None:
        found.setdefault(fold_name("openinference.span.kind"), kind)
    nest = build_attribute_tree(found)
    lists = {
        "llm.input_messages": _unpack_openinference(_get_at(nest, "llm", "inputmessages")),
        "llm.output_messages": _unpack_openinference(_get_at(nest, "llm", "outputmessages")),
        "gen_ai.prompt": _unpack_traceloop(_get_at(nest, "genai", "prompt"), "user"),
        "gen_ai.completion": _unpack_traceloop(_get_at(nest, "genai", "completion"), "assistant"),
        "retrieval.documents": _unpack_documents(_get_at(nest, "retrieval", "documents")),
        "reranker.output_documents": _unpack_documents(_get_at(nest, "reranker", "outputdocuments")),
        "db.query.result": results,
    }

    def find(names: Sequence[str], said: Sequence[Any] = ()) -> tuple[str, Any]:
        for name in names:
            value = said if name == "events" else lists.get(name) or found.get(fold_name(name))
            if value not in (None, "", [], ()):
                return ("messages of events" if name == "events" else name), unpack_text(value)
        return "", None

    works = _determine_kind(found, asked, replied, results, lists)
    given = find(_GIVEN, asked)
    gave = find(_FOUND) if works == "evidence" else find(_GAVE, replied)
    if gave[0] == "traceloop.entity.output" and isinstance(gave[1], Mapping) and "output" in gave[1]:
        gave = gave[0], gave[1]["output"]  # beside it stand the call's `kwargs`
    names = {"user": given[0], ("passages" if works == "evidence" else "reply"): gave[0]}
    texts = dict[str, str]()
    for field, keys in (
        ("session", _SESSIONS), ("model", _MODELS), ("topic", _TOPICS),
        ("tool", ("gen_ai.tool.name", "ai.toolCall.name", "tool.name")),
    ):  # fmt: skip
        name = next((one for one in keys if read_text(found.get(fold_name(one)))), "")
        if name:
            texts[field], names[field] = str(found[fold_name(name)]), name
    if "session" not in texts:
        texts |= _find_session(attributes, names)
    names = {field: name for field, name in names.items() if name and field != "tool"}
    system = found.get(fold_name("gen_ai.system_instructions"))
    return SpanContent(works, given[1], gave[1], system, texts, names)


def _find_session(attributes: Attributes, names: dict[str, str]) -> dict[str, str]:
    """Return the session that an attribute of some other name gives: `ai.telemetry.metadata.sessionId`."""
    ends = {fold_name(end): end for end in _SESSION_ENDS}
    for name, value in attributes.items():
        if fold_name(name.rpartition(".")[2]) in ends and read_text(value):
            names["session"] = name
            return {"session": str(value)}
    return {}


def _determine_kind(
    found: Attributes, asked: Any, replied: Any, results: Any, lists: Mapping[str, Any]
) -> Kind:
    for name, kinds in _KINDS.items():
        value = found.get(fold_name(name))
        if isinstance(value, str) and value in kinds:
            return kinds[value]
    if results or lists["retrieval.documents"]:
        return "evidence"
    return "model" if lists["gen_ai.completion"] or asked or replied else "other"


def read_event(name: str, attributes: Attributes, body: Any) -> Any:
    """Return the message of an event of the conventions before v1.37; None: it is another event.

    Args:
        name: of the event.
        attributes: of the event.
        body: of a record of a log; None: it has none.
    """
    flat = fold_keys(attributes)
    said = body if body is not None else unpack_text(flat.get("genai.event.content"))
    said = flat if said is None else said
    said = fold_keys(said) if isinstance(said, Mapping) else {"content": said}
    if name in (_PROMPT, _COMPLETION):
        return unpack_text(flat.get("genai.prompt", flat.get("genai.completion")))
    if name == _CHOICE:
        message = unpack_text(said.get("message", said))
        message = fold_keys(message) if isinstance(message, Mapping) else {"content": message}
        return {**_keep_message(message), "role": "assistant"}
    if name in _ROLES:
        return {**_keep_message(said), "role": _ROLES[name]}
    return None


def is_reply(name: str) -> bool:
    """Return whether an event has what the model said."""
    return name in (_CHOICE, _COMPLETION)


def _keep_message(said: Mapping[str, Any]) -> dict[str, Any]:
    message = {"content": _unpack_parts(said.get("content"))}
    calls = unpack_text(said.get("toolcalls"))
    return {**message, "tool_calls": calls} if calls else message


def _unpack_openinference(messages: Any) -> list[Any]:
    """Return OpenInference's messages as objects with role and content."""
    found = []
    for one in messages if isinstance(messages, list) else []:
        message = get_object(one, "message")
        parts, content = message.get("contents"), message.get("content")
        if content is None and isinstance(parts, list):
            said = [get_object(part, "messagecontent") for part in parts]
            content = [{"type": one.get("type"), "text": one.get("text")} for one in said]
        calls = [_get_at(call, "toolcall") for call in list_in(message, "toolcalls")]
        found.append({"role": message.get("role"), "content": content, "tool_calls": calls})
    return found


def _unpack_traceloop(messages: Any, role: str) -> list[Any]:
    """Return Traceloop's messages as objects with role and content."""
    found = []
    for one in messages if isinstance(messages, list) else []:
        if isinstance(one, Mapping):
            calls = [call for call in one.get("toolcalls") or [] if isinstance(call, Mapping)]
            content = _unpack_parts(one.get("content"))
            beside = {"tool_calls": calls} if calls else {}
            found.append({"role": one.get("role") or role, "content": content, **beside})
    return found


def _unpack_parts(content: Any) -> Any:
    """Return a message's content: a text that is a list of parts is that list."""
    parts = unpack_cell(content)
    is_list = isinstance(parts, list) and all(isinstance(one, Mapping) and is_part(one) for one in parts)
    return parts if is_list and parts else content


def _unpack_documents(documents: Any) -> list[Any]:
    listed = documents if isinstance(documents, list) else []
    return [_get_at(one, "document") or one for one in listed]


def unpack_text(value: Any) -> Any:
    """Return the value of a text that is JSON: a list, an object, or a text in quotes."""
    if not isinstance(value, str):
        return value
    if value[:1] == value[-1:] == '"' and len(value) > 1:
        quoted = unpack_cell(f"[{value}]")
        return quoted[0] if isinstance(quoted, list) and len(quoted) == 1 else value
    return unpack_cell(value)


def read_text(value: Any) -> str | None:
    """Return a text or whole number as a text; None for anything else, and an empty text."""
    return str(value) if isinstance(value, str | int) and str(value) else None


def _get_at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
