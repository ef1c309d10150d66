from __future__ import annotations

import re
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.packs.pack import Document
from hallulab.scenarios.text.chunking import Chunking, cut_into_passages, split_into_chunks

SMALL = Chunking(max_words=10, min_words=3)


def words(count: int, word: str = "word") -> str:
    return " ".join([word] * count)


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("Only a few words.", ("Only a few words.",)),
        (" \n\n\t", ()),
        (
            "\n\n".join([words(4, "a"), words(6, "b"), words(5, "c")]),
            (f"{words(4, 'a')}\n\n{words(6, 'b')}", words(5, "c")),
        ),
        (f"{words(4)}\n\n## Fees\n\n{words(4)}", (words(4), f"## Fees\n\n{words(4)}")),
        (f"# Law\n\n## Fees\n{words(3)}", (f"# Law\n\n## Fees\n{words(3)}",)),
        (f"{words(8)}\n\n# The end of it all", (words(8), "# The end of it all")),
        (f"{words(10)}\n\nvery end", (f"{words(10)}\n\nvery end",)),
        (f"so it\n\n{words(10)}", (f"so it\n\n{words(10)}",)),
        (
            "One two three four five. Six seven eight nine ten. Eleven twelve thirteen.",
            ("One two three four five. Six seven eight nine ten.", "Eleven twelve thirteen."),
        ),
        (
            "- one two three four\n- five six seven eight\n- nine ten eleven twelve",
            ("- one two three four\n- five six seven eight", "- nine ten eleven twelve"),
        ),
    ],
    ids=[
        *("short", "white space", "paragraphs up to the limit", "a heading opens", "headings in a row"),
        *("heading without text", "small rest", "small beginning", "sentence ends", "items of a list"),
    ],
)
def test_a_text_is_cut_where_a_reader_would_cut_it(text: str, chunks: tuple[str, ...]) -> None:
    assert split_into_chunks(text, SMALL) == chunks


@pytest.mark.parametrize(
    "abbreviated",
    [
        *("Rs. 500", "No. 12", "v. State", "Dr. Rao", "e.g. Delhi", "M. Rao", "(Sec. 35", "Smt. Rao"),
        *("Ltd. Delhi", "Reg. Nos"),
    ],
)
def test_an_abbreviation_ends_no_sentence(abbreviated: str) -> None:
    text = f"a b c d e f g {abbreviated} i. Next it goes on here."
    assert split_into_chunks(text, SMALL)[0] == f"a b c d e f g {abbreviated} i."


@pytest.mark.parametrize("last", ["etc.", "p.m.", "no."])
def test_an_abbreviation_that_may_end_a_sentence_ends_one_before_a_capital(last: str) -> None:
    text = f"one two three four five {last} Seven eight nine ten eleven twelve."
    assert split_into_chunks(text, SMALL)[0] == f"one two three four five {last}"


def test_a_sentence_without_end_is_split_between_words_evenly() -> None:
    assert [len(piece.split()) for piece in split_into_chunks(words(25), SMALL)] == [10, 10, 5]


def test_min_words_may_not_exceed_max_words() -> None:
    with pytest.raises(ValueError, match=r"min_words \(40\) exceeds max_words \(30\)"):
        Chunking(max_words=30)


documents = st.lists(
    st.sampled_from(
        [
            *("\n\n", "\n", " ", "# ", "## Title\n\n", "- ", "word ", "End. ", "Rs. ", "x" * 30),
            *("\u00a0", "\x85", "é? "),
        ]
    )
    | st.text(max_size=5),
    max_size=80,
).map("".join)


@given(documents, st.integers(1, 12), st.integers(1, 12))
def test_no_word_is_lost_or_doubled_and_chunks_are_bounded(text: str, first: int, second: int) -> None:
    chunking = Chunking(max_words=max(first, second), min_words=min(first, second))
    chunks = split_into_chunks(text, chunking)
    position = 0
    for piece in chunks:
        found = text.index(piece, position)
        assert text[position:found].strip() == ""
        position = found + len(piece)
        assert piece == piece.strip() != ""
        assert len(piece.split()) < chunking.max_words + chunking.min_words
    assert text[position:].strip() == ""
    assert split_into_chunks(text, chunking) == chunks


