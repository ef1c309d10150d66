"""The statements of a reply: its sentences; a very short one is joined with the next."""

from __future__ import annotations

from hallulab.detectors.base.courtesy import claims_nothing
from hallulab.scenarios.text.spans import Region, split_sentences, split_words

MIN_WORDS = 4
"""Shorter sentences are not judged alone."""


def split_statements(reply: str) -> list[Region]:
    """Return the sentences with words in them; one with fewer than `MIN_WORDS` words joins the next one.

    `Yes!` alone says nothing that evidence could support.
    """
    joined: list[Region] = []
    start: int | None = None
    for region in split_sentences(reply):
        first = region.start if start is None else start
        text = reply[first : region.end]
        if not split_words(text):
            continue
        if len(split_words(text)) < MIN_WORDS and not claims_nothing(text):
            start = first
            continue
        joined.append(Region(first, region.end))
        start = None
    if start is not None:
        last = joined.pop().start if joined else start
        joined.append(Region(last, len(reply.rstrip())))
    return joined
