"""Replies as the APIs of models return them: those of OpenAI, Anthropic, Bedrock, Gemini and services."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hallulab.scenarios.chats.evidence import FoundEvidence, extract_evidence
from hallulab.scenarios.chats.reading import NAMES, Reading
from hallulab.scenarios.chats.turns import ChatMessageRecord, find_evidence, read_chat_message
from hallulab.scenarios.chats.values import FormatError

_INSIDE = ("body", "response", "message", "output", "result", "data")
_TEXTS = ("output_text", "text", "answer", "completion", "generation", "generated_text", *NAMES["reply"])
_ITEM_RESULTS = (
    "file_search_call", "mcp_call", "code_interpreter_call", "function_call_output",
    "custom_tool_call_output", "local_shell_call_output", "shell_call_output", "apply_patch_call_output",
)  # fmt: skip
_ITEM_CALLS = (
    "function_call", "custom_tool_call", "web_search_call", "computer_call", "image_generation_call",
    "local_shell_call", "shell_call", "apply_patch_call",
)  # fmt: skip
_ITEMS_ASIDE = (
    "reasoning", "compaction", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response",
)  # fmt: skip
_ITEMS = frozenset((*_ITEM_RESULTS, *_ITEM_CALLS, *_ITEMS_ASIDE))
_GAVE = ("results", "outputs", "output")
_DEEPEST = 6


def read_reply(value: Any, where: str, reading: Reading, levels: int = _DEEPEST) -> list[ChatMessageRecord]:
    """Return the reply that a log has beside the messages, with what the model was given for it.

    Args:
        value: a text, a message, a list of choices, or what an API returned.
        where: its name, for errors.
        reading: notes what is left out.
        levels: how deep it may stand in objects.

    Raises:
        FormatError: no reply is found in it.
    """
    if isinstance(value, str):
        return [ChatMessageRecord("assistant", value)]
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        for _ in value[1:]:
            reading.count(f"Other replies of a request left out ({where})")
        return [ChatMessageRecord("assistant", value[0])]
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        alone = [one for one in value if not {"role", "type"} & one.keys()]
        if any({"message", "text"} & one.keys() for one in alone):
            return _read_choices(value, where, reading)
        return read_items(value, where, reading)
    if isinstance(value, Mapping) and levels:
        found = _read_object(value, where, reading, levels)
        if found:
            given = find_evidence(value)
            return [*found[:-1], _add_evidence(found[-1], given)]
    raise FormatError(
        f"{where}: no reply is found in it. Put its text there, or name its key: --map reply=NAME."
    )


def _add_evidence(said: ChatMessageRecord, given: tuple[FoundEvidence, ...]) -> ChatMessageRecord:
    known = {one.text for one in said.evidence}
    fresh = tuple(one for one in given if one.text not in known)
    return ChatMessageRecord(said.role, said.text, (*said.evidence, *fresh))


def _read_choices(choices: Any, where: str, reading: Reading) -> list[ChatMessageRecord]:
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise FormatError(f"{where}: no reply is found in it. Put its text there.")
    for _ in choices[1:]:
        reading.count(f"Other replies of a request left out ({where})")
    known = [one for one in choices if isinstance(one, Mapping)]
    first = min(known, key=lambda one: one["index"] if isinstance(one.get("index"), int) else 0)
    message = first.get("message")
    if isinstance(message, Mapping):
        return read_chat_message({"role": "assistant", **message}, where, reading=reading)
    return read_reply(first.get("text", message), where, reading, 1)


def _read_object(
    value: Mapping[str, Any], where: str, reading: Reading, levels: int
) -> list[ChatMessageRecord]:
    if value.get("choices"):
        return _read_choices(value["choices"], f"{where}.choices", reading)
    if value.get("candidates"):
        return read_candidates(value["candidates"], f"{where}.candidates", reading)
    if isinstance(value.get("output"), list):
        return read_items(value["output"], f"{where}.output", reading)
    if value.get("content") is not None or "role" in value:
        # The `type` of a whole answer, such as `message`, would be taken for who speaks.
        return read_chat_message({"role": "assistant", **value, "type": None}, where, reading=reading)
    text = next((value[key] for key in _TEXTS if isinstance(value.get(key), str)), None)
    if text is not None:
        return [ChatMessageRecord("assistant", text)]
    key = next((key for key in _INSIDE if isinstance(value.get(key), Mapping)), None)
    return [] if key is None else read_reply(value[key], f"{where}.{key}", reading, levels - 1)


def is_item(value: Any) -> bool:
    """Return whether a value is an item of OpenAI's Responses API that no role speaks, such as a call."""
    return isinstance(value, Mapping) and value.get("type") in _ITEMS and "role" not in value


def read_items(items: Any, where: str, reading: Reading) -> list[ChatMessageRecord]:
    """Return what the items of OpenAI's Responses API say: messages, calls of tools and what these gave.

    Raises:
        FormatError: it is no list of items.
    """
    if not isinstance(items, list):
        raise FormatError(f"{where}: must be a list of items. Correct it, or delete the line.")
    said = list[ChatMessageRecord]()
    for number, item in enumerate(items):
        place = f"{where}.{number}"
        kind = item.get("type") if isinstance(item, Mapping) else None
        if kind in _ITEM_RESULTS:
            gave = next((item[key] for key in _GAVE if item.get(key)), None)
            said.append(
                ChatMessageRecord("tool", "", tuple(extract_evidence(gave, str(item.get("name") or "tool"))))
            )
            reading.take("passages", f"{where} ({kind})")
        elif kind in _ITEM_CALLS:
            said.append(ChatMessageRecord("call", json.dumps(item, ensure_ascii=False)))
        elif isinstance(item, Mapping) and "role" in item:
            said += read_chat_message(item, place, ("role", "content"), reading)
        elif kind in ("text", "output_text"):  # Anthropic's parts, alone
            said += read_chat_message({"role": "assistant", "content": [item]}, place, reading=reading)
        elif kind not in _ITEMS_ASIDE:
            reading.count(f"Items left out, for they have no words ({kind})")
    return said


def read_candidates(candidates: Any, where: str, reading: Reading) -> list[ChatMessageRecord]:
    """Return the reply that Gemini gave, with what its search found.

    Raises:
        FormatError: there is none.
    """
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    content = first.get("content") if isinstance(first, Mapping) else None
    if not isinstance(first, Mapping) or not isinstance(content, Mapping):
        raise FormatError(f"{where}: no reply is found in it. Put its text there.")
    for _ in candidates[1:]:
        reading.count(f"Other replies of a request left out ({where})")
    said = read_chat_message({"role": "model", **content}, where, reading=reading)
    grounding = first.get("groundingMetadata") or first.get("grounding_metadata")
    about = grounding if isinstance(grounding, Mapping) else {}
    chunks = about.get("groundingChunks") or about.get("grounding_chunks")
    listed = chunks if isinstance(chunks, list) else []
    # Of the web, Gemini tells addresses only.
    given = [chunk for chunk in listed if isinstance(chunk, Mapping) and "web" not in chunk]
    evidence = tuple(extract_evidence(given, "grounding"))
    if evidence and said:
        reading.take("passages", f"{where} (grounding)")
        said[-1] = _add_evidence(said[-1], evidence)
    return said
