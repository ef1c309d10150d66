"""Make a run folder of any size without a model.

Above 100,000 conversations its journals are in shards, as those of a run.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.transcript import Call, Conversation, Passage, Span, Step, Turn, Verdict
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journals import Journals

CHATBOTS = ("vanilla", "editor")
DETECTORS = ("lexical", "first", "second")
_TEXT = """the complaint goes to a district commission within two years and its fee depends on what was paid
for goods or services while the seller gets thirty days to answer before evidence is heard on affidavit"""
_WORDS = _TEXT.split()


@dataclass(frozen=True)
class Shape:
    """How many of each a made run has."""

    turns: int = 3
    """Turns of each conversation."""
    detectors: int = len(DETECTORS)
    """At most all of `DETECTORS`."""
    personas: int = 5


USUAL = Shape()


def conversations(number: int, shape: Shape) -> Iterator[Conversation]:
    """Yield so many conversations, pair by pair: every persona and seed with each of `CHATBOTS`."""
    for place in range(number):
        case, bot = divmod(place, len(CHATBOTS))
        seed, persona = divmod(case, shape.personas)
        generator = random.Random(place)
        yield Conversation(
            id=digest([place])[:16],
            scenario="consumer-grievance-india",
            persona=f"persona-{persona:06d}",
            chatbot=CHATBOTS[bot],
            model="stub",
            seed=seed,
            version="",
            turns=tuple(_turn(index, generator) for index in range(shape.turns)),
            stop_reason="max_turns",
        )


def verdicts(held: Conversation, shape: Shape) -> Iterator[Verdict]:
    """Yield a verdict of each detector on each turn; one in three flags a part of the reply."""
    for turn in held.turns:
        for place, detector in enumerate(DETECTORS[: shape.detectors]):
            begin = (turn.index + place + held.seed) % 3
            wrong = Span(start=0, end=20, text=turn.reply[:20], reason="It is in no passage.")
            spans = () if begin else (wrong,)
            yield Verdict(
                conversation=held.id,
                turn=turn.index,
                detector=detector,
                version="1",
                outcome="scored",
                score=float(bool(spans)),
                flagged=bool(spans),
                spans=spans,
                calls=(_call("detector.judge"),) * 2,
            )


def make(number: int, folder: Path, shape: Shape = USUAL) -> None:
    """Write the two journals of a run of so many conversations into a new folder.

    Args:
        number: conversations.
        folder: it.
        shape: what they are like.
    """
    folder.mkdir(parents=True)
    with RunFolder(folder).open_journals(Journals([], []), number) as journals:
        for conversation in conversations(number, shape):
            journals.add_conversation(conversation)
            for verdict in verdicts(conversation, shape):
                journals.add_verdict(verdict)


def _turn(index: int, generator: random.Random) -> Turn:
    return Turn(
        index=index,
        user=_said(20, generator),
        query=_said(10, generator),
        passages=tuple(
            Passage(id=f"act#{number}", document="act", text=_said(120, random.Random(number)), score=0.5)
            for number in generator.sample(range(60), 4)
        ),
        reply=_said(60, generator),
        steps=(Step(name="reformulated_query", text=_said(10, generator)),),
        calls=(_call("user.message"), _call("chatbot.reformulate"), _call("chatbot.generate")),
    )


def _said(words: int, generator: random.Random) -> str:
    return " ".join(generator.choices(_WORDS, k=words))


def _call(purpose: str) -> Call:
    return Call(
        purpose=purpose,
        model="stub",
        prompt_tokens=100,
        completion_tokens=20,
        latency_s=0.0125,
        finish_reason="stop",
    )