def test_passages_carry_title_number_and_topic() -> None:
    document = Document(
        name="fees", title="Court fees", source="Rules", topic="money", text=f"{words(100)}\n\n{words(50)}"
    )
    found = cut_into_passages(document)
    assert [passage.id for passage in found] == ["fees#0", "fees#1"]
    assert found[1].text == f"Title: Court fees\n{words(50)}"
    assert (found[1].document, found[1].topic, found[1].score) == ("fees", "money", None)


@given(
    st.lists(
        st.sampled_from(["One", "two", "e.g.", "end.", 'end."', "- ", "2.", "?!", "\n", "\n\n", " \n ", " "])
    )
)
def test_the_places_looked_at_are_all_where_a_sentence_may_end(parts: list[str]) -> None:
    text = " ".join(parts)
    with patch("hallulab.scenarios.text.chunking._PERHAPS_AN_END", re.compile(r"\S(?=\s)")):
        everywhere = split_into_chunks(text, SMALL)
    assert split_into_chunks(text, SMALL) == everywhere


def test_a_script_without_spaces_is_cut_at_its_sentence_ends() -> None:
    sentence = "今天的天气很好，我们去公园散步。"
    pieces = split_into_chunks(sentence * 30, Chunking(max_words=40, min_words=10))
    assert pieces[0] == sentence * 4
    assert "".join(pieces) == sentence * 30
    assert max(map(len, pieces)) <= 100


def test_encoded_data_is_cut_into_pieces_that_can_be_read() -> None:
    data = "QUJD" * 5000
    pieces = split_into_chunks(f"Key: {data}", Chunking(max_words=40, min_words=10))
    assert "".join(pieces) == f"Key: {data}"
    assert max(map(len, pieces)) <= 50 * 20


def test_a_name_in_another_script_is_one_word() -> None:
    assert split_into_chunks("上海市人民政府 is a town", Chunking(max_words=2, min_words=1)) == (
        "上海市人民政府 is",
        "a town",
    )


def test_an_address_of_a_page_is_one_word() -> None:
    address = f"https://example.org/{'a' * 380}"
    assert split_into_chunks(f"{address} {address} {address}", Chunking(max_words=2, min_words=1)) == (
        f"{address} {address}",
        address,
    )


ROWS = [f"| saw {number} | {number} euros a week. Less in May |" for number in range(30)]
TABLE = "\n".join(["| Tool | Price |", "|---|---|", *ROWS])


def test_a_table_is_cut_between_rows() -> None:
    cut = split_into_chunks(TABLE)
    assert len(cut) == 4
    assert "\n".join(cut) == TABLE
    assert cut[0].startswith("| Tool | Price |\n|---|---|\n| saw 0 |")


def test_each_passage_of_a_table_begins_with_its_head() -> None:
    document = Document(name="fees", title="Fees", source="rules", text=f"Intro.\n\n{TABLE}\n\nThe end.")
    texts = [passage.text for passage in cut_into_passages(document)]
    assert texts[0].startswith("Title: Fees\nIntro.\n\n| Tool | Price |\n|---|---|\n| saw 0 |")
    assert all(text.startswith("Title: Fees\n| Tool | Price |\n|---|---|\n| saw ") for text in texts[1:])
    rows = [line for text in texts for line in text.split("\n") if line.startswith("| saw")]
    assert (rows, texts[-1].endswith("\n\nThe end.")) == (ROWS, True)


def test_a_long_head_of_a_table_is_not_repeated() -> None:
    text = "\n".join([f"| {'word ' * 70}| Price |", "|---|---|", *ROWS])
    document = Document(name="fees", title="Fees", source="rules", text=text)
    assert cut_into_passages(document)[2].text.startswith("Title: Fees\n| saw ")
