from __future__ import annotations

import pytest

from hallulab.agents.retrieval.word_search import WordSearch, list_stems
from tests.agents.retrieval.tiny_knowledge import TEXTS, scenario


async def test_the_passage_with_the_rarest_words_comes_first() -> None:
    found = await WordSearch(scenario()).search("The fee of a complaint?", 3)
    assert [passage.id for passage in found] == ["fees#0", "limitation#0"]
    assert found[0].text == f"Title: Fees\n{TEXTS['fees']}"
    assert found[0].topic == "law"


async def test_a_query_without_a_known_word_finds_nothing() -> None:
    assert await WordSearch(scenario()).search("Zebras gallop.", 4) == ()


async def test_the_score_is_the_librarys() -> None:
    import bm25s

    search = WordSearch(scenario())
    library = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    library.index([list_stems(passage.text) for passage in search.passages], show_progress=False)
    query = "fees of two hundred rupees on the day"
    expected = dict(
        zip([one.id for one in search.passages], library.get_scores(list_stems(query)), strict=True)
    )
    assert {passage.id: passage.score for passage in await search.search(query, 3)} == {
        name: pytest.approx(score, abs=2e-6) for name, score in expected.items() if score > 0
    }


async def test_ties_are_in_the_order_of_identifiers() -> None:
    found = await WordSearch(scenario({"b": "Same fee.", "a": "Same fee."})).search("fee", 2)
    assert [passage.id for passage in found] == ["a#0", "b#0"]


async def test_words_of_other_scripts_are_found() -> None:
    search = WordSearch(scenario({"hi": "शुल्क 200 रुपये है।", "zh": "费用是二百卢比。"}))
    assert [passage.document for passage in await search.search("费用", 1)] == ["zh"]
    assert [passage.document for passage in await search.search("शुल्क?", 1)] == ["hi"]


async def test_documents_without_a_word_are_searched_in_vain() -> None:
    assert await WordSearch(scenario({})).search("fee", 1) == ()
