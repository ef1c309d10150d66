"""What a conversation's page shows: replies cut where flagging changes, and what they were judged by."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import fsum

from hallulab.scenarios.text.spans import split_sentences
from hallulab.scenarios.transcript import Conversation, Passage, Span, Step, Turn, Verdict
from hallulab.simulator.annotate.marks import identify_flag
from hallulab.simulator.report.reader import cut_scored_words, cut_segments

_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r"[\"“]([^\"”]{12,})[\"”]")
"""Words that a reason quotes, if they are more than a name."""


@dataclass(frozen=True)
class ReplyPiece:
    """A piece of a reply."""

    text: str
    findings: tuple[int, ...]
    """The lane's findings that cover it, by their places."""


@dataclass(frozen=True)
class ShownFinding:
    """A hallucination by a detector."""

    span: Span
    flag: str
    """What annotators' keys call it."""
    passage: int | None
    """Place of the passage that its evidence is about; None: it cites none that the chatbot was given."""
    sentence: int | None
    """Place of the sentence of that passage that bears on it most."""


@dataclass(frozen=True)
class Lane:
    """A reply as one detector judged it."""

    detector: str
    state: str
    """`clean`, `flagged`, `failed`, `abstained`, `not localised` or `missing`."""
    score: float | None
    error: str | None
    """Why it was not judged."""
    pieces: tuple[ReplyPiece, ...]
    findings: tuple[ShownFinding, ...]
    """The hallucinations, unlocated ones included."""
    words: tuple[tuple[str, int], ...]
    """Words with their scores in tenths, for detectors that score words."""


@dataclass(frozen=True)
class ShownPassage:
    """A passage, cut into sentences."""

    passage: Passage
    sentences: tuple[str, ...]
    """Its sentences; they join to its text."""

    @cached_property
    def text(self) -> str:
        """Its text, white space made single."""
        return " ".join(self.passage.text.split())

    @cached_property
    def holders(self) -> Mapping[str, Sequence[int]]:
        """Word in lower case → the sentences that have it, by their places."""
        found = defaultdict(list)
        for number, sentence in enumerate(self.sentences):
            for word in frozenset(_WORD.findall(sentence.lower())):
                found[word].append(number)
        return found


@dataclass(frozen=True)
class ShownTurn:
    """A turn of the page."""

    turn: Turn
    depth: int
    lanes: tuple[Lane, ...]
    passages: tuple[ShownPassage, ...]
    steps: tuple[Step, ...]
    tokens: int
    """Tokens of the turn's calls."""
    seconds: float

    @property
    def flagged(self) -> bool:
        """True if some detector flags it."""
        return any(lane.state == "flagged" for lane in self.lanes)


def show_turns(chat: Conversation, verdicts: Sequence[Verdict], detectors: Sequence[str]) -> list[ShownTurn]:
    """Return the turns of a conversation as its page shows them, with a lane for each detector."""
    by_turn: dict[int, dict[str, Verdict]] = {turn.index: {} for turn in chat.turns}
    for verdict in verdicts:
        by_turn.get(verdict.turn, {})[verdict.detector] = verdict
    return [_show_turn(chat, turn, by_turn[turn.index], detectors) for turn in chat.turns]


def show_passages(turn: Turn) -> tuple[ShownPassage, ...]:
    """Return the passages of a turn, cut into sentences."""
    return tuple(ShownPassage(one, cut_sentences(one.text)) for one in turn.passages)


def _show_turn(
    chat: Conversation, turn: Turn, verdicts: Mapping[str, Verdict], detectors: Sequence[str]
) -> ShownTurn:
    passages = show_passages(turn)
    return ShownTurn(
        turn=turn,
        depth=chat.depth(turn.index),
        lanes=tuple(_show_lane(turn, name, verdicts.get(name), passages) for name in detectors),
        passages=passages,
        steps=turn.steps,
        tokens=sum(call.tokens for call in turn.calls),
        seconds=sum(call.latency_s for call in turn.calls),
    )


def _show_lane(turn: Turn, detector: str, verdict: Verdict | None, passages: Sequence[ShownPassage]) -> Lane:
    if verdict is None:
        return Lane(detector, "missing", None, None, (ReplyPiece(turn.reply, ()),), (), ())
    spans = verdict.spans or ()
    return Lane(
        detector=detector,
        state=name_state(verdict),
        score=verdict.score,
        error=verdict.error,
        pieces=tuple(ReplyPiece(text, covering) for text, covering in cut_segments(turn.reply, spans)),
        findings=tuple(
            ShownFinding(span, identify_flag(detector, span).id, *find_citation(span, passages))
            for span in spans
        ),
        words=tuple(
            (text, round(10 * min(1.0, max(0.0, score))))
            for text, score in cut_scored_words(turn.reply, verdict.word_scores or ())
        ),
    )


def name_state(verdict: Verdict) -> str:
    """Return the state: `clean` only if it was scored and localised, has no span and is not flagged."""
    if verdict.outcome != "scored":
        return verdict.outcome
    if verdict.spans is None:
        return "not localised"
    return "flagged" if verdict.spans or verdict.flagged else "clean"


def find_citation(span: Span, passages: Sequence[ShownPassage]) -> tuple[int | None, int | None]:
    """Return the places of the passage and of its sentence that a judgement is about.

    Detectors cite passages, and some quote words in their reason. A sentence with quoted words comes first.
    Else it is, of the passages that the evidence names or quotes (of all, where it names none), the sentence
    that shares most with the flagged text; a word counts the less, the more sentences have it. None: no
    sentence shares a word.
    """
    evidence = " ".join(span.evidence.split())
    cited = [
        place
        for place, shown in enumerate(passages)
        if span.evidence
        and (shown.passage.id in span.evidence or (len(evidence) >= 20 and evidence in shown.text))
    ]
    bearing = cited or range(len(passages))
    # No quotation ends after the last of these marks: from each that only opens, all would be read.
    end = max(span.reason.rfind('"'), span.reason.rfind("”")) + 1
    quoted = [" ".join(quote.split()) for quote in _QUOTED.findall(span.reason, 0, end)]
    for place in bearing:
        told = [quote for quote in quoted if quote in passages[place].text]
        for number, sentence in enumerate(passages[place].sentences if told else ()):
            plain = " ".join(sentence.split())
            if any(quote in plain for quote in told):
                return place, number
    shared: dict[tuple[int, int], list[float]] = defaultdict(list)
    for word in frozenset(_WORD.findall(span.text.lower())):
        common = sum(len(shown.holders.get(word, ())) for shown in passages)
        for place in bearing:
            for number in passages[place].holders.get(word, ()):
                shared[place, number].append(1 / common)
    if not shared:
        return (cited[0], None) if cited else (None, None)
    # Exact sums: words come in an order that differs from process to process.
    return min(shared, key=lambda at: (-fsum(shared[at]), at))


def cut_sentences(text: str) -> tuple[str, ...]:
    """Cut a text before each sentence; the parts join to the text.

    >>> cut_sentences("A fee is due. It is small.")
    ('A fee is due. ', 'It is small.')
    """
    starts = [region.start for region in split_sentences(text)]
    cuts = [0, *starts[1:], len(text)]
    return tuple(text[left:right] for left, right in pairwise(cuts) if left < right)
