"""The real embedding model and the real database on the real packs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.agents.machine.weights import locate_embedding_model
from hallulab.agents.retrieval.embeddings import SentenceEmbedder
from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.scenarios.packs.pack_files import load_scenario

pytestmark = pytest.mark.live

QUESTIONS = {
    "consumer-grievance-india": {
        "How many years do I have to file a complaint?": "limitation",
        "What is the number of the national consumer helpline?": "national-consumer-helpline",
        "Which commission takes a case about a flat of 60 lakh rupees?": "three-tier-commissions",
        "Within how many days must a failed UPI payment be reversed?": "upi-digital-payments",
        "How do I use the e-Jagriti portal?": "e-filing",
    },
    "pregnancy-medication": {
        "Can I take ibuprofen in the third trimester?": "ibuprofen-and-other-nsaids",
        "How much folic acid should I take?": "folic-acid",
    },
}


@pytest.mark.parametrize("pack", QUESTIONS)
async def test_the_right_document_is_among_the_first_four(pack: str, tmp_path: Path) -> None:
    base = KnowledgeBase(load_scenario(pack), embedder=SentenceEmbedder("all-MiniLM-L6-v2"), cache=tmp_path)
    for question, document in QUESTIONS[pack].items():
        found = await base.search(question, 4)
        assert any(passage.document.startswith(document) for passage in found), question
        scores = [passage.score or 0.0 for passage in found]
        assert scores == sorted(scores, reverse=True)


async def test_embedding_leaves_the_threads_of_others_alone(tmp_path: Path) -> None:
    import torch

    before = torch.get_num_threads()
    base = KnowledgeBase(
        load_scenario("pregnancy-medication"),
        # By its path, as any other sentence-transformers model.
        embedding_model=locate_embedding_model("all-minilm-l6-v2"),
        cache=tmp_path,
    )
    base.build()
    await base.search("aspirin", 1)
    assert torch.get_num_threads() == before
