from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.chatbots.pipeline import tidy_reply


@pytest.mark.parametrize(
    ("text", "tidy"),
    [
        ("It opens at 7.", "It opens at 7."),
        ("Assistant: It opens at 7.", "It opens at 7."),
        ("**Assistant:** It opens at 7.", "It opens at 7."),
        ("Corrected reply:\nAssistant: Hello.", "Hello."),
        ("Hello.\n\nUser: and on Sunday?\nAssistant: At 9.", "Hello."),
        ("Hello.\n**User:** thanks", "Hello."),
        ("Hello.\nAssistant: Hello.", "Hello."),
        ("Hello.<|im_end|>\n<|im_start|>user", "Hello."),
        ("Ask the user: when was it?", "Ask the user: when was it?"),
        ("Dear Sir,\nCustomer: P. Miller\nYours", "Dear Sir,\nCustomer: P. Miller\nYours"),
        ("User: Thanks", ""),
        ("Assistant:", ""),
    ],
)
def test_labels_go_and_the_next_speaker_is_cut(text: str, tidy: str) -> None:
    assert tidy_reply(text) == tidy


@given(st.text())
def test_tidying_twice_changes_nothing(text: str) -> None:
    assert tidy_reply(tidy_reply(text)) == tidy_reply(text)
