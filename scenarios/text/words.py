"""Words: the forms in which two count as the same, those that say little, and courtesies.

Messages of a user that are only a courtesy: thanks, a greeting, a goodbye. A text rule, no model.
A chatbot answers them without a search, because there is nothing to search for. The rule is meant to miss
some rather than to take a question for a courtesy.

English words that say little about what a text is about.
These are the words of scikit-learn, which has them from the Glasgow Information Retrieval Group
(http://ir.dcs.gla.ac.uk/resources/linguistic_utils/stop_words). They stand here because its import takes
seconds, and so that another release of it changes no result.

Words and the forms in which two of them count as the same.
EvidenceChain names "deterministic tokenization" and stop words (Method, Limitations), not how. Here a token
is a number (`1,250.50`, `17:30`), a clock time with am or pm (`5 PM`), or a run of letters. Each has two
forms: `exact` (lower case; numbers without thousands separators and trailing zeros) and `stem` (English
Snowball stem; number words as digits, clock times on 24 hours).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any, NamedTuple

from hallulab.scenarios.text.scripts import write_mark_ranges

_WORDS = """
a about above across after afterwards again against all almost alone along already also although always am
among amongst amoungst amount an and another any anyhow anyone anything anyway anywhere are around as at
back be became because become becomes becoming been before beforehand behind being below beside besides
between beyond bill both bottom but by call can cannot cant co con could couldnt cry de describe detail do
done down due during each eg eight either eleven else elsewhere empty enough etc even ever every everyone
everything everywhere except few fifteen fifty fill find fire first five for former formerly forty found
four from front full further get give go had has hasnt have he hence her here hereafter hereby herein
hereupon hers herself him himself his how however hundred i ie if in inc indeed interest into is it its
itself keep last latter latterly least less ltd made many may me meanwhile might mill mine more moreover
most mostly move much must my myself name namely neither never nevertheless next nine no nobody none noone
nor not nothing now nowhere of off often on once one only onto or other others otherwise our ours ourselves
out over own part per perhaps please put rather re same see seem seemed seeming seems serious several she
should show side since sincere six sixty so some somehow someone something sometime sometimes somewhere
still such system take ten than that the their them themselves then thence there thereafter thereby
therefore therein thereupon these they thick thin third this those though three through throughout thru thus
to together too top toward towards twelve twenty two un under until up upon us very via was we well were
what whatever when whence whenever where whereafter whereas whereby wherein whereupon wherever whether which
while whither who whoever whole whom whose why will with within without would yet you your yours yourself
yourselves
"""

STOP_WORDS = frozenset(_WORDS.split())


_MARKS = f"{write_mark_ranges(range(0x300, 0x1200))}\u200c\u200d"
"""Vowel signs and accents, which belong to the letter before them, and the joiners of Indian scripts."""

TOKEN = re.compile(
    r"(\d{1,2}(?::\d{1,2})?[ ]?[aApP]\.?[mM]\b"
    r"|\d+(?:[.,:]\d+)*"
    rf"|[A-Z]?[^\W\d_A-Z]+(?:[{_MARKS}][^\W\d_A-Z]*)*(?:['’][^\W\d_]+)?"
    r"|[A-Z]+(?![^\W\d_A-Z])"
    r"|[A-Z])"
)
"""Pattern of a token, in one group. It splits camelCase and snake_case names of record fields:
`OutdoorSeating`, `business_stars`."""
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{1,2}))?(?: ?([ap])\.?m)?\Z")
_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve"
NUMBER_WORDS = {word: str(number) for number, word in enumerate(_NUMBERS.split())} | {"twenty": "20"}
"""Number words that count as the number; the trained models know these."""


MOST_DIGITS = 300
"""Digits of a number that is counted with. Python reads 4,300, and calculates with about as many places."""


def parse_whole_number(text: str) -> int | None:
    """Return the number that decimal digits of any script write.

    None for any other text, and for more than `MOST_DIGITS` digits: nothing that is counted has as many.

    >>> parse_whole_number("45"), parse_whole_number("-45"), parse_whole_number("4" * 5_000)
    (45, None, None)
    """
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None


def match_any(patterns: Iterable[str]) -> str:
    """Return a pattern of any of the patterns, in which only letters of ASCII match in either case.

    So what it finds, in lower case, is in the table that the patterns are from. Without it, `ı`, `İ`, `ſ` and
    the Kelvin sign match `i`, `s` and `k` where case does not matter, and no table has `mıllion`.

    >>> [re.fullmatch(match_any(["six"]), text, re.IGNORECASE) is not None for text in ("Six", "sıx")]
    [True, False]
    """
    return f"(?a:{'|'.join(patterns)})"


class Word(NamedTuple):
    """The forms of a token's text, the same wherever it stands."""

    exact: str
    """Lower case, without a possessive; a number in its shortest spelling."""
    stem: str
    """The same for words that the extended features count as equal."""
    number: bool
    """True if it is in Arabic numerals."""
    content: bool
    """True if it is neither a stop word nor a single letter."""


