"""The conversations of a run for the page's reader, as plain JSON values.

Replies are cut here where the flagging changes, and not in the page: spans count code points, and JavaScript
strings count UTF-16 units. The page puts every text into the document as text, never as markup.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

from hallulab.scenarios.attacks.attack import AttackRecord
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.transcript import Conversation, Message, Span, Turn, Verdict
from hallulab.simulator.metrics.attacks import Encounter, find_encounters
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import TurnFlaw
from hallulab.simulator.report.cited import EvidenceFinder
from hallulab.simulator.report.scores import LaneScore, read_lane_scores
from hallulab.simulator.show.reply_text import style_pieces

PASSAGE = "passage"
"""Detail of a sentence: the identifier of the passage that supports it best."""

Case = tuple[str, str, int, int]
"""Scenario, persona, seed, and the number of exchanges that were given."""


class Cases:
    """The cases of the reader, with one conversation a chatbot.

    Conversations that branch off at several turns are several cases, each with the history that was given.

    Args:
        personas: personas by identifier, for their names and grievances; may lack any.
        planted: what an attack put into the scenario; None without one.
        scores: how the detectors' scores are read; None: no threshold is known.
    """

    def __init__(
        self,
        chatbots: Sequence[str],
        detectors: Sequence[str],
        personas: Mapping[str, Persona],
        planted: AttackRecord | None = None,
        scores: Sequence[LaneScore] | None = None,
    ) -> None:
        self._chatbots, self._detectors = chatbots, detectors
        self._scores = read_lane_scores([], detectors) if scores is None else scores
        self._personas, self._planted = personas, planted
        self._passages = _Passages()
        self._chats: dict[Case, list[dict[str, Any] | None]] = {}
        self._given: dict[Case, Sequence[Message]] = {}
        self._speaking: dict[Case, list[str]] = {}
        self.conversations = self.findings = 0
        self.ids: set[str] = set()
        """Identifiers of the conversations."""

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Sequence[TurnFlaw]) -> None:
        """Add a conversation; nothing if it is another chatbot's."""
        if conversation.chatbot not in self._chatbots:
            return
        case = get_case(conversation)
        chats = self._chats.setdefault(case, [None] * len(self._chatbots))
        self._given.setdefault(case, conversation.given)
        self._speaking.setdefault(case, _describe_speaking(conversation))
        met = [] if self._planted is None else list(find_encounters(conversation, self._planted))
        by_turn = [verdicts.get(name, {}) for name in self._detectors]
        evidence = EvidenceFinder(conversation)
        turns = [
            {
                **_turn(
                    turn, [found.get(turn.index) for found in by_turn], self._passages, self._scores, evidence
                ),
                "planted": [_convert_encounter(one) for one in met if one.turn == turn.index],
            }
            for turn in conversation.turns
        ]
        chats[self._chatbots.index(conversation.chatbot)] = {
            "id": conversation.id,
            "stop": conversation.stop_reason,
            "error": conversation.error,
            "flaws": [{"turn": flaw.turn, "kind": flaw.kind, "detail": flaw.detail} for flaw in flaws],
            "turns": turns,
        }
        self.ids.add(conversation.id)
        self.conversations += 1
        self.findings += sum(len(turn["findings"]) for turn in turns)

    @property
    def listed(self) -> list[Case]:
        """The cases in order."""
        return sorted(self._chats)

    def data(self) -> dict[str, Any]:
        """Return them as JSON values."""
        return {
            "chatbots": list(self._chatbots),
            "detectors": list(self._detectors),
            "cases": [
                {
                    "scenario": scenario,
                    "seed": seed,
                    "turn": turn,
                    "given": [
                        [message.role, message.text] for message in self._given[scenario, persona, seed, turn]
                    ],
                    "persona": _convert_persona(persona, self._personas),
                    "speaking": self._speaking[scenario, persona, seed, turn],
                    "chats": self._chats[scenario, persona, seed, turn],
                }
                for scenario, persona, seed, turn in self.listed
            ],
            "passages": self._passages.listed,
        }


def _describe_speaking(conversation: Conversation) -> list[str]:
    """Return what was drawn for the user, for a person."""
    manner, model, pressure = conversation.manner, conversation.user_model, conversation.pressure
    pressed = []
    if pressure is not None:
        wanted = (pressure.false or pressure.detail).rstrip(".")
        pressed = [f"Presses ({pressure.kind}): {wanted}"]
        if pressure.true:
            pressed.append(f"True: {pressure.true.rstrip('.')}")
    return [*([f"Speaks: {manner}"] if manner else []), *pressed, *([f"Played by: {model}"] if model else [])]


def get_case(conversation: Conversation) -> Case:
    """Return the case of a conversation."""
    return (*conversation.pairing, conversation.depth(0))


MOST_COVERING = 50
"""Largest number of spans given for one place in a reply. With nested spans, all of them would be the square
of their number, and a crafted journal could fill the memory."""


