"""Results of retrievers are passages by their words, named by their document."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hallulab.scenarios.chats.evidence import extract_evidence

FEE = "The fee is 200 euros."
LATE = "A late day costs 5 euros."


def read(value: Any) -> list[tuple[str, str]]:
    """Return documents and words of the pieces."""
    return [(found.document, found.text) for found in extract_evidence(value, "tool")]


SHAPES: dict[str, Any] = {
    "Pinecone": {"matches": [
        {"id": "v", "score": 0.8, "values": [0.1], "metadata": {"text": FEE, "source": "a.md"}}]},
    "Pinecone with its own model": {"result": {"hits": [
        {"_id": "r", "_score": 0.3, "fields": {"chunk_text": FEE, "source": "a.md"}}]}, "usage": {}},
    "Pinecone Assistant": {"snippets": [
        {"type": "text", "content": FEE, "reference": {"type": "pdf", "file": {"name": "a.md"}}}]},
    "Qdrant": {"result": {"points": [
        {"id": 1, "score": 0.8, "payload": {"page_content": FEE, "metadata": {"source": "a.md"}}}]}},
    "Qdrant of LlamaIndex": [{"id": 1, "payload": {
        "_node_content": json.dumps({"text": FEE, "metadata": {"file_name": "a.md"}}), "doc_id": "d"}}],
    "Elasticsearch": {"took": 3, "hits": {"total": {"value": 1}, "hits": [
        {"_index": "i", "_id": "9", "_score": 1.2, "_source": {"body": FEE, "title": "a.md"}}]}},
    "MCP": {"content": [{"type": "resource", "resource": {"uri": "a.md", "text": FEE}}], "isError": False},
    "Bedrock": {"retrievalResults": [
        {"content": {"text": FEE, "type": "TEXT"}, "score": 0.5, "location": {
            "type": "S3", "s3Location": {"uri": "a.md"}}}]},
    "Bedrock with a reply": {"output": {"text": "It is 200."}, "citations": [{
        "generatedResponsePart": {"textResponsePart": {"text": "It is 200."}},
        "retrievedReferences": [{"content": {"text": FEE}, "location": {"webLocation": {"url": "a.md"}}}]}]},
    "OpenAI": {"object": "vector_store.search_results.page", "data": [
        {"file_id": "f", "filename": "a.md", "score": 0.9, "content": [{"type": "text", "text": FEE}]}]},
    "OpenAI's tool": {"type": "file_search", "file_search": {"results": [
        {"file_id": "f", "file_name": "a.md", "content": [{"type": "text", "text": FEE}]}]}},
    "Cohere": [{"id": "d", "data": {"text": FEE, "title": "a.md"}}],
    "Vertex AI Search": {"results": [{"id": "1", "document": {"id": "1", "derivedStructData": {
        "title": "a.md", "snippets": [{"snippet": "the fee"}], "extractive_segments": [{"content": FEE}]}}}]},
    "Vertex AI RAG": {"contexts": {"contexts": [{"sourceUri": "a.md", "text": FEE, "distance": 0.2}]}},
    "Gemini": {"groundingChunks": [{"retrievedContext": {"uri": "a.md", "text": FEE}}]},
    "Weaviate": {"objects": [
        {"uuid": "x", "properties": {"text": FEE, "source": "a.md"}, "metadata": {"distance": 0.1}}]},
    "Weaviate's GraphQL": {"data": {"Get": {"Article": [
        {"content": FEE, "title": "a.md", "_additional": {"distance": 0.1}}]}}},
    "LangChain": [{"lc": 1, "type": "constructor", "id": ["langchain", "Document"], "kwargs": {
        "page_content": FEE, "metadata": {"source": "a.md"}, "type": "Document"}}],
    "LangChain with scores": [[{"page_content": FEE, "metadata": {"source": "a.md"}}, 0.12]],
    "Chroma": {
        "ids": [["1"]], "documents": [[FEE]], "metadatas": [[{"source": "a.md"}]], "distances": [[0.1]]},
    "Haystack": {"retriever": {"documents": [{"id": "1", "content": FEE, "meta": {"file_path": "a.md"}}]}},
    "Azure AI Search": {"@odata.context": "x", "value": [
        {"@search.score": 3.2, "content": FEE, "title": "a.md", "chunk_id": "c"}]},
    "Milvus": [[{"id": 7, "distance": 0.1, "entity": {"text": FEE, "source": "a.md"}}]],
    "pgvector's rows": [["7", "a.md", FEE, 0.12, [0.1, 0.2]]],
    "LangChain's table": [{"document": FEE, "cmetadata": {"source": "a.md"}, "uuid": "u", "embedding": []}],
    "LlamaIndex": {"response": "It is 200.", "source_nodes": [
        {"node": {"id_": "n", "text": FEE, "metadata": {"file_name": "a.md"}}, "score": 0.5}]},
    "Serper": {"searchParameters": {"q": "fee"}, "organic": [
        {"title": "a.md", "link": "https://x.y", "snippet": FEE, "position": 1}]},
    "Kendra": {"ResultItems": [{"Id": "1", "DocumentTitle": "a.md", "DocumentExcerpt": {"Text": FEE}}]},
    "Databricks": {"manifest": {"column_count": 3}, "result": {"data_array": [["a.md", FEE, 0.4]]}},
    "Firecrawl": {"success": True, "data": {"markdown": FEE, "metadata": {"title": "a.md"}}},
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("pack", [lambda value: value, json.dumps], ids=["value", "text"])
def test_a_result_is_its_words_under_the_name_of_the_document(shape: str, pack: Any) -> None:
    assert read(pack(SHAPES[shape])) == [("a.md", FEE)]


def test_a_result_in_the_text_of_a_tool_is_read_too() -> None:
    shown = {"content": [{"type": "text", "text": json.dumps(SHAPES["Pinecone"])}]}
    assert read(shown) == [("a.md", FEE)]


def test_each_hit_is_a_passage() -> None:
    assert read({"content": [{"type": "text", "text": FEE}, {"type": "text", "text": LATE}]}) == [
        ("tool", FEE),
        ("tool", LATE),
    ]
    assert read([[FEE, 0.12], [LATE, 0.3]]) == [("tool", FEE), ("tool", LATE)]


def test_scores_and_identifiers_are_kept_beside_the_words() -> None:
    (found,) = extract_evidence(SHAPES["Pinecone"], "tool")
    assert (found.id, found.score) == ("v", 0.8)


@pytest.mark.parametrize(
    "value",
    [
        None, "", "null", "nan", "NaN", "None", "['']", '[""]', "[nan]", [], {}, [None], [""], float("nan"),
        {"matches": [], "namespace": ""}, {"hits": {"total": {"value": 0}, "hits": []}}, {"documents": [[]]},
        {"type": "image", "data": "iVBOR"},
        {"type": "document", "source": {"type": "base64", "data": "JVBE"}},
    ],
)  # fmt: skip
def test_nothing_is_no_evidence(value: Any) -> None:
    assert read(value) == []


def test_what_a_tool_found_out_is_its_json() -> None:
    assert read({"data": {"balance": 5}, "status": "ok"}) == [
        ("tool", '{"data": {"balance": 5}, "status": "ok"}')
    ]
    assert read([{"price": 5}, {"price": 6}]) == [("tool", '{"price": 5}'), ("tool", '{"price": 6}')]
    assert read({"items": [], "message": "Empty."}) == [("tool", '{"items": [], "message": "Empty."}')]
    assert read(5) == [("tool", "5")]


def test_objects_in_each_other_are_read_in_proportion_to_their_size() -> None:
    value: Any = {"price": 5}
    for level in range(90):
        value = {"data": [value], "result": {"content": value}} if level % 30 == 0 else {"data": [value]}
    assert read(value) == [("tool", json.dumps(value))]
