"""Conversations of traces: each trace is a request of a user, and its spans are the work on it.

The reply of a trace is what its root span gave, or where that says nothing, what an agent, or the last span
of a model gave. Outputs of retrievers and tools are the evidence of the reply. Traces of one session
are turns of one conversation, in the order of time. Chat APIs get the whole dialogue with every request: what
is known of it from the traces before is not taken again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field

from hallulab.scenarios.chats.cells import unpack_cell
from hallulab.scenarios.chats.chat_format import ReadChat, require_object, skip_wrong
from hallulab.scenarios.chats.conventions import KNOWN, Kind
from hallulab.scenarios.chats.dialogues import extract_dialogue_part
from hallulab.scenarios.chats.evidence import FoundEvidence, extract_evidence
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.record import (
    MODEL,
    ChatContext,
    add_topic,
    build_conversation,
    build_own_conversation,
    read_about,
)
from hallulab.scenarios.chats.sessions import count_overlap
from hallulab.scenarios.chats.turns import ChatMessageRecord, build_turns, find_evidence, read_content
from hallulab.scenarios.chats.values import FormatError, GroupedPart, Groups, Value, read_json_values
from hallulab.scenarios.text.wording import choose_noun, format_count, join_names, shorten_line
from hallulab.scenarios.transcript import Conversation, Frozen, Turn

_MOST_NAMED = 5


class TraceSpan(Frozen):
    """The parts of a span that we read, whatever tool wrote it."""

    trace: str
    id: str = ""
    kind: Kind
    """Who works in it: a model, an agent, a retriever or tool, or something else; or `event`: it is a message
    of the span with the same identifier."""
    root: bool = False
    start: float | None = None
    """When it began, in seconds; None: that is not known."""
    end: float | None = None
    name: str = ""
    """Its name: the document of evidence that names none."""
    given: Any = None
    """Its input: a text, messages, or an object with either."""
    gave: Any = None
    """Its output, likewise; of `evidence`: the passages found."""
    beside: Any = None
    """Its metadata, which may have the passages."""
    system: Any = None
    """Instructions to the model, where they stand apart."""
    session: str | None = None
    """The conversation that it is part of; None: it does not say."""
    model: str | None = None
    topic: str | None = None
    names: Mapping[str, str] = Field(default_factory=dict)
    """Field → the name that has it in the file."""
    about: Any = None
    """Record of hallulab about the conversation (`record`); None: none."""
    seen: tuple[str, ...] = ()
    """How its attributes' names begin, where none of them is known."""


ReadSpans = Callable[[Mapping[str, Any], Counter[str]], Iterator[TraceSpan]]
"""Yields the spans of a value, and counts what it leaves out by what that is, such as `records of logs`."""


class SpanRef(NamedTuple):
    """A span, and where it stands in the file."""

    line: int
    span: TraceSpan


@dataclass
class _TraceNotes:
    """Counts of traces, reported when all are read."""

    readable: int = 0
    unreadable: list[str] = field(default_factory=list)
    """Traces without a question and a reply, of sessions with others."""
    timeless: dict[str, None] = field(default_factory=dict)
    """Sessions of traces of which one says no time that can be read."""
    simultaneous: dict[str, None] = field(default_factory=dict)
    known: bool = False
    """True if a span had names that are known."""
    seen: dict[str, None] = field(default_factory=dict)
    line: int = 0
    """The line of the first span whose names are not known."""


def read_traces(
    path: Path,
    reading: Reading,
    read: ReadSpans,
    values: Iterable[Value] | None = None,
) -> Iterator[ReadChat]:
    """Yield the conversations of a file of traces.

    Args:
        path: the file.
        reading: notes what is taken for what; says how many wrong values may be left out.
        read: yields the spans of a value of the file, and counts what it leaves out.
        values: those of the file; None: it is JSON.

    Raises:
        UsageError: the file cannot be read.
        FormatError: a value is wrong, or no span has a name that is known.
    """
    values = read_json_values(path, reading.skip) if values is None else values
    left_out = Counter[str]()
    for line, conversation in build_conversations(_read_spans(values, reading, read, left_out), reading):
        yield ReadChat(f"{path}, line {line}", conversation)
    for what, count in left_out.items():
        reading.note(f"Not read: {count:,} {what}.")


