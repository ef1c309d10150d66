"""Spellings of tokens in log-probabilities, and what they add up to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from hallulab.agents.models.log_probabilities import (
    Likely,
    read_answers_first_token,
    read_first_token,
    share_out,
)
from hallulab.agents.models.receiving import find_answer_flaw
from hallulab.testing.scripted import completion
from tests.recordings_read import read_answers

YES_NO = ("Yes", "No")


def entry(token: Any, share: float, *, octets: bool = False) -> dict[str, Any]:
    told = {"token": token, "logprob": math.log(share)}
    return {**told, "bytes": list(token.encode())} if octets else told


def logprobs(sampled: dict[str, Any], *likeliest: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{**sampled, "top_logprobs": list(likeliest)}]}


def shares(tokens: Mapping[str, float], options: Sequence[str] = YES_NO) -> dict[str, float] | None:
    found = share_out([Likely(text, math.log(share)) for text, share in tokens.items()], options).shares
    return found and {option: round(value, 6) for option, value in found.items()}


def test_the_sampled_token_counts_where_it_is_not_among_the_likeliest() -> None:
    lmdeploy = logprobs(entry("Yes", 0.9), entry("No", 0.06, octets=True), entry("ĠYes", 0.04, octets=True))
    tokens = read_first_token(lmdeploy)
    assert tokens is not None
    found = {one.text: round(math.exp(one.logprob), 6) for one in tokens}
    assert found == {"No": 0.06, "ĠYes": 0.04, "Yes": 0.9}
    assert shares(found) == {"Yes": 0.94, "No": 0.06}


@pytest.mark.parametrize(
    ("sampled", "likely"),
    [
        (entry("Yes", 0.9), entry("Yes", 0.9)),
        (entry("Yes", 1.0), entry("Yes", 0.9)),
        (entry(" Yes", 0.9), entry("ĠYes", 0.9)),
        (entry("Yes", 0.9, octets=True), entry("▁Yes", 0.9)),
    ],
)
def test_the_sampled_token_counts_once(sampled: dict[str, Any], likely: dict[str, Any]) -> None:
    tokens = read_first_token(logprobs(sampled, likely, entry("No", 0.1)))
    assert tokens is not None
    assert [round(math.exp(one.logprob), 6) for one in tokens] == [0.9, 0.1]


@pytest.mark.parametrize(
    "token",
    [
        *("yes", "YES", " Yes", "Yes ", "\nYes", "\tYes", "ĠYes", "ĊYes", "ĉyes", "ĠĠYES", "▁Yes"),
        *("▁▁yes", "<0x0A>Yes", "<0x59><0x65><0x73>", "bytes:\\x59es", "b'Yes'", "b' Yes'", "b'\\x0aYes'"),
        *("Ｙｅｓ", "ｙｅｓ"),
        *('"Yes', "**Yes", "'yes'", "Yes.", "Yes,", "(Yes", 'Ġ"Yes', "_Yes_", "`Yes`", "▁**Yes"),
    ],
)
def test_spellings_of_a_word_are_one_form(token: str) -> None:
    assert shares({token: 0.6, "Yes": 0.1, "No": 0.2, "Maybe": 0.1}) == {"Yes": 0.777778, "No": 0.222222}


@pytest.mark.parametrize(
    "token", ["Yesterday", "Eyes", "Y", "es", "", " ", "**", "Yes/No", "Ġ", "<0x59>", "Yes No"]
)
def test_other_words_and_parts_of_words_are_none(token: str) -> None:
    assert shares({token: 0.6, "Yes": 0.1, "No": 0.3}) == {"Yes": 0.25, "No": 0.75}


def test_letters_of_byte_level_tokenizers_are_those_of_any_script() -> None:
    assert shares({"ÐĶÐ°": 0.3, "ĠÐĶÐ°": 0.3, "Нет": 0.4}, ("Да", "Нет")) == {"Да": 0.6, "Нет": 0.4}


@pytest.mark.parametrize("token", ["A", "ĠA", "▁A", "<0x41>", "(A", "A.", "A)", " a"])
def test_a_letter_is_an_option(token: str) -> None:
    assert shares({token: 0.8, "B": 0.2}, ("A", "B")) == {"A": 0.8, "B": 0.2}


def test_traces_of_words_in_quotes_are_left_out() -> None:
    assert shares({"Yes": 0.5, "No": 0.45, '"Yes': 0.009}) == {"Yes": 0.526316, "No": 0.473684}


def test_the_mass_is_added_up_before_it_is_compared() -> None:
    found = share_out([Likely("ĠYes", math.log(0.3)), Likely("Yes", math.log(0.3))], YES_NO)
    assert (round(found.mass, 6), found.shares) == (0.6, {"Yes": 1.0, "No": 0.0})


@pytest.mark.parametrize(
    ("told", "likely"),
    [
        ({"top_logprobs": [{"Yes": math.log(0.9), "No": math.log(0.06)}]}, {"Yes": 0.9, "No": 0.06}),
        ({"top_logprobs": [{"No": math.log(0.06)}], "content": None}, {"No": 0.06, "Yes": 0.9}),
        ({"top_logprobs": [{"No": math.log(0.06)}], "content": []}, {"No": 0.06, "Yes": 0.9}),
        ({"top_logprobs": [[entry("Yes", 0.9), entry("No", 0.06)]]}, {"Yes": 0.9, "No": 0.06}),
        ({"top_logprobs": None, "text_offset": [0]}, {}),
        ({"top_logprobs": [None]}, {}),
        ({"top_logprobs": [{"Yes": None, "No": math.log(0.06)}]}, {"No": 0.06, "Yes": 0.9}),
        ({"top_logprobs": "none"}, None),
        ({"tokens": [9642], "top_logprobs": [{"9642": math.log(0.9)}]}, None),
    ],
)
def test_log_probabilities_may_come_as_completions_of_texts_have_them(
    told: dict[str, Any], likely: dict[str, float] | None
) -> None:
    columns = {"tokens": ["Yes"], "token_logprobs": [math.log(0.9)], **told}
    tokens = read_first_token(columns)
    found = None if tokens is None else {one.text: round(math.exp(one.logprob), 6) for one in tokens}
    assert found == likely


def test_tokens_of_a_refusal_are_none_of_the_options() -> None:
    told = logprobs(entry("I", 0.99), entry("I", 0.99))
    tokens = read_first_token({"content": None, "refusal": told["content"]})
    assert tokens is not None
    assert [one.text for one in tokens] == ["I"]


def test_a_token_without_bytes_is_its_text() -> None:
    told = {**entry("Yes", 0.9), "bytes": []}
    tokens = read_first_token(logprobs(told, told))
    assert tokens is not None
    assert [one.text for one in tokens] == ["Yes"]


@pytest.mark.parametrize("token", ["token_id:9642", 9642])
def test_numbers_of_tokens_are_no_log_probabilities_and_no_flaw(token: Any) -> None:
    body = completion("Yes")
    octets = {"bytes": list(str(token).encode())}
    numbers = logprobs({**entry(token, 0.9), **octets}, {**entry(token, 0.9), **octets})
    body["choices"][0]["logprobs"] = numbers
    assert read_first_token(numbers) is None
    assert find_answer_flaw({"logprobs": True, "max_tokens": 1}, body) is None


@pytest.mark.parametrize(
    "sampled",
    [entry("No", 0.5), {**entry("No", 0.5), "top_logprobs": None}, {**entry("No", 0.5), "top_logprobs": []}],
)
def test_the_sampled_token_alone_says_nothing_of_the_others(sampled: dict[str, Any]) -> None:
    assert read_first_token({"content": [sampled]}) == ()


@pytest.mark.parametrize("empty", [{}, [], {"content": []}, {"content": None, "refusal": None}])
def test_an_empty_place_for_log_probabilities_is_no_flaw(empty: Any) -> None:
    body = completion("Yes")
    body["choices"][0]["logprobs"] = empty
    assert find_answer_flaw({"logprobs": True, "max_tokens": 1}, body) is None
    assert read_first_token(empty) is None


def test_a_token_that_is_told_twice_counts_once() -> None:
    tokens = read_first_token(logprobs(entry("Yes", 0.6), entry("Yes", 0.6), entry("No", 0.3)))
    assert tokens is not None
    assert shares({one.text: math.exp(one.logprob) for one in tokens}) == {"Yes": 0.666667, "No": 0.333333}
    assert len(tokens) == 2


@pytest.mark.parametrize("impossible", [None, {"token": "x", "logprob": None}])
def test_a_token_without_a_probability_is_left_out(impossible: Any) -> None:
    """-Infinity is no number in JSON."""
    tokens = read_first_token(logprobs(entry("Yes", 0.9), entry("Yes", 0.9), impossible))
    assert tokens is not None
    assert [one.text for one in tokens] == ["Yes"]


THOUGHT = [logprobs(entry(text, 0.9), entry(text, 0.9))["content"][0] for text in ("No", "Ġpassage", "\n\n")]
NO = logprobs(entry("No", 0.6), entry("No", 0.6), entry("Yes", 0.4))["content"]
ANSWER = logprobs(entry("Yes", 0.9), entry("Yes", 0.9), entry("No", 0.1))["content"]


@pytest.mark.parametrize(
    ("told", "text", "found"),
    [
        ([*THOUGHT, *ANSWER], "Yes", ["Yes", "No"]),
        ([*THOUGHT, *ANSWER, entry("<|im_end|>", 0.9)], " Yes\n", ["Yes", "No"]),
        ([entry("<think>", 0.9), *THOUGHT, entry("</think>", 0.9), *ANSWER], "Yes", ["Yes", "No"]),
        ([*THOUGHT, *NO], "No", ["No", "Yes"]),
        ([*THOUGHT, *ANSWER], "No", []),
        (THOUGHT, "Yes", []),
        (ANSWER, "Yes", ["Yes", "No"]),
        (ANSWER, "Yes, it is.", ["Yes", "No"]),
        (ANSWER, "", ["Yes", "No"]),
    ],
)
def test_a_decision_is_read_behind_the_thoughts(told: list[Any], text: str, found: list[str]) -> None:
    """SGLang gives the tokens of thoughts, too, and leaves them out of the text."""
    tokens = read_answers_first_token({"content": told}, text)
    assert tokens is not None
    assert [one.text for one in tokens] == found


@pytest.mark.slow  # It reads all recordings.
def test_every_recorded_decision_has_the_shares_it_had() -> None:
    """The rule until then: words without spaces in lower case, of the likeliest tokens only."""
    asked = (("Yes", "No"), ("YES", "NO", "NOT"), ("Fact", "Talk"), tuple("ABCDEFGH"))
    checked = 0
    for answer in read_answers():
        told = answer["choices"][0].get("logprobs")
        tokens = read_first_token(told)
        if not tokens:
            continue
        likeliest = told["content"][0]["top_logprobs"]
        for options in asked:
            mass = dict.fromkeys(options, 0.0)
            by_word = {option.lower(): option for option in options}
            for one in likeliest:
                word = str(one["token"]).strip().lower()
                if word in by_word:
                    mass[by_word[word]] += math.exp(one["logprob"])
            total = sum(mass.values())
            if total >= 0.5:
                found = share_out(tokens, options).shares
                assert found == {option: value / total for option, value in mass.items()}
                checked += 1
    assert checked > 9_000
