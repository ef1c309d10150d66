"""Passages of what traces, logs and tools have as evidence: texts, or results of retrievers.

A result is read by its text and named by its document, whatever wraps both. The names count as in `reading`,
without case, `_` and `-`. They are those of

- LangChain (also its dumps, `lc`), LlamaIndex, Haystack, MLflow, OpenInference and OpenTelemetry GenAI;
- Pinecone, Qdrant, Weaviate, Chroma, Milvus, Elasticsearch and OpenSearch, Azure AI Search, rows of pgvector;
- Bedrock knowledge bases, Vertex AI Search and its RAG engine, OpenAI's `file_search`, Cohere;
- the Model Context Protocol, and search services of the web.

A score, a distance and a vector are no evidence, and an empty result is none. An object of no known shape is
one piece, its JSON: what a tool found out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from math import isfinite
from typing import Any, NamedTuple

from hallulab.scenarios.chats.cells import count_words, is_nothing, unpack_cell
from hallulab.scenarios.chats.reading import fold_keys, fold_names
from hallulab.scenarios.chats.values import FormatError, convert_to_text
from hallulab.scenarios.text.wording import shorten_line
from hallulab.scenarios.transcript import Passage

WORDS = fold_names("text content page_content chunk_text passage chunk body snippet raw_content markdown")
"""Names of the words of a piece; last of all those of `document`, which is a name, too."""
_COLUMNS = (*WORDS, *fold_names("passage_text texts contents sentences paragraphs"))
"""Names of a column of words, in an object of columns as Hugging Face's `datasets` write lists of objects."""
_FOUND = fold_names(
    "documents passages chunks matches hits points citations retrieval_results retrieved_references "
    "source_nodes grounding_chunks extractive_segments extractive_answers snippets search_results "
    "retrieved_documents retrieved_contexts contexts organic result_items data_array"
)
"""Names of lists of pieces; an empty one is an empty result."""
_METADATA = fold_names("metadata meta cmetadata document_metadata location reference attributes")
"""Names of an object that says where a piece is from; of Pinecone, it has the words, too."""
_INSIDE = (
    *_FOUND,
    *fold_names("context results result docs objects organic_results content data value items rows"),
    *fold_names("document node text_resource payload _node_content properties entity fields _source chunk"),
    *fold_names("kwargs resource document_excerpt"),
    *fold_names("retrieved_context web derived_struct_data struct_data file_search response web_pages root"),
    *fold_names("structured_content get source children"),
    *_METADATA,
)
"""Names of a list or object in which pieces stand, in the order in which they are looked at."""
_NAMES = fold_names(
    "document source source_id doc_uri source_uri file_path file_name file uri x-amz-bedrock-kb-source-uri "
    "title url link path source_display_name document_name document_title name"
)
_DOCUMENT_IDS = fold_names("document_id doc_id file_id parent_id")
_IDS = fold_names("id uuid chunk_id node_id doc_id document_id custom_id")
_SCORES = fold_names("score relevance_score similarity @search.score certainty")
_ADDRESSES = frozenset(fold_names("url uri link href"))
_ADDRESS = _ADDRESSES | frozenset(
    fold_names("title id date last_updated published_date source domain favicon")
)
"""Names of a page that is only named, and not quoted."""
_SPEAKERS = ("user", "assistant", "system", "tool", "human", "ai", "bot", "model")
"""Roles of messages; a passage may have a role of another kind."""
_NO_WORDS = (
    "image", "image_url", "audio", "input_image", "input_audio", "base64", "web_search_result",
    "resource_link",
)  # fmt: skip
"""Kinds of parts that have no words."""

_REFERENCE = re.compile(
    r"(?:https?|s3|gs|file)://\S{1,2000}"
    r"|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{24}|[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}"
    r"|[^\s?!]{1,500}\.(?:md|txt|pdf|html?|docx?|pptx?|xlsx?|csv|jsonl?)(?:[#:?@_-][^\s]{0,100})?"
    r"|(?:doc|docs|document|chunk|passage|segment|node|page|kb|id)[/_:#.-]?[\w/:#.-]{0,100}\d[\w/:#.-]{0,100}",
    re.IGNORECASE,
)
"""An address, an identifier, or a file's name, perhaps with a place in it."""
_DEEPEST = 16
_LARGEST_SCORE = 1e12


@dataclass(frozen=True)
class FoundEvidence:
    """A piece of evidence."""

    text: str
    document: str
    id: str | None = None
    """Its identifier; None: not given."""
    score: float | None = None
    """How near it is to the query, as the retriever says."""
    topic: str | None = None


def build_passages(found: Iterable[FoundEvidence]) -> tuple[Passage, ...]:
    """Make passages; one without an identifier gets `document#position`, and no two share one."""
    taken: Counter[str] = Counter()
    passages = []
    for position, one in enumerate(found):
        name = one.id or f"{one.document}#{position}"
        taken[name] += 1
        id = name if taken[name] == 1 else f"{name}~{taken[name]}"
        passages.append(
            Passage(id=id, document=one.document, text=one.text, score=one.score, topic=one.topic)
        )
    return tuple(passages)


