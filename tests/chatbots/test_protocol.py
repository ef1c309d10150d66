"""What is left of a bot's reply before it is judged, and what is no reply."""

from __future__ import annotations

import pytest

from hallulab.chatbots.protocol import ChatbotError, validate_reply


@pytest.mark.parametrize(
    ("reply", "judged"),
    [
        (" It costs 3 €.\n", "It costs 3 €."),
        ("<think>Perhaps 4?</think>\nIt costs 3 €.", "It costs 3 €."),
        ("analysisPerhaps 4?assistantfinalIt costs 3 €.", "It costs 3 €."),
        ("Write it between <think> and </think>.", "Write it between <think> and </think>."),
        ("It costs 3 €.<|im_end|>", "It costs 3 €.<|im_end|>"),
    ],
)
def test_thoughts_of_a_bots_model_are_left_out_and_nothing_else(reply: str, judged: str) -> None:
    assert validate_reply("mine", reply) == judged


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (" \n", "mine: the bot's reply is empty."),
        ("<think>Perhaps 4?</think>", "mine: the model gave nothing but its reasoning."),
        ('{"name": "search", "arguments": {}}', "mine: the model wrote the call of a tool as text"),
        (
            "analysisHm.assistantcommentary to=functions.search json{}",
            "mine: the model wrote the call of a tool",
        ),
    ],
)
def test_what_is_no_reply_is_a_failure_with_its_reason(reply: str, reason: str) -> None:
    with pytest.raises(ChatbotError, match=f"^{reason}"):
        validate_reply("mine", reply)
