"""Letters that a pattern without case takes for others of ASCII: `ı`, `İ`, `ſ`, the Kelvin sign."""

from __future__ import annotations

import re
import sys
from string import ascii_lowercase

import pytest

from hallulab.scenarios.attacks.questions import determine_answer_kind
from hallulab.scenarios.text import items
from hallulab.scenarios.text.items import find_items
from hallulab.scenarios.text.words import match_any

ALIKE = re.findall("[a-z]", "".join(map(chr, range(sys.maxunicode + 1))), re.IGNORECASE)
"""Every letter that matches one of ASCII without case."""
FOLDED = {
    letter: [one for one in ALIKE if re.match(letter, one, re.IGNORECASE) and one.lower() != letter]
    for letter in ascii_lowercase
}
"""Letter → those that match it without case and are another letter in lower case."""
WORDS = [*items._WORDS, *items._SCALES, *items._UNITS, "days", "minutes", "miles", "kilometres", "sixty-six"]


def spell(word: str) -> list[str]:
    """Return the word with one letter, wherever it is, in each of its other forms."""
    return [
        word[:at] + other + word[at + 1 :]
        for at, letter in enumerate(word)
        for other in FOLDED.get(letter, [])
    ]


def test_three_letters_have_such_forms() -> None:
    assert {letter: found for letter, found in FOLDED.items() if found} == {"i": ["İ", "ı"], "s": ["ſ"]}


def test_a_pattern_of_words_finds_only_what_is_one_of_them_in_lower_case() -> None:
    pattern = re.compile(match_any(ascii_lowercase), re.IGNORECASE)
    found = {letter for letter in ALIKE if pattern.fullmatch(letter)}
    assert {letter.lower() for letter in found} == set(ascii_lowercase)
    assert len(found) == 52


@pytest.mark.parametrize("context", ["5 {}", "{} days", "{} million", "five {}", "T plus {}", "{} 5"])
def test_every_word_of_a_number_can_be_looked_up_in_any_spelling(context: str) -> None:
    for word in WORDS:
        for spelling in spell(word):
            find_items(context.format(spelling))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("5 mıllion", [("number", "5")]),
        ("5 MİLLİON", [("number", "5"), ("name", "MİLLİON")]),
        ("within sıx days", []),
        ("within ſix days", []),
        ("within SIX days", [("quantity", "SIX days")]),
        ("it weighs 5 \u212ag", [("number", "5")]),
    ],
)
def test_a_word_in_such_letters_is_no_number(text: str, found: list[tuple[str, str]]) -> None:
    assert [(item.kind, item.text) for item in find_items(text)] == found


def test_an_answer_in_such_letters_is_no_number() -> None:
    kinds = [determine_answer_kind(answer) for answer in ("six", "ſıx", "FİVE")]
    assert kinds == ["number", "phrase", "name"]