def extract_evidence(value: Any, name: str) -> Iterator[FoundEvidence]:
    """Yield the pieces of evidence in a value.

    Args:
        value: a text (perhaps JSON), a list, or an object of a known shape. Another object is one piece: its
            JSON. A list of numbers is one, too.
        name: the document of pieces that name none.
    """
    unpacked = _unpack(value) if isinstance(value, str) else None
    value = value if unpacked is None else unpacked
    found = _extract(value, _Around(name), _DEEPEST)
    if found is not None:
        yield from found
    elif isinstance(value, list) and not _is_bare(value):
        yield from (FoundEvidence(convert_to_text(one), name) for one in value if one)
    else:
        yield FoundEvidence(convert_to_text(value), name)


def find_other(value: Any) -> str | None:
    """Return what a list has that is no evidence: `messages`, or `numbers`, as of tokens; None: it may be."""
    listed = unpack_cell(value)
    if not isinstance(listed, list) or not listed:
        return None
    spoken = [one for one in listed if isinstance(one, Mapping) and {"content", "parts"} & one.keys()]
    if len(spoken) == len(listed) and all(str(one.get("role")).casefold() in _SPEAKERS for one in spoken):
        return "messages"
    return "numbers" if all(isinstance(one, int | float) for one in listed) else None


def require_words(found: Sequence[FoundEvidence], name: str) -> None:
    """Raise FormatError if passages are only named: by addresses, files or identifiers.

    Args:
        found: the passages of a reply.
        name: the name in the file that has them.
    """
    if are_names(one.text for one in found):
        raise FormatError(
            f"`{name}`: {shorten_line(found[0].text)[:60]!r} is the name of a passage, and not its words. "
            "Say which name has the words (--map passages=NAME), or delete it: then replies have no evidence."
        )


def are_names(texts: Iterable[str]) -> bool:
    """Return whether texts only name passages: by addresses, files or identifiers.

    >>> are_names(["kb/fees.md#3", "doc_17"]), are_names(["doc_17", "The fee is 200."])
    (True, False)
    """
    listed = list(texts)
    return bool(listed) and all(_REFERENCE.fullmatch(text.strip()) for text in listed)


class _Around(NamedTuple):
    """Surroundings of a value."""

    name: str
    """The document of pieces that name none."""
    objects: tuple[Mapping[str, Any], ...] = ()
    """The objects around it up to the next list, the nearest first, with folded names."""


def _extract(value: Any, around: _Around, levels: int) -> list[FoundEvidence] | None:
    """Return the pieces in a value; None: it has no known shape."""
    if isinstance(value, str):
        return _extract_from_text(value, around, levels)
    if isinstance(value, list) and levels:
        return _extract_from_list(value, around, levels)
    if isinstance(value, Mapping) and levels:
        return _extract_from_object(value, around, levels) if value else []
    return [] if value is None or (isinstance(value, float) and not isfinite(value)) else None


def _extract_from_text(text: str, around: _Around, levels: int) -> list[FoundEvidence]:
    if is_nothing(text):
        return []
    inner = _unpack(text) if levels else None
    found = None if inner is None else _extract(inner, around, levels - 1)
    if found is not None:
        return found
    places = [place for one in around.objects for place in _list_places(one)]
    id = _find_word(around.objects, _IDS)
    scores = (own[name] for own in around.objects for name in _SCORES if type(own.get(name)) in (int, float))
    return [
        FoundEvidence(
            text,
            document=_find_name(around) or id or around.name,
            id=id,
            score=next((float(one) for one in scores if abs(one) <= _LARGEST_SCORE), None),
            topic=_find_word(places, ("topic",)),
        )
    ]


def _extract_from_list(value: list[Any], around: _Around, levels: int) -> list[FoundEvidence] | None:
    told = [_convert_row(one) if isinstance(one, list) else one for one in value if not _is_bare(one)]
    # A passage may be a title and its sentences, as in HotpotQA.
    titled = [
        {"title": one[0], "text": _join_sentences(one[1])}
        for one in told
        if isinstance(one, list) and list(map(type, one)) == [str, list] and one[1]
    ]
    if len(titled) == len(told) and all(isinstance(one["text"], str) for one in titled):
        told = list(titled)
    if not told:
        return None if any(one not in (None, [], [None]) for one in value) else []
    inner = _Around(_find_name(around) or around.name)
    found = [(one, _extract(one, inner, levels - 1)) for one in told]
    if all(pieces is None for _, pieces in found):
        return None
    return list(chain.from_iterable(
        [FoundEvidence(convert_to_text(one), inner.name)] if pieces is None else pieces
        for one, pieces in found
    ))  # fmt: skip


