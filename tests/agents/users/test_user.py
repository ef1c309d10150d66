from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx2
import pytest

from hallulab.agents.users.personas import DEFAULT_MANNERS, OWN, find_manner
from hallulab.agents.users.user import (
    SimulatedUser,
    UserFailed,
    UserMove,
    asks_something,
    clean,
    turn_seed,
    word_question,
)
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.transcript import Message
from hallulab.testing.scripted import last_user, scripted_pool

PERSONA = Persona(
    id="fridge",
    name="Asha Rao",
    grievance="Asha's fridge broke.",
    goals=("Learn the fee", "Learn the deadline"),
    facts=("It cost Rs 900", "Bought in May"),
    manner="Short.",
    summary="The user asked about a fridge.",
)
TUNED = "qwen2.5-coder-1.5b"
"""The model that the user's thresholds are tuned for."""
ASKED = "My fridge broke. What is the fee?"
ONE = (Message(role="user", text=ASKED), Message(role="assistant", text="The fee is Rs 200."))
TWO = (
    *ONE,
    Message(role="user", text="Thanks. By when must I file?"),
    Message(role="assistant", text="Within two years."),
)


class Model:
    """Plays the user's model: shares of Yes by goal, a share for giving up, and messages in order."""

    def __init__(
        self, told: Mapping[str, float], useless: float = 0.1, messages: Sequence[str] = ("And by when?",)
    ) -> None:
        self.told = told
        self.useless = useless
        self.messages = list(messages)

    def __call__(self, body: dict[str, Any]) -> str | dict[str, float] | httpx2.Response:
        asked = last_user(body)
        if "useless" in asked:
            return {"Yes": self.useless, "No": 1 - self.useless}
        for goal, share in self.told.items():
            if f"wants to: {goal}\n" in asked:
                return {"Yes": share, "No": 1 - share}
        return self.messages.pop(0)


async def _next(
    model: Model, history: Sequence[Message], *, served: str = "scripted", **options: Any
) -> tuple[UserMove, list[dict[str, Any]]]:
    pool, transport = scripted_pool(model, served)
    move = await SimulatedUser(PERSONA, "appliances", pool, 1, **options).next(history)
    return move, transport.requests


def _purposes(move: UserMove) -> list[str]:
    return [call.purpose for call in move.calls]


async def test_a_move_names_the_goal_that_it_is_about() -> None:
    history = [Message(role="user", text=ASKED), Message(role="assistant", text="It is 200 rupees.")]
    first, _ = await _next(Model({}, messages=[ASKED]), ())
    told = {"Learn the fee": 0.9, "Learn the deadline": 0.1}
    second, _ = await _next(Model(told), history)
    thanks, _ = await _next(Model(dict.fromkeys(told, 0.9)), history, min_turns=2)
    assert [move.goal for move in (first, second, thanks)] == ["Learn the fee", "Learn the deadline", None]


async def test_the_first_message_needs_no_decision() -> None:
    move, requests = await _next(Model({}, messages=[ASKED]), ())
    assert (move.text, move.stop, _purposes(move)) == (ASKED, None, ["user.message"])
    asked = last_user(requests[0])
    for part in ("Asha Rao. Short.", PERSONA.grievance, PERSONA.summary, "Learn the fee"):
        assert part in asked
    assert "for appliances." in requests[0]["messages"][0]["content"]


@pytest.mark.parametrize(
    "thought",
    [
        "<|channel|>analysis<|message|>I act as the user.<|end|><|channel|>final<|message|>",
        "<thinking>I must act as the user.</thinking>\n",
        "I must act as the user.\n</think>\n\n",
    ],
)
async def test_the_thoughts_of_the_users_model_are_not_said(thought: str) -> None:
    move, _ = await _next(Model({}, messages=[f"{thought}{ASKED}"]), ())
    assert move.text == ASKED


async def test_the_limit_of_a_message_is_passed_on() -> None:
    _, requests = await _next(Model({}, messages=[ASKED]), (), max_tokens=40)
    assert requests[0]["max_tokens"] == 40


