"""Cutting passages and replies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.detectors.logic_graph.segmentation import (
    claim_whole_reply,
    count_tokens,
    join_answer_claims,
    keep_whole_documents,
    split_claims,
    split_documents,
)
from hallulab.scenarios.transcript import Passage

REPLY = "Hello! The pool opens at 6 every day. Entry costs 9 euros. Let me know if you need more help."
NUMBERS = "One two three. Four five six. Seven eight."


def passage(text: str) -> Passage:
    return Passage(id="a#0", document="a", text=text)


def test_tokens_are_words_and_marks() -> None:
    assert count_tokens("The fee (Rs 5.50) is due.") == 6 + 4


@given(st.text(alphabet="ab. \n\t\x1c\x85\xa0\u2003\u3000\u3001\u200b’–é中😀\ud800", max_size=20))
def test_words_are_what_stands_between_white_space_of_any_kind(text: str) -> None:
    assert count_tokens(text) == len(text.split()) + sum(map(text.count, ".’–"))


@pytest.mark.parametrize(
    ("texts", "document_tokens", "chunk_tokens", "expected"),
    [
        # a sentence without a blank before it has all its words
        (
            ["We met in Agartala.You had left."],
            5,
            5,
            [("We met in Agartala.", 0, 5), ("You had left.", 0, 4)],
        ),
        # a document has its own sentences and its own length
        (["It is", "2 a. m.", " or so "], 512, 256, [("It is", 0, 2), ("2 a. m.", 1, 5), ("or so", 2, 2)]),
        # over neither limit it is one chunk
        (["It  opens.\nIt closes."], 512, 256, [("It opens. It closes.", 0, 6)]),
        # no chunk reaches over a cut at the document's limit
        (
            ["K.", "A b. C d. E f. G h. I j."],
            9,
            6,
            [("K.", 0, 2), ("A b. C d.", 1, 6), ("E f.", 1, 3), ("G h. I j.", 1, 6)],
        ),
        # either limit alone cuts a document
        ([NUMBERS], 7, 100, [("One two three.", 0, 4), ("Four five six. Seven eight.", 0, 7)]),
        ([NUMBERS], 100, 7, [("One two three.", 0, 4), ("Four five six. Seven eight.", 0, 7)]),
    ],
)
def test_documents_are_cut_at_both_limits(
    texts: list[str], document_tokens: int, chunk_tokens: int, expected: list[tuple[str, int, int]]
) -> None:
    chunks = split_documents([passage(text) for text in texts], document_tokens, chunk_tokens)
    assert [(chunk.text, chunk.passage, chunk.tokens) for chunk in chunks] == expected


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        (NUMBERS, 8, ["One two three. Four five six.", "Seven eight."]),
        (NUMBERS, 7, ["One two three.", "Four five six. Seven eight."]),
        (NUMBERS, 100, [NUMBERS]),
        (NUMBERS, 3, ["One two", "three.", "Four five", "six.", "Seven eight."]),
        # a line break ends a sentence
        ("Title: The pool\nIt opens at 6.", 5, ["Title: The pool", "It opens at 6."]),
    ],
)
def test_sentences_are_packed_up_to_the_limit(text: str, limit: int, expected: list[str]) -> None:
    assert [chunk.text for chunk in split_documents([passage(text)], limit, limit)] == expected


@given(st.text(alphabet="ab .!\n\t", max_size=80), st.integers(min_value=2, max_value=9))
def test_chunks_lose_nothing_but_white_space_and_keep_the_limit(text: str, limit: int) -> None:
    pieces = [chunk.text for chunk in split_documents([passage(text)], limit, limit)]
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(count_tokens(piece) <= limit or len(piece.split()) == 1 for piece in pieces)


def test_without_segmentation_a_document_is_a_chunk() -> None:
    text = "A b. " * 50
    assert [chunk.text for chunk in keep_whole_documents([passage(text)])] == [text.strip()]


def test_claims_are_the_factual_sentences_with_their_places() -> None:
    claims = split_claims(REPLY, "When?")
    assert [(claim.text, claim.question) for claim in claims] == [
        ("The pool opens at 6 every day.", "When?"),
        ("Entry costs 9 euros.", "When?"),
    ]
    assert [claim.region.of(REPLY) for claim in claims] == [claim.text for claim in claims]


def test_an_answer_of_one_word_is_a_claim() -> None:
    assert [claim.text for claim in split_claims("Captain", "Which position?")] == ["Captain"]


def test_the_answer_is_its_factual_sentences_put_together() -> None:
    [claim] = join_answer_claims(REPLY, 512)
    assert claim.text == claim.region.of(REPLY) == "The pool opens at 6 every day. Entry costs 9 euros."


@pytest.mark.parametrize(
    ("limit", "sentences"), [(13, [1, 1, 2]), (14, [2, 2]), (20, [2, 2]), (22, [3, 1]), (27, [4])]
)
def test_a_claim_has_as_many_sentences_as_the_threshold_lets_it(limit: int, sentences: list[int]) -> None:
    each = (
        "One two three four five six.",  # 7 tokens
        "Seven eight nine ten eleven twelve.",  # 7
        "Ten of them are open today here.",  # 8
        "Entry costs 9 euros.",  # 5
    )
    assert [claim.text.count(".") for claim in join_answer_claims(" ".join(each), limit)] == sentences


def test_without_segmentation_the_reply_is_the_claim() -> None:
    assert [claim.text for claim in claim_whole_reply(REPLY)] == [REPLY]


def test_a_reply_of_courtesies_claims_nothing() -> None:
    assert split_claims("Hello! Let me know if you need more help.") == []
    assert join_answer_claims("Hello! Let me know if you need more help.", 512) == []