def _is_bare(value: Any) -> bool:
    """Return whether a value is a number, or a list of numbers: a score, a distance, a vector."""
    if isinstance(value, list):
        return all(not isinstance(one, str | list | Mapping) for one in value)
    return not isinstance(value, str | Mapping)


def _join_sentences(sentences: Any) -> Any:
    """Return sentences as one text; they may begin with their space. Another value is returned as it is."""
    if not isinstance(sentences, list) or not all(isinstance(one, str) for one in sentences):
        return sentences
    return " ".join(one.strip() for one in sentences)


def _convert_row(row: list[Any]) -> Any:
    """Return a row of a table with texts and numbers as an object; another list as it is.

    A text of one word, such as a file's name, is the document of the others.
    """
    texts = [one for one in row if isinstance(one, str)]
    if not texts or not any(isinstance(one, int | float) for one in row):
        return row
    words = [one for one in texts if count_words(one) > 1] or texts
    about = next((one for one in row if isinstance(one, Mapping)), None)
    return {
        "documents": words,
        "metadata": about,
        "source": next((one for one in texts if one not in words and not one.isdecimal()), None),
    }


def _extract_from_object(
    value: Mapping[str, Any], around: _Around, levels: int
) -> list[FoundEvidence] | None:
    own = fold_keys(value)
    inner = around._replace(objects=(own, *around.objects))
    if own.get("type") in _NO_WORDS:
        return []
    if "metadatas" in own and isinstance(own.get("documents"), list):
        return _extract(_join_columns(own), inner, levels - 1)
    if (rows := _join_rows(own)) is not None:
        return _extract(rows, inner, levels - 1)
    text = next((own[key] for key in WORDS if isinstance(own.get(key), str)), None)
    if text is None and own.get("type") == "text" and isinstance(own.get("data"), str):
        text = own["data"]
    if text is not None:
        return _extract_from_text(text, inner, levels - 1)
    for key in (*_INSIDE, *(set(own) - set(_INSIDE) if len(own) == 1 else ())):
        inside = _unpack(own[key]) if isinstance(own.get(key), str) else own.get(key)
        found = _extract(inside, inner, levels - 1) if isinstance(inside, list | Mapping) else None
        if found or (found is not None and (key in _FOUND or isinstance(own[key], Mapping))):
            return found
    if own.keys() <= _ADDRESS and own.keys() & _ADDRESSES:
        return []
    document = own.get("document")
    if not isinstance(document, str) or count_words(document) < 2:
        return None
    return _extract_from_text(document, around._replace(objects=({**own, "document": None},)), levels - 1)


def _join_columns(own: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of Chroma's columns, which are lists of lists where several queries were asked."""
    listed = (own[key] if isinstance(own.get(key), list) else [] for key in ("documents", "metadatas", "ids"))
    columns = [
        chain.from_iterable(one if isinstance(one, list) else [one] for one in each) for each in listed
    ]
    rows = zip_longest(*columns)
    return [{"text": text, "metadata": about, "id": id} for text, about, id in rows if text is not None]


def _join_rows(own: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of an object of columns, which are lists of one length; None: it is none."""
    key = next((key for key in _COLUMNS if isinstance(own.get(key), list) and own[key]), None)
    if (
        key is None
        or any(isinstance(own.get(word), str) for word in WORDS)
        or any(isinstance(one, Mapping) for one in own[key])
    ):
        return None
    columns = {name: one for name, one in own.items() if isinstance(one, list)}
    if len(columns) < 2 or len({len(one) for one in columns.values()}) > 1:
        return None
    return [
        {**dict(zip(columns, row, strict=True)), "text": _join_sentences(text)}
        for text, row in zip(own[key], zip(*columns.values(), strict=True), strict=True)
    ]


def _unpack(text: str) -> Any:
    """Return the list or object that a text is; None for another text."""
    found = unpack_cell(text)
    return None if found is text else found


def _find_name(around: _Around) -> str | None:
    """Return the name of the document that the objects around a value give."""
    places = [place for one in around.objects for place in _list_places(one)]
    return _find_word(places, _NAMES) or _find_word(places, _DOCUMENT_IDS)


def _list_places(own: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield an object and what it has as metadata, with folded names."""
    yield own
    for key in _METADATA:
        about = own.get(key)
        about = _unpack(about) if isinstance(about, str) else about
        if isinstance(about, Mapping):
            yield fold_keys(about)
            for inner in about.values():
                if isinstance(inner, Mapping):
                    yield fold_keys(inner)


def _find_word(places: Iterable[Mapping[str, Any]], names: Iterable[str]) -> str | None:
    """Return the word that the nearest place has under the first of the names."""
    found = (place.get(name) for place in places for name in names)
    # By `type`: True is an int, too, and no name.
    return next((str(one) for one in found if type(one) in (str, int) and str(one)), None)
