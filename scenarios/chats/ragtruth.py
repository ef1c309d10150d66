"""Replies in the two files of RAGTruth, which `hallulab.scenarios.datasets.ragtruth` reads, too.

A reply is a line of `response.jsonl`, its question and evidence one of `source_info.jsonl`. There is place
for the last question only, so a conversation is put together by the identifiers: `CONVERSATION-TURN`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat, encode_json
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.record import MODEL, ChatContext, Marked, build_conversation
from hallulab.scenarios.chats.values import FormatError, Groups, read_json_values
from hallulab.scenarios.datasets.ragtruth import RESPONSES, SOURCES
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Passage, Turn

NOT_JUDGED = "not judged"
"""`quality` of replies without labels; `hallulab bench ragtruth` leaves them out, and counts them."""

_ID = re.compile(r"(?P<conversation>.+)-(?P<turn>[0-9]{1,9})", re.DOTALL)
_PASSAGE = re.compile(r"^passage [0-9]+:", re.MULTILINE)


def build_ragtruth_lines(
    marked: Marked, without: frozenset[str]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield (line of `response.jsonl`, line of `source_info.jsonl`) of each reply with evidence.

    Spans without a place in the reply are left out: the format has no place for them. A reply that is not
    judged, or whose spans are left out, has another `quality` than a good one: without labels it would be
    read as clean.
    """
    one = marked.conversation
    for turn in one.turns:
        texts = [passage.text for passage in turn.passages if passage.text.strip()]
        if not turn.reply.strip() or not texts or not turn.user:
            continue
        id = f"{one.id}-{one.depth(turn.index)}"
        passages = "\n\n".join(f"passage {number}:{text}" for number, text in enumerate(texts, start=1))
        before = "\n".join(f"{said.role}: {said.text}" for said in one.history(turn.index))
        judged = turn.index in marked.marks and "spans" not in without
        labels = [
            {
                "start": mark.start, "end": mark.end, "text": turn.reply[mark.start : mark.end],
                "label_type": "hallucination", "meta": mark.detector,
            }
            for mark in (marked.marks[turn.index] if judged else ()) if mark.start is not None
        ]  # fmt: skip
        yield (
            {
                "id": id, "source_id": id, "model": one.model, "temperature": None,
                "labels": labels, "split": "train", "quality": "good" if judged else NOT_JUDGED,
                "response": turn.reply,
            },
            {
                "source_id": id, "task_type": "QA", "source": one.scenario,
                "source_info": {"question": turn.user, "passages": passages},
                "prompt": f"{before}\n\n{passages}\n\n{turn.user}".strip(),
            },
        )  # fmt: skip


def write(path: Path, chats: Iterable[Marked], without: frozenset[str]) -> None:
    """Write the two files of a folder."""
    with (
        (path / RESPONSES).open("w", encoding="utf-8", newline="") as responses,
        (path / SOURCES).open("w", encoding="utf-8", newline="") as sources,
    ):
        for marked in chats:
            for response, source in build_ragtruth_lines(marked, without):
                responses.write(f"{encode_json(response)}\n")
                sources.write(f"{encode_json(source)}\n")


def recognize(start: FileStart) -> bool:
    """Return whether it is a folder with the file of the replies."""
    return (start.path / RESPONSES).is_file()


def read(folder: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of a folder.

    Raises:
        UsageError: a file is missing or no JSON.
        FormatError: a line lacks a field.
    """
    path = folder / RESPONSES
    with Groups() as groups, Groups() as sources:
        for _, number, source in read_json_values(folder / SOURCES):
            sources.add(_read_field(source, "source_id", number, SOURCES), 0, number, source)
        known = {name: row[0].value for name, row in sources}
        for _, number, response in read_json_values(path):
            id = _read_field(response, "id", number, RESPONSES)
            found = _ID.fullmatch(id)
            name, turn = (found["conversation"], int(found["turn"])) if found else (id, 0)
            source_id = _read_field(response, "source_id", number, RESPONSES)
            if source_id not in known:
                raise UsageError(
                    f"{path}, line {number}: source_id: {source_id} is not in {SOURCES}. "
                    "Add the source, or delete the line."
                )
            groups.add(name, turn, number, {"response": response, "source": known[source_id]})
        for name, rows in groups:
            turns = [_turn(index, row.value, row.line) for index, row in enumerate(rows)]
            model = rows[0].value["response"].get("model")
            about = ChatContext(id=name, model=model if isinstance(model, str) else MODEL)
            yield ReadChat(f"{folder}, line {rows[0].line}", build_conversation(turns, about, name))


def _turn(index: int, value: Any, line: int) -> Turn:
    reply = _read_field(value["response"], "response", line, RESPONSES)
    info, id = value["source"].get("source_info"), value["source"]["source_id"]
    if isinstance(info, dict) and isinstance(info.get("passages"), str):
        question, texts = str(info.get("question") or ""), _PASSAGE.split(info["passages"])
    else:
        question, texts = _read_field(value["source"], "prompt", line, SOURCES), [str(info)]
    passages = tuple(
        Passage(id=f"{id}#{place}", document=id, text=text.strip())
        for place, text in enumerate(filter(str.strip, texts))
    )
    return Turn(index=index, user=question, reply=reply, passages=passages)


def _read_field(value: Any, name: str, line: int, file: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, str) or not found:
        raise FormatError(f"{name}: must be a text. Correct or delete the line.", f"{file}, line {line}")
    return found


INFO = ChatFormat(
    name="ragtruth",
    about="a folder with the two files of RAGTruth",
    endings=(),
    read=read,
    recognize=recognize,
    write=write,
    rank=10,
)
