"""Leaked plans without tags: those of the labelled file, and the ones that were reported publicly."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hallulab.agents.users.flaws import find_message_flaws
from hallulab.agents.users.leaked_plans import find_leaked_plan

LABELLED = yaml.safe_load(Path(__file__).with_name("leaked_plans.yaml").read_text(encoding="utf-8"))


def count_found(part: str, label: str) -> tuple[int, int]:
    """How many messages have a flaw, and how many there are."""
    texts = LABELLED[part][label]
    return sum(bool(find_message_flaws(text, ())) for text in texts), len(texts)


@pytest.mark.parametrize(
    ("part", "leaks", "innocent"), [("fitted", (91, 94), (0, 89)), ("unseen", (4, 16), (0, 16))]
)
def test_precision_and_recall_on_the_labelled_messages(
    part: str, leaks: tuple[int, int], innocent: tuple[int, int]
) -> None:
    assert (count_found(part, "leaks"), count_found(part, "innocent")) == (leaks, innocent)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "yes please\n\nWe have developer instructions: I'm the user, not assistant.",
            "developer instructions",
        ),
        (
            "Okay, so I need to respond as the customer. What about gift cards?",
            "need to respond as the customer",
        ),
        ("Thinking: the user is upset. When do I get the money?", "Thinking:"),
        ("As the customer, I will now ask. How much is it?", "As the customer, I will"),
        ("*sighs* What now?", "*sighs*"),
        (
            "The assistant said 30 days. I should ask about fees. What is the fee?",
            "The assistant said … I should ask",
        ),
    ],
)
def test_the_words_of_a_leak_are_told(text: str, words: str) -> None:
    assert find_leaked_plan(text) == words
    assert ("leaked_instructions", words) in find_message_flaws(text, ())
