"""How much messages differ from each other: near duplicates, distinct words, self-BLEU.

All of them depend on the number of messages. So both sides of a comparison are measured in samples of one
size. A message's part in a number is kept apart (numerator, denominator), so that users can be resampled
without a message becoming the duplicate of itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hallulab.scenarios.text.spans import split_words
from hallulab.simulator.statistics.intervals import Floats, Integers

ALIKE = 0.9
"""Messages are near duplicates from above this cosine of their vectors."""
MOST = 100
"""Most messages of a sample."""
DRAWS = 10
"""Samples where there are more messages than a sample has."""
_ORDER = 4
"""Longest runs of words of BLEU."""
_SEED = 20_260

Parts = Mapping[str, Floats]
"""Field of a measure → numerators and denominators of the messages, shape (messages, 2)."""


def measure_parts(texts: Sequence[str], vectors: Floats | None, size: int) -> Parts:
    """Measure messages in samples of `size`; a number is the sum of numerators over that of denominators.

    - `near_duplicates`: messages with a cosine above `ALIKE` to another one.
    - `distinct_1`, `distinct_2`: different words, and pairs of words, over all of them (Li et al. 2016, A
      diversity-promoting objective function, section 5.1). Each of n equal words counts 1/n.
    - `compute_self_bleu`: the mean of `compute_sentence_bleu` of each message against the others (Zhu et al.
      2018, Texygen, section 3.2).

    Args:
        vectors: the texts' unit vectors; None: not known, and `near_duplicates` is missing.
        size: messages of a sample, at least 2.
    """
    said = [split_words(text) for text in texts]
    names = ["distinct_1", "distinct_2", "self_bleu"] + (["near_duplicates"] if vectors is not None else [])
    found = {name: np.zeros((len(texts), 2)) for name in names}
    for chosen in _draw_samples(len(texts), size):
        sample = [said[place] for place in chosen]
        for n, name in ((1, "distinct_1"), (2, "distinct_2")):
            held = [_count_runs(words, n) for words in sample]
            total = sum(held, Counter[tuple[str, ...]]())
            found[name][chosen] += [
                (sum(count / total[run] for run, count in own.items()), own.total()) for own in held
            ]
        found["self_bleu"][chosen] += [(score, 1) for score in compute_self_bleu(sample)]
        if vectors is not None:
            cosines = vectors[chosen] @ vectors[chosen].T
            np.fill_diagonal(cosines, -1)
            found["near_duplicates"][chosen] += [(own.max() > ALIKE, 1) for own in cosines]
    return found


def _draw_samples(messages: int, size: int) -> Iterator[Integers]:
    """Yield places of messages: all of them, or `DRAWS` samples, the same ones for equal arguments."""
    size = min(size, MOST)
    if messages <= size:
        yield np.arange(messages)
        return
    generator = np.random.default_rng(_SEED)
    for _ in range(DRAWS):
        yield generator.choice(messages, size, replace=False)


def compute_self_bleu(sample: Sequence[Sequence[str]]) -> list[float]:
    """Score each message against all others: 1 of an equal one, 0 of words that no other has."""
    held = [[_count_runs(said, n) for said in sample] for n in range(1, _ORDER + 1)]
    lengths = [len(said) for said in sample]
    most = [_find_two_most(counts) for counts in held]
    scores = []
    for place, length in enumerate(lengths):
        others = lengths[:place] + lengths[place + 1 :]
        pairs = []
        for counts, best in zip(held, most, strict=True):
            own = counts[place]
            # The highest count among the others is the second one where the message itself has the first.
            hits = sum(min(count, best[run][best[run][0] == count]) for run, count in own.items())
            pairs.append((hits, own.total()))
        scores.append(compute_sentence_bleu(pairs, length, others))
    return scores


def compute_sentence_bleu(pairs: Sequence[tuple[int, int]], length: int, others: Sequence[int]) -> float:
    """Compute BLEU of a sentence, smoothed by adding one to runs of two and more words.

    Papineni et al. 2002, BLEU, section 2.3; Lin and Och 2004, ORANGE, section 4. A sentence of fewer than
    four words has no longer runs than itself.

    Args:
        pairs: runs of 1, 2, … words that a reference has, too, and all of them.
        others: words of each reference.
    """
    if not pairs[0][0]:
        return 0.0
    used = [(hits + (n > 0), total + (n > 0)) for n, (hits, total) in enumerate(pairs) if total]
    closest = min(others, key=lambda other: (abs(other - length), other))
    brevity = min(1.0, math.exp(1 - closest / length))
    return brevity * math.exp(math.fsum(math.log(hits / total) for hits, total in used) / len(used))


def _count_runs(said: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(said[at : at + n]) for at in range(len(said) - n + 1))


def _find_two_most(counts: Sequence[Counter[tuple[str, ...]]]) -> dict[tuple[str, ...], tuple[int, int]]:
    """Return for each run the highest count in a message and the next one (equal, or 0)."""
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    for own in counts:
        for run, count in own.items():
            first, second = found.get(run, (0, 0))
            found[run] = (count, first) if count > first else (first, max(second, count))
    return found
