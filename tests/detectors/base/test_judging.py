"""What the detectors share: evidence in a prompt, the best passage, corrections and thresholds."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.prompt import ChatMessage
from hallulab.agents.served_model import read_tuned_number
from hallulab.detectors.base.judging import (
    find_best_passage,
    format_evidence,
    gather_all,
    judge,
    make_flagged_spans,
)
from hallulab.detectors.base.questions import Calibration, find_calibration
from hallulab.scenarios.transcript import Judgement, Passage, Span, Unit
from hallulab.testing.scripted import scripted_pool

POOL = Passage(id="pool#0", document="pool", text="The pool\n opens at 6.")
GATE = Passage(id="gate#0", document="gate", text="Tickets are sold at the gate.")


def test_passages_are_numbered_one_a_line() -> None:
    evidence = format_evidence((POOL, GATE), 1000)
    assert evidence.text == "Document 1: The pool opens at 6.\nDocument 2: Tickets are sold at the gate."
    assert (evidence.passages, evidence.truncated) == ((POOL, GATE), False)


@pytest.mark.parametrize(
    ("room", "text", "shown"),
    [
        (3, "Document 1: The [...]", (POOL,)),
        (10, "Document 1: The pool [...]", (POOL,)),
        (20, "Document 1: The pool opens at 6.", (POOL,)),
        (28, "Document 1: The pool opens at 6.\nDocument 2: Tickets [...]", (POOL, GATE)),
    ],
)
def test_what_does_not_fit_is_cut_or_left_out_and_marked(
    room: int, text: str, shown: tuple[Passage, ...]
) -> None:
    evidence = format_evidence((POOL, GATE), room)
    assert (evidence.text, evidence.passages, evidence.truncated) == (text, shown, True)


def test_a_passage_is_cut_where_a_sentence_ends() -> None:
    long = GATE.model_copy(update={"text": "Entry is 5.20 euros. Children pay nothing at all."})
    assert format_evidence((long,), 35).text == "Document 1: Entry is 5.20 euros. [...]"


def test_passages_of_earlier_turns_follow_as_far_as_they_fit_whole() -> None:
    far = POOL.model_copy(update={"text": "It is new."})
    evidence = format_evidence((POOL,), 50, (GATE, far))
    assert evidence.text == "Document 1: The pool opens at 6.\nDocument 2: Tickets are sold at the gate."
    assert (evidence.passages, evidence.truncated) == ((POOL, GATE), False)
    assert format_evidence((POOL,), 40, (GATE, far)).passages == (POOL,)
    assert format_evidence((POOL,), 10, (far,)).passages == (POOL,)


def test_no_passages_are_no_evidence_and_nothing_is_cut() -> None:
    assert format_evidence((), 10).model_dump() == {"text": "", "passages": (), "truncated": False}


def test_the_best_passage_shares_most_words_and_is_none_where_none_shares_any() -> None:
    assert (
        find_best_passage("Where are tickets sold?", (POOL, GATE)) == "gate#0: Tickets are sold at the gate."
    )
    assert find_best_passage("at the", (POOL, GATE)).startswith("pool#0: ")
    assert find_best_passage("moon cheese", (POOL, GATE)) == ""
    assert find_best_passage("anything", ()) == ""


def test_units_from_the_threshold_on_are_spans_and_those_without_a_score_are_not() -> None:
    units = [
        Unit(text="opens at 6", start=0, end=10, score=0.5),
        Unit(text="free", start=11, end=15, score=0.4),
        Unit(text="far", start=16, end=19),
    ]
    assert make_flagged_spans(units, 0.5, lambda unit: f"why {unit.text}", (GATE, POOL)) == (
        Span(
            start=0,
            end=10,
            text="opens at 6",
            score=0.5,
            reason="why opens at 6",
            evidence=f"pool#0: {POOL.text}",
        ),
    )


async def test_the_first_failure_is_raised_only_after_all_have_ended() -> None:
    ended: list[str] = []

    async def work(name: str, turns: int, fails: bool) -> str:
        for _ in range(turns):
            await asyncio.sleep(0)
        ended.append(name)
        if fails:
            raise ModelError(name)
        return name

    assert await gather_all([work("a", 2, False), work("b", 1, False)]) == ["a", "b"]
    with pytest.raises(ModelError, match="c"):
        await gather_all([work("c", 2, True), work("d", 1, True), work("e", 3, False)])
    assert ended == ["b", "a", "d", "c", "e"]


async def test_a_missing_key_fails_the_judgement_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    pool = ModelPool({"default": Endpoint("m", "https://models.example/v1")})
    session = pool.session("metarag")

    async def work() -> Judgement:
        await session.text("decompose", [ChatMessage("user", "?")])
        raise AssertionError("not reached")

    judgement = await judge(session, work)
    assert (judgement.outcome, judgement.error) == (
        "failed",
        "https://models.example/v1 needs an API key: set the environment variable OPENAI_API_KEY "
        "(`api_key_env: none` if it takes none).",
    )


@given(st.floats(0.0, 1.0))
def test_no_correction_leaves_a_probability_as_it_is(probability: float) -> None:
    assert Calibration().apply(probability) == pytest.approx(probability, abs=2e-6)


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.1, 9.0), st.floats(-5.0, 5.0))
def test_a_correction_keeps_the_order_and_the_range(a: float, b: float, scale: float, shift: float) -> None:
    low, high = (Calibration(scale=scale, shift=shift).apply(p) for p in sorted((a, b)))
    assert 0.0 <= low <= high <= 1.0


def test_the_shift_moves_the_even_odds() -> None:
    assert find_calibration("qwen2.5-coder-1.5b", "unsupported").apply(0.36) == pytest.approx(0.5, abs=0.01)
    assert find_calibration("qwen2.5-coder-1.5b", "verified").apply(0.6225) == pytest.approx(0.5, abs=0.01)


def test_only_tuned_models_have_a_correction_or_a_threshold() -> None:
    assert find_calibration("gpt-x", "unsupported") == Calibration()
    assert read_tuned_number("hallulab.detectors.metarag", "probability", "qwen2.5-coder-1.5b") == 0.43
    assert read_tuned_number("hallulab.detectors.metarag", "probability", "gpt-x") is None
    assert read_tuned_number("hallulab.detectors.metarag", "word", "qwen2.5-coder-1.5b") is None
    assert read_tuned_number("hallulab.detectors.direct_judge", "reply", "qwen2.5-coder-1.5b") == 0.34


@pytest.mark.parametrize(("flagged", "outcome"), [(False, "abstained"), (True, "scored")])
async def test_what_was_cut_is_never_called_clean(flagged: bool, outcome: str) -> None:
    pool, _ = scripted_pool(lambda body: "ok")

    async def work() -> Judgement:
        spans = (Span(start=0, end=1, text="A"),) if flagged else ()
        return Judgement(outcome="scored", score=0.5, flagged=flagged, spans=spans, truncated=True)

    judgement = await judge(pool.session("judge"), work)
    assert (judgement.outcome, judgement.truncated) == (outcome, True)
