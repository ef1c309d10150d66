"""Passages of other people's bots: what is read, and what is refused in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from hallulab.chatbots.passages import find_misnamed, read_passages
from hallulab.chatbots.protocol import ChatbotError


@pytest.mark.parametrize(
    "given",
    [
        {"content": "Opens at 7.", "meta": {"file_path": "hours.md"}, "embedding": None},  # Haystack
        {"content": "Opens at 7.", "document_name": "hours.md", "similarity": 0.8},  # RAGFlow, Dify
        {"node": {"text": "Opens at 7.", "metadata": {"file_name": "hours.md"}}, "score": 0.8},  # LlamaIndex
        {"id": 1, "score": 0.5, "payload": {"text": "Opens at 7.", "source": "hours.md"}},  # Qdrant
        {"_score": 3.2, "_source": {"content": "Opens at 7.", "title": "hours.md"}},  # Elasticsearch
        {"content": {"text": "Opens at 7."}, "title": "hours.md"},  # Bedrock
        {"chunkInfo": {"content": "Opens at 7.", "documentMetadata": {"title": "hours.md"}}},  # Vertex
        {"retrievedContext": {"text": "Opens at 7.", "title": "hours.md"}},  # Gemini
        {"lc": 1, "id": ["x"], "kwargs": {"page_content": "Opens at 7.", "metadata": {"source": "hours.md"}}},
        [{"page_content": "Opens at 7.", "metadata": {"source": "hours.md"}}, 0.4],  # a pair with its score
    ],
)
def test_a_services_passage_is_read_where_its_text_is(given: Any) -> None:
    [passage] = read_passages("bot", [given], of_service=True)
    assert (passage.document, passage.text) == ("hours.md", "Opens at 7.")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["https://a.example/hours", "https://a.example/fees"], "names without texts, such as `https://a"),
        (["hours.md", {"text": "docs/fees.pdf"}], "names without texts, such as `hours.md`"),
        (["doc-1", "doc-2"], "names without texts, such as `doc-1`"),
        ([{"text": "a", "score": "high"}], "it has a `score` that cannot be read"),
        ([{"file": {"name": "hours.md"}}], "has no `text`; it has `file`"),
    ],
)
def test_what_is_no_passage_is_refused(given: list[Any], reason: str) -> None:
    with pytest.raises(ChatbotError, match=reason):
        read_passages("bot", given)


def test_a_name_among_texts_is_a_passage() -> None:
    assert len(read_passages("bot", ["Opens at 7.", "hours.md"])) == 2


@pytest.mark.parametrize(
    "name",
    [
        *("source_nodes", "docs", "retrieved_docs", "references", "retrieval_context", "search_results"),
        *("sourceDocuments", "Passages", "pasages", "retrieved", "context_list", "ctxs", "hits"),
    ],
)
def test_another_name_of_passages_is_one(name: str) -> None:
    assert find_misnamed(["trace", name]) == name


@pytest.mark.parametrize(
    "name",
    [
        *("messages", "num_sources", "source_count", "n_docs", "session_context", "has_context"),
        *("usage", "latency", "metadata", "intent"),
    ],
)
def test_a_name_of_something_else_is_none(name: str) -> None:
    assert find_misnamed([name]) is None
