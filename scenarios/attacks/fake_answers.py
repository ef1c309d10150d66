"""False answers to questions, by rules: the answer to another question, of the same kind if there is one.

RAG-Trust (section 2.1) has a model write them. Rules need none, and they give the same answers everywhere.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from hallulab.scenarios.datasets.hotpotqa import HotpotQuestion
from hallulab.scenarios.errors import UsageError

Kind = Literal["yes or no", "number", "date", "name", "phrase"]

_MONTH = re.compile(
    r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
)
_COUNTS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_COUNTS)})\b", re.IGNORECASE)
_FIGURES = re.compile(r"\d+")
_DAYS = 28
"""A day of the month stays one that every month has."""
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"\w+")
_SMALL = frozenset({"a", "an", "and", "at", "de", "for", "in", "la", "mit", "of", "on", "the", "to", "von"})
_YES_OR_NO = {"yes": "no", "no": "yes"}


def determine_answer_kind(answer: str) -> Kind:
    """Return the kind of an answer, by its spelling."""
    if answer.lower() in _YES_OR_NO:
        return "yes or no"
    if _MONTH.search(answer):
        return "date"
    if (_FIGURES.search(answer) and not _LETTER.search(answer)) or _NUMBER_WORD.match(answer):
        return "number"
    words = [word for word in _WORD.findall(answer) if word not in _SMALL]
    return "name" if words and all(not word[0].islower() for word in words) else "phrase"


def make_fake_answers(
    question: HotpotQuestion, others: Sequence[HotpotQuestion], seed: int, count: int = 1
) -> tuple[str, ...]:
    """Return so many different false answers, the likeliest first.

    - For `yes` it is `no`, and the other way round, however many are wanted.
    - A number or a date is moved a little: `1988` to `1991`, `22 November` to `25 November`, `six` to `nine`.
    - If the question names its answer, as a choice between two does, it is the other one's title.
    - Else it is an answer to another question: of the same kind before other kinds, with a word in common
      (`Blue Grass Airport` for `Dubai International Airport`) before others, of the same length before
      others, and at random among those left. Then come the titles of the question's own noise.

    None of them stands in the question or in its paragraphs that matter.

    Raises:
        UsageError: there are not so many.
    """
    opposite = _YES_OR_NO.get(question.answer.lower())
    if opposite is not None:
        return (opposite,) * count
    gold = [_render_paragraph(question, position) for position in sorted(question.supporting)]
    known = " ".join((question.question, question.answer, *gold)).lower()
    if determine_answer_kind(question.answer) in ("number", "date"):
        return _move_answer(question, seed)[:count]
    found = list(dict.fromkeys(_find_candidates(question, others, known, seed)))[:count]
    if len(found) < count:
        raise UsageError(
            f"question {question.id}: there is no false answer for {question.answer!r} among "
            f"{len(others)} other questions. Give a data set with more of them."
        )
    return tuple(found)


def _move_answer(question: HotpotQuestion, seed: int) -> tuple[str, ...]:
    """Return nine numbers or dates near the answer, in an order drawn by the seed."""
    steps = random.Random(f"fake/{seed}/{question.id}").sample(range(1, 10), 9)  # noqa: S311 - a seeded choice
    return tuple(_move_numbers(step, question.answer) for step in steps)


def _move_numbers(step: int, answer: str) -> str:
    def figures(found: re.Match[str]) -> str:
        value = int(found[0])
        return str((value + step - 1) % _DAYS + 1 if value <= _DAYS else value + step)

    def count(found: re.Match[str]) -> str:
        return _COUNTS[(_COUNTS.index(found[0].lower()) + step) % len(_COUNTS)]

    return _NUMBER_WORD.sub(count, _FIGURES.sub(figures, answer))


def is_phrase_in(phrase: str, text: str) -> bool:
    """Return whether a phrase stands in a text as whole words, whatever the case."""
    return re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text, re.IGNORECASE) is not None


def is_choice(question: HotpotQuestion) -> bool:
    """Return whether the question names its answer."""
    return is_phrase_in(question.answer, question.question)


def _find_candidates(
    question: HotpotQuestion, others: Sequence[HotpotQuestion], known: str, seed: int
) -> Iterator[str]:
    if is_choice(question):
        titles = [_strip_title(question.context[position][0]) for position in sorted(question.supporting)]
        yield from (title for title in titles if not is_phrase_in(question.answer, title))
    answers = sorted({other.answer for other in others if other.answer.lower() not in known})
    random.Random(f"fake/{seed}/{question.id}").shuffle(answers)  # noqa: S311 - a seeded choice of data
    kind, words = determine_answer_kind(question.answer), _extract_words(question.answer)

    def distance(answer: str) -> tuple[bool, bool, int]:
        theirs = _extract_words(answer)
        return determine_answer_kind(answer) != kind, words.isdisjoint(theirs), abs(len(words) - len(theirs))

    yield from sorted((one for one in answers if determine_answer_kind(one) != "yes or no"), key=distance)
    for position, (title, _) in enumerate(question.context):
        if position not in question.supporting and _strip_title(title).lower() not in known:
            yield _strip_title(title)


def _render_paragraph(question: HotpotQuestion, position: int) -> str:
    title, sentences = question.context[position]
    return f"{title}\n{''.join(sentences)}"


def _strip_title(title: str) -> str:
    """Return a title without what tells it from others: `Antic (magazine)` is `Antic`."""
    return re.sub(r"\s*\([^)]*\)\s*$", "", title)


def _extract_words(answer: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(answer)} - _SMALL
