"""A hallucinated turn beside the documents: the passages that it needed, and who is to blame.

The passages that were needed are not known, as nobody wrote reference answers. They are estimated by rules
(`simulator/metrics/support.py`): the documents bear on the question, and support statements of the reply or
do not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Literal, NamedTuple
from zlib import crc32

from hallulab.scenarios.text.declining import is_declining
from hallulab.scenarios.text.spans import split_spoken_sentences
from hallulab.scenarios.text.words import is_courtesy
from hallulab.scenarios.transcript import Conversation, Judgement, Passage, Turn
from hallulab.scenarios.turn_views import choose_earlier_passages
from hallulab.simulator.metrics.hallucinations import is_answer
from hallulab.simulator.metrics.support import (
    BEARS,
    LEAST_WORDS,
    UNRELATED,
    DocumentIndex,
    Statement,
    read_statement,
    read_stems,
)

Blame = Literal["retriever", "writer", "supported"]
"""`retriever`: documents have what was needed, and the passages lack it; `writer`: the passages had it, or no
document has it; `supported`: a passage supports the statement, so the detector may be wrong."""


BLAMES: tuple[Blame, ...] = ("retriever", "writer", "supported")
"""All of them; of equally frequent ones, the first counts."""


Found = Literal["among the passages", "missed", "not in the documents"]
"""The result of the search for the needed passages."""


MOST_EXAMINED = 2_000
"""Conversations that are examined; of a larger run, those of a part of the users: reading them all would take
longer than everything else in a report."""


_CLOSED = "evidence"
"""Step of chatbots that do not say what they read: the passages are not theirs."""


_USERS = 1 << 32


class Context(NamedTuple):
    """Counts of a turn's needed and given passages."""

    needs: int
    """The question, if documents bear on it, and each statement of the reply that a document supports."""
    met: int
    """Those on which a passage of the turn bears, or that one supports."""
    passages: int
    relevant: int
    """Those that bear on the question, or support a statement of the reply."""


class Library:
    """A run's documents, and the users whose conversations are examined by them.

    Args:
        passages: all that could be retrieved.
        conversations: of the run, as planned.
    """

    def __init__(self, passages: Sequence[Passage], conversations: int) -> None:
        self._passages = tuple(passages)
        self.share = min(1.0, MOST_EXAMINED / max(conversations, 1))
        """Share of the users whose conversations are examined."""
        self._index: DocumentIndex | None = None

    def __getstate__(self) -> dict[str, object]:
        """Leave the index out: other processes make their own."""
        return {**self.__dict__, "_index": None}

    @property
    def index(self) -> DocumentIndex:
        """The documents' words; made once in a process."""
        if self._index is None:
            self._index = _index(self._passages)
        return self._index

    def is_examined(self, conversation: Conversation) -> bool:
        """Return whether a conversation is examined: all chatbots of a user are, or none."""
        if self.share == 1:
            return True
        user = f"{conversation.scenario}/{conversation.persona}/{conversation.seed}"
        return crc32(user.encode()) < self.share * _USERS

    def read(self, conversation: Conversation, turn: Turn) -> TurnReading | None:
        """Read a turn; None if it is not known what the chatbot was given."""
        if any(step.name == _CLOSED for step in turn.steps):
            return None
        earlier = [message.text for message in conversation.given if message.role == "user"]
        said = [*earlier, *(one.user for one in conversation.turns[: turn.index + 1])]
        before = choose_earlier_passages(turn.passages, conversation.list_passages(turn.index))
        return TurnReading(self.index, turn, "\n".join(said), before)


@lru_cache(maxsize=4)
def _index(passages: tuple[Passage, ...]) -> DocumentIndex:
    return DocumentIndex(passages)


