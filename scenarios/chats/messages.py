"""Chats as lists of messages, read and written: OpenAI, ShareGPT, our own lines, and Parquet.

Lines with messages: OpenAI's, ShareGPT's and our own.
- OpenAI: `{"messages": [{"role": …, "content": …}]}`, as in the guides to chat completions and to supervised
  fine-tuning of the API reference of October 2026. Tool calls, parts and refusals are read.
- ShareGPT: `{"conversations": [{"from": "human", "value": …}], "system": …}`, with the keys and roles of
  LLaMA-Factory 0.9 (`data/README.md`) and of axolotl 0.13 (`chat_template` with `field_messages`).
- our own: a line of `conversations.jsonl` (`hallulab.scenarios.transcript.Conversation`), with `spans` if
  exported.

Parquet, alone or as a data set folder of the Hugging Face hub (`data/*.parquet` and a card).
A row is a conversation: `messages` with `role` and `content`, as trainers read them, and beside them columns
with what else a conversation has. `datasets.load_dataset(FOLDER)` finds the files by the card.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from hallulab.scenarios.chats.record import (
    CHATBOT,
    KEY,
    MODEL,
    PARTS,
    ChatContext,
    Marked,
    add_topic,
    build_chat_context,
    build_conversation,
    list_messages,
    read_about,
)
from hallulab.scenarios.chats.turns import (
    SYSTEM,
    ChatMessageRecord,
    build_turns,
    find_evidence,
    read_chat_message,
)
from hallulab.scenarios.chats.values import FormatError
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import choose_main_error, explain_error
from hallulab.scenarios.transcript import Conversation

if TYPE_CHECKING:
    import pyarrow as pa

_SHAREGPT = {"user": "human", "assistant": "gpt"}


def read_openai(value: Mapping[str, Any], name: str) -> Conversation:
    """Make a conversation of a line with `list_messages`.

    Args:
        name: its identifier, if it has none.

    Raises:
        Flaw: something in it is wrong.
    """
    return _read_conversation(value, "messages", ("role", "content"), name)


def read_sharegpt(value: Mapping[str, Any], name: str) -> Conversation:
    """Make a conversation of a line with `conversations`, likewise."""
    listed = value.get("conversations")
    first = listed[0] if isinstance(listed, list) and listed else None
    plain = isinstance(first, Mapping) and "role" in first
    return _read_conversation(
        value, "conversations", ("role", "content") if plain else ("from", "value"), name
    )


def read_own(value: Mapping[str, Any], name: str) -> Conversation:
    """Make a conversation of a line in our own format; it has its identifier."""
    try:
        return Conversation.model_validate({key: one for key, one in value.items() if key != "spans"})
    except ValidationError as error:
        first = choose_main_error(error)
        place = ".".join(map(str, first["loc"])) or name
        raise FormatError(f"{place}: {explain_error(first)}. Correct it, or delete the line.") from error


def build_openai_line(marked: Marked, without: frozenset[str]) -> dict[str, Any]:
    """Return a line with `list_messages`; without all parts it has nothing else."""
    return _build_line(marked, without, "messages", [
        {"role": role, "content": text} for role, text in _collect_messages(marked.conversation)
    ])  # fmt: skip


def build_sharegpt_line(marked: Marked, without: frozenset[str]) -> dict[str, Any]:
    """Return a line with `conversations`, likewise; a system message has its own key."""
    told = _collect_messages(marked.conversation)
    system = "".join(text for role, text in told if role == "system")
    said = [{"from": _SHAREGPT[role], "value": text} for role, text in told if role != "system"]
    return {**_build_line(marked, without, "conversations", said), "system": system}


def build_own_line(marked: Marked, without: frozenset[str]) -> dict[str, Any]:
    """Return a line in our own format."""
    line = marked.conversation.model_dump(mode="json")
    for part in {"passages", "steps"} & without:
        line["turns"] = [{**turn, part: []} for turn in line["turns"]]
    if "spans" not in without:
        line["spans"] = [
            [mark.model_dump() for mark in marked.marks.get(turn.index, ())]
            for turn in marked.conversation.turns
        ]
    return line


def _build_line(
    marked: Marked, without: frozenset[str], key: str, said: list[dict[str, str]]
) -> dict[str, Any]:
    if without >= {"passages", "steps", "spans"}:
        return {key: said}
    # A text: readers of tables take the types of columns from the first lines.
    return {key: said, KEY: build_chat_context(marked, without).model_dump_json()}


def _collect_messages(conversation: Conversation) -> list[tuple[str, str]]:
    """Return roles and texts of all messages; a system message before the first turn leads."""
    system = [step.text for turn in conversation.turns[:1] for step in turn.steps if step.name == SYSTEM]
    told = [("system", "\n\n".join(system))] if system else []
    return told + [(message.role, message.text) for message in list_messages(conversation)]


def _read_conversation(value: Mapping[str, Any], key: str, keys: tuple[str, str], name: str) -> Conversation:
    listed = value.get(key)
    if not isinstance(listed, list):
        raise FormatError(f"{key}: must be a list of messages. Correct it, or delete the line.")
    said = [
        one
        for number, message in enumerate(listed)
        for one in read_chat_message(message, f"{key}.{number}", keys)
    ]
    if key == "conversations" and isinstance(value.get("system"), str) and value["system"]:
        said.insert(0, ChatMessageRecord("system", value["system"]))
    if KEY in value:
        return build_conversation(build_turns(said), read_about(value[KEY]), name)
    # The evidence of a line is that of its last reply: RAG logs have a line for each.
    given = find_evidence(value)
    last = next((place for place in reversed(range(len(said))) if said[place].role == "assistant"), None)
    if last is not None and given:
        said[last] = ChatMessageRecord("assistant", said[last].text, (*said[last].evidence, *given))
    return build_conversation(
        add_topic(build_turns(said), _find_value(value, "topic")), read_chat_context(value), name
    )


def read_chat_context(value: Mapping[str, Any]) -> ChatContext:
    """Return what other tools' lines say of a conversation, perhaps under `metadata`."""
    id = _find_value(value, "id", "conversation_id", "session_id")
    model = _find_value(value, "model")
    chatbot = _find_value(value, "chatbot")
    return ChatContext(
        id=str(id) if id not in (None, "") else None,
        model=str(model) if model not in (None, "") else MODEL,
        chatbot=str(chatbot) if chatbot not in (None, "") else CHATBOT,
    )


