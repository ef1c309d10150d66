"""Results of promptfoo: `vars` and `response.output`, a result a line, or under `results.results`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hallulab.scenarios.chats.cells import unpack_cell
from hallulab.scenarios.chats.chat_format import (
    ChatFormat,
    read_objects,
    recognize_object,
)
from hallulab.scenarios.chats.dialogues import extract_dialogue_part
from hallulab.scenarios.chats.evidence import extract_evidence
from hallulab.scenarios.chats.messages import read_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.record import MODEL, ChatContext, build_conversation
from hallulab.scenarios.chats.turns import ChatMessageRecord, build_turns, find_evidence
from hallulab.scenarios.chats.values import (
    FormatError,
    convert_to_text,
    get_object,
    get_text,
)
from hallulab.scenarios.transcript import Conversation


def _find_results(value: Mapping[str, Any]) -> list[Any]:
    """Return the results of a file, or the one that a line is."""
    while isinstance(value.get("results"), Mapping):
        value = value["results"]
    listed = value.get("results")
    return listed if isinstance(listed, list) else [value]


def _read_result(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    given = get_object(value, "vars")
    chosen = reading.choose(given, "user", "passages")
    if "user" in chosen:
        said = [ChatMessageRecord("user", convert_to_text(given[chosen["user"]]))]
    else:
        said = _read_prompt(value.get("prompt"), reading)
    output = get_object(value, "response").get("output")
    if output is None:
        reading.count("Results without an output left out, such as those of a failed request")
    else:
        reading.take("reply", "response.output")
        context = given[chosen["passages"]] if "passages" in chosen else None
        evidence = tuple(extract_evidence(unpack_cell(context), "context")) if context else ()
        if isinstance(output, Mapping):
            evidence = evidence or find_evidence(output, beside=True)
            found = extract_dialogue_part(output, "assistant", reading.mapping.get("reply")).said
            output = found[-1].text if found else output
        said.append(ChatMessageRecord("assistant", convert_to_text(output), evidence))
    provider = value.get("provider")
    model = provider.get("id") if isinstance(provider, Mapping) else provider
    about = ChatContext(id=get_text(value, "id"), model=model if isinstance(model, str) else MODEL)
    return build_conversation(build_turns(said), about, name)


def _read_prompt(prompt: Any, reading: Reading) -> list[ChatMessageRecord]:
    raw = prompt.get("raw") if isinstance(prompt, Mapping) else prompt
    if not isinstance(raw, str):
        raise FormatError(
            "a result has no variable such as `question` and no `prompt.raw`, so its question is not known. "
            "Say which variable it is: --map user=NAME."
        )
    found = unpack_cell(raw)
    if isinstance(found, list):
        return read_said(found, "prompt.raw", reading)
    reading.take("user", "prompt.raw")
    return [ChatMessageRecord("user", raw)]


INFO = ChatFormat(
    name="promptfoo",
    about="results of promptfoo",
    endings=(".json", ".jsonl"),
    read=partial(read_objects, convert=_read_result, split=_find_results),
    recognize=recognize_object(
        lambda value: (
            isinstance(first := next(iter(_find_results(value)), None), Mapping)
            and "vars" in first
            and bool({"response", "error"} & first.keys())
        )
    ),
    rank=0,
)