def _read_spans(
    values: Iterable[Value],
    reading: Reading,
    read: ReadSpans,
    left_out: Counter[str],
) -> Iterator[SpanRef]:
    for place, line, value in values:
        with skip_wrong(reading, place):
            for span in read(require_object(value), left_out):
                yield SpanRef(line, span)


def build_conversations(spans: Iterable[SpanRef], reading: Reading) -> Iterator[tuple[int, Conversation]]:
    """Yield (line, conversation) of spans in any order; one without a reply has no turns.

    Raises:
        FormatError: something in a message is wrong, named with its trace; or no span has a known name.
    """
    if unknown := [name for name in reading.mapping if name not in ("user", "reply")]:
        raise FormatError(
            f"--map {unknown[0]}: of traces, only user and reply can be mapped, to keys of what the root "
            "span was given and gave. Leave the others out."
        )
    notes = _TraceNotes()
    with Groups() as traces, Groups() as sessions:
        for line, span in spans:
            traces.add(span.trace, span.start or 0.0, line, span.model_dump(mode="json"))
            notes.known |= span.kind != "other" or bool({"user", "reply"} & span.names.keys())
            notes.line = notes.line or line * bool(span.seen)
            notes.seen |= dict.fromkeys(span.seen[: _MOST_NAMED if len(notes.seen) < _MOST_NAMED else 0])
        for trace, rows in traces:
            line = rows[0].line
            own = _join_events([TraceSpan.model_validate(row.value) for row in rows])
            session = next((span.session for span in own if span.session), None)
            try:
                found = _read_trace(own, reading)
            except FormatError as error:
                reading.skip(FormatError(f"trace {trace}: {error}", f"line {line}"), f"line {line}")
                continue
            start = min((span.start for span in own if span.start is not None), default=None)
            sessions.add(session or trace, start or 0.0, line, {**found, "trace": trace, "start": start})
        for session, rows in sessions:
            yield rows[0].line, _join_traces(session, rows, notes, reading)
    _tell(notes, reading)


def _tell(notes: _TraceNotes, reading: Reading) -> None:
    """Note what the user must know of the traces.

    Raises:
        FormatError: no span has a name that is known.
    """
    if not notes.known and not notes.readable and notes.seen:
        raise FormatError(
            f"no span has attributes of {KNOWN}: theirs begin with "
            f"{_name_some(f'`{name}`' for name in notes.seen)}. Export spans with their content.",
            f"line {notes.line}",
        )
    if notes.unreadable:
        count = len(notes.unreadable)
        reading.note(
            f"{format_count(count, 'trace')} of sessions with others left out, because no question with a "
            f"reply can be read there: {_name_some(notes.unreadable)}."
        )
    if notes.timeless:
        reading.note(
            "Traces without a time that can be read stand before the others, as in the file "
            f"({choose_noun(len(notes.timeless), 'session')} {_name_some(notes.timeless)})."
        )
    if notes.simultaneous:
        reading.note(
            "Traces of the same time stand as in the file "
            f"({choose_noun(len(notes.simultaneous), 'session')} {_name_some(notes.simultaneous)})."
        )


def _name_some(names: Iterable[str]) -> str:
    listed = list(names)
    more = [f"{len(listed) - _MOST_NAMED} more"] if len(listed) > _MOST_NAMED else []
    return join_names([*map(shorten_line, listed[:_MOST_NAMED]), *more])


def _join_events(spans: Sequence[TraceSpan]) -> list[TraceSpan]:
    """Return spans with the messages that stand apart from them, in the order of time."""
    events = dict[str, list[TraceSpan]]()
    for span in spans:
        if span.kind == "event":
            events.setdefault(span.id, []).append(span)
    found = [span for span in spans if span.kind != "event"]
    places = {span.id: place for place, span in enumerate(found)}
    for id, said in events.items():
        own = found[places[id]] if id in places else said[0]
        joined = own.model_copy(
            update={
                "kind": "model" if own.kind == "event" or own.kind == "other" else own.kind,
                "given": [one for span in said for one in span.given or ()] or own.given,
                "gave": [one for span in said for one in span.gave or ()] or own.gave,
                "names": {**own.names, **{key: name for span in said for key, name in span.names.items()}},
                "session": own.session or next((span.session for span in said if span.session), None),
                "model": own.model or next((span.model for span in said if span.model), None),
            }
        )
        if id in places:
            found[places[id]] = joined
        else:
            found.append(joined)
    return found


