"""Edits of a sentence that make it false, with words from a collection of documents."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import NamedTuple

from hallulab.scenarios.packs.pack import Document
from hallulab.scenarios.text.items import Item, find_items
from hallulab.scenarios.text.spans import split_sentences
from hallulab.scenarios.text.words import MOST_DIGITS, TOKEN, parse_whole_number

_WORDS = (6, 45)
"""Fewest and most words of a whole sentence: shorter ones say too little, longer ones too much."""


@dataclass(frozen=True)
class SentenceBank:
    """The sentences of all documents; errors are taken from them."""

    sentences: tuple[tuple[str, str], ...]
    """Section and sentence; sentences of the same section apply to the same cases."""

    @cached_property
    def names(self) -> tuple[tuple[str, bool], ...]:
        """The names that occur, each once, and whether `the` stands before it."""
        found: dict[tuple[str, bool], None] = {}
        for _, sentence in self.sentences:
            for item in find_items(sentence):
                if item.kind == "name" and is_distinct_name(item.text):
                    found[item.text, is_after_the(sentence, item)] = None
        return tuple(found)

    @cached_property
    def rules(self) -> tuple[tuple[str, str], ...]:
        """Sentences that say what must or may be done, with a deadline, an amount or a contact."""
        return tuple(
            (section, sentence)
            for section, sentence in self.sentences
            if not {"must", "may", "shall", "cannot", "can"}.isdisjoint(sentence.split())
            and any(item.kind in ("quantity", "contact", "date") for item in find_items(sentence))
        )


def is_distinct_name(name: str) -> bool:
    """Return whether a name stands for one thing: `Reserve Bank`, `RERA`, not `Directive` or `A and B`."""
    return " and " not in name if " " in name else name.isupper() and len(name) > 2


def is_after_the(text: str, item: Item) -> bool:
    """Return whether `the` stands before an item."""
    return text[: item.start].lower().endswith("the ")


# Planting asks for the same passages again and again; a pack has a few hundred.
@lru_cache(maxsize=10_000)
def find_whole_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text that can stand alone: no headings, list items or fragments."""
    found = []
    for region in split_sentences(text):
        sentence = region.of(text)
        length = sum(1 for _ in TOKEN.finditer(sentence))
        plain = "\n" not in sentence and '"' not in sentence
        if plain and sentence[:1].isupper() and sentence.endswith(".") and _WORDS[0] <= length <= _WORDS[1]:
            found.append(sentence)
    return tuple(found)


def collect_sentences(documents: Sequence[Document]) -> SentenceBank:
    """Return the sentences of documents, by the sector of their document, or else by the document."""
    return SentenceBank(
        tuple(
            (document.sector or document.name, sentence)
            for document in documents
            for sentence in find_whole_sentences(document.text)
        )
    )


class Edit(NamedTuple):
    """Words put in the place of others."""

    start: int
    """First character replaced."""
    end: int
    """One past the last character replaced."""
    text: str

    def of(self, sentence: str) -> str:
        """Return the sentence after the edit."""
        return sentence[: self.start] + self.text + sentence[self.end :]


