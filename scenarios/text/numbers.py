"""Numbers by their value, however a language writes them, and words as they are compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal

from hallulab.scenarios.text.one_form import unify_text
from hallulab.scenarios.text.scripts import split_by_unicode
from hallulab.scenarios.text.spans import split_words
from hallulab.scenarios.text.words import MOST_DIGITS

DECIMAL_COMMA = frozenset(
    {"bg", "ca", "cs", "da", "de", "el", "es", "et", "fi", "fr", "hr", "hu", "hy", "id", "is", "it", "ka"}
    | {"lt", "lv", "nl", "no", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "tr", "uk", "vi"}
)
"""Languages that write 1,250.50 as 1.250,50 or 1 250,50, by their codes."""
_GROUP_SPACE = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_GROUP_BLANK = re.compile(r"(?<![\d.,])(\d{1,3})((?: \d{3})+)(?![\d])")
_WITH_BLANKS = frozenset(
    {"bg", "cs", "et", "fi", "fr", "hu", "lt", "lv", "no", "pl", "ru", "sk", "sl", "sv", "uk"}
)
"""Languages that write 1 250,50, mostly with a blank from the keyboard."""
_IN_WORD = re.compile(r"\d+(?:[.,'’\u060c\u066b\u066c]\d+)*|\D+")
_PARTED = re.compile(r"\d+(?:[.,]\d+)*\Z")
_NO_GROUPS = re.compile(r"\d+(?P<mark>[.,])(?:\d+(?P=mark))+(?!\d{3}\Z)\d+")
"""A number with a separator that stands twice, and does not part thousands."""
_ALIKE = str.maketrans(
    {"\u066b": ".", "\u066c": ",", "\u060c": ",", "\uff0c": ",", "\uff0e": ".", "'": "", "’": ""}
)
"""Arabic and wide separators as ASCII's, and Switzerland's mark of thousands as nothing."""
_HAN_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1_000}
_HAN_SCALES = {"万": 10_000, "萬": 10_000, "億": 10**8, "亿": 10**8}
_UNITS = "".join([*_HAN_UNITS, *_HAN_SCALES])
_HAN = "".join(_HAN_DIGITS) + _UNITS
_HAN_NUMBER = re.compile(
    rf"(?:(?<![\d.,，．])\d[\d.,，．]*+(?=[{_UNITS}]))?[{_HAN}](?:[{_HAN}]|\d+(?=[{_HAN}]))*+"
)
"""Numbers in Chinese characters, also behind other digits (`1万2千`), and other runs of these."""
_HAN_PARTS = re.compile(r"\d+(?:[.,，．]\d+)*|.")
_FRACTION = re.compile(r"(?<!\d)(\d*)[ \u2009\u202f]?([¼-¾⅐-⅞])")


def join_groups(text: str, language: str | None = None) -> str:
    """Return a text without the fixed spaces in numbers, and without the blanks where a language writes such.

    >>> join_groups("1\\u202f250,50"), join_groups("1 250,50", "fr"), join_groups("in 2026 250 euros", "fr")
    ('1250,50', '1250,50', 'in 2026 250 euros')

    Args:
        language: its code; None: as in English.
    """
    if language in _WITH_BLANKS:
        text = _GROUP_BLANK.sub(lambda found: found[1] + found[2].replace(" ", ""), text)
    return text if text.isascii() else _GROUP_SPACE.sub("", text)


def parse_number(text: str, language: str | None = None) -> Decimal | None:
    """Return the value of a number in the digits of any script; None for any other text.

    Of two kinds of separators the last one parts the decimals, and one that stands twice parts thousands, if
    three digits stand behind it: dates and versions (`12.5.2026`, `1.2.3`) are no numbers. A
    single one with other than three digits behind it, or with 0 before it, parts decimals. So only `1.250`
    and `1,250` depend on the language.

    >>> [str(parse_number(text, "de")) for text in ("1.250,50", "1,250.50", "१२५०.५", "1.250", "3,5")]
    ['1250.50', '1250.50', '1250.5', '1250', '3.5']
    >>> str(parse_number("1.250", "en")), str(parse_number("1,00,000"))
    ('1.250', '100000')

    Args:
        language: its code; None: as in English.
    """
    plain = "".join(
        str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in text.translate(_ALIKE)
    )
    if len(plain) > MOST_DIGITS or _PARTED.match(plain) is None:
        return None
    if _NO_GROUPS.fullmatch(plain):
        return None
    point = _find_decimal_mark(plain, language)
    whole, _, decimals = plain.rpartition(point) if point else (plain, "", "")
    value = Decimal(f"{whole.replace('.', '').replace(',', '')}.{decimals or 0}")
    return value if decimals else value.to_integral_value()


def _find_decimal_mark(number: str, language: str | None) -> str:
    """Return the separator before the decimals; empty: there are none."""
    marks = re.findall(r"[.,]", number)
    if len(set(marks)) == 2:
        return marks[-1] if marks.count(marks[-1]) == 1 else ""
    if len(marks) != 1:
        return ""
    whole, decimals = re.split(r"[.,]", number)
    usual = "," if language in DECIMAL_COMMA else "."
    # 0.250 and 1234.567 have no thousands.
    if len(decimals) != 3 or len(whole) > 3 or whole == "0":
        return str(marks[0])
    return usual if marks[0] == usual else ""


def write_number(value: Decimal) -> str:
    """Return the shortest spelling of a number: equal values have equal ones.

    >>> write_number(Decimal("1250.50"))
    '1250.5'
    """
    return f"{value.normalize():f}"


def parse_han_number(text: str) -> Decimal | None:
    """Return the number that Chinese characters write, also behind other digits; None for any other text.

    >>> [str(parse_han_number(text)) for text in ("二十八", "三万两千", "二〇二五", "百二十", "万一")]
    ['28', '32000', '2025', '120', 'None']
    >>> [str(parse_han_number(text)) for text in ("1万2千", "3.5億", "千")]
    ['12000', '350000000.0', 'None']
    """
    if len(text) > MOST_DIGITS:
        return None
    if len(text) > 1 and all(sign in _HAN_DIGITS for sign in text):
        return Decimal("".join(str(_HAN_DIGITS[sign]) for sign in text))
    total = section = Decimal(0)
    digit: Decimal | None = None
    last = 10**12
    for part in _HAN_PARTS.finditer(text):
        sign = part[0]
        if sign in _HAN_DIGITS or sign[0].isdecimal():
            if digit:
                return None
            digit = Decimal(_HAN_DIGITS[sign]) if sign in _HAN_DIGITS else parse_number(sign)
        elif sign in _HAN_UNITS:
            if (digit is None and sign != "十" and len(text) == 1) or _HAN_UNITS[sign] >= last:
                return None
            section += (digit or 1) * _HAN_UNITS[sign]
            last, digit = _HAN_UNITS[sign], None
        else:
            section += digit or 0
            if not section or sign not in _HAN_SCALES:
                return None
            total += section * _HAN_SCALES[sign]
            section, digit, last = Decimal(0), None, 10**12
    return total + section + (digit or 0)


WITHOUT_WORDS = frozenset({"bo", "km", "lo", "my"})
"""Languages whose words cannot be told apart here: no space parts them, and no rule or light library does."""
_ARABIC_SIGNS = re.compile("[\u0640\u064b-\u0652\u0670]")
"""Signs that lengthen a word on the page, and short vowels, which are mostly left out."""


def list_word_values(text: str, language: str) -> list[str]:
    """Return the words of a text in a form in which equal ones are equal, numbers by their value.

    English words are those of `split_words`, whose numbers end at points and commas.

    >>> list_word_values("Straße 1.250,50", "de"), list_word_values("फीस १२५०.५", "hi")
    (['strasse', '1250.5'], ['फीस', '1250.5'])
    >>> list_word_values("借28天", "zh") == list_word_values("借二十八天", "zh")
    True
    """
    if language == "en":
        return split_words(text)
    point = "," if language in DECIMAL_COMMA else "."
    plain = _FRACTION.sub(
        lambda found: f"{int(found[1] or 0) + unicodedata.numeric(found[2]):.6g}".replace(".", point), text
    )
    plain = join_groups(unify_text(plain).text, language)
    words: list[str] = []
    at = 0
    for match in _HAN_NUMBER.finditer(plain) if language in ("zh", "ja") else ():
        number = parse_han_number(match[0])
        if number is not None:
            words += [*_write_stretch(plain[at : match.start()], language), write_number(number)]
            at = match.end()
    return [*words, *_write_stretch(plain[at:], language)]


def _write_stretch(text: str, language: str) -> Iterator[str]:
    for word in split_by_unicode(text):
        # A unit may follow its number at once: `5.000đ`.
        for part in _IN_WORD.findall(word) if any(map(str.isdecimal, word)) else [word]:
            if part[0].isdecimal():
                value = parse_number(part, language)
                yield part if value is None else write_number(value)
            else:
                yield unicodedata.normalize("NFC", _ARABIC_SIGNS.sub("", part.casefold())) or part
