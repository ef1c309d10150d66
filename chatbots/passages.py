"""Passages that other people's bots say they read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from hallulab.agents.models.answers import SOURCES
from hallulab.agents.models.redaction import remove_keys
from hallulab.chatbots.protocol import ChatbotError
from hallulab.scenarios.near_names import find_near_name
from hallulab.scenarios.transcript import Passage

FOREIGN = "python object"
"""Marks the replacement of an object that JSON lacks; see `hallulab.chatbots.bot_worker`."""

TEXTS = (
    *("text", "page_content", "content", "pageContent", "chunk", "passage", "snippet", "excerpt", "body"),
    *("blurb", "chunk_text", "chunk_content", "passage_text"),
)
"""Keys of a passage's text, by various libraries and services; the first that is there counts."""

_DOCUMENTS = (
    *("document", "source", "title", "filename", "filepath", "documentname", "docname", "documenttitle"),
    *("sourcefile", "sourcepage", "url", "uri", "sourceurl", "link", "name", "documentid", "docid"),
)
"""Keys of the name of its document, likewise, as `_fold` writes them; they may also stand in the metadata."""

_ABOUT = ("metadata", "meta", "documentmetadata", "extrainfo")
"""Keys of its metadata, likewise."""

_OTHERS = ("id", "score", "topic", "type")

_OF_PASSAGES = frozenset(
    [
        *("passage", "passages", "chunk", "chunks", "citation", "citations", "context", "contexts"),
        *("ctx", "ctxs", "document", "documents", "doc", "docs", "evidence", "evidences"),
        *("excerpt", "excerpts", "grounding", "hits", "knowledge", "nodes", "reference"),
        *("references", "retrieval", "retrieved", "snippet", "snippets", "source", "sources"),
    ]
)
"""Last words of names of passages elsewhere. Unread, the reply would be judged by passages that the bot never
saw."""

_OF_OTHERS = frozenset(
    [
        *("chat", "conversation", "count", "dialog", "dialogue", "has", "is", "max", "n", "no"),
        *("num", "number", "page", "request", "session", "total", "use", "user", "with"),
    ]
)
"""First words of names of other things: `num_sources`, `session_context`."""

_NAME_ALONE = re.compile(
    r"\w{2,9}://\S+|[\w./\\-]+\.[a-z]\w{1,4}|[a-z]\w*[-_#:][\w#:.-]*\d[\w#:.-]*|[\da-f-]{32,36}",
    re.ASCII | re.IGNORECASE,
)
"""A text that names a page, a file or an entry: what was read there is not known."""


def find_misnamed(keys: Iterable[str]) -> str | None:
    """Return the first key that is another name of passages; None: none is.

    >>> find_misnamed(["reply", "sourceDocuments"]), find_misnamed(["reply", "num_sources"])
    ('sourceDocuments', None)
    """
    for key in sorted(keys):
        name = re.sub(r"(?<=[a-z\d])(?=[A-Z])", "_", key).lower()
        words = name.removesuffix("_list").removesuffix("_texts").strip("_").split("_")
        is_named_so = words[-1] in _OF_PASSAGES and words[0] not in _OF_OTHERS
        if is_named_so or name.endswith("search_results") or find_near_name(key, ["passages"], _LEAST_ALIKE):
            return key
    return None


_LEAST_ALIKE = 0.85
"""`pasages` is `passages`, `messages` is not."""


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
    passages = tuple(_make_passage(bot, number, one, of_service) for number, one in enumerate(given))
    if passages and all(_NAME_ALONE.fullmatch(one.text.strip()) for one in passages):
        raise ChatbotError(
            f"{bot}: its passages are names without texts, such as `{passages[0].text.strip()[:80]}`. Give "
            "what was read there, or no passages."
        )
    return passages


def _fold(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "")


def name_kind(value: object) -> str:
    """Return the name of a value's type; for a replaced object its class in the bot's process."""
    return str(value.get("type")) if isinstance(value, Mapping) and FOREIGN in value else type(value).__name__


def _make_passage(bot: str, number: int, value: object, of_service: bool = False) -> Passage:
    fields: dict[str, Any] = {}
    if isinstance(value, list) and len(value) == 2 and isinstance(value[1], int | float):
        pair: list[Any] = value  # LangChain's pairs of a document and its score
        value, fields = pair[0], {"score": pair[1]}
    if isinstance(value, str):
        fields["text"] = value
    elif isinstance(value, Mapping) and FOREIGN not in value:
        fields |= _read_fields(bot, number, value, of_service)
    else:
        raise ChatbotError(f"{bot}: passage {number} is a {name_kind(value)}, not a text or a dict.")
    whole = {"id": f"passage#{number}", "document": "passage", **fields}
    cleaned = {name: remove_keys(item) if isinstance(item, str) else item for name, item in whole.items()}
    try:
        return Passage.model_validate(cleaned)
    except (ValidationError, TypeError) as error:
        wrong = error.errors()[0]["loc"] if isinstance(error, ValidationError) else ()
        named = f"a `{wrong[0]}` that" if wrong else "fields of which one"
        raise ChatbotError(
            f"{bot}: passage {number} is no passage: it has {named} cannot be read (text, id, document, "
            "score, topic)."
        ) from error


