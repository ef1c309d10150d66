from __future__ import annotations

import pytest

from hallulab.scenarios.text.words import is_courtesy


@pytest.mark.parametrize(
    "message",
    [
        "Thank you.",
        "thanks a lot for your help!",
        "Hello",
        "Good morning, dear sir",
        "Ok, thank you so much for the clear information.",
        "You’re welcome!",
        "Bye",
    ],
)
def test_thanks_greetings_and_goodbyes_are_courtesies(message: str) -> None:
    assert is_courtesy(message)


@pytest.mark.parametrize(
    "message",
    [
        "Thank you. What is the number?",
        "Thanks, the bill is from March",
        "thanks, 4850 rupees",
        "Thank you, please send me the address",
        "Yes.",
        "ok",
        "My gas smells, hello",
        "",
    ],
)
def test_what_asks_or_tells_something_is_none(message: str) -> None:
    assert not is_courtesy(message)
