"""Passages of what traces and logs have as evidence: texts, or objects in the shapes of retrievers.

The shapes are those of LangChain and MLflow (`page_content`, `metadata`), LlamaIndex (`node`), OpenInference
(`document.content`), OpenTelemetry GenAI (`content`, `id`, `score`) and search services (`text`, `source`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from hallulab.scenarios.files.json_text import parse_json
from hallulab.scenarios.transcript import Passage

_TEXTS = ("text", "content", "page_content", "pageContent", "passage", "chunk", "body")
_LISTS = ("documents", "passages", "contexts", "context", "citations", "results", "chunks", "matches", "hits")
_NAMES = ("document", "source", "source_id", "doc_uri", "file_name", "filename", "title", "url", "path")
_IDS = ("id", "doc_id", "document_id", "chunk_id")
_INSIDE = ("document", "node")
_DEEPEST = 6
_LARGEST_SCORE = 1e12


@dataclass(frozen=True)
class FoundEvidence:
    """A piece of evidence."""

    text: str
    """Its words."""
    document: str
    """Name of the document."""
    id: str | None = None
    """Its identifier; None: not given."""
    score: float | None = None
    """How near it is to the query, as the retriever says."""
    topic: str | None = None
    """Its topic, where it is given."""


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


def extract_evidence(value: Any, name: str, levels: int = _DEEPEST) -> Iterator[FoundEvidence]:
    """Yield the pieces of evidence in a value.

    Args:
        value: a text (perhaps JSON), a list, or an object of a known shape. Another object is one piece: its
            JSON.
        name: the document of pieces that name none.
        levels: how deep lists may stand in each other.
    """
    if isinstance(value, str):
        inner = _unpack_json(value)
        if inner is not None and levels:
            yield from extract_evidence(inner, name, levels - 1)
        elif value.strip():
            yield FoundEvidence(value, name)
    elif isinstance(value, list) and levels:
        for item in value:
            yield from extract_evidence(item, name, levels - 1)
    elif isinstance(value, Mapping) and levels:
        yield from _extract_from_object(value, name, levels)
    elif value not in (None, [], {}):
        yield FoundEvidence(json.dumps(value, ensure_ascii=False), name)


def _unpack_json(text: str) -> Any:
    """Return the list or object that a text is as JSON; None for another text."""
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        return parse_json(text)
    except ValueError:
        return None


def _extract_from_object(value: Mapping[str, Any], name: str, levels: int) -> Iterator[FoundEvidence]:
    text = next((value[key] for key in _TEXTS if isinstance(value.get(key), str)), None)
    if text is not None:
        if text.strip():
            yield _build_evidence(value, text, name)
        return
    inside = next((value[key] for key in _INSIDE if isinstance(value.get(key), Mapping)), None)
    if inside is not None:
        outer = {key: one for key, one in value.items() if key not in _INSIDE}
        yield from extract_evidence({**outer, **inside}, name, levels - 1)
        return
    listed = next((value[key] for key in _LISTS if value.get(key)), None)
    if listed is not None:
        yield from extract_evidence(listed, name, levels - 1)
    elif value:
        yield FoundEvidence(json.dumps(value, ensure_ascii=False), name)


def _build_evidence(value: Mapping[str, Any], text: str, name: str) -> FoundEvidence:
    metadata = value.get("metadata")
    if isinstance(metadata, str):
        metadata = _unpack_json(metadata)
    beside = {**(metadata if isinstance(metadata, Mapping) else {}), **value}
    return FoundEvidence(
        text,
        document=_find_word(beside, _NAMES) or _find_word(beside, _IDS) or name,
        id=_find_word(value, _IDS),
        score=_read_score(value.get("score")),
        topic=_find_word(beside, ("topic",)),
    )


def _find_word(value: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    found = (value.get(key) for key in keys)
    return next((str(one) for one in found if isinstance(one, str | int) and str(one)), None)


def _read_score(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if isfinite(value) and abs(value) <= _LARGEST_SCORE else None
