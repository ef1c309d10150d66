"""Decisions by log-probabilities and by printed words."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.agents.models.abilities import Capabilities
from hallulab.agents.models.answers import Completion, UnlikelyOptions, UnparseableAnswer
from hallulab.agents.models.decisions import printed_option, share_of_tokens, share_of_words
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.log_probabilities import Likely
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.testing.scripted import Script, ScriptedTransport, scripted_pool
from tests.agents.models.endpoints import LOCAL, QUESTION, in_turn


@pytest.mark.parametrize(
    ("options", "text", "option"),
    [
        *((("Yes", "No"), text, "Yes") for text in ("Yes", "**yes**.", "Yes the evidence")),
        *((("Yes", "No"), text, "No") for text in (" No, it is not.", "No\nBecause it")),
        (("Yes", "No"), "Ｎｏ。", "No"),
        *((("Yes", "No"), text, None) for text in ("Not sure. Yes", "Maybe", "", "...", "是")),
        *((("Yes", "No"), text, None) for text in ("Yes/No", "Yes or No", "**No** or **Yes**?")),
        (("Yes", "No"), "No or not much", "No"),
        *((("Yes", "No"), text, "Yes") for text in ("Answer: Yes", "**Final answer:** yes", "\\boxed{Yes}")),
        *((("Yes", "No"), text, "Yes") for text in ('{"answer": "Yes"}', "<answer>Yes</answer>")),
        (("Yes", "No"), "Answer the question: Yes", None),
        *((("A", "B"), text, "A") for text in ("A", "A\n\nThe", "A: Clerk")),
        *((("A", "B"), text, "B") for text in ("b.", "(B)")),
        (("A", "B"), "A clerk should", None),
    ],
)
def test_the_first_word_decides_and_a_letter_stands_alone(
    options: tuple[str, str], text: str, option: str | None
) -> None:
    assert printed_option(text, options) == option


def test_printed_words_share_what_is_readable() -> None:
    share = share_of_words("goal", ["Yes.", "No.", "Well", "yes", "Yes"], ("Yes", "No"))
    assert share == {"Yes": 0.75, "No": 0.25}


def test_no_readable_word_is_an_error_that_quotes_it() -> None:
    with pytest.raises(UnparseableAnswer) as caught:
        share_of_words("goal", ["Well, that depends"], ("Yes", "No"))
    assert str(caught.value) == "goal: the model printed 'Well, that depends', none of Yes, No."


def test_tokens_of_one_word_add_up() -> None:
    answer = Completion("Yes", "stop", (Likely("Yes", -1.0), Likely(" yes", -1.0), Likely("No", -1.0)))
    share = share_of_tokens("goal", answer, ("Yes", "No"))
    assert share == pytest.approx({"Yes": 2 / 3, "No": 1 / 3})


def without_log_probabilities(script: Script, samples: int) -> tuple[ModelPool, ScriptedTransport]:
    pool, transport = scripted_pool(script, decision_samples=samples)
    pool.get().abilities = Capabilities(log_probabilities=False)
    return pool, transport


async def test_an_endpoint_without_log_probabilities_is_asked_for_a_word() -> None:
    pool, transport = without_log_probabilities(lambda _: "Yes, it is.", 1)
    session = pool.session("user", seed=3)
    assert await session.choose("goal", QUESTION, ("Yes", "No")) == {"Yes": 1.0, "No": 0.0}
    (body,) = transport.requests
    assert (body["temperature"], body["max_tokens"], body["seed"]) == (0.0, 8, 3)
    assert "logprobs" not in body
    assert [call.purpose for call in session.calls] == ["user.goal"]


async def test_a_share_of_words_is_sampled_with_a_seed_each() -> None:
    pool, transport = without_log_probabilities(in_turn("Yes", "No", "Yes", "Yes"), 4)
    share = await pool.session("user", seed=3).choose("goal", QUESTION, ("Yes", "No"))
    assert share == {"Yes": 0.75, "No": 0.25}
    asked = [(body["temperature"], body["seed"]) for body in transport.requests]
    assert asked == [(1.0, seed) for seed in (3, 4, 5, 6)]


def test_options_of_less_than_half_the_probability_decide_nothing() -> None:
    answer = Completion("The", "length", (Likely("The", -1.0), Likely("Yes", -1.0), Likely("No", -3.0)))
    with pytest.raises(UnlikelyOptions, match="goal: 42% of the probability is on Yes, No"):
        share_of_tokens("goal", answer, ("Yes", "No"))


async def test_a_word_is_asked_for_where_the_first_token_is_none() -> None:
    likely = {"**": 0.9, "Yes": 0.06, "No": 0.04}
    pool, transport = scripted_pool(lambda body: likely if "logprobs" in body else "**No**, it is not.")
    session = pool.session("user", seed=3)
    assert await session.choose("goal", QUESTION, ("Yes", "No")) == {"Yes": 0.0, "No": 1.0}
    assert [(body["max_tokens"], body["seed"]) for body in transport.requests] == [(1, 3), (8, 3)]
    assert [call.purpose for call in session.calls] == ["user.goal", "user.goal"]


async def test_a_word_that_is_no_option_is_no_guess() -> None:
    pool, _ = scripted_pool(lambda body: {"The": 0.9, "Yes": 0.1} if "logprobs" in body else "The fee")
    with pytest.raises(UnparseableAnswer, match="goal: the model printed 'The fee', none of Yes, No"):
        await pool.session("user").choose("goal", QUESTION, ("Yes", "No"))


async def test_a_recording_without_the_word_decides_as_it_did_then(tmp_path: Path) -> None:
    recording = Recording.record(tmp_path / "r.jsonl")
    transport = ScriptedTransport(lambda _: {"The": 0.6, "Yes": 0.1, "No": 0.3})
    live = ModelPool({"default": Endpoint("m", LOCAL)}, recording=recording, transport=transport)
    with pytest.raises(UnparseableAnswer):
        await live.session("user").choose("goal", QUESTION, ("Yes", "No"))
    recording.close()
    first = (tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)[0]
    (tmp_path / "older.jsonl").write_text(first, encoding="utf-8")
    pool = ModelPool({"default": Endpoint("m", LOCAL)}, recording=Recording.replay(tmp_path / "older.jsonl"))
    share = await pool.session("user").choose("goal", QUESTION, ("Yes", "No"))
    assert {option: round(value, 9) for option, value in share.items()} == {"Yes": 0.25, "No": 0.75}
