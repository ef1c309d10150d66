"""Choose the first evidence for a reply: its own passages, or the nearest of them if they are many."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from hallulab.scenarios.text.spans import split_words
from hallulab.scenarios.transcript import Passage


def choose_nearest_passages(passages: Sequence[Passage], text: str, room: int) -> tuple[Passage, ...]:
    """Return the passages that share most with `text`, up to `room` characters, in their own order; at least
    one.

    A shared word counts ln(1 + passages / passages that have it), once. Support is a maximum over passages,
    so a passage that is left out could only have cleared what is flagged.

    Args:
        room: characters of all kept passages together; a first passage that is longer stays whole.
    """
    vocabularies = [set(split_words(passage.text)) for passage in passages]
    spread = Counter(word for vocabulary in vocabularies for word in vocabulary)
    wanted = set(split_words(text))
    shared = [
        math.fsum(math.log(1 + len(passages) / spread[word]) for word in wanted & vocabulary)
        for vocabulary in vocabularies
    ]
    kept: list[int] = []
    for place in sorted(range(len(passages)), key=lambda place: -shared[place]):
        room -= len(passages[place].text)
        if kept and room < 0:
            break
        kept.append(place)
    return tuple(passages[place] for place in sorted(kept))


def adds_support(sentence: str, own: Sequence[Passage], found: Passage) -> bool:
    """Return whether a passage that the turn did not have is worth a second question about a sentence.

    Own passages come first: a document about another matter often only seems to support a sentence. So each
    own passage must say nothing (it holds less than half of the sentence's words of four letters or more),
    and the found one must be near (it holds two thirds of them).
    """
    wanted = {word for word in split_words(sentence) if len(word) > 3}
    if not wanted:
        return False
    held = max((len(wanted & set(split_words(passage.text))) for passage in own), default=0)
    return 2 * held < len(wanted) and 3 * len(wanted & set(split_words(found.text))) >= 2 * len(wanted)
