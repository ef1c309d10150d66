"""METEOR: how far a text has the words of another one, in its order (Banerjee and Lavie 2005).

As NLTK computes it, with the parameters of Lavie and Agarwal 2007: words are matched as they are, then by
Porter's stem, then by WordNet's synonyms. On 200 recorded pairs it agrees with NLTK 3.10.4 to 1e-9. NLTK
itself takes two seconds to import and wants its corpora downloaded.

The stems are those of Porter 1980 ("An algorithm for suffix stripping") with NLTK's changes, by which METEOR
is mostly computed. Snowball's `porter` keeps to the paper, which gives 1.3% of the word forms of WordNet
another stem (`play` becomes `plai`).

The synonyms are those of WordNet 3.0. `benchmarks/wordnet_synonyms.py` of commit 23041527 made the
file, which holds the words without blanks and hyphens; its licence stands beside it. It comes with the
package, so a score is the same on every machine.
"""

from __future__ import annotations

import gzip
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import pairwise

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
    wanted, said = (_WORD.findall(one.lower()) for one in (reference, text))
    matches = sorted(_align_words(list(enumerate(wanted)), list(enumerate(said))))
    if not matches:
        return 0.0
    precision, recall = len(matches) / len(said), len(matches) / len(wanted)
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
    """Match words of the text with words of the reference, and remove what is matched from both.

    Each word, from the last one, goes to the last free word of the reference that is one of its forms.
    """
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


_IRREGULAR = {
    **{"sky": "sky", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "news": "news"},
    **{"innings": "inning", "inning": "inning", "outings": "outing", "outing": "outing"},
    **{"cannings": "canning", "canning": "canning", "howe": "howe"},
    **{"proceed": "proceed", "exceed": "exceed", "succeed": "succeed"},
}

_Rules = Sequence[tuple[str, str]]

_STEP_2: _Rules = (
    *(("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize")),
    *(("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous")),
    *(("ization", "ize"), ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive")),
    *(("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble")),
    ("fulli", "ful"),
)
_STEP_3: _Rules = (
    *(("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic")),
    *(("ful", ""), ("ness", "")),
)
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism"),
    *("ate", "iti", "ous", "ive", "ize"),
)


def stem(word: str) -> str:
    """Return the stem of a word in lower case."""
    if word in _IRREGULAR or len(word) <= 2:
        return _IRREGULAR.get(word, word)
    word = _replace_y(_strip_past(_strip_plural(word)))
    word = _replace_ending(_replace_derivation(word), _STEP_3)
    return _strip_last_e(_strip_suffix(word))


def _build_pattern(word: str) -> str:
    """Return a `c` for each consonant and a `v` for each vowel; `y` after a consonant is a vowel."""
    found = ""
    for letter in word:
        consonant = not found.endswith("c") if letter == "y" else letter not in "aeiou"
        found += "c" if consonant else "v"
    return found


def _measure(word: str) -> int:
    """Return the number of times that a vowel is followed by a consonant."""
    return _build_pattern(word).count("vc")


def _is_short(word: str) -> bool:
    """Return whether a word ends like `wil` or `hop`, or is of two letters like `us`."""
    pattern = _build_pattern(word)
    return (pattern.endswith("cvc") and word[-1] not in "wxy") or pattern == "vc"


def _strip_plural(word: str) -> str:
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _strip_past(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        rest = word.removesuffix(ending)
        if word.endswith(ending) and "v" in _build_pattern(rest):
            return _complete_verb(rest)
    return word


def _complete_verb(rest: str) -> str:
    """Return a verb without `ed` or `ing` as it is spelt: `hopp` is `hop`, `fil` is `file`."""
    if rest.endswith(("at", "bl", "iz")):
        return f"{rest}e"
    if len(rest) >= 2 and rest[-1] == rest[-2] and _build_pattern(rest).endswith("c"):
        return rest if rest[-1] in "lsz" else rest[:-1]
    return f"{rest}e" if _measure(rest) == 1 and _is_short(rest) else rest


def _replace_y(word: str) -> str:
    """Return `happi` for `happy`, and `enjoy` as it is."""
    rest = word.removesuffix("y")
    return f"{rest}i" if rest != word and len(rest) > 1 and _build_pattern(rest).endswith("c") else word


def _replace_derivation(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _replace_derivation(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _replace_ending(word, _STEP_2)


def _replace_ending(word: str, rules: _Rules) -> str:
    """Return a word by the first rule whose ending it has, if what stands before it is long enough."""
    for ending, new in rules:
        if word.endswith(ending):
            rest = word.removesuffix(ending)
            return rest + new if _measure(rest) > 0 else word
    return word


def _strip_suffix(word: str) -> str:
    for ending in _STEP_4:
        if word.endswith(ending):
            rest = word.removesuffix(ending)
            fits = _measure(rest) > 1 and (ending != "ion" or rest[-1] in "st")
            return rest if fits else word
    return word


def _strip_last_e(word: str) -> str:
    rest = word.removesuffix("e")
    if rest != word and (_measure(rest) > 1 or (_measure(rest) == 1 and not _is_short(rest))):
        word = rest
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


FILE = "wordnet.txt.gz"

_ENDINGS: Mapping[str, Sequence[tuple[str, str]]] = {
    "noun": (
        ("s", ""),
        ("ses", "s"),
        ("ves", "f"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "verb": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}
"""Part of speech → endings of inflected forms and what stands in their place (WordNet's Morphy)."""


@dataclass
class _PartOfSpeech:
    """The words of one part of speech."""

    synonyms: dict[str, set[str]] = field(default_factory=dict)
    """Word in lower case → words that share a synset with it, as they are spelt."""
    exceptions: dict[str, list[str]] = field(default_factory=dict)
    """Irregular form → its base forms."""


@cache
def find_synonyms(word: str) -> frozenset[str]:
    """Return the words, as they are spelt, of all synsets of a lower-case word in any of its base forms."""
    return frozenset(
        synonym
        for part, words in _load_wordnet().items()
        for form in _find_base_forms(word, words, _ENDINGS[part])
        for synonym in words.synonyms[form]
    )


def _find_base_forms(word: str, part: _PartOfSpeech, endings: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the known base forms of a word, itself among them, as Morphy finds them in one step."""
    regular = [word.removesuffix(old) + new for old, new in endings if word.endswith(old)]
    for form in dict.fromkeys((word, *part.exceptions.get(word, regular))):
        if form in part.synonyms:
            yield form


@cache
def _load_wordnet() -> Mapping[str, _PartOfSpeech]:
    parts = {name: _PartOfSpeech() for name in _ENDINGS}
    for heading, line in _load_lines():
        name, _, kind = heading.partition(" ")
        words, part = line.split(" "), parts[name]
        if kind == "exceptions":
            part.exceptions[words[0]] = words[1:]
        else:
            for word in words:
                part.synonyms.setdefault(word.lower(), set()).update((word,) if kind == "alone" else words)
    return parts


def _load_lines() -> Iterator[tuple[str, str]]:
    """Yield (heading, line) of the file."""
    heading = ""
    packed = files(__package__).joinpath(FILE).read_bytes()
    for line in gzip.decompress(packed).decode().splitlines():
        if line.startswith("# "):
            heading = line.removeprefix("# ")
        elif line:
            yield heading, line
