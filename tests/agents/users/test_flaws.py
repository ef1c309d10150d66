from __future__ import annotations

from collections.abc import Sequence

import pytest

from hallulab.agents.users.flaws import (
    Flaw,
    find_conversation_flaws,
    find_message_flaws,
    is_loop,
    leaked_instructions,
    premature_stop,
    repeated,
    role_swap,
)
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.transcript import Conversation, Message, StopReason, Turn
from tests.builders import conversation

PERSONA = Persona(
    id="fridge",
    name="Asha Rao",
    grievance="Asha's fridge broke.",
    goals=("Learn the fee for filing a complaint", "Find out whether the shop must refund the price"),
    manner="Short and polite sentences, and she always thanks the other person first",
    summary="The user asked about a broken fridge.",
)


def _turn(index: int, user: str, reply: str = "Noted.") -> Turn:
    return Turn(index=index, user=user, reply=reply)


def _conversation(
    exchanges: Sequence[tuple[str, str]], stop_reason: StopReason = "max_turns"
) -> Conversation:
    turns = tuple(_turn(i, user, reply) for i, (user, reply) in enumerate(exchanges))
    return conversation("c", [], persona="fridge", turns=turns, stop_reason=stop_reason)


@pytest.mark.parametrize(
    ("text", "flaws"),
    [
        *((text, (("empty", "no words"),)) for text in ("", "  \n", "...", "?!", "—")),
        *((text, ()) for text in ("Ok", "1915?", "हाँ", "How may I help my son get the refund?")),
        ("The letter of the bank says: you must submit the form. Must I?", ()),
        ("My flight simulator was broken; do I get a refund?", ()),
    ],
)
def test_a_message_without_a_word_is_empty_and_a_short_or_odd_one_is_not(
    text: str, flaws: tuple[tuple[str, str], ...]
) -> None:
    assert find_message_flaws(text, ()) == flaws


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello! How can I help you today?", "How can I help"),
        ("As an AI, I have no fridge.", "As an AI"),
        ("I’m here to help with that.", "I'm here to help"),
        ("I would be happy to assist you with this.", "I would be happy to assist you"),
        ("Is there anything else I can do for you?", "Is there anything else I can do"),
        ("Please provide me with your invoice number.", "provide me with your invoice number"),
        ("Here are the steps you need to take.", "Here are the steps you"),
        ("Assistant: The fee is Rs 200.", "Assistant:"),
        ("Thank you. You should file a complaint within two years.", "You should file"),
        ("You can also contact the ombudsman.", "You can also contact"),
        ("I'm sorry, but I can't assist with that.", "I'm sorry, but I can't assist"),
        ("I'm unable to assist with that.", "I'm unable to assist"),
        ("I apologize, but I cannot fulfill this request.", "I cannot fulfill this request"),
        ("I'm just a language model, I have no fridge.", "I'm just a language model"),
        ("I don't have personal experiences.", "I don't have personal experiences"),
        ("Let me know if you need anything else!", "Let me know if you need anything"),
        ("Is there anything else you would like to know?", "Is there anything else you would like to know"),
        ("We apologize for the inconvenience.", "We apologize for the"),
    ],
)
def test_speaking_as_the_assistant_is_a_role_swap(text: str, words: str) -> None:
    assert role_swap(text) == words


@pytest.mark.parametrize(
    "text",
    [
        "How can you help me?",
        "Can you help me write a complaint?",
        "You said you can file it online. Is that right?",
        "It would be great if you could send me the address.",
        "You can send me the draft by e-mail.",
        "Do you think you should contact the shop for me?",
        "What is your helpline number?",
        "Please tell me your opinion.",
        "I asked the shop how they can help, and they laughed.",
        "Let me know if you need more details.",
        "Here are the details: invoice 88, bought in May.",
        "My assistant: she called them twice.",
        "They told me that you must file within two years.",
        "I am unable to assist my mother. Who can?",
        "I can't fulfill their condition.",
        "Are you a language model?",
        "I don't have personal experience with such forms.",
        "They wrote: we apologise for the delay.",
    ],
)
def test_a_user_may_speak_like_this(text: str) -> None:
    assert role_swap(text) is None


REPLY = Message(
    role="assistant",
    text="A complaint must be filed within two years from the date on which the cause of action arose.",
)


def test_a_question_may_be_in_the_words_of_a_reply() -> None:
    text = "Why must a complaint be filed within two years from the date on which the cause arose?"
    assert role_swap(text, [REPLY]) is None
    assert role_swap(f"{REPLY.text} Is that so?", [REPLY]) is not None


