"""The metamorphic relations: what S must say of supported, baseless and contradicted facts, however noisy the
verifier is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.metarag.detector import MetaRagDetector
from hallulab.scenarios.transcript import Judgement, Passage
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import last_user, scripted_pool

FACT = "The pool opens at 6."
VIEW = TurnView(
    question="When?", passages=(Passage(id="a#0", document="a", text="The pool opens at 6."),), reply=FACT
)
VARIANTS = (FACT, "one", "two", "three", "four")
"""The fact itself, two synonyms, two antonyms."""

Shares = dict[str, float]
"""Probability of each decision's first word."""

NOISE = 0.1
"""What a verifier's support of a variant is off by at most."""


def judged(shares: Sequence[Shares | str], **options: Any) -> Judgement:
    """The judgement of one fact that is verified, with its four variants, with these shares or words."""

    def answer(body: dict[str, Any]) -> str | Shares:
        asked = last_user(body)
        if "response_format" in body:
            return json.dumps({"same": VARIANTS[1:3], "opposite": VARIANTS[3:]})
        if "Statement:" not in asked:
            return f"1: {FACT}"
        return shares[VARIANTS.index(asked.split("Statement:")[1].strip().split("\n")[0])]

    pool, _ = scripted_pool(answer)
    given = {"reading": "probability", **options}
    detector = MetaRagDetector("metarag", DetectorContext(models=pool, options=given))
    return asyncio.run(detector.detect(VIEW))


def scored(shares: list[Shares]) -> float:
    found = judged(shares).score
    assert found is not None
    return found


def mostly(word: str) -> st.SearchStrategy[Shares]:
    """A verifier that decides for a word, and gives up to `NOISE` to the two others."""
    others = [other for other in ("YES", "NO", "NOT") if other != word]
    noise = st.tuples(st.floats(0, NOISE), st.floats(0, 1))
    return noise.map(
        lambda off: {word: 1 - off[0], others[0]: off[0] * off[1], others[1]: off[0] * (1 - off[1])}
    )


def verified(synonyms: str, antonyms: str) -> st.SearchStrategy[list[Shares]]:
    return st.tuples(*[mostly(synonyms)] * 3, *[mostly(antonyms)] * 2).map(list)


SUPPORTED = verified("YES", "NO")
BASELESS = verified("NOT", "NOT")
CONTRADICTED = verified("NO", "YES")

few = settings(max_examples=25, deadline=None)


@few
@given(SUPPORTED, BASELESS, CONTRADICTED)
def test_contradicted_is_worse_than_baseless_and_that_than_supported(
    supported: list[Shares], baseless: list[Shares], contradicted: list[Shares]
) -> None:
    low, middle, high = map(scored, (supported, baseless, contradicted))
    assert middle - low > 0.3
    assert high - middle > 0.3


@few
@given(BASELESS)
def test_a_baseless_fact_is_flagged_at_the_default_threshold(baseless: list[Shares]) -> None:
    assert judged(baseless).flagged is True


@few
@given(SUPPORTED)
def test_a_supported_fact_passes_at_the_default_threshold(supported: list[Shares]) -> None:
    assert judged(supported).flagged is False


@few
@given(SUPPORTED, mostly("NO"), st.integers(1, 2))
def test_one_wrong_synonym_does_not_flag_a_supported_fact(
    supported: list[Shares], wrong: Shares, place: int
) -> None:
    supported[place] = wrong
    assert judged(supported).flagged is False


@few
@given(SUPPORTED, mostly("YES"), st.integers(3, 4))
def test_one_antonym_that_says_the_same_does_not_flag_a_supported_fact(
    supported: list[Shares], wrong: Shares, place: int
) -> None:
    supported[place] = wrong
    assert judged(supported).flagged is False


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("shares", [{"YES": 1.0}, {"NO": 1.0}])
def test_every_variant_moves_the_score(place: int, shares: Shares) -> None:
    baseless: list[Shares] = [{"NOT": 1.0}] * 5
    changed = [shares if index == place else each for index, each in enumerate(baseless)]
    better = ("YES" in shares) == (place < 3)
    assert scored(changed) == pytest.approx(0.4 if better else 0.6)


@pytest.mark.parametrize(
    ("words", "score", "flagged"),
    [
        (("YES", "YES", "NO", "NO"), 0.0, False),
        (("NO", "YES", "NO", "NO"), 0.25, False),
        (("NOT SURE",) * 4, 0.5, True),
        (("NO", "NO", "YES", "YES"), 1.0, True),
    ],
)
def test_the_same_holds_for_printed_words_and_the_papers_threshold(
    words: tuple[str, ...], score: float, flagged: bool
) -> None:
    found = judged(("", *words), reading="word")
    assert (found.score, found.flagged) == (score, flagged)