_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_DIGIT_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve")
_DIGIT_WORD = re.compile(rf"\b(?:{'|'.join(_DIGIT_WORDS)})\b")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
_UNITS: Mapping[str, str] = {
    "minutes": "hours",
    "hours": "days",
    "days": "weeks",
    "weeks": "months",
    "months": "years",
    "years": "months",
    "lakh": "crore",
    "crore": "lakh",
    "thousand": "million",
    "million": "thousand",
    "kg": "g",
    "mg": "g",
    "km": "m",
}
"""Unit → another one that grammar takes as well."""
_QUALIFIER = re.compile(r"\b(?:working|business|calendar|continuous|consecutive|full|clear)\s+")
_A_TIME = r"(?=\w+ing\b|\d|the (?:end|date|expiry|start|departure|journey|delivery|hearing)\b)"
_TURNED: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), text)
    for pattern, text in (
        (r"\bonly if\b", "even if"),
        (r"\beven if\b", "only if"),
        (r"\bunless\b", "if"),
        (r"(?<!only )(?<!even )(?<!as )\bif\b(?! not\b| any\b)", "unless"),
        (r"\bat least\b", "at most"),
        (r"\bat most\b", "at least"),
        (r"\bmore than\b", "less than"),
        (r"\bless than\b", "more than"),
        (r"\bup to\b(?= (?:\d|Rs\b))", "more than"),
        (r"\bnot exceeding\b", "exceeding"),
        (rf"\bbefore {_A_TIME}", "after "),
        (rf"\bafter {_A_TIME}", "before "),
        (r"\bwithin\b(?= (?:\d+|two|three|four|six|seven|ten) )", "only after"),
        (r"\bexcept\b(?! where| when| that| if)", "including"),
    )
)
_FINAL_CONDITION = re.compile(
    r",? (?:only if|if|unless|provided that|as long as|except when) [^.;:]++(?=\.\Z)"
)
_FIRST_CONDITION = re.compile(r"\A(?:If|Unless|Provided that|Where) [^,.;:]+, (?!and\b|or\b)")
_FEWEST_WORDS = 5
"""Fewest words that may be left when a condition is dropped."""
_SUBORDINATE = re.compile(r"\b(?:who|which|that|if|when|where|unless|because|while|although|whether)\b|[;:]")
_VERB = re.compile(
    r"\b(?:is|are|was|were|can|may|must|shall|should|will)\b(?P<no> not\b)?(?! (?:either|both|only)\b)"
    r"|\bcannot\b"
)
_INVERTED = re.compile(r"\A(?:Only|Never|Neither|Nor|Not|Rarely|Hardly)\b")
"""Beginnings of sentences that have the verb before the subject."""
_GENERAL: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"(?<!most )(?<!more )\b(?:usually|normally|generally|often|sometimes|typically)\b", "always"),
        (r"\b(?:some|most|many|certain)\b(?= \w+s\b)", "all"),
        (r"\b(?:Some|Most|Many|Certain)\b(?= \w+s\b)", "All"),
        (r"\bmay\b(?! not\b| be\b| also\b)", "will always"),
        (r"\bmay be\b", "must always be"),
        (r"\bfor (?:a|the) first time\b", "every time"),
    )
)
_BROKEN = re.compile(r"  |\s[.,;:]|\.\.|\b(?:a|an) (?:all|always)\b|\bnot not\b|\bthe the\b", re.IGNORECASE)
"""Traces of an edit that does not fit the grammar."""


def is_clean_edit(before: str, after: str) -> bool:
    """Return whether an edit of a text left no doubled word, blank or full stop."""
    return not _BROKEN.search(after) or _BROKEN.search(before) is not None


def generate_number_edits(sentence: str, generator: random.Random) -> Iterator[Edit]:
    """Yield another value for each amount, period and count."""
    for item in find_items(sentence):
        if item.kind in ("quantity", "number"):
            match = _NUMBER.search(item.text)
            if match is not None:
                text = _change_number(match[0], generator)
            else:
                match = _DIGIT_WORD.search(item.text)
                text = match and generator.choice([word for word in _DIGIT_WORDS if word != match[0]])
            if match is not None and text:
                yield Edit(item.start + match.start(), item.start + match.end(), text)


