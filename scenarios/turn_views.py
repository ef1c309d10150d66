"""A turn as detectors see it, with the passages of earlier turns that are evidence, too.

A chatbot may repeat in a later turn what the passages of an earlier one said; it has read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from hallulab.scenarios.transcript import Count, Evidence, Frozen, Message, Passage


@runtime_checkable
class Retriever(Protocol):
    """Searches for evidence."""

    async def search(self, query: str, k: int) -> tuple[Passage, ...]:
        """Return the `k` passages nearest to `query`, best first."""
        ...


class Origin(Frozen):
    """Who wrote a reply, and about what: known of labelled data, not of a chatbot under test."""

    collection: str = ""
    """Where the source comes from; empty: not known."""
    generator: str = ""
    """The model that wrote the reply; empty: not known."""
    temperature: float | None = None
    """Of that model; None: not known."""


class TurnView(Frozen):
    """Everything that a detector sees of a turn: no gold label, no chatbot name.

    >>> fees = Passage(id="fees#0", document="fees", text="The fee is Rs 200.")
    >>> said = Message(role="user", text="I want to complain.")
    >>> view = TurnView(history=(said,), question="What is the fee?", passages=(fees,), reply="It is Rs 500.")
    >>> print(view.user_text)
    I want to complain.
    What is the fee?
    """

    history: tuple[Message, ...] = ()
    question: str
    passages: Evidence
    """The turn's own, best first, then those of earlier turns (`choose_earlier_passages`)."""
    earlier: Count = 0
    """How many of the passages, the last ones, are of earlier turns."""
    reply: str
    knowledge: Retriever | None = None
    """For more evidence; None if there are only `passages` (labelled data)."""
    origin: Origin = Origin()
    """Who wrote the reply; only detectors whose options ask for it are told."""

    @property
    def own_passages(self) -> tuple[Passage, ...]:
        """The passages of this turn."""
        return self.passages[: len(self.passages) - self.earlier]

    @property
    def earlier_passages(self) -> tuple[Passage, ...]:
        """The passages of earlier turns, nearest turn first."""
        return self.passages[len(self.own_passages) :]

    @property
    def user_text(self) -> str:
        """All user messages up to the reply, one a line."""
        return "\n".join([*(one.text for one in self.history if one.role == "user"), self.question])


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
