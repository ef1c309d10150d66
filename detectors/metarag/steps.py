"""The steps of MetaRAG (sections 3.2 to 3.5): factoids, their variants, the check of each, and the scores.

Step 1 (section 3.2) splits a reply into factoids, each with its place in the reply. Questions and courtesies
are left out. The model sees the other sentences numbered, and writes one proposition a line after the
sentence's number. A factoid's span is the stretch that `spans.locate` finds for it, the one nearest to that
sentence. If it is too reworded for that, its span is the sentence that shares most words with it. On a tie
that is the numbered one, because small models number carelessly.

Step 2 (section 3.3) makes N rewordings of a factoid that keep its meaning, and N that reverse it. Algorithm 1
also gives the query to the generator, so that "the period" is clear. A model whose decisions are read by
probability is not given it: a small model rewords the query instead of the factoid.

Step 3 (section 3.4) compares each variant with the context; the result is a penalty of Table 1. Algorithm 1
gives it the variant and the context alone, without the query. Each variant is one question: YES, NO or NOT
SURE? Six answered examples come first. Without them a small model's three
answers tell nothing apart. All questions about a reply begin alike, so a server that caches prefixes reads
examples and evidence once.

Step 4 (section 3.5) is arithmetic: equations 1 and 2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, create_model

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.models.prompt import Prompt, load_prompt
from hallulab.agents.models.session import Session
from hallulab.agents.served_model import find_catalogue_name, is_small_model
from hallulab.detectors.base.judging import ask_with, gather_all, number_texts
from hallulab.detectors.base.questions import VERIFICATION, VERIFICATION_WORDS, Calibration, find_calibration
from hallulab.scenarios.text.courtesies import claims_nothing
from hallulab.scenarios.text.spans import Region, cut_region, locate, split_sentences, split_words
from hallulab.scenarios.text.words import match_any
from hallulab.scenarios.transcript import Frozen

if TYPE_CHECKING:
    from hallulab.agents.models.client import ModelClient

_LINE = re.compile(r"[-*•\s]*\[?(\d{1,3})\]?\s*[:.)]\s*(.*\w.*)")


class Factoid(Frozen):
    """One atomic claim of a reply."""

    text: str
    """The claim as the model put it."""
    region: Region


class Decomposition(Frozen):
    """The factoids of a reply."""

    factoids: tuple[Factoid, ...]
    """In order of mention, without repetitions; empty when the reply states no fact."""
    cut_off: bool
    """True if there were more than were kept."""
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
    numbered = number_texts([region.of(reply) for region in regions])
    answer = await session.text(
        "decompose",
        prompt.fill(asked=ask_with(question, "Question: ", "\n"), answer=numbered),
        temperature=temperature,
        # Factoids repeat the reply with subjects put in: up to twice its tokens, of 3 characters each.
        max_tokens=96 + 2 * len(reply) // 3,
    )
    if session.calls[-1].finish_reason == "length":
        whole_lines = answer.rpartition("\n")[0]
        return parse_factoids(whole_lines, reply, regions, limit).model_copy(update={"cut_off": True})
    return parse_factoids(answer, reply, regions, limit)


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
    """Return the stretch of the reply that `fact` restates, by the rule of step 1.

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


Relation = Literal["synonym", "antonym"]
Decision = Literal["YES", "NO", "NOT SURE"]

PENALTIES: Mapping[Relation, Mapping[Decision, float]] = {
    "synonym": {"YES": 0.0, "NOT SURE": 0.5, "NO": 1.0},
    "antonym": {"YES": 1.0, "NOT SURE": 0.5, "NO": 0.0},
}
"""Table 1: a synonym should be entailed by the context, an antonym contradicted."""

PAPER_TAU = 0.5
"""Threshold of the paper's experiments (section 4.2), for printed words: two NOT SURE reach it."""

MIDWAY_TAU = 0.375
"""Threshold for probabilities, where noise moves S. It is midway between 0.5, the S of a baseless fact, and
0.25, about that of a supported fact if a quarter of its variants are wrong."""


def compute_expected_penalty(relation: Relation, decisions: Mapping[Decision, float]) -> float:
    """Return Table 1's penalty in [0, 1], averaged over a distribution of decisions."""
    return sum(PENALTIES[relation][decision] * share for decision, share in decisions.items())


def score_factoid(
    synonyms: Sequence[float], antonyms: Sequence[float], unchanged: float | None = None
) -> float:
    """Return S_i, equation 1: the mean penalty over the N synonym and the N antonym variants.

    Args:
        unchanged: penalty of the factoid itself, which then counts as one more synonym (ours).

    Raises:
        ValueError: there are no variants, or not as many of one kind as of the other.
    """
    if not synonyms or len(synonyms) != len(antonyms):
        raise ValueError(f"{len(synonyms)} synonym and {len(antonyms)} antonym penalties; N of each expected")
    penalties = [*synonyms, *antonyms, *([] if unchanged is None else [unchanged])]
    return sum(penalties) / len(penalties)


def score_response(factoids: Sequence[float]) -> float:
    """Return H, equation 2: the highest S_i.

    Raises:
        ValueError: there are no factoids.
    """
    return max(factoids)


RETRY_TEMPERATURE = 0.7
"""Temperature of the second try, so that it differs from the first."""