def _change_number(number: str, generator: random.Random) -> str | None:
    """Return another number in the same spelling.

    None below 2, for anything but a plain number, and for one that is too long to be counted with.
    """
    plain = number.replace(",", "")
    # 1 day has no plural, and 1.2.3 is no number.
    if len(plain) > MOST_DIGITS or plain.count(".") > 1 or Decimal(plain) < 2:
        return None
    if "." in plain:
        return str(Decimal(plain) * 2)
    value = int(plain)
    if 1900 <= value < 2100 and "," not in number:
        return str(value + generator.choice([-7, -4, -2, 3, 5]))
    changed = generator.choice([value * 2, value * 3, value + max(2, value // 2)])
    return f"{changed:,}" if "," in number else str(changed)


def generate_date_edits(sentence: str, generator: random.Random) -> Iterator[Edit]:
    """Yield another month for each date."""
    for item in find_items(sentence):
        if item.kind == "date":
            match = re.search("|".join(_MONTHS), item.text)
            if match is not None:
                month = generator.choice(
                    [name for name in _MONTHS if name != match[0] and name != "February"]
                )
                yield Edit(item.start + match.start(), item.start + match.end(), month)


def generate_unit_edits(sentence: str, generator: random.Random) -> Iterator[Edit]:
    """Yield another unit for each amount that has one."""
    for item in find_items(sentence):
        for unit in re.finditer(r"[a-z]+\Z|\b(?:lakh|crore|thousand|million)\b", item.text):
            if item.kind in ("quantity", "number") and unit[0] in _UNITS:
                start = item.start + unit.start()
                qualifier = _QUALIFIER.search(item.text)
                if qualifier is not None and qualifier.end() == unit.start():
                    start = item.start + qualifier.start()
                yield Edit(start, item.start + unit.end(), _UNITS[unit[0]])


def name_edits(sentence: str, library: SentenceBank, generator: random.Random) -> Iterator[Edit]:
    """Yield for each name another one of the documents that fits its article and number."""
    for item in find_items(sentence):
        if item.kind == "name" and item.start > 0 and is_distinct_name(item.text):
            form = (is_after_the(sentence, item), item.text.endswith("s"), " " in item.text)
            alike = [
                name
                for name, the in library.names
                if (the, name.endswith("s"), " " in name) == form and name != item.text
            ]
            last = item.text.split()[-1]
            of_its_kind = [name for name in alike if name.split()[-1] == last]
            if alike:
                yield Edit(item.start, item.end, generator.choice(of_its_kind or alike))


def generate_reference_edits(sentence: str, generator: random.Random) -> Iterator[Edit]:
    """Yield another section or phone number, or add a section if none is named."""
    cited = False
    for item in find_items(sentence):
        digits = list(re.finditer(r"\d+", item.text))
        if item.kind == "reference":
            cited = True
            number = parse_whole_number(digits[0][0])
            if number is not None:
                yield Edit(*_locate_in_item(item, digits[0]), str(number + generator.randint(11, 60)))
        elif item.kind == "contact" and digits and "@" not in item.text and "." not in item.text:
            last = digits[-1]
            if len(last[0]) <= MOST_DIGITS:
                other = str(generator.randrange(10 ** len(last[0]))).zfill(len(last[0]))
                yield Edit(*_locate_in_item(item, last), other)
    if not cited and sentence.endswith("."):
        end = len(sentence) - 1
        yield Edit(end, end, f" under section {generator.randint(61, 190)}")


def _locate_in_item(item: Item, match: re.Match[str]) -> tuple[int, int]:
    return item.start + match.start(), item.start + match.end()


def generate_condition_edits(sentence: str) -> Iterator[Edit]:
    """Yield the sentence with its condition reversed, and without it."""
    for pattern, text in _TURNED:
        for match in pattern.finditer(sentence):
            yield Edit(*match.span(), text.capitalize() if match[0][0].isupper() else text)
    # It has none of these marks, so it is read once, not from each `if` before the last of them.
    clause = max(sentence.rfind(mark, 0, len(sentence) - 1) for mark in ".;:") + 1
    last = _FINAL_CONDITION.search(sentence, clause) if sentence.endswith(".") else None
    if last is not None and len(sentence[: last.start()].split()) >= _FEWEST_WORDS:
        yield Edit(0, len(sentence), sentence[: last.start()] + ".")
    first = _FIRST_CONDITION.match(sentence)
    if first is not None and len(sentence[first.end() :].split()) >= _FEWEST_WORDS:
        rest = sentence[first.end() :]
        yield Edit(0, len(sentence), rest[0].upper() + rest[1:])


def build_negation(sentence: str) -> Edit | None:
    """Return the edit that reverses the main verb, or None if the rules find none."""
    if _INVERTED.match(sentence):
        return None
    for match in _VERB.finditer(sentence):
        if match.start() == 0 or _SUBORDINATE.search(sentence[: match.start()]):
            return None
        if match[0] == "cannot":
            return Edit(*match.span(), "can")
        if match["no"]:
            return Edit(*match.span(), match[0].removesuffix(" not"))
        return Edit(*match.span(), "cannot" if match[0] == "can" else f"{match[0]} not")
    return None


def generate_general_edits(sentence: str) -> Iterator[Edit]:
    """Yield the sentence with `some` or `sometimes` made general."""
    for pattern, text in _GENERAL:
        for match in pattern.finditer(sentence):
            yield Edit(*match.span(), text)