@pytest.mark.parametrize("manner", [*DEFAULT_MANNERS, OWN])
async def test_users_get_the_summary_of_a_reference_chat_in_every_message(manner: str) -> None:
    """HalluDetect, B.9: the summary is what the user acts by, also under the default manners."""
    short = find_manner(manner).short
    _, [opening] = await _next(Model({}, messages=[ASKED]), (), short=short)
    _, [*_, later] = await _next(Model({"Learn the fee": 0.1}), ONE, short=short)
    assert "\nLater chat: The user asked about a fridge.\n" in last_user(opening)
    assert "\nModel chat: The user asked about a fridge.\n" in last_user(later)


async def test_short_messages_have_prompts_of_their_own() -> None:
    _, [opening] = await _next(Model({}, messages=[ASKED]), (), short=True)
    _, [*_, later] = await _next(Model({"Learn the fee": 0.1}), ONE, short=True)
    assert "six to twelve words" in opening["messages"][0]["content"]
    assert "four to ten words" in later["messages"][0]["content"]
    assert last_user(opening).startswith(
        "Asha Rao. Short.\nWhat happened: Asha's fridge broke.\nLater chat: The user asked"
    )
    assert "Knows: It cost Rs 900; Bought in May" in last_user(later)


async def test_before_the_second_reply_the_user_does_not_stop() -> None:
    move, requests = await _next(Model({"Learn the fee": 0.99, "Learn the deadline": 0.99}), ONE)
    assert (move.text, move.stop) == ("And by when?", None)
    assert "Does not know yet: Learn the deadline" in last_user(requests[-1])


async def test_the_first_open_goal_is_asked_for() -> None:
    move, requests = await _next(Model({"Learn the fee": 0.95, "Learn the deadline": 0.2}), TWO)
    assert _purposes(move) == ["user.goal", "user.goal", "user.patience", "user.message"]
    asked = last_user(requests[-1])
    assert "Does not know yet: Learn the deadline" in asked
    assert "Knows: It cost Rs 900; Bought in May" in asked
    assert f"User: {ASKED}\nAssistant: The fee is Rs 200.\nUser: Thanks." in asked


async def test_an_open_goal_ends_the_asking_about_goals() -> None:
    move, _ = await _next(Model({"Learn the fee": 0.3}, messages=["And what does it cost me?"]), TWO)
    assert _purposes(move) == ["user.goal", "user.patience", "user.message"]


@pytest.mark.parametrize(
    ("served", "share", "stop"),
    [
        (TUNED, 0.9, "goal_reached"),
        (TUNED, 0.89, None),
        ("scripted", 0.5, "goal_reached"),
        ("other", 0.49, None),
    ],
)
async def test_the_user_stops_when_every_goal_is_told(served: str, share: float, stop: str | None) -> None:
    told = {"Learn the fee": 0.95, "Learn the deadline": share}
    move, _ = await _next(Model(told), TWO, served=served)
    assert move.stop == stop
    assert (move.text is None) == (stop is not None)
    assert "user.message" not in _purposes(move) or stop is None


@pytest.mark.parametrize(
    ("served", "share", "stop"),
    [(TUNED, 0.61, "gave_up"), (TUNED, 0.59, None), ("scripted", 0.51, "gave_up"), ("scripted", 0.49, None)],
)
async def test_the_user_gives_up_when_it_is_useless(served: str, share: float, stop: str | None) -> None:
    move, _ = await _next(Model({"Learn the fee": 0.1}, useless=share), TWO, served=served)
    assert move.stop == stop
    assert (move.text is None) == (stop is not None)


async def test_the_least_number_of_turns_can_be_set() -> None:
    told = {"Learn the fee": 0.95, "Learn the deadline": 0.95}
    assert (await _next(Model(told), ONE, min_turns=1))[0].stop == "goal_reached"
    assert (await _next(Model(told), TWO, min_turns=3))[0].stop is None
    assert (await _next(Model({}, messages=[ASKED]), (), min_turns=0))[0].stop is None


