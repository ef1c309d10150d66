"""What is wrong in a flagged sentence, and what the evidence has instead."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.detectors.explanations.explanation import MOST_WORDS, Signals, explain, find_signals
from hallulab.scenarios.transcript import Passage

TEXT = st.text(
    alphabet=st.sampled_from("Aab Rs.T+ 0129½٣-/@:,()\"'\n₹%é§ the not if May"), max_size=50
) | st.text(max_size=40)

HELPLINES = (
    "Title: National Consumer Helpline\nA consumer can call 1915 on every day.",
    "Title: Legal aid\nThe helpline of the legal services authorities is 15100.",
)
BANK = (
    "Title: Fraudulent debits\nThe burden of proving the customer's liability lies on the bank. The bank "
    "must resolve the complaint within 90 days.",
)
INSURER = (
    "Title: Complaint against an insurer\nThe Insurance Ombudsman can be approached if the insurer rejected "
    "the complaint or did not reply.",
    "Title: Complaint against a bank: the Reserve Bank Ombudsman\nA complaint is free.",
)


def passages(*texts: str) -> tuple[Passage, ...]:
    return tuple(Passage(id=f"d#{place}", document="d", text=text) for place, text in enumerate(texts))


def reason(sentence: str, texts: tuple[str, ...], user_text: str = "") -> str:
    return explain(sentence, passages(*texts), user_text).reason


@pytest.mark.parametrize(
    ("sentence", "texts", "expected"),
    [
        (  # a number of another body
            "You can call the National Consumer Helpline at 15100.",
            HELPLINES,
            'The evidence has "15100" in: "The helpline of the legal services authorities is 15100"; the '
            'words "National" and "Consumer" are not there. For "National Consumer Helpline" it has "1915".',
        ),
        (  # an invented period
            "The bank must resolve the complaint within 30 days.",
            BANK,
            '"30 days" is not in the evidence; on the same matter it has "90 days". It says: "The bank must '
            'resolve the complaint within 90 days".',
        ),
        (  # an invented number, with another of another matter in the evidence
            "Dial 1912 for it.",
            HELPLINES[:1],
            '"1912" is not in the evidence. No passage has the word "Dial".',
        ),
        (  # a price, beside one of another matter
            "Below that, shipping costs 7.50 euros.",
            ("Shipping: Orders over 50 euros are sent free of charge.",),
            '"7.50 euros" is not in the evidence. No passage has the word "costs".',
        ),
        (  # a price, beside one of another matter and one of the same
            "Below that, shipping costs 7.50 euros.",
            ("Shipping: Orders over 50 euros are sent free, below that shipping costs 4.90 euros.",),
            '"7.50 euros" is not in the evidence; on the same matter it has "4.90 euros". It says: "over 50 '
            'euros are sent free, below that shipping costs 4.90 euros".',
        ),
        (  # a price, beside two that are as near
            "Shipping costs 7.50 euros.",
            ("Shipping costs 4 or 5 euros.", "Shipping costs 9 euros."),
            '"7.50 euros" is not in the evidence.',
        ),
        (  # a number that a name of the evidence has as a word
            "It was part 2.",
            ("A cover of Back to Earth, Part Two.",),
            'The evidence has all content words of "It was part 2"; the nearest sentence is: "A cover of '
            'Back to Earth, Part Two".',
        ),
        (  # a body of another sector
            "If the insurer rejected the complaint or did not reply, the Reserve Bank Ombudsman can be "
            "approached.",
            INSURER,
            'On this the evidence has "Insurance Ombudsman", not "Reserve Bank Ombudsman". It has "Reserve '
            'Bank Ombudsman" in another connection: "Complaint against a bank: the Reserve Bank Ombudsman".',
        ),
        (  # a name that is not there
            "The bank must resolve the complaint of the Delhi Court.",
            BANK,
            '"Delhi Court" is not in the evidence.',
        ),
        (  # one word in the place of another
            "The burden of proving the customer's liability lies on the customer.",
            BANK,
            'Where the sentence says "lies on the customer", the evidence says "lies on the bank".',
        ),
        (  # a negation
            "The passages say that the bank must not resolve the complaint within 90 days.",
            BANK,
            'Where the sentence says "the bank must not", the evidence says "The bank must resolve".',
        ),
        (  # a condition left out
            "The bank must reverse the amount.",
            ("For a failed transfer, the bank must reverse the amount.",),
            'The nearest evidence has a condition that is left out here: "For a failed transfer".',
        ),
        (  # a period of another matter
            "A condition is pre-existing if it was present for 60 months.",
            ("A policy cannot be contested after 60 continuous months of coverage.",),
            'The evidence has "60 months" in: "A policy cannot be contested after 60 continuous months of '
            'coverage"; the word "present" is not there.',
        ),
        (  # words that the evidence has, of another matter
            "The policy is free of the bank.",
            (*BANK, "Title: Water supply\nAt a bank, the water policy is free."),
            'The evidence has all words of "The policy is free of the bank"; the nearest sentence is: "At a '
            'bank, the water policy is free". That passage is about "Water supply".',
        ),
        (  # a rule that only repeats the question
            "Yes, if you reported it, the loss is borne by you.",
            BANK,
            'No passage has the words "loss" or "borne".',
        ),
        (  # an invented step
            "They will investigate the issue and take appropriate action.",
            BANK,
            'No passage has the words "investigate", "issue", "appropriate" or "action".',
        ),
        (  # more words than are named
            "They will investigate the issue, audit every branch and publish appropriate findings.",
            BANK,
            'No passage has the words "investigate", "issue", "audit", "branch" or 3 others.',
        ),
        (  # an invented fact of the user's case
            "In your case, the debit was a gift from a friend.",
            BANK,
            'Neither the evidence nor the user has the words "gift" or "friend".',
        ),
        (  # all that is said is what the user asked
            "If you call today, the loss is yours.",
            (),
            'There is no evidence that could support "the loss is yours".',
        ),
        ("!?", BANK, "There is nothing to check here."),
        ("[2]", BANK, "There is nothing to check here."),
        (  # a small word may be all that is wrong
            "Store the tablets above 25 degrees.",
            ("Store the tablets below 25 degrees.",),
            'The evidence has all content words of "Store the tablets above 25 degrees", but not "above"; '
            'the nearest sentence is: "Store the tablets below 25 degrees".',
        ),
        (  # marks of citations are not quoted
            "The card is free [1], and phones are not supported [2].",
            ("The card is free. Phones are supported.",),
            'The evidence has all content words of "phones are not supported", but not "not"; the nearest '
            'sentence is: "Phones are supported".',
        ),
        (  # both amounts are in the sentence, so neither stands in the other's place
            "Domestic transfers cost $15 and transfers to other countries cost $35.",
            ("Domestic transfers cost $15. International transfers cost $35.",),
            'The evidence has "$35" in: "International transfers cost $35"; the word "countries" is not '
            "there.",
        ),
        (  # a part of the condition is there
            "Call a nurse at once if you have chest pain.",
            ("Call a nurse at once if you have chest pain or cough up three spoons of blood a day.",),
            'The nearest evidence has a condition that is partly left out here: "if you have chest pain or '
            'cough up three spoons of blood".',
        ),
        (  # `can't` is `cannot`
            "You can't return electronics.",
            ("Sale items cannot be returned.",),
            'No passage has the word "electronics".',
        ),
        (  # a sign stands for the word
            "The limit for payments is 10,000 US dollars and 2 percent for friends.",
            ("The limit for payments is $10,000 and 2%.",),
            'No passage has the word "friends". The nearest evidence is: "The limit for payments is $10,000 '
            'and 2%".',
        ),
        (  # a quotation ends with the unit
            "The fee for early repayment costs up to 5% of the amount repaid in the first year.",
            ("The fee for early repayment costs up to 2% of the amount repaid in the first year, later 5%.",),
            'Where the sentence says "costs up to 5%", the evidence says "costs up to 2%".',
        ),
    ],
)
def test_a_reason_names_what_is_wrong(sentence: str, texts: tuple[str, ...], expected: str) -> None:
    assert reason(sentence, texts, "I reported it. Is the loss borne by me?") == expected


def test_what_the_user_said_is_not_absent() -> None:
    sentence = "You paid Rs 500 to a man for it."
    assert '"Rs 500" is not in the evidence' in reason(sentence, BANK)
    assert '"Rs 500"' not in reason(sentence, BANK, "I paid 500 rupees.").split('"paid')[0]


def test_an_item_is_a_slice_with_what_the_evidence_has_instead() -> None:
    found = explain("It takes 30 days to resolve the complaint.", passages(*BANK)).items[0]
    assert (found.fault, found.start, found.end, found.text) == ("absent", 9, 16, "30 days")
    assert (found.instead, found.passage) == ("90 days", 0)
    assert found.evidence == "The bank must resolve the complaint within 90 days."


def test_a_long_list_of_numbers_is_counted() -> None:
    told = reason("It is at 101, 102, 103, 104, 105, 106.", BANK)
    assert told == '"101", "102", "103", "104" and 2 others are not in the evidence.'


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "The bank must resolve the complaint within 90 days.",
            Signals(
                items=1,
                unsupported_items=0.0,
                misattributed=0.0,
                negation_differs=False,
                condition_differs=False,
                missing_in_sentence=0.0,
                missing_in_passage=0.0,
                missing_in_all=0.0,
            ),
        ),
        (
            "The bank must not resolve the complaint within 30 days.",
            Signals(
                items=1,
                unsupported_items=1.0,
                misattributed=0.0,
                negation_differs=True,
                condition_differs=False,
                missing_in_sentence=0.2,
                missing_in_passage=0.2,
                missing_in_all=0.2,
            ),
        ),
    ],
)
def test_signals_say_how_far_the_evidence_is(sentence: str, expected: Signals) -> None:
    assert find_signals(sentence, passages(*BANK)) == expected


def test_a_number_of_another_body_is_misattributed() -> None:
    wrong = find_signals("You can call the National Consumer Helpline at 15100.", passages(*HELPLINES))
    right = find_signals("You can call the National Consumer Helpline at 1915.", passages(*HELPLINES))
    assert wrong.unsupported_items == right.unsupported_items == right.misattributed == 0.0
    assert wrong.misattributed > 0.5


@given(TEXT, st.lists(TEXT, max_size=3), TEXT)
def test_any_text_has_a_reason_and_items_inside_it(sentence: str, texts: list[str], user_text: str) -> None:
    evidence = passages(*texts)
    found = explain(sentence, evidence, user_text)
    assert found.reason
    assert all(item.text == sentence[item.start : item.end] != "" for item in found.items)
    assert bool(found.items) == (found.reason != "There is nothing to check here.")
    told = find_signals(sentence, evidence, user_text)
    shares = (told.unsupported_items, told.misattributed, told.missing_in_sentence, told.missing_in_all)
    assert all(0.0 <= share <= 1.0 for share in shares)
    assert told.missing_in_all <= told.missing_in_passage
    assert explain(sentence, evidence, user_text) == found


@given(st.lists(st.sampled_from(re.findall(r"\S+", " ".join(BANK + INSURER))), min_size=1, max_size=30))
def test_reasons_are_short(words: list[str]) -> None:
    assert len(reason(" ".join(words), BANK + HELPLINES).split()) <= MOST_WORDS + 10


def test_a_name_joined_with_a_letter_in_the_evidence_is_no_error() -> None:
    told = reason("It is in the Annex.", ("It is so in Annex and A. It is in the Annex C.",))
    assert '"It is in the Annex"' in told


def test_a_long_sentence_takes_no_long_time() -> None:
    text = "1 " * 2000
    assert len(reason(text, (text,)).split()) <= MOST_WORDS


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("The shop is open for 10 hours.", "Shop | open | 10 h"),
        ("It takes two weeks.", "It takes 14 days."),
        ("It takes 1 day.", "It takes 24 hours."),
        ("It runs for 24 months.", "It runs for two years."),
        ("It weighs 1.5 kg.", "It weighs 1500 grams."),
        ("It weighs 31500 grams.", "It weighs 31.5 kg."),
        ("It closes at 12 pm.", "It closes at noon."),
        ("A box has 12 eggs.", "A box has a dozen eggs."),
        ("Le délai est de 15 jours.", "Le délai est de quinze jours après la livraison."),
        ("It arrives on 14 March 2026.", '{"eta": "2026-03-14"}'),
        ("It arrives on March 14.", "eta: 14.03.2026"),
        ("It arrived on 2026-03-14.", "It arrived on March 14, 2026."),
        ("It arrived on 04/03/2026.", "It arrived on 3 April 2026."),
        ("She was the 2nd one.", "She was the second one."),
        ("Es kostet 1299,50 €.", "Der Tarif kostet im Jahr 1.299,50 Euro für alle."),
        ("Es sind 3 Monate.", "Die Frist beträgt drei Monate zum Ende des Quartals."),
    ],
)
def test_no_item_is_called_absent_that_the_evidence_has_in_another_form(said: str, written: str) -> None:
    assert "absent" not in [one.fault for one in explain(said, passages(written)).items]


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("It takes two weeks.", "It takes 12 days."),
        ("It takes 12 months.", "It costs 12 euros."),
        ("It arrives on 15 March 2026.", '{"eta": "2026-03-14"}'),
        ("It arrived on 2026-13-14.", "It arrived on March 14, 2026."),
        ("She was the 3rd one.", "She was the second one."),
        ("Es kostet 1992,50 €.", "Der Tarif kostet im Jahr 1.299,50 Euro für alle."),
        ("Le délai est de 15 jours.", "Le délai est de 30 jours après la livraison du colis."),
        ("Es sind 300 Monate.", "Die Frist beträgt drei Monate zum Ende des Quartals."),
    ],
)
def test_other_values_are_absent(said: str, written: str) -> None:
    assert "absent" in [one.fault for one in explain(said, passages(written)).items]
