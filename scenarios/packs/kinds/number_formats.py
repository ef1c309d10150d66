"""Numbers and times as a workbook shows them, by the codes of their formats (ECMA-376, 18.8.31)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from math import isfinite
from operator import eq, ge, gt, le, lt, ne

_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|(?P<space>_.)|(?P<fill>\*.)|\[(?P<bracket>[^\]]*)\]'
    r"|(?P<number>[0#?][0#?,]*(?:\.[0#?]*)?,*(?P<exponent>E[+-]0+)?|\.[0#?]+)|(?P<sign>.)",
    re.DOTALL,
)
_SECTIONS = re.compile(r'(?:"[^"]*"|\\.|\[[^\]]*\]|[^;])+|(?<=;)(?=;)|^(?=;)|(?<=;)$', re.DOTALL)
_TIME = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|(?P<space>_.)|(?P<fill>\*.)|\[(?P<elapsed>h+|m+|s+)\]|\[[^\]]*\]'
    r"|(?P<half>AM/PM|A/P)|(?P<part>y+|m+|d+|h+|s+(?:\.0+)?)|(?P<sign>.)",
    re.DOTALL | re.IGNORECASE,
)
_CONDITION = re.compile(r"\[(<=|>=|<>|<|>|=)(-?\d{1,20}(?:\.\d{1,20})?)\]")
_COMPARISONS = {"<": lt, "<=": le, ">": gt, ">=": ge, "=": eq, "<>": ne}
_FRACTION = re.compile(r"(?P<whole>[#0?]+[ ]+)?[#0?]+[ ]?/[ ]?(?P<below>[#0?]{1,4}|\d{1,4})")
_QUOTED = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^\]]*\]')
_SHORT_DATE = ("mm-dd-yy", "m/d/yy")
"""How packages name the format that each country writes in its own way: ISO 8601 is read by all."""

_LONGEST_CODE = 255
"""Characters of a code at most, as in Excel."""


def show(value: object, code: str) -> str:
    """Return the value of a cell as its format shows it.

    Texts stay. Decimals have a point and thousands a comma: a workbook does not say what its country uses.

    >>> show(0.0833, "0.0%"), show(1250.5, '#,##0.00 "€"'), show(date(2026, 3, 1), "d mmm yyyy")
    ('8.3%', '1,250.50 €', '1 Mar 2026')
    """
    code = code[:_LONGEST_CODE]
    match value:
        case None:
            return ""
        case bool():
            return str(value).upper()
        case datetime() | date() | time() | timedelta():
            return _show_time(value, code)
        case int() | float() if isfinite(value):
            return _show_number(Decimal(repr(value)), code)
        case _:
            return str(value)


def _show_number(value: Decimal, code: str) -> str:
    sections = [one[0] for one in _SECTIONS.finditer(code)] or ["General"]
    conditions = [_CONDITION.search(section) for section in sections]
    if any(conditions):
        held = (
            one
            for one, found in zip(sections, conditions, strict=True)
            if found is None or _COMPARISONS[found[1]](value, Decimal(found[2]))
        )
        section = next(held, "General")
    elif value < 0 and len(sections) > 1:
        value, section = -value, sections[1]
    elif value == 0 and len(sections) > 2:
        section = sections[2]
    else:
        section = sections[0]
    tokens = list(_TOKEN.finditer(section))
    patterns = [token["number"] for token in tokens if token["number"]]
    if found := _FRACTION.fullmatch(_QUOTED.sub("", section)):
        return _show_fraction(value, found)
    if (
        "general" in section.lower()
        or "@" in section
        or any("." in one or "E" in one for one in patterns[:-1])
    ):
        return _show_general(value)
    value *= 100 ** sum(token["sign"] == "%" for token in tokens)
    shares = iter(_share_digits(abs(value), patterns) if len(patterns) > 1 else ())
    written = []
    for token in tokens:
        if token["number"]:
            share = next(shares, None)
            written.append(
                _fill_digits(abs(value), token["number"], token["exponent"]) if share is None else share
            )
        elif token["bracket"]:
            # `[$€-407]` is a currency and its country; others are colours and conditions.
            written.append(token["bracket"].partition("-")[0][1:] if token["bracket"].startswith("$") else "")
        else:
            written.append(_show_words(token))
    text = "".join(written).strip()
    return f"-{text}" if value < 0 and any(digit in text for digit in "123456789") else text


def _show_fraction(value: Decimal, found: re.Match[str]) -> str:
    """Return a value as `2 1/2`, with a denominator of so many digits at most, or the one that is given."""
    given = found["below"]
    parts = int(given) if given.isdigit() and int(given) else 0
    near = Fraction(abs(value)).limit_denominator(10 ** len(given) - 1)
    above, below = (round(abs(value) * parts), parts) if parts else near.as_integer_ratio()
    whole, above = divmod(above, below) if found["whole"] else (0, above)
    said = " ".join(filter(None, (str(whole) if whole else "", f"{above}/{below}" if above else "")))
    return f"{'-' if value < 0 and said else ''}{said or 0}"


def _share_digits(value: Decimal, patterns: Sequence[str]) -> list[str]:
    """Return the digits that stand in each of several places: `(000) 000-0000`, `##\\,##\\,##0`."""
    last, _, fraction = patterns[-1].partition(".")
    wholes = [*patterns[:-1], last]
    text = _fill_digits(value, f"{'0' * sum(map(len, wholes))}{'.' if fraction else ''}{fraction}", None)
    digits, point, decimals = text.partition(".")
    shares: list[str] = []
    for whole in reversed(wholes[1:]):
        digits, share = digits[: -len(whole)], digits[-len(whole) :]
        shares.append(share if digits.strip("0") else share.lstrip("0").zfill(whole.count("0")))
    shares.append(digits.lstrip("0").zfill(wholes[0].count("0")))
    return [*shares[:0:-1], shares[0] + point + decimals]


def _show_words(token: re.Match[str]) -> str:
    """Return what a token shows that is no number: quoted words, a sign, or a space."""
    return token["quoted"] or token["escaped"] or token["sign"] or (" " if token["space"] else "")


def _show_general(value: Decimal) -> str:
    with localcontext(prec=15):  # as Excel: 0.1 + 0.2 is 0.3
        value = +value
    if value == 0:
        return "0"
    if not -10 < value.adjusted() < 21:
        return f"{value.normalize():E}"
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _fill_digits(value: Decimal, pattern: str, exponent: str | None) -> str:
    if exponent:
        places = len(pattern.partition("E")[0].partition(".")[2])
        return f"{value:.{places}E}"
    whole, _, fraction = pattern.rstrip(",").partition(".")
    value = value.scaleb(-3 * (len(pattern) - len(pattern.rstrip(","))))
    # `quantize` refuses more digits than the precision, and a code may ask for 255 of them.
    with localcontext(prec=1000):
        value = value.quantize(Decimal(1).scaleb(-len(fraction)), ROUND_HALF_UP)
    text, _, decimals = f"{value:f}".partition(".")
    text = "" if value < 1 else text
    text = text.zfill(whole.count("0")) if "0" in whole else text
    if "," in whole and text:
        text = f"{int(text):,}".rjust(len(text), "0")
    least = fraction.count("0")
    decimals = decimals[:least] + decimals[least:].rstrip("0")
    return f"{text}.{decimals}" if decimals else text


def _show_time(value: datetime | date | time | timedelta, code: str) -> str:
    section = code.partition(";")[0]
    is_local = "F800" in section or "F400" in section or section == "General"
    if is_local or section.lower().startswith(_SHORT_DATE):
        return str(value).removesuffix(" 00:00:00")
    seconds = value.total_seconds() if isinstance(value, timedelta) else 0.0
    moment = datetime(1900, 1, 1) + value if isinstance(value, timedelta) else value
    if isinstance(moment, time):
        moment = datetime.combine(date(1900, 1, 1), moment)
    elif not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    tokens = list(_TIME.finditer(section))
    parts = [(token["part"] or token["elapsed"] or "")[:1].lower() for token in tokens]
    has_half = any(token["half"] for token in tokens)
    written = []
    for index, token in enumerate(tokens):
        if token["elapsed"]:
            unit = {"h": 3600, "m": 60, "s": 1}[parts[index]]
            written.append(f"{int(seconds // unit):0{len(token['elapsed'])}}")
        elif token["half"]:
            written.append(f"{moment:%p}")
        elif token["part"]:
            before = next((part for part in reversed(parts[:index]) if part), "")
            after = next((part for part in parts[index + 1 :] if part), "")
            is_minute = parts[index] == "m" and (before == "h" or after == "s")
            written.append(_show_part(moment, token["part"].lower(), is_minute, has_half))
        else:
            written.append(_show_words(token))
    return "".join(written).strip()


def _show_part(moment: datetime, part: str, is_minute: bool, has_half: bool) -> str:
    length, width = len(part), min(len(part), 2)
    match part[0]:
        case "y":
            return f"{moment.year:04}" if length > 2 else f"{moment.year % 100:02}"
        case "m" if is_minute:
            return f"{moment.minute:0{width}}"
        case "m" | "d" if length > 2:
            return moment.strftime({"m": ("%b", "%B"), "d": ("%a", "%A")}[part[0]][length > 3])
        case "m" | "d":
            return f"{moment.month if part[0] == 'm' else moment.day:0{width}}"
        case "h":
            return f"{(moment.hour - 1) % 12 + 1 if has_half else moment.hour:0{width}}"
        case _:
            whole, _, fraction = part.partition(".")
            decimals = f".{moment.microsecond:06}"[: len(fraction) + 1] if fraction else ""
            return f"{moment.second:0{min(len(whole), 2)}}{decimals}"