@pytest.mark.parametrize("flawed", ["", "How can I help you today?", ASKED, "My persona is sad."])
async def test_a_flawed_message_is_tried_once_more_warmer_with_another_seed(flawed: str) -> None:
    model = Model({"Learn the fee": 0.1}, messages=[flawed, "And by when?"])
    move, requests = await _next(model, ONE)
    assert move.text == "And by when?"
    first, second = requests[-2:]
    assert (first["temperature"], second["temperature"]) == (0.7, 1.0)
    assert second["seed"] == first["seed"] + 1
    assert first["messages"] == second["messages"]
    assert _purposes(move) == ["user.goal", "user.message", "user.message"]


async def test_a_message_that_asks_nothing_is_tried_once_more() -> None:
    model = Model({"Learn the fee": 0.95, "Learn the deadline": 0.1}, messages=["Thank you.", "By when?"])
    move, _ = await _next(model, ONE)
    assert move.text == "By when?"


async def test_the_second_message_stands_even_if_flawed() -> None:
    model = Model({"Learn the fee": 0.1}, messages=["", "How can I help you?", "never asked for"])
    move, _ = await _next(model, ONE)
    assert (move.text, move.stop) == ("How can I help you?", None)
    assert model.messages == ["never asked for"]


async def test_equal_histories_give_equal_requests_whoever_asks() -> None:
    pool, transport = scripted_pool(Model({"Learn the fee": 0.1}, messages=["And by when?"]))
    first = await SimulatedUser(PERSONA, "appliances", pool, 1).next(TWO)
    sent = len(transport.requests)
    second = await SimulatedUser(PERSONA, "appliances", pool, 1).next(TWO)
    assert second.text == first.text
    assert len(transport.requests) == sent
    assert all(call.replayed for call in second.calls)


async def test_one_user_can_serve_several_conversations() -> None:
    pool, _ = scripted_pool(Model({"Learn the fee": 0.1}, messages=[ASKED, "And by when?"]))
    user = SimulatedUser(PERSONA, "appliances", pool, 1)
    assert (await user.next(())).text == ASKED
    assert (await user.next(ONE)).text == "And by when?"
    assert (await user.next(())).text == ASKED


def test_seeds_differ_by_conversation_persona_and_turn_and_never_change() -> None:
    assert turn_seed(1, "fridge", 0) == turn_seed(1, "fridge", 0)
    seeds = {turn_seed(s, p, t) for s in (1, 2) for p in ("fridge", "fan") for t in (0, 1)}
    assert len(seeds) == 8
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert turn_seed(1, "fridge", 0) == 165951020


async def test_the_documents_are_nowhere_in_a_request() -> None:
    _, requests = await _next(Model({"Learn the fee": 0.1}), ONE)
    text = str(requests)
    assert "passage" not in text.lower()
    assert "document" not in text.lower()