def test_a_message_copied_from_a_reply_is_a_role_swap() -> None:
    text = "So a complaint must be filed within two years from the date on which it arose."
    assert role_swap(text, [REPLY]) == "copies the assistant: a complaint must be filed within two years"


def test_a_short_quotation_in_an_own_question_is_not() -> None:
    text = (
        "What does it mean that a complaint must be filed within two years from the day it broke, or from "
        "the day that the shop said no to me on the phone?"
    )
    assert role_swap(text, [REPLY]) is None


def test_words_that_the_assistant_took_from_the_user_stay_the_users() -> None:
    own = "My fridge from Sahyadri stopped cooling after six weeks and was repaired twice"
    history = [Message(role="user", text=own), Message(role="assistant", text=f"I see: {own}.")]
    assert role_swap(f"{own}. What now?", history) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("My persona is a shopkeeper.", "persona"),
        ("In this simulation I ask about fees.", "simulation"),
        ("I was instructed to act upset.", "instructed to act"),
        ("These are my goals: the fee.", "my goals"),
        ("The user wants a refund.", "The user wants"),
        ("Still wanted: the fee", "Still wanted"),
        ("TERMINATE", "TERMINATE"),
        ("Thanks. [END OF CONVERSATION]", "[END OF CONVERSATION]"),
        ("I am [Your name]. What is the fee?", "[Your name]"),
        ('{"message": "What is the fee?"}', '{"message":'),
        ("I cannot pretend to be a customer.", "pretend to be a customer"),
        ("What is the fee? (Note: this keeps the tone polite.)", "Note: this keeps"),
        ("Final answer: What is the fee?", "Final answer:"),
        # The words of other prompts of the user.
        ("But the desk just tells me the computer is right.", "the desk just tells me the computer is"),
        ("So lost things are kept for 30 days after all?", "lost things are kept for 30 days after"),
        ("But I left it in your house. Whom shall I ask?", "but i left it in your house whom"),
    ],
)
def test_talk_of_the_set_up_or_in_the_words_of_a_prompt_is_a_leak(text: str, words: str) -> None:
    assert leaked_instructions(text) == words


@pytest.mark.parametrize(
    "text",
    [
        "My goal is a refund.",
        "I followed the instructions of the shop.",
        "I gave up on the shop long ago.",
        "Can I terminate?",
        "The form has [date] in it.",
        "I cannot pretend to be sick.",
        "My character was insulted.",
        "Note: this is my second complaint.",
        "It ends with [end of page 3].",
        "I am the user of this card.",
        "The credit card says lifetime free.",
        "Their personal loan officer stimulated my interest.",
    ],
)
def test_ordinary_words_near_the_set_up_are_no_leak(text: str) -> None:
    assert leaked_instructions(text, PERSONA) is None


def test_eight_words_of_the_prompt_are_a_leak_and_seven_are_not() -> None:
    assert leaked_instructions("It is one or two short sentences in the first person.") == (
        "is one or two short sentences in the"
    )
    assert leaked_instructions("I wrote one or two short sentences in the letter.") is None


def test_what_a_persona_knows_may_be_said_even_if_a_prompt_has_it() -> None:
    said = "The desk just tells me the computer is right."
    assert leaked_instructions(said, PERSONA) is not None
    for own in ({"facts": (f"It is so: {said}",)}, {"grievance": said}):
        assert leaked_instructions(said, PERSONA.model_copy(update=own)) is None


def test_eight_words_of_the_manner_are_a_leak() -> None:
    text = "she always thanks the other person first"
    assert leaked_instructions(f"and {text}", PERSONA) == f"and {text}"
    assert leaked_instructions(text, PERSONA) is None


def test_a_goal_read_out_is_a_leak_and_a_goal_asked_for_is_not() -> None:
    assert leaked_instructions("I want to: learn the fee for filing a complaint.", PERSONA) == (
        "learn the fee for filing a complaint"
    )
    assert leaked_instructions("What is the fee for filing a complaint?", PERSONA) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Asha was sold a broken fridge. What is the fee?", "Asha was"),
        ("Asha Rao never got an answer. Why?", "Asha Rao never"),
        ("Asha bought a fridge in May.", "Asha bought"),
        ("Asha Rao, Pune, fridge of May.", None),
        ("My name is Asha and the shop was rude.", None),
        ("Asha was my name before, can I still file?", None),
        ("Ashan was sold a fridge.", None),
    ],
)
def test_a_person_does_not_tell_of_herself_by_name(text: str, words: str | None) -> None:
    assert leaked_instructions(text, PERSONA) == words


