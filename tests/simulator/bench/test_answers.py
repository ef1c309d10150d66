from __future__ import annotations

import pytest

from hallulab.simulator.bench.answers import extract_content, is_same_answer


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Duke of Zürich", ["duke", "zurich"]),
        ("Łódź, Straße, Ærø", ["lodz", "strasse", "aero"]),
        ("1,200 and 1200", ["1200", "1200"]),
        ("May 12,1907", ["may", "12", "1907"]),
        ("1,2005", ["1", "2005"]),
        ("two", ["2"]),
        ("twenty-one", ["21"]),
        ("nineteen seventy", ["19", "70"]),
        ("one hundred and five", ["105"]),
        ("a hundred", ["100"]),
        ("twelve hundred", ["1200"]),
        ("two million five hundred thousand", ["2500000"]),
        ("one thousand million", ["1000000000"]),
        ("1.2 million", ["1200000"]),
        ("In 1950 two men", ["in", "1950", "2", "men"]),
        ("the third, the 3rd and the twenty-first", ["3th", "3th", "21th"]),
        ("3.50", ["3.5"]),
        ("007", ["7"]),
        ("the U.S. Army", ["us", "army"]),
        ("T.S Eliot", ["ts", "eliot"]),
        ("J. K. Rowling", ["jk", "rowling"]),
        ("...", []),
    ],
)
def test_words_are_spelled_in_one_way(text: str, words: list[str]) -> None:
    assert extract_content(text) == words


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1,200", "1200"),
        ("two", "2"),
        ("3", "three"),
        ("Zürich", "Zurich"),
        ("U.S.", "United States"),
        ("USA", "United States of America"),
        ("New York City", "NYC"),
        ("NYC subway", "the subway of New York City"),
        ("12 May 1907", "May 12, 1907"),
        ("Obama", "President Obama"),
        ("J.K. Rowling", "J. K. Rowling"),
        ("the 19th century", "nineteenth century"),
    ],
)
def test_answers_that_say_the_same(first: str, second: str) -> None:
    assert is_same_answer(first, second)
    assert is_same_answer(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Ostravice", "Vltava"),
        ("1,200", "1,201"),
        ("three", "third"),
        ("twenty-one", "21,000"),
        ("United States", "USSR"),
        ("at home", "Alan Turing"),
        ("12 May 1907", "3 March 1911"),
    ],
)
def test_answers_that_differ(first: str, second: str) -> None:
    assert not is_same_answer(first, second)
    assert not is_same_answer(second, first)


@pytest.mark.parametrize(
    "text", ["9" * 5_000, f"{'9' * 5_000} million", "million " * 5_000, "9." + "9" * 5_000]
)
def test_a_number_of_any_length_is_read(text: str) -> None:
    assert is_same_answer(text, text)
    assert not is_same_answer(text, "nine")
