"""Make a run folder of any size without a model: `python -m benchmarks.scale.made_run N DIR`.

`--turns`, `--detectors` and `--personas` change its shape. Above 100,000 conversations its journals are in
shards, as those of a run.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.transcript import Call, Conversation, Passage, Span, Step, Turn, Verdict
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journal_files import LARGEST
from hallulab.simulator.records.journals import Journals

CHATBOTS = ("vanilla", "editor")
DETECTORS = ("lexical", "first", "second")
TURNS = 3
_TEXT = """the complaint goes to a district commission within two years and its fee depends on what was paid
for goods or services while the seller gets thirty days to answer before evidence is heard on affidavit"""
_WORDS = _TEXT.split()
_PERSONAS = ("asha", "ravi", "meera", "imran", "lata")


@dataclass(frozen=True)
class Shape:
    """What a made run is like."""

    turns: int = TURNS
    """Turns of each conversation."""
    detectors: tuple[str, ...] = DETECTORS
    """Names of the detectors."""
    personas: tuple[str, ...] = _PERSONAS
    """Identifiers of the personas."""


USUAL = Shape()


def shape_of(turns: int, detectors: int, personas: int) -> Shape:
    """Return the shape with so many of each; personas beyond five are numbered."""
    named = (
        _PERSONAS if personas == len(_PERSONAS) else tuple(f"persona-{one:06d}" for one in range(personas))
    )
    return Shape(turns, DETECTORS[:detectors], named)


def conversations(number: int, shape: Shape = USUAL) -> Iterator[Conversation]:
    """Yield so many conversations, pair by pair: every persona and seed with each of `CHATBOTS`."""
    for place in range(number):
        case, bot = divmod(place, len(CHATBOTS))
        seed, persona = divmod(case, len(shape.personas))
        generator = random.Random(place)
        yield Conversation(
            id=digest([place])[:16],
            scenario="consumer-grievance-india",
            persona=shape.personas[persona],
            chatbot=CHATBOTS[bot],
            model="stub",
            seed=seed,
            version="",
            turns=tuple(_turn(index, generator) for index in range(shape.turns)),
            stop_reason="max_turns",
        )


def verdicts(held: Conversation, shape: Shape = USUAL) -> Iterator[Verdict]:
    """Yield a verdict of each detector on each turn; one in three flags a part of the reply."""
    for turn in held.turns:
        for place, detector in enumerate(shape.detectors):
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


def make(number: int, folder: Path, shape: Shape = USUAL, in_shards: bool = False) -> None:
    """Write the two journals of a run of so many conversations into a new folder.

    Args:
        number: conversations.
        folder: it.
        shape: what they are like.
        in_shards: whether the journals are in shards, however many conversations there are.
    """
    folder.mkdir(parents=True)
    planned = max(number, LARGEST + 1) if in_shards else number
    with RunFolder(folder).open_journals(Journals([], []), planned) as journals:
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


def main() -> None:
    """Make it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("number", type=int, help="conversations")
    parser.add_argument("folder", type=Path, help="the new run folder")
    add_shape(parser)
    options = parser.parse_args()
    make(options.number, options.folder, shape_of(options.turns, options.detectors, options.personas))


def add_shape(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a shape."""
    parser.add_argument("--turns", type=int, default=TURNS, help="turns of each conversation")
    parser.add_argument("--detectors", type=int, default=len(DETECTORS), help="detectors, at most three")
    parser.add_argument("--personas", type=int, default=len(_PERSONAS), help="personas")


if __name__ == "__main__":
    main()