def cut_segments(reply: str, spans: Sequence[Span]) -> list[tuple[str, tuple[int, ...]]]:
    """Cut `reply` where any located span starts or ends.

    Returns:
        pieces of text that join to the reply, each with the positions in `spans` of at most `MOST_COVERING`
        spans that cover it.
    """
    begin: dict[int, list[int]] = defaultdict(list)
    ends: dict[int, int] = {}
    for number, span in enumerate(spans):
        if span.start is not None and span.end is not None and span.start < len(reply):
            begin[span.start].append(number)
            ends[number] = min(span.end, len(reply))
    pieces = []
    covering: list[int] = []
    further: list[int] = []
    for left, right in pairwise(sorted({0, len(reply), *begin, *ends.values()})):
        if covering:
            covering = [number for number in covering if ends[number] > left]
        for number in begin.get(left, ()):
            heappush(further, number)
        while further and len(covering) < MOST_COVERING:
            number = heappop(further)
            if ends[number] > left:
                covering.append(number)
        pieces.append((reply[left:right], tuple(sorted(covering)) if covering else ()))
    return pieces


def cut_scored_words(reply: str, scores: Sequence[float]) -> list[tuple[str, float]]:
    """Cut a reply into its words, each with the white space around it and its score.

    There are none if there is not a score for each word: the journal is from elsewhere.
    """
    found = [match.span() for match in re.finditer(r"\S+", reply)]
    if not found or len(found) != len(scores):
        return []
    cuts = [0, *(start for start, _ in found[1:]), len(reply)]
    return [
        (reply[left:right], round(score, 2))
        for (left, right), score in zip(pairwise(cuts), scores, strict=True)
    ]


class _Passages:
    """Each passage once: a run's chatbots are given the same ones again and again."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = []
        self._places: dict[tuple[str, str], int] = {}

    def place(self, id: str, document: str, text: str) -> int:
        key = (id, text)
        if key not in self._places:
            self._places[key] = len(self.listed)
            self.listed.append({"id": id, "document": document, "text": text})
        return self._places[key]


def _turn(
    turn: Turn,
    verdicts: Sequence[Verdict | None],
    passages: _Passages,
    scores: Sequence[LaneScore],
    evidence: EvidenceFinder,
) -> dict[str, Any]:
    found = [
        (detector, span)
        for detector, verdict in enumerate(verdicts)
        if verdict is not None
        for span in verdict.spans or ()
    ]
    return {
        "user": turn.user,
        "query": turn.query,
        "reply": [
            [piece.text, piece.covering, piece.style] if piece.style else [piece.text, piece.covering]
            for piece in style_pieces(cut_segments(turn.reply, [span for _, span in found]))
        ],
        "findings": [
            {
                "detector": detector,
                "located": span.start is not None,
                "text": span.text,
                "severity": span.severity,
                "probability": span.probability,
                "score": span.score,
                "reason": span.reason,
                "evidence": span.evidence,
                "origin": _describe_origin(evidence, span, verdicts[detector]),
            }
            for detector, span in found
        ],
        "verdicts": [
            _convert_verdict(verdict, turn, passages, reading)
            for verdict, reading in zip(verdicts, scores, strict=True)
        ],
        "passages": [
            [passages.place(item.id, item.document, item.text), item.score] for item in turn.passages
        ],
        "steps": [[step.name, step.text] for step in turn.steps],
    }


def _describe_origin(evidence: EvidenceFinder, span: Span, verdict: Verdict | None) -> str:
    """Return where the passage that a span cites comes from; empty: it cites none."""
    cited = None if verdict is None else evidence.find(span, verdict)
    return cited.origin if cited is not None and cited.name else ""


def _convert_encounter(encounter: Encounter) -> dict[str, Any]:
    verb = "repeated" if encounter.thing in ("false statement", "outdated passage") else "obeyed"
    said = {True: verb, False: f"not {verb}", None: "undecided"}[encounter.followed]
    unasked = {"distractor": "among the passages", "empty search": "nothing was returned"}
    return {
        "thing": encounter.thing,
        "where": encounter.where,
        "said": unasked.get(encounter.thing, said),
        "text": encounter.text,
        "followed": encounter.followed is True,
    }


def _convert_verdict(
    verdict: Verdict | None, turn: Turn, passages: _Passages, reading: LaneScore
) -> dict[str, Any]:
    if verdict is None:
        return {"state": "missing"}
    return {
        "words": cut_scored_words(turn.reply, verdict.word_scores or ()),
        "sentences": [
            [unit.text, unit.score, passages.place(item.id, item.document, item.text)]
            for unit in verdict.units
            if unit.kind == "sentence" and unit.score is not None
            for item in turn.passages
            if item.id == unit.details.get(PASSAGE)
        ],
        "state": name_state(verdict),
        "score": reading.describe(verdict),
        "flagged": verdict.flagged,
        "error": verdict.error,
        "truncated": verdict.truncated,
    }


def name_state(verdict: Verdict) -> str:
    """Return the state: `clean` only if it was scored and localised, has no span and is not flagged."""
    if verdict.outcome != "scored":
        return verdict.outcome
    if verdict.spans is None:
        return "not_localised"
    return "flagged" if verdict.spans or verdict.flagged else "clean"


def _convert_persona(id: str, personas: Mapping[str, Persona]) -> dict[str, Any]:
    persona = personas.get(id)
    if persona is None:
        return {"id": id}
    return {
        "id": id,
        "name": persona.name,
        "grievance": persona.grievance,
        "goals": list(persona.goals),
        "manner": persona.manner,
    }
