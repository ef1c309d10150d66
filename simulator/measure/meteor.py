"""METEOR: how far a text has the words of another one, in its order (Banerjee and Lavie 2005).

As NLTK computes it, with the parameters of Lavie and Agarwal 2007: words are matched as they are, then by
Porter's stem, then by WordNet's synonyms. On 200 recorded pairs it agrees with NLTK 3.10.4 to 1e-9.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from hallulab.scenarios.text.porter import stem
from hallulab.scenarios.text.synonyms import find_synonyms

ALPHA, BETA, GAMMA = 0.9, 3.0, 0.5
"""Weight of precision in the mean, shape of the penalty for scattered matches, and its largest share."""

_WORD = re.compile(r"\w+")

Places = list[tuple[int, str]]
"""Positions and words of a text that are not matched yet."""


def compute_meteor(reference: str, text: str) -> float:
    """Return METEOR of a text against a reference, in [0, 1]. Words are runs of letters and digits.

    >>> round(compute_meteor("the cat sat on the mat", "on the mat sat a cat"), 6)
    0.743333
    """
    return compute_meteor_of_words(extract_words(reference), extract_words(text))


def extract_words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _WORD.findall(text.lower())


def compute_meteor_of_words(reference: Sequence[str], text: Sequence[str]) -> float:
    """Return METEOR of words in lower case; 0 where nothing matches."""
    matches = sorted(_align_words(list(enumerate(reference)), list(enumerate(text))))
    if not matches:
        return 0.0
    precision, recall = len(matches) / len(text), len(matches) / len(reference)
    mean = precision * recall / (ALPHA * precision + (1 - ALPHA) * recall)
    chunks = 1 + sum(
        (after[0] - before[0], after[1] - before[1]) != (1, 1) for before, after in pairwise(matches)
    )
    penalty = GAMMA * math.pow(chunks / len(matches), BETA)
    return (1 - penalty) * mean


def _align_words(reference: Places, text: Places) -> list[tuple[int, int]]:
    """Return pairs of positions (in the text, in the reference) that match, by three stages.

    The places given shrink to what is left.
    """
    found = _match_words(reference, text, lambda word: (word,))
    for places in (reference, text):
        places[:] = [(place, stem(word)) for place, word in places]
    found += _match_words(reference, text, lambda word: (word,))
    # NLTK looks up the synonyms of stems, and so do we.
    found += _match_words(reference, text, lambda word: {*find_synonyms(word), word})
    return found


def _match_words(
    reference: Places, text: Places, forms: Callable[[str], Iterable[str]]
) -> list[tuple[int, int]]:
    """Match each word of the text, from the last one, with the last free word of the reference that is one of
    its forms. Remove what is matched from both."""
    free: dict[str, list[int]] = defaultdict(list)
    for at, (_, word) in enumerate(reference):
        free[word].append(at)
    found, used = [], set()
    for place, word in reversed(text):
        open_places = [free[form] for form in forms(word) if free.get(form)]
        if open_places:
            at = max(open_places, key=lambda places: places[-1]).pop()
            found.append((place, reference[at][0]))
            used.add(at)
    matched = {place for place, _ in found}
    text[:] = [one for one in text if one[0] not in matched]
    reference[:] = [one for at, one in enumerate(reference) if at not in used]
    return found
