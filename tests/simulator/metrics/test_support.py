"""What documents support, and which bear on a question."""

from __future__ import annotations

import pytest

from hallulab.scenarios.transcript import Passage
from hallulab.simulator.metrics.support import DocumentIndex, Statement, read_statement, read_stems

FEES = Passage(
    id="fees#0",
    document="fees",
    text="Title: Complaint fees\nA complaint over five lakh rupees costs 200 rupees. It is paid online.",
)
TRAINS = Passage(id="trains#0", document="trains", text="Title: Trains\nTrains to the coast leave at 5 PM.")
INDEX = DocumentIndex([FEES, TRAINS])


def statement(text: str, user_text: str = "") -> Statement:
    found = read_statement(text, user_text)
    assert found is not None
    return found


def judged(text: str, *passages: Passage, user_text: str = "") -> tuple[list[bool | None], bool | None]:
    by_passages, by_documents = INDEX.judge(statement(text, user_text), passages)
    return [*by_passages], by_documents


def test_a_statement_in_the_words_of_a_passage_is_supported_by_it() -> None:
    assert judged("The complaint costs 200 rupees, paid online.", FEES, TRAINS) == ([True, False], True)


NUMBERS = "A complaint over five lakh rupees costs 200 rupees, paid online in 77."


@pytest.mark.parametrize(
    ("text", "user", "supported"),
    [
        pytest.param("The complaint costs 300 rupees, paid online.", "", False, id="another number"),
        pytest.param(NUMBERS, "", False, id="a number of nobody"),
        pytest.param(NUMBERS, "I was born in 77.", True, id="a number of the user"),
        pytest.param("A complaint over 5 lakh rupees costs Rs 200.", "", True, id="spelled otherwise"),
        pytest.param("A complaint costs money and needs stamps, paid online.", "", None, id="half its words"),
    ],
)
def test_a_passage_supports_words_and_numbers(text: str, user: str, supported: bool | None) -> None:
    assert judged(text, FEES, user_text=user) == ([supported], supported)


def test_a_passage_that_is_not_of_the_documents_is_read_itself() -> None:
    other = FEES.model_copy(update={"text": FEES.text.replace("200", "300")})
    assert judged("The complaint costs 300 rupees, paid online.", other, FEES) == ([True, False], False)
    assert INDEX.find(other) is None
    assert INDEX.find(FEES.model_copy(update={"score": 0.5})) == 0


def test_shares_of_passages_are_the_same_in_the_documents_and_outside() -> None:
    copy = FEES.model_copy(update={"id": "elsewhere"})
    [inside, outside], best = INDEX.rate(statement("A complaint costs 200 rupees by post."), [FEES, copy])
    assert inside == outside == best


@pytest.mark.parametrize("text", ["Of course!", "It costs money.", ""])
def test_few_words_are_no_statement(text: str) -> None:
    assert read_statement(text) is None


def test_rarer_words_count_more() -> None:
    both = [FEES, TRAINS.model_copy(update={"text": f"{TRAINS.text} A complaint is heard there."})]
    index = DocumentIndex(both)
    shares = [index.rate_passage(FEES, read_stems(f"complaint {word}")) for word in ("online", "coast")]
    assert shares == pytest.approx([1.0, 1 / 2.405465], abs=1e-6)


def test_a_question_is_rated_by_its_words_in_each_passage() -> None:
    question = read_stems("When do trains to the coast leave?")
    assert INDEX.rate_passages(question).tolist() == [0.0, 1.0]
    assert [INDEX.rate_passage(passage, question) for passage in (FEES, TRAINS)] == [0.0, 1.0]


def test_without_documents_nothing_is_supported() -> None:
    assert DocumentIndex([]).judge(statement("The complaint costs 200 rupees online."), []) == ([], False)
    assert DocumentIndex([]).rate_passages(read_stems("complaint")).tolist() == []


@pytest.mark.parametrize("text", ["", "  ", "\n", "Title: ", "Title: Fees\n \n"])
def test_a_blank_passage_supports_nothing(text: str) -> None:
    blank = Passage(id="blank#0", document="blank", text=text)
    assert judged("A complaint over five lakh rupees costs 200 rupees.", blank) == ([False], True)
    assert DocumentIndex([blank]).judge(statement("A complaint costs 200 rupees."), [blank]) == (
        [False],
        False,
    )
