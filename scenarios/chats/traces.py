"""Conversations of traces: each trace is a request of a user, and its spans are what was done about it.

The reply of a trace is what its root span gave, or where that says nothing, what the last span of a model
gave. What spans of retrievers and tools gave is the evidence of the reply. Traces of one session are turns of
one conversation, in the order of time. Chat APIs get the whole dialogue with every request: of the first
trace all of it is taken, of later ones the last turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hallulab.scenarios.chats.chat_format import ReadChat, require_object
from hallulab.scenarios.chats.evidence import FoundEvidence, extract_evidence
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.record import MODEL, ChatContext, add_topic, build_conversation
from hallulab.scenarios.chats.turns import (
    ChatMessageRecord,
    build_turns,
    read_chat_message,
    read_content,
)
from hallulab.scenarios.chats.values import FormatError, GroupedPart, Groups, read_json_values
from hallulab.scenarios.files.json_text import parse_json
from hallulab.scenarios.transcript import Conversation, Frozen, Turn


class TraceSpan(Frozen):
    """What we read of a span, whatever tool wrote it."""

    trace: str
    """Identifier of its trace."""
    kind: Literal["model", "evidence", "other"]
    """Who works in it: a model, a retriever or tool, or something else."""
    root: bool = False
    """Whether it has no parent."""
    start: float = 0.0
    """When it began; any unit."""
    end: float = 0.0
    """When it ended."""
    name: str = ""
    """Its name: the document of evidence that names none."""
    given: Any = None
    """What it was given: a text, messages, or an object with either."""
    gave: Any = None
    """What it gave, likewise; of `evidence`: what was found."""
    system: Any = None
    """Instructions to the model, where they stand apart."""
    session: str | None = None
    """The conversation that it is part of; None: it does not say."""
    model: str | None = None
    """Name of the model."""
    topic: str | None = None
    """Topic of the trace."""


def read_traces(
    path: Path, reading: Reading, read: Callable[[Mapping[str, Any]], Iterator[TraceSpan]]
) -> Iterator[ReadChat]:
    """Yield the conversations of a file of traces.

    Args:
        path: the file.
        reading: says how many wrong values may be left out.
        read: yields the spans of a value of the file.

    Raises:
        UsageError: the file cannot be read.
        FormatError: a value is wrong.
    """
    for line, conversation in build_conversations(_read_spans(path, reading, read)):
        yield ReadChat(f"{path}, line {line}", conversation)


def _read_spans(
    path: Path, reading: Reading, read: Callable[[Mapping[str, Any]], Iterator[TraceSpan]]
) -> Iterator[SpanRef]:
    for place, line, value in read_json_values(path):
        try:
            for span in read(require_object(value)):
                yield SpanRef(line, span)
        except FormatError as error:
            reading.skip(FormatError(str(error), place), place)


class SpanRef(NamedTuple):
    """A span, and where it stands in the file."""

    line: int
    """Line from 1."""
    span: TraceSpan


def build_conversations(spans: Iterable[SpanRef]) -> Iterator[tuple[int, Conversation]]:
    """Yield (line, conversation) of spans in any order; one without a reply has no turns.

    Raises:
        FormatError: something in a message is wrong; names the trace.
    """
    with Groups() as traces, Groups() as sessions:
        for line, span in spans:
            traces.add(span.trace, span.start, line, span.model_dump(mode="json"))
        for trace, rows in traces:
            own = [TraceSpan.model_validate(row.value) for row in rows]
            session = next((span.session for span in own if span.session), None)
            sessions.add(session or trace, own[0].start, rows[0].line, _read(trace, own, rows[0].line))
        for session, rows in sessions:
            yield rows[0].line, _join_traces(session, rows)


def _read(trace: str, spans: Sequence[TraceSpan], line: int) -> dict[str, Any]:
    """Return the turns of a trace."""
    try:
        said = _extract_dialogue(spans)
    except FormatError as error:
        raise FormatError(f"trace {trace}: {error}", f"line {line}") from error
    evidence = [found for span in spans if span.kind == "evidence" for found in _extract_evidence(span)]
    told = _list_told(said)
    evidence = [found for found in evidence if found.text not in told]
    if said and said[-1].role == "assistant":
        said[-1] = ChatMessageRecord("assistant", said[-1].text, (*said[-1].evidence, *evidence))
    turns = build_turns(said)
    topic = next((span.topic for span in spans if span.topic), None)
    return {
        "turns": [turn.model_dump(mode="json") for turn in (*turns[:-1], *add_topic(turns[-1:], topic))],
        "model": next((span.model for span in reversed(spans) if span.model), None),
    }


def _list_told(said: Sequence[ChatMessageRecord]) -> set[str]:
    """Return what messages have of tools since the user's last one: spans have it a second time."""
    asked = max((place for place, one in enumerate(said) if one.role == "user"), default=0)
    return {found.text for one in said[asked:] for found in one.evidence}


