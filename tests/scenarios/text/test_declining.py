"""Replies that decline, and claims that only sound like it."""

from __future__ import annotations

import pytest

from hallulab.scenarios.text.declining import ReplyKind, classify_reply, find_declining, is_declining
from tests.growth.families import MOST, measure_growth_with


@pytest.mark.parametrize(
    "reply",
    [
        "I'm sorry, but the provided context does not contain information about the library's opening hours.",
        "The documents do not mention whether dogs are allowed.",
        "I don't know. The documents do not say anything about this.",
        "I'm sorry, I cannot find that in our documents. Please contact the help desk.",
        "I'm sorry, I cannot help with that. Please contact the library directly.",
        "I'm sorry, I cannot assist with that request.",
        "Unfortunately, I couldn't find any information on that topic in the knowledge base.",
        "I'm afraid I don't have enough information to answer that question.",
        "There is no mention of a discount for students in the provided passages.",
        "Based on the provided context, I cannot determine who pays the fee.",
        "The answer to your question is not available in the documents.",
        "The retrieved documents don't contain any information regarding refunds.",
        "I do not have access to that information.",
        "I'm not able to answer this question based on the given information.",
        "Sorry, I can't answer that.",
        "Nothing in the documents says who may borrow the drill.",
        "The passages discuss the history of the library, but they do not mention its opening hours.",
        "I could not find anything about parking. You may want to check with the library.",
        "No information about parking is available.",
        "That is outside the scope of the documents I have.",
        "I don't have information on that; please consult a lawyer.",
        "I apologize for the inconvenience, but I am unable to provide that information.",
        "As an AI language model, I do not have access to your account.",
        "The context does not specify the price.",
        "It is not clear from the passages who pays.",
        "None of the documents mention a late fee.",
        "Sadly, the context does not cover this. Is there anything else I can help with?",
        "The information provided does not include the price of a family ticket.",
        "I am not aware of any such rule.",
        "I'm not sure what the fee is.",
        "I have no information about that.",
        "I cannot confirm this from the documents I have been given.",
        "The requested information is not included in the provided sources.",
        "Your question cannot be answered with the documents at hand.",
        "I don't have any details on that, and I can't look it up for you.",
        "My sources don't say anything about that.",
        "I wasn't able to find an answer to your question in the documents.",
        "I do not have that information. I recommend contacting the help desk for more details.",
        "I'm unable to find specific details about the fee for guests.",
        "The document is silent on who pays the fee.",
        "We do not have any information about this event.",
        "I can't tell you that.",
        "Sorry, no idea.",
        "Not specified in the context.",
        "The context provided doesn't say.",
        "I wish I could help, but I don't have that information.",
        "I'm just a library assistant, so I can't give legal advice.",
        "I can't help with medical questions. Please see a doctor.",
        "It isn't stated anywhere in the documents.",
        "The answer isn't in the text.",
        "It's not possible for me to verify that.",
        "Nothing about this is mentioned in the sources.",
        "I don't think I can answer that.",
        "I have not been provided with that information.",
        "We are unable to confirm that.",
        "Please contact the help desk.",
        "I would suggest checking with the library directly.",
    ],
)
def test_a_reply_that_says_what_is_lacking_or_who_may_know_declines(reply: str) -> None:
    assert classify_reply(reply) == "declines"


