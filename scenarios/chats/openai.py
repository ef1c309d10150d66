"""Lines with `messages`: those of OpenAI, Anthropic and Bedrock Converse, and what logs have beside them.

As in OpenAI's API reference of October 2026 (chat completions, fine-tuning), Anthropic's Messages API and
Bedrock's Converse. A line may have the reply beside the messages (`response`, `output`, `completion`,
`choices`), and both in `request` and `response`. Lines of one session are one conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, encode_json, recognize_object, write_lines
from hallulab.scenarios.chats.message_parts import read_parts
from hallulab.scenarios.chats.messages import build_message_line, collect_messages, read_messages
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.record import Marked
from hallulab.scenarios.chats.sessions import read_log
from hallulab.scenarios.chats.turns import ChatMessageRecord
from hallulab.scenarios.chats.values import list_objects
from hallulab.scenarios.transcript import Conversation

_MESSAGES = ("messages", "input_messages")
_REQUESTS = ("request", "request_body", "body", "kwargs")
_LEX = "inputTranscript"
"""The user's message, beside which Amazon Lex has nothing but replies as `messages`."""
_READ = ("messages", "response", "output", "completion", "choices")


def read_openai(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    """Make a conversation of a line with `messages`.

    Args:
        value: the line.
        name: its identifier, if it has none.
        reading: notes what is taken for what.

    Raises:
        FormatError: something in it is wrong.
    """
    system = read_parts(value.get("system"), "system").join() if "hallulab" not in value else None
    extra = [] if system is None else [ChatMessageRecord("system", system)]
    return read_messages(value, "messages", name, reading, extra)


def flatten_request(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a line with its messages at the top: logs have them under `request` or `body`, too."""
    name = next((name for name in _REQUESTS if isinstance(value.get(name), Mapping)), None)
    if name is not None and not any(key in value for key in _MESSAGES):
        value = {**{key: one for key, one in value.items() if key != name}, **value[name]}
    if isinstance(value.get("messages"), list) and isinstance(value.get(_LEX), str):
        replies = ({**one, "role": "assistant"} for one in list_objects(value, "messages"))
        said = [{"role": "user", "content": value[_LEX]}, *replies]
        value = {**{key: one for key, one in value.items() if key != _LEX}, "messages": said}
    if "messages" not in value and "input_messages" in value:
        value = {("messages" if key == "input_messages" else key): one for key, one in value.items()}
    return value


def write(path: Path, chats: Iterable[Marked], without: frozenset[str]) -> None:
    """Write a line for each conversation."""
    write_lines(path, (encode_json(build_openai_line(marked, without)) for marked in chats))


def build_openai_line(marked: Marked, without: frozenset[str]) -> dict[str, Any]:
    """Return a line with `list_messages`; without all parts it has nothing else."""
    return build_message_line(marked, without, "messages", [
        {"role": role, "content": text} for role, text in collect_messages(marked.conversation)
    ])  # fmt: skip


INFO = ChatFormat(
    name="openai",
    about="lines of OpenAI: messages with role and content",
    endings=(".jsonl", ".json"),
    read=partial(read_log, prepare=flatten_request, known=_READ, convert=read_openai),
    recognize=recognize_object(lambda value: "messages" in flatten_request(value)),
    write=write,
    for_training=True,
    rank=1,
)
