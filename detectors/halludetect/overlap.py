"""Measure how much of a sentence the evidence lacks, word for word: a sample of the analysis without a model.

The paper describes its analysis as relying on "factual overlap and entity-level consistency" (section 5.2.1).
A small model judges meaning but overlooks digits; this rule looks at words and digits alone.
"""

from __future__ import annotations

from hallulab.detectors.halludetect.user_said import items
from hallulab.scenarios.text.spans import compute_unknown_share, split_words


def measure_lack_of_overlap(sentence: str, known_text: str) -> float:
    """Return the share of the sentence that `known_text` lacks, in [0, 1].

    It is the share of the words. If there are numbers or e-mail addresses, it is the mean of that and of
    their share.

    Raises:
        ValueError: the sentence has no words.
    """
    share = compute_unknown_share(sentence, set(split_words(known_text)))
    if share is None:
        raise ValueError(f"no words in {sentence!r}")
    details = items(sentence)
    if not details:
        return share
    return (share + len(details - items(known_text)) / len(details)) / 2