EARLIER = [Message(role="user", text="How much is the fee for a complaint?"), REPLY]


@pytest.mark.parametrize(
    "text",
    [
        "How much is the fee for a complaint?",
        "how much is the fee for a complaint",
        "How much is the fee for  a complaint, sir?",
    ],
)
def test_saying_the_same_again_is_repeated(text: str) -> None:
    assert repeated(text, EARLIER) == "How much is the fee for a complaint?"


@pytest.mark.parametrize(
    "text", ["How long is the time for a complaint?", "Must the shop refund me?", REPLY.text]
)
def test_another_question_is_not_repeated(text: str) -> None:
    assert repeated(text, EARLIER) is None


def test_a_short_answer_may_come_twice() -> None:
    assert repeated("Yes, please.", [Message(role="user", text="Yes, please.")]) is None


def test_a_stop_before_the_second_reply_is_premature() -> None:
    once = _conversation([("Fee?", "The fee for filing a complaint is Rs 200.")], "goal_reached")
    assert premature_stop(once) == "goal_reached after 1 of at least 2 replies"
    assert premature_stop(once, min_turns=1) is None
    assert premature_stop(_conversation([], "gave_up")) == "gave_up after 0 of at least 2 replies"


def test_a_goal_that_no_reply_touches_was_not_reached() -> None:
    off = [("Fee?", "Namaste."), ("And?", "The weather is fine today.")]
    said = "goal_reached, but no reply has to do with any goal"
    assert premature_stop(_conversation(off, "goal_reached"), PERSONA) == said
    assert premature_stop(_conversation(off, "goal_reached")) is None
    assert premature_stop(_conversation(off, "gave_up"), PERSONA) is None
    on = [("Fee?", "Namaste."), ("And?", "Refunds: shops return the price.")]
    assert premature_stop(_conversation(on, "goal_reached"), PERSONA) is None


@pytest.mark.parametrize("reason", ["max_turns", "loop", "error"])
def test_an_end_that_the_user_did_not_choose_is_never_premature(reason: StopReason) -> None:
    assert premature_stop(_conversation([], reason), PERSONA) is None


GOOD = [
    ("My fridge broke. What is the fee for a complaint?", "No fee for filing a complaint here."),
    ("Thank you. Must the shop pay me back?", "Yes."),
]


def test_the_audit_lists_flaws_by_turn() -> None:
    bad = [("How much is the fee?", "Hm."), ("", "Hm."), ("How much is the fee?", "Hm.")]
    assert find_conversation_flaws(_conversation(bad, "goal_reached"), PERSONA) == (
        Flaw(turn=1, kind="empty", detail="no words"),
        Flaw(turn=2, kind="repeated", detail="How much is the fee?"),
        Flaw(turn=2, kind="premature_stop", detail="goal_reached, but no reply has to do with any goal"),
    )
    assert find_conversation_flaws(_conversation(GOOD, "goal_reached"), PERSONA) == ()


def test_one_message_can_have_several_flaws() -> None:
    flaws = find_message_flaws("As an AI I play a persona.", (), PERSONA)
    assert flaws == (("role_swap", "As an AI"), ("leaked_instructions", "persona"))


def test_the_same_exchange_twice_is_a_loop() -> None:
    turns = [_turn(0, "Yes.", "Which shop?"), _turn(1, "It is in Pune.", "I see.")]
    assert is_loop([*turns, _turn(2, "yes", "Which shop")])


@pytest.mark.parametrize(
    "turns",
    [
        [],
        [_turn(0, "Yes.", "Which shop?")],
        [_turn(0, "Yes.", "Which shop?"), _turn(1, "Yes.", "And what did it cost you?")],
        [_turn(0, "What is the fee?", "I cannot say."), _turn(1, "Is there a form?", "I cannot say.")],
        [_turn(i, "Yes.", reply) for i, reply in enumerate(["In Pune?", "Last year?", "By card or cash?"])],
    ],
)
def test_a_conversation_that_moves_on_is_no_loop(turns: list[Turn]) -> None:
    assert not is_loop(turns)


def test_the_same_question_three_times_is_a_loop() -> None:
    turns = [
        _turn(i, "What is the fee for that?", reply)
        for i, reply in enumerate(["It depends.", "Ask the registry, please.", "Nobody knows for sure."])
    ]
    assert is_loop(turns)
    assert not is_loop(turns[:2])