class TurnReading:
    """A turn beside the documents.

    Args:
        user_text: what the user said up to it.
        earlier: passages of earlier turns, which detectors were given, too.
    """

    def __init__(
        self, index: DocumentIndex, turn: Turn, user_text: str, earlier: Sequence[Passage] = ()
    ) -> None:
        self._index = index
        self._turn = turn
        self._earlier = earlier
        self._user_text = user_text
        self._is_courtesy = is_courtesy(turn.user)
        self._judged: dict[Statement, tuple[Sequence[bool | None], bool | None]] = {}

    @cached_property
    def found(self) -> Found | None:
        """Result of the search for the question's passages; None: undetermined, or nothing was asked."""
        best, given = self._rated
        if best is None or self._is_courtesy:
            return None
        if best < UNRELATED:
            return "not in the documents"
        # The nearest passage there is, is what a search can find at best.
        if any(share >= min(BEARS, best) for share in given):
            return "among the passages"
        return "missed" if best >= BEARS else None

    @cached_property
    def context(self) -> Context:
        """The turn's passages, in numbers."""
        found = self.found
        best, given = self._rated
        asked = found in ("among the passages", "missed")
        relevant = [asked and share >= min(BEARS, best or 0.0) for share in given]
        needs, met = int(asked), int(found == "among the passages")
        for statement in self._read_statements(self._turn.reply):
            supporting, documents = self._judge(statement)
            if any(supporting) or documents:
                needs, met = needs + 1, met + any(supporting)
            relevant = [
                bears or supports is True for bears, supports in zip(relevant, supporting, strict=True)
            ]
        return Context(needs, met, len(relevant), sum(relevant))

    def blame(self, verdict: Judgement) -> Blame | None:
        """Return who is to blame for a hallucinated reply: for most of its flagged statements.

        None if all are undetermined, or the reply declines: it claims nothing that a search could have found.
        Where a verdict has no places, statements that passages support count
        only if there are no others.
        """
        if is_answer(self._turn.reply) is False:
            return None
        found = [self._blame_statement(statement) for statement in self._list_flagged(verdict)]
        blames = Counter[Blame](blame for blame in found if blame is not None)
        if not verdict.spans and len(blames) > 1:
            del blames["supported"]
        most: Blame = max(BLAMES, key=blames.__getitem__)
        return most if blames else None

    @cached_property
    def _rated(self) -> tuple[float | None, Sequence[float]]:
        """The largest share of the question's words in a document's passage; those of the turn's passages."""
        question = read_stems(self._turn.query or self._turn.user)
        passages = self._turn.passages
        if len(question) < LEAST_WORDS:
            return None, [0.0] * len(passages)
        best = self._index.rate_passages(question).max(initial=0.0)
        return float(best), [self._index.rate_passage(passage, question) for passage in passages]

    def _blame_statement(self, statement: Statement) -> Blame | None:
        supporting, documents = self._judge(statement)
        earlier, _ = self._index.judge(statement, self._earlier)
        backing = [
            passage
            for passage, supports in zip(
                (*self._turn.passages, *self._earlier), (*supporting, *earlier), strict=True
            )
            if supports
        ]
        if backing:
            is_current = any(self._index.find(passage) is not None for passage in backing)
            return "supported" if is_current or documents else "retriever"
        if documents:
            return "supported" if self._is_courtesy else "retriever"
        if documents is None or None in supporting:
            return None
        if self._is_courtesy or self.found in ("among the passages", "not in the documents"):
            return "writer"
        return "retriever" if self.found == "missed" else None

    def _judge(self, statement: Statement) -> tuple[Sequence[bool | None], bool | None]:
        """Return whether each passage supports a statement, and whether the documents do."""
        if statement not in self._judged:
            self._judged[statement] = self._index.judge(statement, self._turn.passages)
        return self._judged[statement]

    def _list_flagged(self, verdict: Judgement) -> Iterator[Statement]:
        """Yield the sentences in which something is flagged; without places, all."""
        reply = self._turn.reply
        if not verdict.spans:
            yield from self._read_statements(reply)
            return
        placed = sorted(
            (span.start, span.end)
            for span in verdict.spans
            if span.start is not None and span.end is not None
        )
        starts = [start for start, _ in placed]
        furthest = list(accumulate((end for _, end in placed), max))
        for region in split_spoken_sentences(reply):
            before_end = bisect_left(starts, region.end)
            if before_end and furthest[before_end - 1] > region.start:
                yield from self._read_statements(region.of(reply))
        for span in verdict.spans:
            if span.start is None:
                yield from self._read_statements(span.text)

    def _read_statements(self, text: str) -> Iterator[Statement]:
        for region in split_spoken_sentences(text):
            sentence = region.of(text)
            statement = None if is_declining(sentence) else read_statement(sentence, self._user_text)
            if statement is not None:
                yield statement
