"""Courtesies claim nothing, and what stands beside them does."""

from __future__ import annotations

import time

import pytest

from hallulab.detectors.base.questions import claims_nothing


@pytest.mark.parametrize(
    "sentence",
    [
        "If you need any further help, feel free to contact us.",
        "Thank you for reaching out, I'm here to help.",
        "Hello, and thank you so much for your patience and understanding!",
        "Sure, I'd be happy to help you with that.",
        "I understand how frustrating this is, and I'm sorry for the trouble.",
        "Please provide your name, address and contact number so I can help you better.",
        "Let me know if you need more details or if there's anything else I can help you with.",
        "You're welcome — good luck with your complaint!",
        "Yes! Feel free to ask.",
        "Feel free to adjust this template.",
    ],
)
def test_a_sentence_of_nothing_but_courtesies_claims_nothing(sentence: str) -> None:
    assert claims_nothing(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Feel free to contact the State Commission in Agartala, it sits in the old palace.",
        "Feel free to contact us, it sits in the old palace.",
        "I understand your frustration, but the limitation period is over.",
        "Thank you for asking; the fee is nil.",
        "I'm sorry to hear that – the office has closed.",
        "I'm happy to help you because the law is on your side.",
        "Hi, it was a great movie!",
        "The fee is nil, so feel free to ask.",
        "Thank you: the shop must refund you.",
        "Thanks. The fee is nil.",
    ],
)
def test_a_clause_beside_a_courtesy_claims(sentence: str) -> None:
    assert not claims_nothing(sentence)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Feel free to call the helpline.", True),
        ("Feel free to call the National Consumer Helpline.", False),
        ("Feel free to call the helpline, Agartala.", False),
        ("Feel free to return it within thirty days.", False),
        ("If you have any questions about the Consumer Protection Act, let me know.", False),
        ("Please share the details, and I'll help you.", True),
        ("Here is a sample letter to Airtel.", False),
    ],
)
def test_an_offer_of_something_specific_claims(sentence: str, expected: bool) -> None:
    assert claims_nothing(sentence) is expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("I'm sorry to hear about your trouble with Airtel.", True),
        ("I'm sorry to hear about your trouble with Airtel, feel free to ask.", True),
        ("I'm sorry to hear about your trouble with Airtel, feel free to call Airtel.", False),
        ("Hello Mr. Rao, how can I help you.", True),
        ("I'm sorry to hear about your loss of 500 rupees.", False),
    ],
)
def test_sympathy_may_repeat_a_name_in_its_own_clause(sentence: str, expected: bool) -> None:
    assert claims_nothing(sentence) is expected


@pytest.mark.parametrize(
    "sentence",
    [
        "The helpline is happy to assist.",
        "The staff is knowledgeable and happy to assist with selections.",
        "You are welcome to file it free of charge.",
        "I'm sorry that the period is over.",
        "Yes.",
        "Of course!",
    ],
)
def test_words_of_courtesy_about_others_or_none_at_all_are_no_courtesy(sentence: str) -> None:
    assert not claims_nothing(sentence)


@pytest.mark.parametrize(
    "part", ["if you need any more ", "here are ", " - ", "hello ", "i'm very ", "thank , "]
)
def test_a_long_repetitive_sentence_is_read_at_once(part: str) -> None:
    began = time.perf_counter()
    claims_nothing(part * 4000)
    assert time.perf_counter() - began < 2.0