class Variant(Frozen):
    """A mutated factoid."""

    relation: Relation
    """True if it should keep or reverse the meaning."""
    text: str


async def mutate(
    session: Session, prompt: Prompt, fact: str, *, question: str = "", count: int, temperature: float
) -> tuple[Variant, ...]:
    """Return `count` synonym variants, then `count` antonym variants.

    It takes one call, or two if the first does not parse.

    Args:
        question: what the fact answers; empty: it is not shown.

    Raises:
        UnparseableAnswer: neither answer parses.
        ModelError: no answer.
    """
    try:
        return await _attempt(session, prompt, fact, question, count, temperature, sample=0)
    except UnparseableAnswer:
        hotter = max(temperature, RETRY_TEMPERATURE)
        return await _attempt(session, prompt, fact, question, count, hotter, sample=1)


ASKED = "The question, only to understand the fact: "
"""Stands before the question where facts are reworded."""


async def _attempt(
    session: Session, prompt: Prompt, fact: str, question: str, count: int, temperature: float, sample: int
) -> tuple[Variant, ...]:
    # A variant is about as long as the fact, and a token about 3 characters.
    limit = 40 + 2 * count * (len(fact) // 2 + 12)
    texts = Annotated[list[str], Field(min_length=count, max_length=count)]
    schema = create_model("Mutations", __base__=Frozen, same=(texts, ...), opposite=(texts, ...))
    answer = await session.structured(
        "mutate",
        prompt.fill(asked=ask_with(question, ASKED, "\n"), fact=fact, count=str(count)),
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


DecisionReading = Literal["probability", "word"]
"""How a decision is read: from the probabilities of its first word, or as the printed word."""

_DECISIONS: tuple[Decision, ...] = ("YES", "NO", "NOT SURE")
FIRST_WORDS = dict(zip(VERIFICATION_WORDS, _DECISIONS, strict=True))
"""The first word of each decision. They are the shared ones: another order would be another request."""

SUPPORTED = "verified"
"""The probability of YES in `calibration.yaml`: a model may say it too easily."""

_WORD = re.compile(rf"\W*({match_any(['yes', 'no'])}|not[\s_-]+sure)\b", re.IGNORECASE)


class Check(Frozen):
    """The result of one verifier for one variant."""

    decisions: dict[Decision, float]
    """Probability of each decision; 1 for the printed word."""
    penalty: float
    """Penalty of Table 1, or its expectation, in [0, 1]."""


def choose_reading(client: ModelClient) -> DecisionReading:
    """Return how a model's decisions are best read.

    A small model's printed word is often wrong where its probabilities still discriminate. They
    need an endpoint with log-probabilities. Any other model prints a word, as in the paper.
    """
    small = is_small_model(client)
    return "probability" if small and client.abilities.log_probabilities else "word"


class Verifier:
    """Asks a model for a decision on each variant. One call a variant.

    Args:
        reading: how decisions are read; None: as is best for the model that is asked.
        temperature: of printed words.
    """

    def __init__(self, reading: DecisionReading | None, temperature: float) -> None:
        self.prompt = load_prompt("hallulab.detectors.base", VERIFICATION)
        self._reading = reading
        self._temperature = temperature

    def reading_of(self, client: ModelClient) -> DecisionReading:
        """Return how the decisions of a model are read."""
        return self._reading or choose_reading(client)

    async def check(self, session: Session, evidence: str, variants: Sequence[Variant]) -> list[Check]:
        """Return the results of the session's model, one a variant, in order.

        Raises:
            UnparseableAnswer: the model makes none of the three decisions.
            ModelError: no answer.
        """
        return await gather_all(self._check(session, evidence, variant) for variant in variants)

    async def _check(self, session: Session, evidence: str, variant: Variant) -> Check:
        messages = self.prompt.fill(evidence=evidence, statement=variant.text)
        if self.reading_of(session.client) == "probability":
            shares = await session.choose("verify", messages, tuple(FIRST_WORDS))
            decisions = correct_probability(
                {FIRST_WORDS[word]: share for word, share in shares.items()},
                find_calibration(find_catalogue_name(session.client), SUPPORTED),
            )
        else:
            answer = await session.text("verify", messages, temperature=self._temperature, max_tokens=6)
            decisions = {read_decision(answer): 1.0}
        return Check(decisions=decisions, penalty=compute_expected_penalty(variant.relation, decisions))


def correct_probability(
    decisions: Mapping[Decision, float], correction: Calibration
) -> dict[Decision, float]:
    """Correct the probability of YES; the two others keep their ratio."""
    yes = correction.apply(decisions["YES"])
    others = decisions["NO"] + decisions["NOT SURE"]
    shares = {word: decisions[word] / others if others else 0.5 for word in ("NO", "NOT SURE")}
    return {"YES": yes, "NO": (1 - yes) * shares["NO"], "NOT SURE": (1 - yes) * shares["NOT SURE"]}


def read_decision(answer: str) -> Decision:
    """Return the decision that an answer begins with."""
    match = _WORD.match(answer)
    if match is None:
        raise UnparseableAnswer(f"verify: neither YES, NO nor NOT SURE: {answer[:80]!r}")
    word = match[1].lower()
    return "YES" if word == "yes" else "NO" if word == "no" else "NOT SURE"
