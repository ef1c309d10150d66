"""Step 2 of MetaRAG (section 3.3): N rewordings of a factoid that keep its meaning, N that reverse it.

Algorithm 1 also gives the query to the generator. We leave it out: a small model then rewords the query
instead of the factoid, which is clear without it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, create_model

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.models.model import Session
from hallulab.agents.models.prompt import Prompt
from hallulab.detectors.metarag.scoring import Relation
from hallulab.scenarios.transcript import Frozen

RETRY_TEMPERATURE = 0.7
"""Temperature of the second try, so that it differs from the first."""


class Variant(Frozen):
    """A mutated factoid."""

    relation: Relation
    """Whether it should keep or reverse the meaning."""
    text: str
    """The rewording."""


async def mutate(
    session: Session, prompt: Prompt, fact: str, *, count: int, temperature: float
) -> tuple[Variant, ...]:
    """Return `count` synonym variants, then `count` antonym variants.

    It takes one call, or two if the first does not parse.

    Raises:
        UnparseableAnswer: neither answer parses.
        ModelError: no answer.
    """
    try:
        return await _attempt(session, prompt, fact, count, temperature, sample=0)
    except UnparseableAnswer:
        hotter = max(temperature, RETRY_TEMPERATURE)
        return await _attempt(session, prompt, fact, count, hotter, sample=1)


async def _attempt(
    session: Session, prompt: Prompt, fact: str, count: int, temperature: float, sample: int
) -> tuple[Variant, ...]:
    # A variant is about as long as the fact, and a token about 3 characters.
    limit = 40 + 2 * count * (len(fact) // 2 + 12)
    texts = Annotated[list[str], Field(min_length=count, max_length=count)]
    schema = create_model("Mutations", __base__=Frozen, same=(texts, ...), opposite=(texts, ...))
    answer = await session.structured(
        "mutate",
        prompt.fill(fact=fact, count=str(count)),
        schema,
        temperature=temperature,
        max_tokens=limit,
        sample=sample,
    )
    made = answer.model_dump()
    if any(not text.strip() for texts in made.values() for text in texts):
        raise UnparseableAnswer(f"mutate: an empty variant of {fact[:80]!r}")
    synonyms = [Variant(relation="synonym", text=text.strip()) for text in made["same"]]
    antonyms = [Variant(relation="antonym", text=text.strip()) for text in made["opposite"]]
    return (*synonyms, *antonyms)
