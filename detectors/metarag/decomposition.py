"""Step 1 of MetaRAG (section 3.2): split a reply into factoids, each with its place in the reply.

Questions and courtesies are left out. The model sees the other sentences numbered, and writes one proposition
a line after the sentence's number. A factoid's span is the stretch that `spans.locate` finds for it, the one
nearest to that sentence. If it is too reworded for that, its span is the sentence that shares most words with
it. On a tie that is the numbered one, because small models number carelessly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.models.model import Session
from hallulab.agents.models.prompt import Prompt
from hallulab.detectors.base.questions import claims_nothing
from hallulab.scenarios.text.spans import Region, cut_region, locate, split_sentences, split_words
from hallulab.scenarios.transcript import Frozen

_LINE = re.compile(r"[-*•\s]*\[?(\d{1,3})\]?\s*[:.)]\s*(.*\w.*)")


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
    skipped: tuple[Region, ...] = ()
    """The numbered sentences without a factoid, kept or not: the model states no fact of them."""


async def decompose(
    session: Session, prompt: Prompt, question: str, reply: str, *, temperature: float, limit: int
) -> Decomposition:
    """Return the factoids of `reply`. One call, or none if every sentence is a question or a courtesy.

    Raises:
        UnparseableAnswer: the model's answer holds no facts of numbered sentences.
        ModelError: no answer.
    """
    regions = [region for region in split_sentences(reply) if not claims_nothing(region.of(reply))]
    regions = [region for region in regions if split_words(region.of(reply))]
    if not regions:
        return Decomposition(factoids=(), cut_off=False)
    numbered = "\n".join(
        f"{number}. {' '.join(region.of(reply).split())}" for number, region in enumerate(regions, start=1)
    )
    answer = await session.text(
        "decompose",
        prompt.fill(question=question, answer=numbered),
        temperature=temperature,
        max_tokens=_token_limit(reply),
    )
    if session.calls[-1].finish_reason == "length":
        whole_lines = answer.rpartition("\n")[0]
        return parse_factoids(whole_lines, reply, regions, limit).model_copy(update={"cut_off": True})
    return parse_factoids(answer, reply, regions, limit)


def _token_limit(reply: str) -> int:
    # Factoids repeat the reply with subjects put in, so they take up to twice its tokens (3 characters each).
    return 96 + 2 * len(reply) // 3


def parse_factoids(answer: str, reply: str, regions: Sequence[Region], limit: int) -> Decomposition:
    """Read a decomposition: lines `number: fact`; other lines are ignored.

    Args:
        regions: the sentences that were numbered, from 1.
        limit: factoids to keep.

    Raises:
        UnparseableAnswer: there is no fact of a numbered sentence.
    """
    found: dict[str, Factoid] = {}
    stated: list[Region] = []
    for line in answer.splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is None or not 1 <= int(match[1]) <= len(regions):
            continue
        text = match[2].strip()
        factoid = Factoid(text=text, region=place(text, reply, regions, int(match[1]) - 1))
        stated.append(factoid.region)
        found.setdefault(text.casefold(), factoid)
    if not found:
        raise UnparseableAnswer(f"decompose: the model's answer holds no numbered facts: {answer[:120]!r}")
    factoids = tuple(found.values())
    skipped = tuple(region for region in regions if not any(cut_region(region, place) for place in stated))
    return Decomposition(factoids=factoids[:limit], cut_off=len(factoids) > limit, skipped=skipped)


def place(fact: str, reply: str, regions: Sequence[Region], numbered: int) -> Region:
    """Return the stretch of the reply that `fact` restates, by the module's rule.

    Args:
        regions: the reply's sentences.
        numbered: index of the one that the model named.
    """
    found = locate(fact.rstrip("."), reply, near=regions[numbered].start)
    if found is not None:
        return found
    wanted = set(split_words(fact))
    shared = [len(wanted & set(split_words(region.of(reply)))) for region in regions]
    return regions[numbered if shared[numbered] == max(shared) else shared.index(max(shared))]
