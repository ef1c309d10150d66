"""HalluDetect's arithmetic and text rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.detectors.base.questions import split_statements
from hallulab.detectors.halludetect.evidence import (
    EvidenceContext,
    draws_on_user,
    find_details,
    measure_lack_of_overlap,
    merge_passages,
    repeats_user,
)
from hallulab.detectors.halludetect.strategies import (
    Objection,
    RoughAnalysis,
    compute_severity,
    find_majority,
    vote,
)
from hallulab.scenarios.transcript import Passage

USER = "I am Sharan Hegde, sharan.hegde@gmail.com, phone 98450 12345. The fridge cost Rs 12,500."
SHARES = st.floats(0.0, 1.0)


@pytest.mark.parametrize(
    ("unsupported", "consequence", "expected"),
    [(0.0, 1.0, 1.0), (0.5, 1.0, 4.0), (0.25, 1.0, 2.5), (0.75, 1.0, 4.5), (1.0, 1.0, 5.0), (1.0, 0.0, 1.0)],
)
def test_severity_grows_with_the_risk(unsupported: float, consequence: float, expected: float) -> None:
    assert compute_severity(unsupported, consequence) == expected


@given(SHARES, SHARES, SHARES)
def test_severity_is_on_the_scale_and_monotone(a: float, b: float, consequence: float) -> None:
    low, high = sorted((a, b))
    assert 1.0 <= compute_severity(low, consequence) <= compute_severity(high, consequence) <= 5.0


def test_a_majority_is_more_than_half() -> None:
    assert [find_majority(votes, 4) for votes in (1, 2, 3)] == [False, False, True]


def test_items_are_emails_and_digits() -> None:
    assert find_details("Call +91 98450-12345 or A.B@mail.com by 5.") == {"919845012345", "a.b@mail.com", "5"}


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Email: sharan.hegde@gmail.com", True),
        ("Amount paid: Rs 12500", True),
        ("Your phone number is 98450-12345.", True),
        ("Email: sharan@gmail.com", False),
        ("Your fridge cost Rs 12,500 and you get 30 days.", False),
        ("The seller owes damages and compensation of Rs 12,500.", False),
        ("You can complain.", False),
        ("The fee is Rs 12,500.", False),
    ],
)
def test_only_what_the_user_said_and_nothing_more_is_cleared(sentence: str, expected: bool) -> None:
    assert repeats_user(sentence, USER) is expected


def test_a_sentence_with_the_users_words_is_held_against_them() -> None:
    assert draws_on_user("The fridge of Mr Hegde is covered.", USER, "An appliance is covered.")
    assert not draws_on_user("The helpline is free of charge.", USER, "The helpline exists.")


def test_overlap_weighs_words_and_numbers() -> None:
    assert measure_lack_of_overlap("It is free", "it is cheap") == pytest.approx(1 / 3)
    assert measure_lack_of_overlap("Call 555 now", "call 777 now") == pytest.approx((1 / 3 + 1) / 2)
    assert measure_lack_of_overlap("Call 555-777", "call 555 777") == 0.0


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Yes! The pool opens at 6. Sure.", ["Yes! The pool opens at 6. Sure."]),
        (
            "The pool opens at 6. --- It is free of charge.",
            ["The pool opens at 6.", "--- It is free of charge."],
        ),
        ("Hi! Yes. It really is.", ["Hi!", "Yes. It really is."]),
        ("Yes.", ["Yes."]),
        ("?!", []),
    ],
)
def test_short_sentences_are_judged_with_the_next_one(reply: str, expected: list[str]) -> None:
    assert [region.of(reply) for region in split_statements(reply)] == expected


def test_doubled_retrieval_adds_to_the_turns_own_passages() -> None:
    own = (Passage(id="a", document="a", text="own a"), Passage(id="b", document="b", text="b"))
    found = (Passage(id="c", document="c", text="c"), Passage(id="a", document="a", text="found a"))
    assert [(p.id, p.text) for p in merge_passages(own, found)] == [("a", "own a"), ("b", "b"), ("c", "c")]


def test_who_asks_whether_a_thing_is_so_does_not_say_so() -> None:
    said = "I paid Rs 12,500. Is the fee Rs 500?\nThe shop is shut."
    grounds = EvidenceContext(
        documents="", text="", passages=(), user_text=said, query=None, memory=None, truncated=False
    )
    assert grounds.user_statements == "I paid Rs 12,500. The shop is shut."


def analysis(*quotes: str) -> RoughAnalysis:
    return RoughAnalysis(hallucinations=[Objection(reason=f"why {q}", sentence=q) for q in quotes])


def test_sentences_that_a_majority_quotes_are_kept_in_order() -> None:
    reply = "It is free. It opens at 6. It is far."
    samples = [analysis("it opens at 6", "It is free."), analysis("It opens at 6."), analysis("It is far.")]
    [rated] = vote(samples, reply)
    assert (rated.text, rated.region) == ("It opens at 6.", (12, 26))
    assert rated.reason == "why it opens at 6"
    assert rated.details["votes"] == pytest.approx(2 / 3)


def test_one_sample_votes_once_and_a_repeated_sentence_goes_to_its_occurrence() -> None:
    [first, second] = vote([analysis("It is free.", "It is free.")], "It is free. It is free.")
    assert (first.region, second.region) == ((0, 11), (12, 23))


def test_a_quotation_that_is_not_there_is_kept_as_unlocated() -> None:
    [rated] = vote([analysis("The moon is cheese."), analysis("the moon is  cheese.")], "It is free.")
    assert (rated.text, rated.region) == ("The moon is cheese.", None)
