"""Lines of a log that belong together: those of one session, and those that repeat the dialogue before them.

Each reply counts once. A line whose messages begin with all messages of an earlier line goes on with it.
Where another line has gone on with that already, it is a branch, which was given the turns that both share.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hallulab.scenarios.chats.chat_format import Convert, ReadChat, read_values, skip_wrong
from hallulab.scenarios.chats.messages import find_session
from hallulab.scenarios.chats.reading import Reading, place_in
from hallulab.scenarios.chats.record import KEY
from hallulab.scenarios.chats.values import Groups
from hallulab.scenarios.transcript import Branch, Conversation, Turn


class LoggedChat(NamedTuple):
    """The conversation of a line of a log."""

    place: str
    line: int
    conversation: Conversation
    session: str | None = None
    at: float | None = None
    """Its time; None: the log says none."""
    whole: bool = False
    """True if it stands for itself, as what we exported."""


def read_log(
    path: Path,
    reading: Reading,
    prepare: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    known: tuple[str, ...],
    convert: Convert,
) -> Iterator[ReadChat]:
    """Yield the conversations of a log of requests; those of one session are one.

    Args:
        path: the file.
        reading: notes what is taken for what; wrong lines are left out as far as it allows.
        prepare: brings a line into the form that is read.
        known: names that `convert` reads.
        convert: makes a conversation of it.

    Raises:
        UsageError: the file cannot be read.
        FormatError: a line is wrong.
    """

    def read_lines() -> Iterator[LoggedChat]:
        for number, (place, line, given) in enumerate(read_values(path, reading), start=1):
            with skip_wrong(reading, place):
                value = prepare(given)
                one = convert(value, f"chat-{number}", reading)
                session, at = find_session(value, reading, *known)
                yield LoggedChat(place, line, one, session, at, KEY in value)

    return join_sessions(path, read_lines(), reading)


def join_sessions(path: Path, chats: Iterable[LoggedChat], reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of a log, in the order in which they begin.

    Args:
        path: the file, for errors.
        chats: what its lines hold; it is put together on disk.
        reading: is told what was joined.
    """
    with Groups() as groups:
        for name, one in _name_groups(chats, reading):
            chat = one.conversation.model_dump(mode="json")
            groups.add(name, 0.0, one.line, {"place": one.place, "at": one.at, "chat": chat})
        for name, parts in groups:
            joined = _join(name, [part.value for part in parts], reading)
            yield ReadChat(place_in(path, parts[0].value["place"]), joined)


def _name_groups(chats: Iterable[LoggedChat], reading: Reading) -> Iterator[tuple[str, LoggedChat]]:
    """Yield each conversation with the name of those that it belongs to."""
    ends = dict[bytes, str]()
    """Hash of all turns of a line → the first line of its group."""
    lengths, ids = dict[str, int](), dict[str, str]()
    for number, one in enumerate(chats):
        name = f"line {number}"
        if one.session is not None:
            name = f"session {one.session}"
        elif not one.whole and one.conversation.turns:
            found, beginnings = hashlib.sha256(), list[bytes]()
            for turn in one.conversation.turns:
                found.update(json.dumps([turn.user, turn.reply]).encode())
                beginnings.append(found.digest())
            given = next((at for at in range(len(beginnings) - 1, 0, -1) if beginnings[at - 1] in ends), 0)
            if given:
                reading.count("Lines that repeat the dialogue of an earlier line, whose replies count once")
                earlier = ends[beginnings[given - 1]]
                if lengths[earlier] == given:
                    name = earlier
                else:
                    one = one._replace(conversation=branch_off(one.conversation, ids[earlier], given))
            ends[beginnings[-1]] = name
            lengths[name] = len(beginnings)
            ids.setdefault(name, one.conversation.id)
        yield name, one


def branch_off(one: Conversation, origin: str, given: int) -> Conversation:
    """Return a conversation whose first turns were given, and are not judged.

    Args:
        origin: the conversation whose turns they are.
        given: how many they are.
    """
    history = tuple(message for turn in one.turns[:given] for message in turn.messages)
    own = [turn.model_copy(update={"index": index}) for index, turn in enumerate(one.turns[given:])]
    branch = Branch(conversation=origin, turn=given, history=history)
    return one.model_copy(update={"branch": branch, "turns": tuple(own)})


def _join(name: str, parts: list[Any], reading: Reading) -> Conversation:
    """Return one conversation of those of a group, by time where all lines have one, else as they stand."""
    times = [part["at"] for part in parts]
    if None not in times:
        parts = sorted(parts, key=lambda part: float(part["at"]))
    if len(set(times)) < len(times) and name.startswith("session "):
        reading.note("Lines of a session without a time, or with the same, stand as in the file.")
    chats = [Conversation.model_validate(part["chat"]) for part in parts]
    turns = list(chats[0].turns)
    for one in chats[1:]:
        turns = _add_turns(turns, one.turns)
    numbered = [turn.model_copy(update={"index": index}) for index, turn in enumerate(turns)]
    return chats[0].model_copy(update={"turns": tuple(numbered)})


def _add_turns(turns: list[Turn], more: Sequence[Turn]) -> list[Turn]:
    """Return the turns with more, without those that these repeat: all from the start, or the last ones."""
    held, fresh = ([(turn.user, turn.reply) for turn in one] for one in (turns, more))
    same = next((at for at, (a, b) in enumerate(zip(held, fresh, strict=False)) if a != b), None)
    from_start = min(len(held), len(fresh)) if same is None else same
    from_end = count_overlap(held, fresh)
    repeated, first = (from_start, 0) if from_start >= from_end else (from_end, len(turns) - from_end)
    told = [
        turn if turn.passages else more[at - first] if first <= at < first + repeated else turn
        for at, turn in enumerate(turns)
    ]
    return [*told, *more[repeated:]]


def count_overlap(held: list[tuple[str, str]], fresh: list[tuple[str, str]]) -> int:
    """Return how many turns at the end of `held` are those at the beginning of `fresh`; in linear time."""
    # The prefix function of Knuth, Morris and Pratt; None, which equals no turn, keeps both sides apart.
    row: list[tuple[str, str] | None] = [*fresh, None, *held[-len(fresh) :]]
    lengths = [0] * len(row)
    for at in range(1, len(row)):
        length = lengths[at - 1]
        while length and row[at] != row[length]:
            length = lengths[length - 1]
        lengths[at] = length + (row[at] == row[length])
    return lengths[-1] if fresh and held else 0
