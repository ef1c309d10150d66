"""How much of a sentence the evidence does not hold word for word: a sample of the analysis without a model.

The paper describes its analysis as relying on "factual overlap and entity-level consistency" (section
5.2.1); a small model judges meaning but overlooks digits, and this looks at nothing else.
"""

from __future__ import annotations

from detectors.halludetect.user_said import items
from detectors.spans import words


def unknown_share(sentence: str, known_text: str) -> float:
    """Share of the sentence that `known_text` does not hold, in [0, 1].

    The share of its words; where it has numbers or e-mail addresses, the mean of that and of their share.
    """
    known = set(words(known_text))
    own = words(sentence)
    share = sum(word not in known for word in own) / len(own)
    details = items(sentence)
    if not details:
        return share
    return (share + len(details - items(known_text)) / len(details)) / 2