async def test_a_failing_model_leaves_its_calls() -> None:
    def script(body: dict[str, Any]) -> Any:
        if "useless" in last_user(body):
            return httpx2.Response(400, json={"error": {"message": "too long"}})
        return {"Yes": 0.1, "No": 0.9}

    pool, _ = scripted_pool(script)
    with pytest.raises(UserFailed, match="status 400: too long") as caught:
        await SimulatedUser(PERSONA, "appliances", pool).next(TWO)
    assert [(call.purpose, call.error is None) for call in caught.value.calls] == [
        ("user.goal", True),
        ("user.patience", False),
    ]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("Hello?", "Hello?"),
        ("User: Hello?", "Hello?"),
        ("asha rao:  Hello?", "Hello?"),
        ('"Hello, you."', "Hello, you."),
        ("“Hello.”", "Hello."),
        ('"Yes," she said, "no."', '"Yes," she said, "no."'),
        ("Hello?\nAssistant: Hi!\nUser: Bye", "Hello?"),
        ("Hello?\n\nAsha Rao: And?", "Hello?"),
        *((f"{label} Hello?", "Hello?") for label in ("**User:**", "[User]:", "Asha:", "**Human**:")),
        ("«Hello?»", "Hello?"),
        ("Hello?\n\n**Assistant:** Hi!", "Hello?"),
        ("Hello?\nAsha: And?", "Hello?"),
        ("Hello?<|im_end|>\n<|im_start|>assistant\nHi!", "Hello?"),
        ("Hello?</s>", "Hello?"),
        ("Assistant: Hello", "Assistant: Hello"),
        ("Hello\nuser manual: page 3", "Hello\nuser manual: page 3"),
        ("  ", ""),
    ],
)
def test_what_models_put_around_a_message_goes(raw: str, text: str) -> None:
    assert clean(raw, "Asha Rao") == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("It broke. What is the fee? And I", "It broke. What is the fee?"),
        ("It cost Rs. 46.50 and", "It cost Rs."),
        ("It broke in the mid", "It broke in the mid"),
        ('He said "no." And then', 'He said "no."'),
        ("It broke.", "It broke."),
    ],
)
def test_a_sentence_that_was_cut_off_is_dropped(raw: str, text: str) -> None:
    assert clean(raw, "Asha Rao", cut=True) == text


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (("Thank you.", "Thanks a lot!"), "Can you tell me the deadline?"),
        (("I see.", "It cost Rs 900."), "It cost Rs 900. Can you tell me the deadline?"),
        (("Thank you.", "by when must I file"), "by when must I file"),
    ],
)
async def test_a_user_with_an_open_goal_asks(said: Sequence[str], text: str) -> None:
    model = Model({"Learn the fee": 0.95, "Learn the deadline": 0.1}, messages=said)
    move, _ = await _next(model, ONE, served=TUNED)
    assert (move.text, move.stop) == (text, None)


async def test_where_no_goal_is_open_a_user_may_thank() -> None:
    model = Model({"Learn the fee": 0.95, "Learn the deadline": 0.95}, messages=("Thank you.", "Thank you!"))
    move, _ = await _next(model, ONE, served=TUNED)
    assert move.text == "Thank you!"


@pytest.mark.parametrize(
    "message",
    [
        "What is the fee?",
        "where do i complain",
        "by when must I file",
        "to whom do I go then",
        "Thanks. how long do i have",
        "please send me a draft",
        "I need the number of it",
        "I don’t know whom to ask.",
    ],
)
def test_questions_and_requests_ask(message: str) -> None:
    assert asks_something(message)


@pytest.mark.parametrize(
    "message", ["Thank you.", "It cost 4850.", "In May I bought it.", "I see, thanks for the info", ""]
)
def test_thanks_and_facts_ask_nothing(message: str) -> None:
    assert not asks_something(message)


@pytest.mark.parametrize(
    ("goal", "question"),
    [
        ("Learn how to reach it, and its number", "How can I reach it, and its number?"),
        ("Learn where to complain.", "Where can I complain?"),
        (
            "Learn whether she owes anything on a card she never activated",
            "Can you tell me whether I owe anything on a card I never activated?",
        ),
        (
            "Find out whether he has to pay and what his options are",
            "Can you tell me whether I have to pay and what my options are?",
        ),
        ("Learn which time limit matters for her", "Can you tell me which time limit matters for me?"),
        ("Learn whether she tries or he goes", "Can you tell me whether I try or I go?"),
        ("Learn how he himself gets back what he paid", "Can you tell me how I myself get back what I paid?"),
        ("Learn whether she has a claim herself", "Can you tell me whether I have a claim myself?"),
        (
            "Learn whether a buyer who works by himself is a consumer",
            "Can you tell me whether a buyer who works by himself is a consumer?",
        ),
        ("Get a draft of the notice", "Can you give me a draft of the notice?"),
        ("File her complaint", "Can you help me to file my complaint?"),
    ],
)
def test_a_goal_becomes_a_question_of_the_persona(goal: str, question: str) -> None:
    assert word_question(goal) == question