def _join_traces(session: str, rows: Sequence[GroupedPart]) -> Conversation:
    turns = list[Turn]()
    for row in rows:
        own = [Turn.model_validate(turn) for turn in row.value["turns"]]
        turns += own[-1:] if turns else own
    model = next((row.value["model"] for row in rows if row.value["model"]), MODEL)
    return build_conversation(turns, ChatContext(id=session, model=model), session)


def _extract_dialogue(spans: Sequence[TraceSpan]) -> list[ChatMessageRecord]:
    """Return what was said in a trace, the reply last; nothing where no span has a question and a reply."""
    roots = [span for span in spans if span.root and span.kind != "evidence"]
    models = sorted((span for span in spans if span.kind == "model"), key=lambda span: span.end)
    for span in (*roots, *reversed(models)):
        asked, replied = extract_messages(span.given, "user"), extract_messages(span.gave, "assistant")
        replies = [said for said in replied if said.role == "assistant"]
        if any(said.role == "user" for said in asked) and replies:
            # Tools that log a list of messages late have the reply at its end, too.
            if (asked[-1].role, asked[-1].text) == ("assistant", replies[-1].text):
                del asked[-1]
            system = [ChatMessageRecord("system", text) for text in _read_system(span.system)]
            return [*system, *asked, *(said for said in replied if said.role == "call"), *replies[-1:]]
    return []


def _read_system(value: Any) -> list[str]:
    text = read_content(unpack_json(value), "system instructions")
    return [text] if text else []


def _extract_evidence(span: TraceSpan) -> list[FoundEvidence]:
    return list(extract_evidence(span.gave, span.name or "evidence"))


def unpack_json(value: Any) -> Any:
    """Return the value of a text that is a JSON list or object; another value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return parse_json(value)
        except ValueError:
            return value
    return value


def _is_message(value: Mapping[str, Any]) -> bool:
    """Return whether a value says who speaks, perhaps as LangChain does."""
    if "role" in value or "message" in value:
        return True
    said = value.get("content", value.get("data", value.get("kwargs")))
    return said is not None and (isinstance(value.get("type"), str) or isinstance(value.get("id"), list))


_ASKED = ("messages", "question", "query", "input", "prompt", "message", "user_input", "chat_history")
_REPLIED = ("messages", "choices", "message", "answer", "output", "response", "reply", "result", "content")
_ANY = ("text", "content", "value")


def extract_messages(
    value: Any, role: Literal["user", "assistant"], levels: int = 6
) -> list[ChatMessageRecord]:
    """Return the messages in what a span was given, or gave.

    Args:
        value: a text, a message, a list of messages, or an object with one of these under a known key.
        role: who speaks in a text alone.
        levels: how deep objects may stand in each other.

    Raises:
        FormatError: a message is wrong.
    """
    value = unpack_json(value)
    if isinstance(value, str):
        return [ChatMessageRecord(role, value)] if value.strip() else []
    if isinstance(value, list) and levels:
        if value and all(isinstance(one, Mapping) and _is_message(one) for one in value):
            return [said for one in value for said in extract_messages(one, role, levels - 1)]
        # Batches of one request, and lists of parts.
        return extract_messages(value[0], role, levels - 1) if len(value) == 1 else []
    if not isinstance(value, Mapping) or not levels:
        return []
    if _is_message(value) and "message" not in value:
        content = "parts" if "parts" in value and "content" not in value else "content"
        return read_chat_message(value, "message", ("role", content))
    keys = (*(_ASKED if role == "user" else _REPLIED), *_ANY)
    for key in keys:
        if value.get(key) and (found := extract_messages(value[key], role, levels - 1)):
            return found
    only = next(iter(value.values())) if len(value) == 1 else None
    return extract_messages(only, role, levels - 1) if isinstance(only, str | Mapping | list) else []