def _read_trace(spans: Sequence[TraceSpan], reading: Reading) -> dict[str, Any]:
    """Return the turns of a trace, and note by which names they were found."""
    said = _extract_dialogue(spans, reading)
    # Spans have a second time what messages have of tools since the user's last one.
    asked = max((place for place, one in enumerate(said) if one.role == "user"), default=0)
    told = {found.text for one in said[asked:] for found in one.evidence}
    ends, places = _find_ends(said, spans, reading)
    evidence = defaultdict[int, list[FoundEvidence]](list)
    for span in spans:
        if said and span.kind == "evidence":
            found = list(extract_evidence(span.gave, span.name or "evidence"))
            after = bisect_right(ends, span.start or 0.0)
            place = places[after] if after < len(places) else len(said) - 1
            evidence[place] += [one for one in found if one.text not in told]
            if found and "passages" in span.names:
                reading.take("passages", span.names["passages"])
    for place, own in evidence.items():
        said[place] = replace(said[place], evidence=(*said[place].evidence, *own))
    if said and not any(one.evidence for one in said):
        said[-1] = replace(said[-1], evidence=_find_beside(spans, reading))
    about = next((span.about for span in spans if span.about is not None), None)
    turns = build_turns(said, as_said=about is not None)
    if turns:
        for what in ("session", "time", "model", "topic"):
            if name := next((span.names[what] for span in spans if what in span.names), None):
                reading.take(what, name)
    topic = next((span.topic for span in spans if span.topic), None)
    return {
        "turns": [turn.model_dump(mode="json") for turn in (*turns[:-1], *add_topic(turns[-1:], topic))],
        "model": next((span.model for span in reversed(spans) if span.model), None),
        "about": about,
    }


def _find_beside(spans: Sequence[TraceSpan], reading: Reading) -> tuple[FoundEvidence, ...]:
    """Return the passages that the root span has beside its reply, beside the message, or as metadata."""
    for span in spans:
        places = (("reply", span.gave), ("user", span.given), ("metadata", span.beside))
        for what, given in places if span.root else ():
            value = unpack_cell(given)
            with suppress(FormatError):  # names of passages are no evidence, and no flaw of a trace
                if isinstance(value, Mapping) and (found := find_evidence(value, beside=True)):
                    reading.take("passages", f"{span.names.get(what, what)} (context)")
                    return found
    return ()


def _find_ends(
    said: Sequence[ChatMessageRecord], spans: Sequence[TraceSpan], reading: Reading
) -> tuple[list[float], list[int]]:
    """Return the ends of spans of models, and the places of their replies, if a trace has made all replies.

    Then evidence belongs to the reply after it, else to the last one: the others were made before.
    """
    places = [place for place, one in enumerate(said) if one.role == "assistant"]
    models = sorted((span for span in spans if span.kind == "model"), key=lambda span: span.end or 0.0)
    if [_find_last(span, "assistant", reading) for span in models] != [said[place].text for place in places]:
        return [], []
    return [span.end or 0.0 for span in models], places