def _read_fields(bot: str, number: int, given: Mapping[str, Any], of_service: bool) -> dict[str, Any]:
    """Return the fields of a passage from an object of a library or service.

    Raises:
        ChatbotError: it has no text, or one that was made for hallulab has a key that is not read.
    """
    value = _open_holder(given)
    name = _find_text(value)
    unread = [
        key
        for key in sorted(value)
        if key not in (*TEXTS, *_OTHERS) and _fold(key) not in (*_DOCUMENTS, *_ABOUT)
    ]
    if name is None:
        keys = ", ".join(f"`{key}`" for key in sorted(value)) or "nothing"
        raise ChatbotError(f"{bot}: passage {number} has no `text`; it has {remove_keys(keys)[:80]}.")
    if unread and not of_service:
        raise ChatbotError(
            f"{bot}: passage {number} has `{remove_keys(unread[0])[:80]}`, which is not read. Leave it out, "
            "or put it into `metadata`."
        )
    folded = {_fold(key): item for key, item in value.items()}
    about = ({_fold(key): item for key, item in folded[one].items()} for one in _ABOUT if _holds(folded, one))
    named = (one.get(key) for one in (folded, *about) for key in _DOCUMENTS)
    document = next((text for text in named if isinstance(text, str) and text), None)
    fields = {key: value[key] for key in ("id", "score", "topic") if value.get(key) is not None}
    if isinstance(fields.get("id"), int):
        fields["id"] = str(fields["id"])
    if of_service:  # others of its fields are called like ours, too
        score = fields.get("score")
        is_number = isinstance(score, int | float) and math.isfinite(score)
        readable = {"score": is_number, "id": isinstance(fields.get("id"), str)}
        fields = {key: item for key, item in fields.items() if readable.get(key)}
    return {**fields, "text": value[name], **({} if document is None else {"document": document})}


def _find_text(value: Mapping[str, Any]) -> str | None:
    """Return the key of an object's text: the first that is none of another object, which may hold one."""
    known = [key for key in TEXTS if value.get(key) is not None]
    return next((key for key in known if not isinstance(value[key], Mapping)), None)


def _open_holder(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object with the fields of an inner one that has the text: `node`, `payload`, `_source`."""
    if _find_text(value) is not None:
        return value
    holders = [key for key in value if _holds(value, key) and _fold(key) not in _ABOUT]
    key = next((key for key in holders if _find_text(value[key]) is not None), None)
    return value if key is None else {**{one: value[one] for one in value if one != key}, **value[key]}


def _holds(value: Mapping[str, Any], key: str) -> bool:
    return isinstance(value.get(key), Mapping) and FOREIGN not in value[key]


def read_citations(bot: str, sources: Mapping[str, Any]) -> tuple[tuple[Passage, ...], tuple[str, ...]]:
    """Return the passages among what a chat completion cites, and addresses that are cited without a text.

    Azure's "on your data" has `message.context.citations` with a `content`; search services have
    `search_results` with a `snippet`, `citations`, or `annotations` with a `url_citation`; Open WebUI has
    `sources` with lists of texts, RAGFlow `reference` with `chunks`. An address is no evidence: nobody knows
    what was read there.

    Args:
        bot: its name, for errors.
        sources: what came with the reply (`hallulab.agents.models.answers.SOURCES`).
    """
    cited: list[Any] = []
    for key in SOURCES:
        held = sources.get(key)
        if isinstance(held, Mapping) and key in _INNER:
            held = held.get(_INNER[key])
        cited += _list_objects(held)
    passages, addresses = dict[tuple[str, str], Passage](), dict[str, None]()
    with_text = set[str]()
    for known in (inner for one in cited for inner in _open_citation(one)):
        name = next((key for key in _QUOTES if isinstance(known.get(key), str) and known[key].strip()), None)
        if name is not None:
            fields = {
                key: item for key, item in known.items() if isinstance(item, str) and _fold(key) in _DOCUMENTS
            }
            made = _make_passage(bot, len(passages), {**fields, "text": known[name]})
            passages.setdefault((made.document, made.text), made)
            with_text |= {made.document, str(known.get("url"))}
        elif isinstance(told := known.get("url") or known.get("link"), str) and told.strip():
            addresses[remove_keys(told.strip())] = None
    return tuple(passages.values()), tuple(one for one in addresses if one not in with_text)


_INNER = {"context": "citations", "reference": "chunks"}
"""Keys of objects that hold their citations in a list."""

_QUOTES = (*TEXTS, "cited_text", "quote")
"""Keys of a cited text; the first that is there counts."""

_OF_REPLY = frozenset(
    [
        *("start", "end", "start_index", "end_index", "start_char", "end_char", "startIndex", "endIndex"),
        "segment",
    ]
)
"""Keys of a citation that is about a place of the reply: its `text` is the reply's own, and no evidence."""


def _open_citation(one: str | Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what is cited: the inner object of OpenAI, the documents of Cohere, or the object itself."""
    if isinstance(one, str):
        return [{"text" if " " in one.strip() else "url": one}]
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
    if isinstance(texts := one.get("document"), list):
        about = _list_objects(one.get("metadata"))
        named = about if len(about) == len(texts) else [{}] * len(texts)
        return [{**each, "text": text} for each, text in zip(named, texts, strict=True)]
    is_place = bool(inner.keys() & _OF_REPLY)
    return [{key: inner[key] for key in inner if key != "text"} if is_place else _open_holder(inner)]


def _list_objects(value: object) -> list[Any]:
    """Return the texts and objects in a list; nothing of anything else."""
    return [one for one in value if isinstance(one, str | Mapping)] if isinstance(value, list) else []
