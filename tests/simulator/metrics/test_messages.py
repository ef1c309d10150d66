"""What is counted of users' messages."""

from __future__ import annotations

import pytest

from hallulab.simulator.metrics.messages import (
    Messages,
    compute_facts_given,
    count_questions,
    is_only_pronouns,
)

FACTS = ("She lives in Agartala, West Tripura", "The mixer cost Rs 4,850", "Her phone is 55501 20114")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("Thank you.", 0),
        ("how is it created", 1),
        ("How is it created?", 1),
        ("My bus was late. Who pays? And when?", 2),
        ("My bus was late, who pays?", 1),
        ("I do not know what to do.", 0),
        ("费用是多少？可以退吗？", 2),
        ("كم الرسوم؟", 1),
    ],
)
def test_questions_have_a_mark_or_begin_with_a_word_that_asks(text: str, count: int) -> None:
    assert count_questions(text) == count


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("How is it created?", True),
        ("Are those the only steps?", True),
        ("When was that?", True),
        ("How is an intent created?", False),
        ("I know that intents are created", False),
        ("How long does it take to file a complaint?", False),
        ("", False),
    ],
)
def test_messages_by_pronoun_only(text: str, found: bool) -> None:
    assert is_only_pronouns(text) is found


def test_a_fact_is_given_with_half_of_its_content_words() -> None:
    assert compute_facts_given("My mixer for Rs 4850 burnt out. I live in Agartala.", FACTS) == pytest.approx(
        2 / 3
    )
    assert compute_facts_given("My mixer burnt out.", FACTS) == 0.0


def test_without_facts_their_share_is_not_known() -> None:
    assert compute_facts_given("My mixer burnt out.", ()) is None
    assert Messages(("s", "p", 0), ("Hello",)).counts["facts_given"] == ()


def test_each_message_has_a_number() -> None:
    said = (
        "My mixer burnt out, who pays?",
        "Thanks. How can I help you?",
        "That\N{RIGHT SINGLE QUOTATION MARK}s all, bye",
    )
    counts = Messages(("s", "p", 0), said, FACTS).counts
    assert counts == {
        "turns": (3.0,),
        "first_words": (6.0,),
        "follow_up_words": (6.0, 3.0),
        "questions": (1.0, 1.0, 0.0),
        "facts_given": (0.0,),
        "pronoun_only": (0.0, 0.0),
        "thanks": (0.0, 1.0, 0.0),
        "endings": (0.0, 0.0, 1.0),
        "assistants_part": (0.0, 1.0, 0.0),
    }


def test_rules_for_english_leave_messages_in_other_languages_out() -> None:
    said = ("Meine Karte ist weg, was kostet die neue?", "Danke, das ist alles für heute.", "Thanks, bye")
    counts = Messages(("s", "p", 0), said, ("Her card is lost",)).counts
    assert {field: counts[field] for field in ("facts_given", "pronoun_only", "thanks", "endings")} == {
        "facts_given": (),
        "pronoun_only": (0.0,),
        "thanks": (1.0,),
        "endings": (1.0,),
    }
    assert (counts["questions"], counts["follow_up_words"]) == ((1.0, 0.0, 0.0), (6.0, 2.0))


def test_a_conversation_without_messages_has_no_numbers() -> None:
    assert set(Messages(("s", "p", 0), (), FACTS).counts.values()) == {()}


def test_a_conversation_that_failed_has_no_number_of_turns() -> None:
    counts = Messages(("s", "p", 0), ("Hello",), failed=True).counts
    assert (counts["turns"], counts["first_words"]) == ((), (1.0,))