def _join_traces(
    session: str, rows: Sequence[GroupedPart], notes: _TraceNotes, reading: Reading
) -> Conversation:
    turns = list[Turn]()
    # Of traces that began at once, one with more of the dialogue is later.
    rows = sorted(rows, key=lambda row: (row.value["start"] or 0.0, len(row.value["turns"])))
    for row in rows:
        own = [Turn.model_validate(turn) for turn in row.value["turns"]]
        # Of a later trace, the turns that are known are left out; its last one is new, always.
        words = [[(turn.user, turn.reply) for turn in one] for one in (turns[-len(own) :], own[:-1])]
        turns += own[count_overlap(*words) or -1 :] if turns else own
    readable = [row.value for row in rows if row.value["turns"]]
    notes.readable += len(readable)
    if readable:
        notes.unreadable += [row.value["trace"] for row in rows if not row.value["turns"]]
    starts = [one["start"] for one in readable]
    if len(starts) > 1 and None in starts:
        notes.timeless[session] = None
    elif len(set(starts)) < len(starts):
        notes.simultaneous[session] = None
    if (about := next((row.value["about"] for row in rows if row.value["about"]), None)) is not None:
        return build_own_conversation(turns, read_about(about), session, reading)
    model = next((row.value["model"] for row in rows if row.value["model"]), MODEL)
    return build_conversation(turns, ChatContext(id=session, model=model), session)


def _extract_dialogue(spans: Sequence[TraceSpan], reading: Reading) -> list[ChatMessageRecord]:
    """Return what was said in a trace, the reply last; nothing where no span has a question and a reply."""
    roots = [span for span in spans if span.root and span.kind in ("other", "agent")]
    agents = [span for span in spans if span.kind == "agent" and not span.root]
    if all(span.end is not None for span in agents):
        # An agent that hands over, or works for another, ends before that one.
        agents.sort(key=lambda span: span.end or 0.0, reverse=True)
    models = sorted((span for span in spans if span.kind == "model"), key=lambda span: span.end or 0.0)
    replied = [_find_last(span, "assistant", reading) for span in (*roots, *agents)]
    shown = next((reply for reply in replied if reply), None)
    # A model that is asked later for something else, such as the next questions, did not make the reply.
    models = [span for span in models if _find_last(span, "assistant", reading) == shown] or models
    for span in (*roots, *agents):
        if said := _read_dialogue(span, reading):
            return said
    said = next((found for span in reversed(models) if (found := _read_dialogue(span, reading))), [])
    if said and len({_find_last(span, "user", reading) for span in models}) > 1:
        reading.count("Traces whose reply is that of the last of several requests to models")
    return said


def _find_last(span: TraceSpan, role: Literal["user", "assistant"], reading: Reading) -> str | None:
    """Return the last message of a speaker in what a span was given, or gave."""
    value, field = (span.given, "user") if role == "user" else (span.gave, "reply")
    said = extract_dialogue_part(value, role, reading.mapping.get(field)).said
    return next((one.text for one in reversed(said) if one.role == role), None)


def _read_dialogue(span: TraceSpan, reading: Reading) -> list[ChatMessageRecord]:
    """Return what was said in a span, and note by which names; nothing without a question and a reply."""
    given = extract_dialogue_part(span.given, "user", reading.mapping.get("user"))
    gave = extract_dialogue_part(span.gave, "assistant", reading.mapping.get("reply"))
    asked, replied = list(given.said), list(gave.said)
    # The state of a graph has the dialogue up to the reply.
    last = max((place for place, one in enumerate(replied) if one.role == "user"), default=-1)
    if last >= 0:
        asked = max(asked, replied[: last + 1], key=lambda said: sum(one.role == "user" for one in said))
        replied = replied[last + 1 :]
    replies = [said for said in replied if said.role == "assistant"]
    if not replies or not any(said.role == "user" for said in asked):
        return []
    # Tools that log a list of messages late have the reply at its end, too.
    if (asked[-1].role, asked[-1].text) == ("assistant", replies[-1].text):
        del asked[-1]
    for what, part in (("user", given), ("reply", gave)):
        if what in span.names:
            reading.take(what, ".".join([span.names[what], *part.keys]))
    instructions = read_content(unpack_cell(span.system), "system instructions")
    system = [ChatMessageRecord("system", instructions)] if instructions else []
    return [*system, *asked, *(said for said in replied if said.role in ("call", "tool")), replies[-1]]


def extract_messages(value: Any, role: Literal["user", "assistant"]) -> list[ChatMessageRecord]:
    """Return the messages in what a span was given, or gave; see `extract_dialogue_part`."""
    return list(extract_dialogue_part(value, role).said)
