"""Families of hostile text, and the measurement of how the time of a function grows with them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from math import inf, sqrt
from time import process_time
from typing import Any

FAMILIES = {
    "one digit": "7",
    "one letter": "a",
    "spaces": " ",
    "line feeds": "\n",
    "opening brackets": "([{<",
    "quotes": "\"“'‘",
    "commas": ",",
    "dots": ".",
    "tags": "<think>`</think>\n[THINK]<|channel|>analysis",
    "list marks": "\n1. \n- ",
    "combining marks": "a\u0301\u0302",
    "mixed scripts": "aя語ا½ß１",
    "one long word": "Wo1d-",
    "Thai": "หนังสือ",
    "Chinese numbers": "三千万、",
    "hidden signs": "fi\u00ad\u200bﬁ-\nx",
    "citations": "[1][^2]: a【3†b】(Source: c) [d](e",
    "sentences": "word. ",
    "items": "Rs 5 and 6 days, May ",
    "conditions": "if not ",
}
"""Name → what a text of the family repeats; the last three are ordinary words, very many of them."""

FASTEST_S = 0.01
"""Processor time that a clock tells well."""
SHORTEST = 1_000
"""Characters of the shorter text at least. It grows until a clock tells its time."""
LONGEST = 64_000
"""Characters of the shorter text at most. A function that needs less than `FASTEST_S` for them is fast."""
TIMES = 4
"""How much longer the other text is."""
MOST = 6.0
"""Its time over that of the shorter one at most. A function whose time grows with the square has 16."""


def make_text(family: str, length: int) -> str:
    """Return a text of about so many characters, with long rows of the family where patterns stumble."""
    unit = FAMILIES[family]
    row = unit * (length // (4 * len(unit)) + 1)
    return f"{row}x. Section {row},1 of {row}\nPay {row}a"


def measure_growth(run: Callable[[str], object], family: str) -> float:
    """Return by what a function's time grows with a family's texts: see `measure_growth_with`."""
    return measure_growth_with(run, partial(make_text, family))


def measure_growth_with(run: Callable[[str], object], make: Callable[[int], str]) -> float:
    """Return the time of a text over that of one a quarter as long; 0 where both are too fast to compare.

    Where that exceeds `MOST`, the longer text is compared with one twice as long too, and the lesser growth
    counts: a square is steep at every length, and a text that outgrows the processor's cache at one.

    Args:
        run: is given the text.
        make: returns a text of about so many characters.
    """
    run(make(100))
    length = SHORTEST
    while _time(run, make(length)) < FASTEST_S:
        length *= TIMES
        if length > LONGEST:
            return 0.0
    growth = _compare(run, make, length, TIMES, MOST)
    if growth < MOST:
        return growth
    return min(growth, _compare(run, make, TIMES * length, 2, sqrt(MOST)) ** 2)


def _compare(
    run: Callable[[str], object], make: Callable[[int], str], length: int, times: int, most: float
) -> float:
    """Return the time of a text so many times as long over that of one of a length.

    Each is the best of three, taken in turn, so that a machine which gets busy slows both; fewer, where they
    are below `most`.
    """
    short = long = inf
    for _ in range(3):
        short = min(short, _time(run, make(length)))
        long = min(long, _time(run, make(times * length)))
        if long < most * short:
            break
    return long / short


def _time(run: Callable[[str], object], text: str) -> float:
    """Return the processor time of a call; caches are empty, and garbage is kept."""
    for one in _find_caches():
        one.cache_clear()
    gc.disable()
    try:
        began = process_time()
        run(text)
        return process_time() - began
    finally:
        gc.enable()


@cache
def _find_caches() -> tuple[Any, ...]:
    return tuple(_iterate_caches())


def _iterate_caches() -> Iterator[Any]:
    """Yield the caches of texts, which are those with a size; the others hold what is made once."""
    for name, module in list(sys.modules.items()):
        for one in list(vars(module).values()) if name.startswith("hallulab.") else ():
            if hasattr(one, "cache_parameters") and one.cache_parameters()["maxsize"] is not None:
                yield one
