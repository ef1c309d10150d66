"""Find out from the names of a row what it is: an exchange, a message or a conversation; and its columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from hallulab.scenarios.chats.reading import NAMES, AmbiguousNameError, Reading, fold_name
from hallulab.scenarios.chats.replies import is_item
from hallulab.scenarios.chats.values import FormatError
from hallulab.scenarios.text.wording import shorten_line

BESIDE = ("session", "turn", "topic", "chatbot", "model")
EXCHANGE = ("user", "reply", "passages")
MESSAGE = ("role", "text", "passages")
WHOLE_MESSAGE = ("text", "passages")
DIALOGUE = ("messages", "passages")
ALONE = (MESSAGE, WHOLE_MESSAGE)
"""Kinds of rows that are one message."""
RAGAS = ("user_input", "response", "retrieved_contexts")
DEEPEVAL = ("input", "actual_output", "retrieval_context")
"""Names of message, reply and passages in the data sets that we write."""
WRITTEN_BESIDE = ("conversation_id", "turn_index", "model")
"""Names beside them, by which a row is known as ours."""
_NUMBERED = re.compile(
    r"(?:retrieved[ _-]?)?(?:contexts?|passages?|docs?|documents?|chunks?|evidence)[ _.\[-]?\d{1,3}\]?",
    re.IGNORECASE,
)
_ENDS = tuple(".?!。？！")
_MOST_WORDS = 4
"""Words of a name at most."""
_OUTPUTS = ("output", "outputs")
_SAID = frozenset(map(fold_name, NAMES["text"]))


class Columns(NamedTuple):
    """Meaning of the names of a row."""

    kind: tuple[str, ...]
    names: Mapping[str, str]
    numbered: tuple[str, ...] = ()
    """Names of passages that have a column each: `context_1`, `context_2`."""


def list_names(cells: Mapping[str, Any], reading: Reading) -> tuple[str, ...]:
    """Return the names of a row; of an item of OpenAI's Responses API, those of a message."""
    if not is_item(cells):
        return tuple(cells)
    mapping = reading.mapping
    beside = Reading(mapping).choose(cells, "session", "time").values()
    return (mapping.get("role", "role"), mapping.get("text", "content"), *beside)


def choose_columns(names: tuple[str, ...], reading: Reading) -> Columns:
    """Return what the names of a row are, and note it.

    Raises:
        FormatError: something is missing, or could be two things.
    """
    kind = find_kind(names, reading)
    chosen = dict(reading.choose(names, *kind))
    own = list(map(fold_name, names))
    is_data_set = "datasetid" in own and not any(one.startswith(("reference", "expected")) for one in own)
    if is_data_set and "reply" not in reading.mapping and fold_name(chosen.get("reply", "")) in _OUTPUTS:
        raise FormatError(
            f"a row of a data set (`dataset_id`): its `{chosen['reply']}` may be the answer to compare with, "
            "and no reply. Export the runs of an experiment, or say that it is the reply: "
            f"--map reply={chosen['reply']}."
        )
    chosen |= reading.choose([name for name in names if name not in chosen.values()], *BESIDE)
    if "turn" not in chosen:  # turns decide, and then two columns with times do no harm
        chosen |= reading.choose([name for name in names if name not in chosen.values()], "time")
    if kind == DIALOGUE and "session" not in chosen:
        for name in [name for name in names if fold_name(name) == "id"][:1]:
            chosen["session"] = name
            reading.take("session", name)
    numbered = tuple(name for name in names if _NUMBERED.fullmatch(name))
    if "passages" in chosen or len(numbered) < 2:
        return Columns(kind, chosen)
    for name in numbered:
        reading.take("passages", name)
    return Columns(kind, chosen | {"passages": numbered[0]}, numbered)


def is_header(names: Iterable[str], mapping: Mapping[str, str] | None = None) -> bool:
    """Return whether names are those of rows of chats, even if two of them could be the same thing.

    Args:
        names: of a row, or of a header.
        mapping: what the user decided.
    """
    try:
        find_kind(names, Reading(mapping))
    except AmbiguousNameError:
        return True  # reading it says what is wrong
    except FormatError:
        return False
    return True


def is_later_header(names: Iterable[str], mapping: Mapping[str, str] | None = None) -> bool:
    """Return whether a row that is not the first may be a header: it has the names, and no sentences."""
    listed = list(names)
    sentences = (name.endswith(_ENDS) or len(name.split()) > _MOST_WORDS for name in listed)
    return is_header(listed, mapping) and not any(sentences)


def find_kind(names: Iterable[str], reading: Reading) -> tuple[str, ...]:
    """Return what a row with these names is: an exchange, a message, or a conversation.

    Raises:
        FormatError: it is none of these.
    """
    names = tuple(names)
    chosen = Reading(reading.mapping).choose
    kinds = (EXCHANGE, MESSAGE)
    for kind in kinds if "role" not in reading.mapping else kinds[::-1]:
        found = chosen(names, *kind[:2])
        if set(kind[:2]) <= found.keys():
            is_user = fold_name(found.get("user", "")) == "user" and "user" not in reading.mapping
            # It may name a person, where another name may have what that one said.
            if is_user and (said := [name for name in names if fold_name(name) in _SAID]):
                raise AmbiguousNameError([found["user"], *said], "user")
            return kind
    if "messages" in chosen(names, "messages"):
        return DIALOGUE
    if {"text", "session"} <= chosen(names, "text", "session").keys() and not chosen(names, "reply"):
        return WHOLE_MESSAGE
    lacking = "reply" if "user" in chosen(names, "user") else "user"
    raise FormatError(
        f"no column {' or '.join(NAMES[lacking][:8])} among {shorten_line(', '.join(names))}. Name the "
        f"columns in a header, or say which it is: --map {lacking}=NAME."
    )
