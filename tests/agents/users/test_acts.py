"""Ways of talking: the act of each message, and how it is worded with a scripted model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.agents.users.act_rules import (
    ANNOYED,
    ASIDE,
    GOES_ON,
    REQUESTS,
    THANKS,
    find_untold_fact,
    write_note,
)
from hallulab.agents.users.acts import (
    ACTS,
    Act,
    ActShares,
    can_open,
    draw_act,
    draw_turns,
    fits,
    load_act_wordings,
    mix_shares,
)
from hallulab.agents.users.flaws import find_conversation_flaws
from hallulab.agents.users.personas import DEFAULT_MANNERS, find_manner, load_manners
from hallulab.agents.users.questions import UNSAID
from hallulab.agents.users.user import SimulatedUser, UserMove
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.transcript import Message, Turn
from hallulab.testing.scripted import last_user, scripted_pool
from tests.builders import conversation

PERSONA = Persona(
    id="fridge",
    name="Asha Rao",
    grievance="Asha's fridge broke.",
    goals=("Learn the fee for her case", "Learn whether she can refuse"),
    facts=("It cost Rs 900", "She lives in Pune and runs a shop"),
    manner="Short.",
    summary="The user asked about a fridge.",
)
OPENED = (
    Message(role="user", text="My fridge broke."),
    Message(role="assistant", text="I see. When did you buy it?"),
)
UNASKED = (OPENED[0], Message(role="assistant", text="The fee is Rs 200."))


async def say(
    act: Act,
    said: Sequence[str] = (),
    history: Sequence[Message] = UNASKED,
    *,
    reached: bool = False,
    turns: tuple[int, ...] = (8,),
    language: str | None = None,
) -> tuple[UserMove, list[dict[str, Any]]]:
    """The next message of a user who only talks in one way; `said` is what its model says in order."""
    texts = list(said)

    def script(body: dict[str, Any]) -> str | dict[str, float]:
        if "wants to:" in last_user(body):
            return {"Yes": 0.99, "No": 0.01} if reached else {"Yes": 0.1, "No": 0.9}
        return {"Yes": 0.1, "No": 0.9} if "useless" in last_user(body) else texts.pop(0)

    pool, transport = scripted_pool(script)
    shares = ActShares(first={act: 1}, later={act: 1}, turns=turns)
    user = SimulatedUser(PERSONA, "appliances", pool, 1, short=True, acts=shares, language=language)
    move = await user.next(history)
    assert (move.act, texts) == (act, [])
    return move, [body for body in transport.requests if "logprobs" not in body or not body["logprobs"]]


@pytest.mark.parametrize("act", [act for act in ACTS if act != "asks"])
async def test_an_act_has_an_instruction_and_examples_of_its_own(act: Act) -> None:
    wording = load_act_wordings()[act].follow_up
    _, [*_, asked] = await say(act, ["कितना"], OPENED, language="hi")
    assert wording.instruction in asked["messages"][0]["content"]
    assert [one["content"] for one in asked["messages"] if one["role"] == "assistant"] == list(
        wording.examples
    )
    assert last_user(asked).startswith("Asha Rao. Short.\nWhat happened: Asha's fridge broke.\n")


@pytest.mark.parametrize("act", [act for act in ACTS if act != "asks"])
async def test_in_other_languages_the_model_words_the_whole_message(act: Act) -> None:
    move, _ = await say(act, ["कितना? और"], OPENED, language="hi")
    assert move.text == "कितना? और"


async def test_a_message_that_asks_has_the_usual_prompt() -> None:
    move, [asked] = await say("asks", ["what is the fee?"])
    assert move.text == "what is the fee?"
    assert "four to ten words" in asked["messages"][0]["content"]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("give me the fee", "give me the fee"),
        ("Tell me the fee. Is it high?", "Tell me the fee."),
        ("How much is the fee?", "the fee for my case"),
        ("call the bank", "the fee for my case"),
    ],
)
async def test_a_command_has_no_question(said: str, text: str) -> None:
    move, _ = await say("commands", [said])
    assert move.text in (text, *(f"{opening} {text}" for opening in REQUESTS["commands"]))


async def test_a_command_that_was_given_before_is_followed_by_annoyance_that_names_no_goal() -> None:
    told = (Message(role="user", text="Tell me the fee for my case"), UNASKED[1])
    move, _ = await say("commands", ["And the fee?"], told)
    assert (move.text in ANNOYED, move.goal) == (True, None)
    assert (await say("commands", ["Tell me the fee."]))[0].goal == "Learn the fee for her case"


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("fridge complaint fee", "fridge complaint fee"),
        ("one two three four five six seven eight nine ten", "one two three four five six seven eight"),
        ("What is the fee?", "fee case"),
    ],
)
async def test_a_topic_is_a_few_keywords(said: str, text: str) -> None:
    assert (await say("topic", [said]))[0].text == text


@pytest.mark.parametrize(
    ("act", "said", "text"),
    [
        ("answers", "In May. And the fee?", "In May."),
        ("misunderstands", "So I pay. How?", "So I pay."),
        ("misunderstands", "I pay then.", "so I pay then."),
        ("corrects", "No, the fee. How much?", "No, the fee."),
    ],
)
async def test_of_acts_that_do_not_ask_questions_are_left_out(act: Act, said: str, text: str) -> None:
    assert (await say(act, [said], OPENED))[0].text == text


@pytest.mark.parametrize("said", ["What is the fee?", "Thanks, I will ask them."])
async def test_who_shall_correct_and_does_not_says_what_it_means(said: str) -> None:
    move, _ = await say("corrects", [said])
    assert move.text in [f"{opening} the fee for my case" for opening in REQUESTS["corrects"]]


async def test_a_first_message_may_tell_what_happened() -> None:
    move, [asked] = await say("tells", ["my fridge broke"], ())
    assert move.text == "my fridge broke"
    assert "It asks nothing" in asked["messages"][0]["content"]


async def test_later_a_fact_is_told_that_was_not_told_before() -> None:
    assert (await say("tells"))[0].text == "It cost Rs 900"
    told = (Message(role="user", text="It cost Rs 900"), UNASKED[1])
    assert (await say("tells", (), told))[0].text == "I live in Pune"
    slipped = (Message(role="user", text="well, it ocst Rs 900 and I liive in Pune"), UNASKED[1])
    assert find_untold_fact(PERSONA, slipped) is None


async def test_going_on_needs_no_model() -> None:
    move, requests = await say("goes-on")
    assert move.text in GOES_ON
    assert requests == []


async def test_an_impatient_user_presses_or_is_annoyed() -> None:
    move, requests = await say("impatient")
    pressed = [f"{opening} the fee for my case" for opening in REQUESTS["impatient"]]
    assert move.text in (*ANNOYED, *pressed)
    assert requests == []


async def test_thanks_come_before_the_next_question_or_alone() -> None:
    move, _ = await say("thanks-and-returns", ["what is the fee?"])
    assert move.text is not None
    assert move.text.removesuffix("what is the fee?").rstrip(". ") in [one.rstrip(".") for one in THANKS]
    move, requests = await say("thanks-and-returns", reached=True)
    assert move.text in THANKS
    assert requests == []


async def test_who_changes_the_subject_asks_for_the_other_goal() -> None:
    move, [asked] = await say("changes-subject", ["can I refuse?"])
    assert move.text in [f"{words}can I refuse?" for words in ASIDE]
    assert "Does not know yet: Learn whether she can refuse\n" in last_user(asked)


async def test_where_no_goal_is_open_the_subject_changes_to_something_beside() -> None:
    _, [asked] = await say("changes-subject", ["how many?"], reached=True)
    [wish] = [
        line.partition(": ")[2] for line in last_user(asked).splitlines() if line.startswith("Does not")
    ]
    assert wish in UNSAID


async def test_two_in_one_asks_for_two_goals() -> None:
    move, _ = await say("two-in-one", ["what is the fee?"])
    assert move.text is not None
    assert move.text.startswith("what is the fee? ")
    assert move.text.endswith("Can you tell me whether I can refuse?")


async def test_the_note_about_the_case_is_pasted_beside_the_question() -> None:
    move, _ = await say("pastes", ["what is the fee?"], ())
    note = write_note(PERSONA)
    assert move.text in (f"{note}\n\nwhat is the fee?", f"what is the fee?\n\n{note}")
    assert "- It cost Rs 900\n- She lives in Pune and runs a shop" in note
    assert "Asha's fridge broke." in note


@pytest.mark.parametrize(
    ("act", "history", "fitting"),
    [
        ("goes-on", (), False),
        ("goes-on", UNASKED, True),
        ("pastes", (), True),
        ("pastes", (Message(role="user", text=f"Hi\n\n{write_note(PERSONA)}"), UNASKED[1]), False),
        ("answers", UNASKED, False),
        ("answers", OPENED, True),
        ("answers", (UNASKED[0], Message(role="assistant", text="您在哪里买的？")), True),
        ("answers", (UNASKED[0], Message(role="assistant", text="أين اشتريتها؟")), True),
        ("tells", UNASKED, True),
        ("tells", (Message(role="user", text="It cost Rs 900. I live in Pune."), UNASKED[1]), False),
    ],
)
def test_where_an_act_does_not_fit_another_is_drawn(
    act: Act, history: Sequence[Message], fitting: bool
) -> None:
    assert fits(act, PERSONA, history) == fitting
    shares = ActShares(first={act: 1, "commands": 1e-9}, later={act: 1, "commands": 1e-9})
    assert draw_act(shares, PERSONA, 0, history) == (act if fitting else "commands")


def test_where_no_act_fits_the_user_asks() -> None:
    assert draw_act(ActShares(first={"goes-on": 1}, later={"answers": 1}), PERSONA, 0, ()) == "asks"
    assert draw_act(ActShares(first={"asks": 1}, later={"answers": 1}), PERSONA, 0, UNASKED) == "asks"


@given(st.integers(0, 2**31), st.text(), st.text())
def test_the_act_does_not_depend_on_the_chatbot(seed: int, one: str, other: str) -> None:
    shares = ActShares(first={"asks": 1}, later={"asks": 1, "commands": 1, "goes-on": 1})
    drawn = {
        draw_act(shares, PERSONA, seed, (OPENED[0], Message(role="assistant", text=reply)))
        for reply in (one, other)
    }
    assert len(drawn) == 1


def test_drawn_shares_are_near_the_given_ones() -> None:
    shares = find_manner("people").acts
    assert shares is not None
    drawn = Counter(draw_act(shares, PERSONA, seed, OPENED) for seed in range(4000))
    assert set(drawn) == set(shares.later)
    for act, share in shares.later.items():
        assert drawn[act] / 4000 == pytest.approx(share, abs=0.03)


def test_a_user_draws_how_long_it_goes_on() -> None:
    shares = ActShares(first={"asks": 1}, later={"asks": 1}, turns=(4, 6, 6))
    drawn = Counter(draw_turns(shares, "fridge", seed) for seed in range(900))
    assert drawn[4] + drawn[6] == 900
    assert drawn[4] == pytest.approx(300, abs=60)
    assert draw_turns(None, "fridge", 0) == draw_turns(shares.model_copy(update={"turns": ()}), "x", 0) == 0


@pytest.mark.parametrize(("turns", "stop"), [((2,), "goal_reached"), ((3,), None)])
async def test_whose_goals_are_reached_goes_on_until_the_drawn_number(
    turns: tuple[int, ...], stop: str | None
) -> None:
    said = [] if stop else ["what does it mean?"]
    pool, transport = scripted_pool(
        lambda body: {"Yes": 0.99, "No": 0.01} if "wants to:" in last_user(body) else said.pop(0)
    )
    shares = ActShares(first={"asks": 1}, later={"asks": 1}, turns=turns)
    user = SimulatedUser(PERSONA, "appliances", pool, 1, short=True, acts=shares)
    move = await user.next((*UNASKED, *OPENED))
    assert (move.stop, move.text) == (stop, None if stop else "what does it mean?")
    assert all("useless" not in last_user(body) for body in transport.requests)


@pytest.mark.parametrize(("turns", "stop"), [((2,), "gave_up"), ((3,), None)])
async def test_with_an_open_goal_a_user_gives_up_at_the_drawn_number(
    turns: tuple[int, ...], stop: str | None
) -> None:
    pool, _ = scripted_pool(
        lambda body: "and the fee?" if "Next message" in last_user(body) else {"Yes": 0.1, "No": 0.9}
    )
    shares = ActShares(first={"asks": 1}, later={"asks": 1}, turns=turns)
    user = SimulatedUser(PERSONA, "appliances", pool, 1, short=True, acts=shares)
    move = await user.next((*UNASKED, *OPENED))
    assert (move.stop, move.text) == (stop, None if stop else "and the fee?")


def test_a_mixture_of_manners_gives_each_the_same_weight() -> None:
    one = ActShares(first={"asks": 2}, later={"goes-on": 4}, turns=(5,))
    other = ActShares(first={"topic": 1}, later={"asks": 1, "goes-on": 1})
    assert mix_shares([one, other]) == ActShares(
        first={"asks": 0.5, "topic": 0.5}, later={"asks": 0.25, "goes-on": 0.75}, turns=(5,)
    )
    assert mix_shares([]) is None


def test_each_act_is_a_manner_and_first_messages_are_of_acts_that_can_open() -> None:
    assert set(ACTS) <= load_manners().keys()
    for name in (*ACTS, *DEFAULT_MANNERS):
        shares = find_manner(name).acts
        assert shares is not None
        assert all(can_open(act) for act in shares.first)
        assert name not in ACTS or name in shares.later


@pytest.mark.parametrize(
    ("act", "said", "kinds"),
    [
        ("impatient", "you did not answer me", []),
        (None, "you did not answer me", ["repeated"]),
        ("pastes", write_note(PERSONA), []),
    ],
)
def test_ways_of_talking_are_no_flaws(act: str | None, said: str, kinds: list[str]) -> None:
    turns = [Turn(index=index, user=said, reply=f"Reply {index}.", act=act) for index in range(2)]
    flaws = find_conversation_flaws(conversation("c", [], turns=tuple(turns)), PERSONA)
    assert [flaw.kind for flaw in flaws] == kinds


def test_the_act_of_a_turn_is_left_out_where_there_is_none() -> None:
    assert "act" not in Turn(index=0, user="Hi", reply="Hi").model_dump(mode="json")
    assert Turn(index=0, user="more", reply="Hi", act="goes-on").model_dump(mode="json")["act"] == "goes-on"