@lru_cache(maxsize=1 << 16)
def read_word(spelling: str) -> Word:
    """Return the forms of a token with that spelling."""
    lower = spelling.lower()
    if lower[0].isdigit():
        exact = shorten_number(lower)
        return Word(exact=exact, stem=_normalize_clock(lower) or exact, number=True, content=True)
    exact = lower[:-2] if lower.endswith(("'s", "’s")) else lower
    content = exact in NUMBER_WORDS or (len(exact) > 1 and exact not in STOP_WORDS)
    return Word(
        exact=exact,
        stem=NUMBER_WORDS.get(exact) or _build_stemmer().stemWord(exact),
        number=False,
        content=content,
    )


_EUROPEAN = re.compile(r"\d{1,3}(?:\.\d{3})+,\d{1,2}")


def shorten_number(number: str) -> str:
    """Return the shortest spelling of a number: without separators of thousands, and zeros that say nothing.

    >>> shorten_number("1,250.50"), shorten_number("1.250,50")
    ('1250.5', '1250.5')
    """
    if _EUROPEAN.fullmatch(number):
        number = number.replace(".", "").replace(",", ".")
    plain = number.replace(",", "").replace(" ", "").replace(".m", "m")
    if re.fullmatch(r"\d+\.\d+", plain):
        plain = plain.rstrip("0").rstrip(".")
    return plain.lstrip("0") or "0"


def _normalize_clock(text: str) -> str | None:
    """Return a time of day as `hours:minutes` of 24 hours, or None: `5 pm` and `17:0` are `17:00`."""
    match = _CLOCK.match(text)
    if match is None or (match[2] is None and match[3] is None):
        return None
    hour = int(match[1])
    if match[3]:
        hour = hour % 12 + (12 if match[3] == "p" else 0)
    return f"{hour}:{int(match[2] or 0):02d}"


@cache
def _build_stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")


_CORE = re.compile(
    r"thank|thanks|thankyou|thx|cheers|appreciate|appreciated|grateful|hello|hi|hey|greetings|"
    r"namaste|welcome|bye|goodbye|morning|afternoon|evening|regards"
)
"""Words of which a courtesy has at least one."""
_BESIDE = re.compile(
    r"a|again|all|also|am|and|are|at|best|bless|clear|day|dear|detailed|evening|ever|excellent|"
    r"explanation|fine|for|from|good|great|have|help|helped|helpful|helping|helps|i|information|is|"
    r"it|just|kind|kindly|kindness|lot|lots|madam|many|me|much|my|night|nice|now|of|ok|okay|once|"
    r"patience|perfect|please|quick|really|reply|right|said|sir|so|support|take|care|team|that|"
    r"that's|the|then|there|this|time|to|truly|understand|understood|useful|very|was|well|"
    r"wonderful|yes|you|you're|your|advice|answer|answering|answers|guidance|clarifying|"
    r"clarification|all's|that'll|do"
)
"""Words that may stand beside them and ask nothing."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NUMBER = re.compile(r"\d")


def is_courtesy(message: str) -> bool:
    """Return whether a user's message asks and tells nothing: every word is a courtesy or stands beside one.

    A question mark or a number always asks or tells something.
    """
    if "?" in message or _NUMBER.search(message):
        return False
    found = [word.replace("’", "'").lower() for word in _WORD.findall(message)]
    cores = [_CORE.fullmatch(word) is not None for word in found]
    return any(cores) and all(
        core or _BESIDE.fullmatch(word) for core, word in zip(cores, found, strict=True)
    )
