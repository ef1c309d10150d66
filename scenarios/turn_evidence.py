"""Evidence of a turn: its own passages, and those of earlier turns that are no copies.

A chatbot may repeat in a later turn what the passages of an earlier one said; it has read them.
"""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.scenarios.transcript import Passage

ROOM = 12_000
"""Characters of a turn's passages up to which those of earlier turns are added: about 3,000 tokens, which the
detectors' prompts have room for (`max_evidence_characters`)."""


def choose_earlier_passages(
    own: Sequence[Passage], before: Sequence[Sequence[Passage]], room: int = ROOM
) -> tuple[Passage, ...]:
    """Return the passages of earlier turns that are evidence of a turn, too: nearest turn first, best first.

    A passage that is one of the turn's own, or was chosen already, is a copy. They end at the first one that
    does not fit whole, so that a farther turn never comes in place of a nearer one.

    Args:
        own: the turn's passages, which count whatever their length.
        before: those of the turns before it, oldest turn first.
        room: characters of all passages together.

    >>> free, new, red = (Passage(id=text, document="d", text=text) for text in ("Free.", "New.", "Red."))
    >>> [passage.text for passage in choose_earlier_passages([new], [(free, new), (red, free)])]
    ['Red.', 'Free.']
    """
    known = {_identify(passage) for passage in own}
    room -= sum(len(passage.text) for passage in own)
    chosen: list[Passage] = []
    for passage in (passage for turn in reversed(before) for passage in turn):
        if _identify(passage) in known:
            continue
        room -= len(passage.text)
        if room < 0:
            break
        known.add(_identify(passage))
        chosen.append(passage)
    return tuple(chosen)


def _identify(passage: Passage) -> str:
    return " ".join(passage.text.split())