@pytest.mark.parametrize(
    "reply",
    [
        "I do not know who pays the fee, but it is 5 euros.",
        "The library does not provide DVDs.",
        "The policy does not cover water damage.",
        "You cannot borrow a drill without a card.",
        "We do not have parking.",
        "We are unable to ship to islands.",
        "We're not able to refund the fee.",
        "We are unable to confirm bookings by phone after noon.",
        "We are unable to find cheaper tickets.",
        "I need your card to be valid.",
        "We cannot refund the fee after 30 days.",
        "The fee is 5 euros, I don't know who pays it.",
        "I don't know who pays; it costs 5 euros.",
        "I do not have details, it is usually free.",
        "The passages do not say who pays. Books are lent for 28 days.",
        "There is no fee for children.",
        "No dogs are allowed.",
        "It is difficult to say no to a good book.",
        "I cannot recommend the old edition because it lacks the index.",
        "The documents do not mention a fee, so it is free.",
        "The required documents do not include a passport.",
        "I'm sorry that the office has closed.",
        "I'm sorry, the period is over.",
        "I have no doubt that it is free.",
        "Contact the National Helpline on 1915.",
        "Please call 0381-232-0325.",
        "The passages mention that the fee is Rs 500 but do not say who pays it.",
        "The document discusses the Act of 1986 but does not mention fees.",
        "Although I do not have the exact date, the office opened in May.",
        "I don't think it is free.",
        "I cannot stress enough that you must pay.",
        "The seller does not have to answer.",
        "The court cannot help you.",
        "You do not have to provide documents.",
        "The documents do not need to be signed.",
        "Do not mention this to the landlord.",
        "Do not provide your details to anyone.",
        "It does not contain nuts.",
        "I do not have that information, which was published in 2019.",
        "There is no evidence of life beyond Earth.",
        "The information is not available to minors.",
        "I don't have information on that and you must pay 5 euros.",
        "You can see the details in the contract.",
        "The contract does not say who pays.",
        "The article of the constitution does not mention this right.",
        "No.",
        "Yes, it does not.",
        "20 cents.",
        "The source of the river is not found in the park.",
        "Not all documents are needed.",
        "I can confirm that it is free.",
        "The museum has no information desk.",
        "The fee cannot be determined before the inspection.",
        "The text must not provide personal details.",
    ],
)
def test_a_claim_answers_also_beside_a_refusal(reply: str) -> None:
    assert classify_reply(reply) == "answers"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("Which county are you referring to?", "asks back"),
        ("Sure, I'd be happy to help. Which book did you lose?", "asks back"),
        ("Please provide your name and address so I can help you.", "asks back"),
        ("To help you, I need more information about the seller.", "asks back"),
        ("There are many parks you could be asking about, like Elm Park. Which one?", "asks back"),
        (
            "There are many parks you could be asking about, like Elm Park, which is free. Which one?",
            "answers",
        ),
        ("Thank you!", "courtesy"),
        ("I'm sorry for your loss.", "courtesy"),
        ("I do not know. Which county are you referring to?", "declines"),
        ("I do not know. Is there anything else I can help you with?", "declines"),
        ("You're welcome! It is free.", "answers"),
        ("To help you, I need your order number.", "asks back"),
        ("Sure, let me check. What's your postcode?", "asks back"),
        ("Before I answer, may I ask how old the child is?", "asks back"),
        ("Sorry, I didn't catch that. Could you rephrase?", "asks back"),
        ("Kindly provide your booking reference.", "asks back"),
        ("Just to be sure: are you a member?", "asks back"),
        ("Good morning! What can I do for you?", "courtesy"),
        ("Glad I could help. Bye!", "courtesy"),
        ("Welcome to the library! Enjoy your visit!", "courtesy"),
    ],
)
def test_a_reply_may_ask_back_or_only_be_polite(reply: str, kind: ReplyKind) -> None:
    assert classify_reply(reply) == kind


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        # A library's chatbots with odd but legitimate replies, and a model's `refusal` (OpenAI).
        ("I'm sorry, I cannot assist with that request.", "declines"),
        ("I'm sorry, I cannot help with that. Please contact the library directly.", "declines"),
        ("I don't know. The documents do not say anything about this.", "declines"),
        ("Hello! How can I help you today?", "courtesy"),
        ("You're welcome! Have a nice day 😊", "courtesy"),
        ("Could you tell me whether the book was lost by a child or by an adult?", "asks back"),
        ('You asked: "What does it cost?" A lost item is replaced by the reader.', "answers"),
    ],
)
def test_replies_from_the_field(reply: str, kind: ReplyKind) -> None:
    assert classify_reply(reply) == kind


@pytest.mark.parametrize("reply", ["இது இலவசம்.", "Non lo so, ma è gratis per tutti."])
def test_a_language_without_rules_is_not_read(reply: str) -> None:
    assert classify_reply(reply) is None


@pytest.mark.parametrize("reply", ["", " \n", "👍 🎉", "---"])
def test_a_reply_without_words_is_of_no_kind(reply: str) -> None:
    assert classify_reply(reply) is None


def test_a_pointer_alone_is_no_declining_sentence() -> None:
    assert not is_declining("Please contact the seller.")


def test_a_description_of_documents_that_names_something_is_judged_beside_what_is_lacking() -> None:
    bare = "The first passage discusses roasting, but does not mention frying."
    named = "The first passage discusses Elm Park, but the passages do not mention frying."
    assert is_declining(bare)
    assert is_declining(named)
    assert [region.of(bare) for region in find_declining(bare)] == [bare]
    assert [region.of(named) for region in find_declining(named)] == [" the passages do not mention frying."]
    assert (classify_reply(bare), classify_reply(named)) == ("declines", "answers")


def test_beside_what_is_lacking_an_answer_may_say_what_it_is_limited_to() -> None:
    assert is_declining("The passages do not mention pie charts, so the steps are specific to bar graphs.")


def test_clauses_about_documents_decline_beside_claims_and_those_of_a_person_do_not() -> None:
    sentence = "The passages do not say who pays, but it is 5 euros."
    assert [region.of(sentence) for region in find_declining(sentence)] == [
        "The passages do not say who pays"
    ]
    assert find_declining("I am not sure, but it is 5 euros.") == []


def test_what_a_user_may_ask_for_is_a_claim() -> None:
    reply = "You may ask for a refund in place of a voucher, and write to the airline's nodal officer first."
    assert classify_reply(reply) == "answers"


def test_a_long_rule_takes_time_with_its_length() -> None:
    growth = measure_growth_with(classify_reply, lambda size: "Well" + "." * size + "x")
    assert growth < MOST
