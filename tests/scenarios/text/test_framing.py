"""What of a reply claims nothing: refusals, and words that only frame claims."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.text.framing import find_lead_in, find_unclaimed


def list_unclaimed(reply: str) -> list[str]:
    return [region.of(reply) for region in find_unclaimed(reply)]


@pytest.mark.parametrize(
    ("reply", "unclaimed"),
    [
        ("The drill is free (Passage 2).", ["(Passage 2)"]),
        ("It is free [see document 3, step 1], and new (passages 1 and 2).",
         ["[see document 3, step 1]", "(passages 1 and 2)"]),
        ("It is free, according to passage 1.", [", according to passage 1"]),
        ("It is free, as mentioned in the passages.", [", as mentioned in the passages"]),
        ("Passage 1: A card costs 5 euros.", ["Passage 1: "]),
        ("**Answer:** 5 euros.", ["**Answer:** "]),
        ("Passage 2 mentions that drills are free.", ["Passage 2 mentions that "]),
        ("The passages provide general information about late fees.",
         ["The passages provide general information about "]),
        ("Passage 1 states that it is free, while passage 2 gives a price of 5 euros.",
         ["Passage 1 states that ", "while passage 2 gives a price of "]),
        ("It is free. I do not know why.", ["I do not know why."]),
        ("The texts do not say who pays, but it is 5 euros.", ["The texts do not say who pays"]),
        ("Passage 1 discusses Elm Park, but the passage does not mention roasting.",
         ["Passage 1 discusses ", " the passage does not mention roasting."]),
        ("Passage 3 says that it is free (Passage 3). The passages do not say why.",
         ["Passage 3 says that ", "(Passage 3)", "The passages do not say why."]),
    ],
)  # fmt: skip
def test_sources_and_refusals_claim_nothing(reply: str, unclaimed: list[str]) -> None:
    assert list_unclaimed(reply) == unclaimed


@pytest.mark.parametrize(
    "reply",
    [
        "The drill is free (members).",
        "Bring your passport (document).",
        "Documents: a passport and a proof of address.",
        "Write to the address provided in the documents.",
        "I am not sure, but it is 5 euros.",
        "The policy does not cover water damage, but fire.",
        "According to the law, it is free.",
        "The mayor said that it is free.",
        "",
    ],
)
def test_a_claim_is_left_whole(reply: str) -> None:
    assert list_unclaimed(reply) == []


@pytest.mark.parametrize(
    ("sentence", "lead_in"),
    [
        ("Based on the provided passages, twins share a placenta.", "Based on the provided passages, "),
        ("However, according to passage 2, it is free.", "However, according to passage 2, "),
        ("Based on the passages, passage 1 says that it is free.",
         "Based on the passages, passage 1 says that "),
        ('The answer to your question "How long?" is 7 days.', 'The answer to your question "How long?" is '),
        ("Here are the steps to reset it:", "Here are the steps to reset it:"),
        ("Based on\nthe given passages, here is how raffles work:",
         "Based on\nthe given passages, here is how raffles work:"),
        ("The fees are as follows:", "The fees are as follows:"),
        ("1. What does a drill cost?", "1. What does a drill cost?"),
        ("**Question 2:** Is it free?", "**Question 2:** Is it free?"),
        ("Here are 3 drills:", None),
        ("Dogs are forbidden and the fees are:", None),
        ("From Monday, it is free.", None),
        ("It is free.", None),
    ],
)  # fmt: skip
def test_the_lead_in_of_a_sentence(sentence: str, lead_in: str | None) -> None:
    found = find_lead_in(sentence)
    assert (found and found.of(sentence)) == lead_in


@given(
    st.lists(st.sampled_from(["passage 1 ", "(", ")", "says that ", "I do not know", ". ", ": ", "\n", "x "]))
)
def test_the_stretches_are_in_order_and_do_not_meet(pieces: list[str]) -> None:
    reply = "".join(pieces)
    edges = [edge for region in find_unclaimed(reply) for edge in region]
    assert edges == sorted(set(edges))
    assert not edges or (edges[0] >= 0 and edges[-1] <= len(reply))
