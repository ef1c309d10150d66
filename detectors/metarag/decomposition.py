"""Step 1 of MetaRAG (section 3.2): a reply into factoids, each with its place in the reply.

The model sees numbered sentences and writes one proposition a line after the sentence's number. So a
factoid belongs to a sentence without guessing; within it, `spans.locate` finds the stretch that it restates,
and where the factoid is too reworded for that, the whole sentence is its span.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agents.errors import UnparseableAnswer
from agents.model import Session
from agents.prompt import Prompt
from detectors.spans import Region, locate, sentences
from scenarios.transcript import Frozen

_LINE = re.compile(r"[-*•\s]*\[?(\d{1,3})\]?\s*[:.)]\s*(.*\w.*)")
_NONE = re.compile(r"\W*none\b", re.IGNORECASE)


class Factoid(Frozen):
    """One atomic claim of a reply."""

    text: str
    """The claim as the model put it."""
    region: Region
    """Where the reply makes it."""


class Decomposition(Frozen):
    """The factoids of a reply."""

    factoids: tuple[Factoid, ...]
    """In order of mention, without repetitions; empty when the reply states no fact."""
    cut_off: bool
    """Whether there were more than were kept."""


async def decompose(
    session: Session, prompt: Prompt, question: str, reply: str, *, temperature: float, limit: int
) -> Decomposition:
    """The factoids of `reply`. One call.

    Raises:
        UnparseableAnswer: the model's answer holds neither numbered facts nor `none`.
        ModelError: no answer.
    """
    regions = sentences(reply)
    numbered = "\n".join(
        f"{number}. {' '.join(region.of(reply).split())}" for number, region in enumerate(regions, start=1)
    )
    answer = await session.text(
        "decompose",
        prompt.fill(question=question, answer=numbered),
        temperature=temperature,
        max_tokens=_token_limit(reply),
    )
    ended = session.calls[-1].finish_reason != "length"
    return parse_factoids(answer if ended else answer.rpartition("\n")[0], reply, regions, limit, ended)


def _token_limit(reply: str) -> int:
    # Factoids repeat the reply with subjects put in, so they take up to twice its tokens (3 characters each).
    return 96 + 2 * len(reply) // 3


def parse_factoids(
    answer: str, reply: str, regions: Sequence[Region], limit: int, ended: bool = True
) -> Decomposition:
    """Read a decomposition: lines `number: fact`, or `none`.

    Args:
        regions: the sentences that were numbered, from 1.
        limit: factoids to keep.
        ended: False when the answer was cut off.

    Raises:
        UnparseableAnswer: there is neither a fact of a numbered sentence nor `none`.
    """
    found: dict[str, Factoid] = {}
    for line in answer.splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is None or not 1 <= int(match[1]) <= len(regions) or _NONE.fullmatch(match[2]):
            continue
        text = match[2].strip()
        found.setdefault(
            text.casefold(), Factoid(text=text, region=place(text, reply, regions[int(match[1]) - 1]))
        )
    if not found and not (ended and _says_none(answer)):
        raise UnparseableAnswer(f"decompose: the model's answer holds no numbered facts: {answer[:120]!r}")
    factoids = tuple(found.values())
    return Decomposition(factoids=factoids[:limit], cut_off=len(factoids) > limit or not ended)


def _says_none(answer: str) -> bool:
    lines = [re.sub(r"^\W*\d*\W*", "", line) for line in answer.splitlines() if line.strip()]
    return bool(lines) and all(_NONE.match(line) for line in lines)


def place(fact: str, reply: str, sentence: Region) -> Region:
    """The stretch of `sentence` that `fact` restates, or the whole sentence."""
    found = locate(fact.rstrip("."), sentence.of(reply))
    if found is None:
        return sentence
    return Region(sentence.start + found.start, sentence.start + found.end)