def _find_value(value: Mapping[str, Any], *keys: str) -> Any:
    metadata = value.get("metadata")
    places = (value, metadata if isinstance(metadata, Mapping) else {})
    return next((place[key] for key in keys for place in places if place.get(key) is not None), None)


DATA = "data"
"""Folder of the files in a data set folder."""
FILE = f"{DATA}/train.parquet"
"""The file that we write there; it is the split `train`."""

_BATCH = 500


def build_schema() -> pa.Schema:
    """Return the columns. Plain ones are searched and filtered; `turns` has lists of objects."""
    import pyarrow as pa

    text, whole = pa.string(), pa.int64()
    passage = pa.struct({"id": text, "document": text, "text": text, "score": pa.float64(), "topic": text})
    span = pa.struct({"detector": text, "start": whole, "end": whole, "text": text})
    turn = pa.struct(
        {
            "query": text,
            "passages": pa.list_(passage),
            "steps": pa.list_(pa.struct({"name": text, "text": text})),
            "spans": pa.list_(span),
        }
    )
    named = dict.fromkeys(("scenario", "persona", "chatbot", "model"), text)
    return pa.schema(
        {
            "id": text,
            "messages": pa.list_(pa.struct({"role": text, "content": text})),
            **named,
            "seed": whole,
            "stop_reason": text,
            "error": text,
            "branch": pa.struct({"conversation": text, "turn": whole}),
            "turns": pa.list_(turn),
        }
    )


def write_table(path: Path, found: Iterable[Marked], without: frozenset[str]) -> None:
    """Write conversations, some at a time.

    Raises:
        OSError: the file cannot be written.
    """
    import pyarrow as pa
    from pyarrow import parquet

    columns = build_schema()
    path.parent.mkdir(parents=True, exist_ok=True)
    with parquet.ParquetWriter(path, columns) as writer:
        rows = (_build_row(marked, without) for marked in found)
        while batch := list(islice(rows, _BATCH)):
            writer.write_table(pa.Table.from_pylist(batch, schema=columns))


def read_tables(paths: Sequence[Path]) -> Iterator[tuple[int, Path, Conversation]]:
    """Yield (row from 1, file, conversation).

    Raises:
        UsageError: a file is no Parquet, has no column `messages`, or a row is wrong.
    """
    for path in paths:
        for number, row in enumerate(_read_rows(path), start=1):
            try:
                yield number, path, read_row(row, f"{path.stem}-{number}")
            except FormatError as error:
                raise UsageError(f"{path}, row {number}: {error}") from error


def read_row(row: Mapping[str, Any], name: str) -> Conversation:
    """Make a conversation of a row; of tables that we did not write, the columns of OpenAI's lines count."""
    if "turns" not in row or "persona" not in row:
        return read_openai(row, name)
    beside = {key: value for key, value in row.items() if key != "messages"}
    return read_openai({"messages": row["messages"], KEY: beside}, name)


def _build_row(marked: Marked, without: frozenset[str]) -> dict[str, Any]:
    return {
        **build_openai_line(marked, frozenset(PARTS)),
        **build_chat_context(marked, without).model_dump(mode="json"),
    }


def _read_rows(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            if "messages" not in file.schema_arrow.names:
                raise UsageError(f"{path}: no column `messages`. Name the column with the messages so.")
            for batch in file.iter_batches(batch_size=_BATCH):
                yield from batch.to_pylist()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error}). Correct the path, or write it anew.") from error
    except pa.ArrowException as error:
        raise UsageError(f"{path}: no Parquet ({error}). Write it anew.") from error
