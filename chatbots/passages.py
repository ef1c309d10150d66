"""Passages that other people's bots say they read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from hallulab.agents.models.redaction import remove_keys
from hallulab.chatbots.protocol import ChatbotError
from hallulab.scenarios.transcript import Passage

FOREIGN = "python object"
"""Marks the replacement of an object that JSON lacks; see `hallulab.chatbots.bot_worker`."""

TEXTS = ("text", "page_content", "content", "pageContent", "chunk", "passage", "snippet")
"""Keys of a passage's text, by various libraries and services; the first that is there counts."""

_DOCUMENTS = ("document", "source", "title", "file_name", "file_path", "filepath", "url")
"""Keys of the name of its document, likewise; they may also stand in `metadata`."""

_OTHERS = ("id", "score", "topic", "metadata", "type")

NOT_PASSAGES = frozenset(
    [
        "chunks",
        "citations",
        "context",
        "contexts",
        "documents",
        "evidence",
        "passage",
        "retrieved_contexts",
        "retrieved_documents",
        "source_documents",
        "sources",
    ]
)
"""Names of passages elsewhere. Unread, the reply would be judged by passages that the bot never saw."""


def read_passages(bot: str, given: object, *, of_service: bool = False) -> tuple[Passage, ...]:
    """Return the passages of a bot's answer, which are texts or objects with a text.

    Args:
        bot: its name, for errors.
        given: a list, in JSON.
        of_service: whether it was not made for hallulab, so that what is not read is no mistake.

    Raises:
        ChatbotError: it is no list, or an item is no passage.
    """
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise ChatbotError(f"{bot}: `passages` is a {name_kind(given)}, not a list.")
    if of_service:
        given = [_leave_out_unread(one) for one in given]
    return tuple(_make_passage(bot, number, passage) for number, passage in enumerate(given))


def _leave_out_unread(value: object) -> object:
    """Return a service's passage without what is not read, and with its number, if it has one, as its id."""
    if not isinstance(value, Mapping):
        return value
    kept = {key: value[key] for key in value if key in (*TEXTS, *_DOCUMENTS, "metadata")}
    if isinstance(name := value.get("id"), str | int):
        kept["id"] = str(name)
    if isinstance(score := value.get("score"), int | float) and math.isfinite(score):
        kept["score"] = float(score)
    return kept


def name_kind(value: object) -> str:
    """Return the name of a value's type; for a replaced object its class in the bot's process."""
    return str(value.get("type")) if isinstance(value, Mapping) and FOREIGN in value else type(value).__name__


def _make_passage(bot: str, number: int, value: object) -> Passage:
    if isinstance(value, str):
        fields: dict[str, Any] = {"text": value}
    elif isinstance(value, Mapping) and FOREIGN not in value:
        fields = _read_fields(bot, number, value)
    else:
        raise ChatbotError(f"{bot}: passage {number} is a {name_kind(value)}, not a text or a dict.")
    whole = {"id": f"passage#{number}", "document": "passage", **fields}
    cleaned = {name: remove_keys(item) if isinstance(item, str) else item for name, item in whole.items()}
    try:
        return Passage.model_validate(cleaned)
    except (ValidationError, TypeError) as error:
        raise ChatbotError(
            f"{bot}: passage {number} is no passage (text, id, document, score, topic)."
        ) from error


def _read_fields(bot: str, number: int, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a passage from an object of a library or service.

    Raises:
        ChatbotError: it has no text, or a key that is not read.
    """
    name = next((key for key in TEXTS if value.get(key) is not None), None)
    unread = sorted(value.keys() - {*TEXTS, *_DOCUMENTS, *_OTHERS})
    if name is None:
        keys = ", ".join(f"`{key}`" for key in sorted(value)) or "nothing"
        raise ChatbotError(f"{bot}: passage {number} has no `text`; it has {remove_keys(keys)[:80]}.")
    if unread:
        raise ChatbotError(
            f"{bot}: passage {number} has `{remove_keys(unread[0])[:80]}`, which is not read. Leave it out, "
            "or put it into `metadata`."
        )
    about = value.get("metadata")
    sources = [value, about] if isinstance(about, Mapping) else [value]
    named = (one.get(key) for one in sources for key in _DOCUMENTS)
    document = next((text for text in named if isinstance(text, str) and text), None)
    fields = {key: value[key] for key in ("id", "score", "topic") if value.get(key) is not None}
    return {**fields, "text": value[name], **({} if document is None else {"document": document})}


def read_citations(bot: str, sources: Mapping[str, Any]) -> tuple[tuple[Passage, ...], tuple[str, ...]]:
    """Return the passages among what a chat completion cites, and addresses that are cited without a text.

    Azure's "on your data" has `message.context.citations` with a `content`; search services have
    `search_results` with a `snippet`, `citations`, or `annotations` with a `url_citation`. An address is
    no evidence: nobody knows what was read there.

    Args:
        bot: its name, for errors.
        sources: what came with the reply (`hallulab.agents.models.answers.SOURCES`).
    """
    cited = [*_list_objects(sources.get("search_results")), *_list_objects(sources.get("citations"))]
    context = sources.get("context")
    cited += _list_objects(context.get("citations") if isinstance(context, Mapping) else context)
    cited += _list_objects(sources.get("annotations"))
    passages, addresses = dict[tuple[str, str], Passage](), dict[str, None]()
    for known in (inner for one in cited for inner in _open_citation(one)):
        name = next((key for key in _QUOTES if isinstance(known.get(key), str) and known[key].strip()), None)
        if name is not None:
            fields = {key: item for key, item in known.items() if isinstance(item, str) and key in _DOCUMENTS}
            made = _make_passage(bot, len(passages), {**fields, "text": known[name]})
            passages.setdefault((made.document, made.text), made)
        elif isinstance(told := known.get("url"), str) and told.strip():
            addresses[remove_keys(told.strip())] = None
    with_text = {one.document for one in passages.values()}
    return tuple(passages.values()), tuple(one for one in addresses if one not in with_text)


_QUOTES = (*TEXTS, "cited_text", "quote")
"""Keys of a cited text; the first that is there counts."""

_OF_REPLY = frozenset(
    {
        "start",
        "end",
        "start_index",
        "end_index",
        "start_char",
        "end_char",
        "startIndex",
        "endIndex",
        "segment",
    }
)
"""Keys of a citation that is about a place of the reply: its `text` is the reply's own, and no evidence."""


def _open_citation(one: str | Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what is cited: the inner object of OpenAI, the documents of Cohere, or the object itself."""
    if isinstance(one, str):
        return [{"url": one}]
    inner = next(
        (one[key] for key in ("url_citation", "file_citation") if isinstance(one.get(key), Mapping)), one
    )
    documents = [
        source["document"]
        for source in _list_objects(one.get("sources"))
        if isinstance(source, Mapping) and isinstance(source.get("document"), Mapping)
    ]
    if documents:
        return documents
    is_place = bool(inner.keys() & _OF_REPLY)
    return [{key: inner[key] for key in inner if key != "text"} if is_place else inner]


def _list_objects(value: object) -> list[Any]:
    """Return the texts and objects in a list; nothing of anything else."""
    return [one for one in value if isinstance(one, str | Mapping)] if isinstance(value, list) else []
