"""Token F1 of a short answer (SQuAD v1.1's and HotpotQA's normalisation; RAG-Trust section 5.2)."""

from __future__ import annotations

import re
import string
from collections import Counter

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = frozenset(string.punctuation)


def normalize_squad_text(text: str) -> str:
    """Return a text in lower case, without ASCII punctuation and articles, with single blanks.

    >>> normalize_squad_text("The  U.S. Senate!")
    'us senate'
    """
    kept = "".join(letter for letter in text.lower() if letter not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", kept).split())


def compute_token_f1(reference: str, text: str) -> float:
    """Return the harmonic mean of precision and recall of the normalised words, repeated ones counted.

    This is SQuAD's formula. HotpotQA's script also gives 0 where one of both is `yes` or `no` and the other
    is not; the paper does not name that, and it would give 0 to every sentence that says so.

    >>> round(compute_token_f1("Blue Grass Airport", "It is the Blue Grass airport."), 6)
    0.75
    """
    expected, said = normalize_squad_text(reference).split(), normalize_squad_text(text).split()
    same = sum((Counter(expected) & Counter(said)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(said), same / len(expected)
    return 2 * precision * recall / (precision + recall)
