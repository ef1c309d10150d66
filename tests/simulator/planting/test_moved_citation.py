"""A moved citation cites a passage that does not support its sentence, and the metric finds each of them."""

from __future__ import annotations

import random

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Passage
from hallulab.simulator.metrics.citations import judge_citations
from hallulab.simulator.options.data import PlantOptions
from hallulab.simulator.planting.command import plant_from_options
from hallulab.simulator.planting.material import Clean, build_sentence_bank, generate_clean_replies
from hallulab.simulator.planting.moved_citation import move_citation
from hallulab.simulator.planting.plant import plant
from tests.builders import labelled

PASSAGES = tuple(
    Passage(id=f"{name}#0", document=name, text=text)
    for name, text in {
        "films": "Films are lent for 7 days at the counter. A film that is late costs 20 cents a day.",
        "books": "Books can be renewed twice by telephone. Readers under 12 years pay nothing for them.",
        "desk": "The help desk opens at 9 in the morning. It is closed on Sundays and on public holidays.",
    }.items()
)
FILMS, BOOKS = "Films are lent for 7 days at the counter", "Books can be renewed twice by telephone"
REPLIES = (
    f"{FILMS} [1]. {BOOKS} [2].",
    f"{FILMS}. [1] {BOOKS}. [2]",
    f"{BOOKS} [2]. The help desk opens at 9 in the morning [3].",
    "A film that is late costs 20 cents a day [1].",
)


def move(reply: str, seed: int = 0) -> str | None:
    clean = Clean("x", "?", (), PASSAGES, reply, "g")
    error = move_citation(clean, build_sentence_bank([]), random.Random(seed))
    return None if error is None else error.reply


def test_a_citation_gets_the_number_of_a_passage_that_lacks_the_words() -> None:
    moved = {move(f"{FILMS} [1].", seed) for seed in range(9)}
    assert moved == {f"{FILMS} [2].", f"{FILMS} [3]."}
    assert {move(f"{FILMS} (Passage 1).", seed) for seed in range(9)} == {
        f"{FILMS} (Passage 2).",
        f"{FILMS} (Passage 3).",
    }


@pytest.mark.parametrize(
    "reply",
    [
        f"{FILMS}.",
        f"{FILMS} [1][2].",
        f"{FILMS} [2].",
        f"{FILMS} [4].",
        f"{FILMS} 【4:0†source】.",
        "Films are lent for 7 days at the counter [1]?",
    ],
)
def test_none_is_moved_where_the_reply_does_not_cite_one_passage_rightly(reply: str) -> None:
    assert move(reply) is None


def plant_all() -> list[LabelledReply]:
    clean = [labelled(reply, id=str(at), passages=PASSAGES) for at, reply in enumerate(REPLIES)]
    done = plant([generate_clean_replies(clean, 0)], build_sentence_bank(clean), ("moved-citation",), 9, 0)
    return done.replies


def test_the_metric_finds_all_planted_ones_and_none_of_their_twins() -> None:
    replies = plant_all()
    assert len(replies) == 18
    for wrong, twin in zip(replies[::2], replies[1::2], strict=True):
        [span] = wrong.spans or ()
        judged = judge_citations(wrong.reply, wrong.passages)
        found = [one.citation.place for one in judged if one.is_right is False]
        assert [place.start < span.start < place.end for place in found] == [True]
        assert {one.is_right for one in judge_citations(twin.reply, twin.passages)} == {True}


async def test_a_source_without_citations_has_no_place() -> None:
    options = PlantOptions("pregnancy-medication", out="nowhere", kinds=["moved-citation"], count=2)
    with pytest.raises(UsageError, match="no error found a place"):
        await plant_from_options(options)
