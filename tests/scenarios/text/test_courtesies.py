"""Courtesies claim nothing, and what stands beside them does."""

from __future__ import annotations

import pytest

from hallulab.scenarios.text.courtesies import claims_nothing
from tests.growth.families import MOST, measure_growth_with


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        # nothing but courtesies
        ("If you need any further help, feel free to contact us.", True),
        ("Thank you for reaching out, I'm here to help.", True),
        ("Hello, and thank you so much for your patience and understanding!", True),
        ("Sure, I'd be happy to help you with that.", True),
        ("I understand how frustrating this is, and I'm sorry for the trouble.", True),
        ("Please provide your name, address and contact number so I can help you better.", True),
        ("Let me know if you need more details or if there's anything else I can help you with.", True),
        ("You're welcome — good luck with your complaint!", True),
        ("Yes! Feel free to ask.", True),
        ("Feel free to adjust this template.", True),
        # a clause beside a courtesy
        ("Feel free to contact the State Commission in Agartala, it sits in the old palace.", False),
        ("Feel free to contact us, it sits in the old palace.", False),
        ("I understand your frustration, but the limitation period is over.", False),
        ("Thank you for asking; the fee is nil.", False),
        ("I'm sorry to hear that – the office has closed.", False),
        ("I'm happy to help you because the law is on your side.", False),
        ("Hi, it was a great movie!", False),
        ("The fee is nil, so feel free to ask.", False),
        ("Thank you: the shop must refund you.", False),
        ("Thanks. The fee is nil.", False),
        # an offer of something specific
        ("Feel free to call the helpline.", True),
        ("Feel free to call the National Consumer Helpline.", False),
        ("Feel free to call the helpline, Agartala.", False),
        ("Feel free to return it within thirty days.", False),
        ("If you have any questions about the Consumer Protection Act, let me know.", False),
        ("Please share the details, and I'll help you.", True),
        ("Here is a sample letter to Airtel.", False),
        # sympathy may repeat a name in its own clause
        ("I'm sorry to hear about your trouble with Airtel.", True),
        ("I'm sorry to hear about your trouble with Airtel, feel free to ask.", True),
        ("I'm sorry to hear about your trouble with Airtel, feel free to call Airtel.", False),
        ("Hello Mr. Rao, how can I help you.", True),
        ("I'm sorry to hear about your loss of 500 rupees.", False),
        # words of courtesy about others, or none at all
        ("The helpline is happy to assist.", False),
        ("The staff is knowledgeable and happy to assist with selections.", False),
        ("You are welcome to file it free of charge.", False),
        ("I'm sorry that the period is over.", False),
        ("Yes.", False),
        ("Of course!", False),
        # questions
        ("If you need help with drafting or have any further questions, feel free to ask.", True),
        ("When did you buy it?", True),
        ("I'm sorry to hear about your fridge.", True),
        ("Here's a sample notice template you can use as a starting point.", True),
        ("Did you know that the fee is nil?", False),
        ("It opens at 6, shall I book?", False),
        ("Yes! Have you been there?", True),
        ("It goes on, thanks to high ratings.", False),
        ("Feel free to call 0381-232-0325.", False),
        ("The fee is nil.", False),
        # a claim beside a phrase, without a comma
        ("The police will arrest the seller at once if you need help.", False),
        ("I understand your landlord must return the deposit within a month.", False),
        ("I understand how you feel.", True),
        ("If you have any more questions, feel free to ask.", True),
        # a question at the end of lines without full stops
        ("How to file\nPay at the Supreme Court and bring witnesses\nShall I go on?", False),
    ],
)
def test_courtesies_and_questions_claim_nothing_and_what_stands_beside_them_does(
    sentence: str, expected: bool
) -> None:
    assert claims_nothing(sentence) is expected


@pytest.mark.parametrize(
    "part", ["if you need any more ", "here are ", " - ", "hello ", "i'm very ", "thank , "]
)
def test_a_long_repetitive_sentence_is_read_in_time_with_its_length(part: str) -> None:
    assert measure_growth_with(claims_nothing, lambda length: part * (length // len(part) + 1)) < MOST
