"""MetaRAG's steps 2 and 3 for a whole reply in one request: variants and verdicts (ours, not published).

The paper asks once for the variants of each fact, and once for the verdict on each variant, with the whole
evidence each time. A capable model can do all of it at once, so the evidence is read once. The loss: a
verdict is written after its variant by the same model, which knows which verdict the fact would need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field, create_model

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.models.prompt import Prompt
from hallulab.agents.models.session import Session
from hallulab.detectors.base.judging import ask_with, number_texts
from hallulab.detectors.metarag.steps import (
    ASKED,
    RETRY_TEMPERATURE,
    Check,
    Decision,
    Factoid,
    Relation,
    Variant,
    compute_expected_penalty,
)
from hallulab.scenarios.transcript import Frozen

Checked = tuple[tuple[Variant, Check], ...]
"""The variants of a factoid, synonyms first, each with its check."""


class JudgedVariant(Frozen):
    """A rewording, and whether the evidence says it."""

    text: str
    verdict: Decision


class JudgedFact(Frozen):
    """A numbered fact, reworded and judged."""

    number: Annotated[int, Field(ge=1)]
    """Of the fact in the list that was shown, from 1."""
    same: list[JudgedVariant]
    """Rewordings that keep its meaning."""
    opposite: list[JudgedVariant]
    """Rewordings that reverse it."""


class JudgedFacts(Frozen):
    """What the prompt asks for."""

    facts: list[JudgedFact]
    """One for each fact shown."""


async def judge_together(
    session: Session,
    prompt: Prompt,
    evidence: str,
    factoids: Sequence[Factoid],
    *,
    question: str,
    count: int,
    temperature: float,
) -> Mapping[int, Checked]:
    """Return the variants of each factoid with their checks, by the factoid's place.

    It takes one call, or two if the first answer does not parse. A factoid that the answer leaves out, or
    gives an empty variant of, is missing.

    Raises:
        UnparseableAnswer: neither answer parses.
        ModelError: no answer.
    """
    try:
        return await _attempt(session, prompt, evidence, factoids, question, count, temperature, sample=0)
    except UnparseableAnswer:
        hotter = max(temperature, RETRY_TEMPERATURE)
        return await _attempt(session, prompt, evidence, factoids, question, count, hotter, sample=1)


async def _attempt(
    session: Session,
    prompt: Prompt,
    evidence: str,
    factoids: Sequence[Factoid],
    question: str,
    count: int,
    temperature: float,
    sample: int,
) -> dict[int, Checked]:
    variants = Annotated[list[JudgedVariant], Field(min_length=count, max_length=count)]
    fact = create_model("CountedFact", __base__=JudgedFact, same=(variants, ...), opposite=(variants, ...))
    schema = create_model("CountedFacts", __base__=JudgedFacts, facts=(list[fact], ...))  # type: ignore[valid-type]
    answer = await session.structured(
        "together",
        prompt.fill(
            evidence=evidence,
            asked=ask_with(question, ASKED, "\n\n"),
            facts=number_texts([factoid.text for factoid in factoids]),
            count=str(count),
        ),
        schema,
        temperature=temperature,
        # A variant is about as long as its fact, a token about 3 characters; JSON has names and signs, too.
        max_tokens=64 + sum(24 + 2 * count * (len(factoid.text) // 2 + 36) for factoid in factoids),
        sample=sample,
    )
    judged = {fact.number - 1: fact for fact in answer.facts}
    return {
        place: _read_variants(judged[place])
        for place in range(len(factoids))
        if place in judged and all(one.text.strip() for one in (*judged[place].same, *judged[place].opposite))
    }


def _read_variants(fact: JudgedFact) -> Checked:
    relations: tuple[tuple[Relation, list[JudgedVariant]], ...]
    relations = (("synonym", fact.same), ("antonym", fact.opposite))
    return tuple(
        (
            Variant(relation=relation, text=one.text.strip()),
            Check(
                decisions={one.verdict: 1.0}, penalty=compute_expected_penalty(relation, {one.verdict: 1.0})
            ),
        )
        for relation, written in relations
        for one in written
    )
