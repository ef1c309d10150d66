"""The conversation loop: every way to stop, and what is kept when something fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import pytest

from hallulab.agents.users.user import UserFailed, UserMove
from hallulab.chatbots.protocol import ChatbotError, Reply
from hallulab.scenarios.errors import OperationalError
from hallulab.scenarios.transcript import Call, Conversation, Message, Turn
from hallulab.simulator.engine.conversation import ConversationKey, converse

KEY = ConversationKey(id="k", scenario="s", persona="p", chatbot="bot", model="m", seed=7)


def call(purpose: str) -> Call:
    return Call(purpose=purpose, model="m", prompt_tokens=1, completion_tokens=1, latency_s=0.5)


class ScriptedUser:
    def __init__(self, *moves: UserMove | Exception) -> None:
        self._moves = list(moves)

    async def next(self, history: Sequence[Message]) -> UserMove:
        move = self._moves.pop(0)
        if isinstance(move, Exception):
            raise move
        return move


class ScriptedBot:
    def __init__(self, *replies: str | Exception) -> None:
        self._replies = list(replies)
        self.histories: list[list[tuple[str, str]]] = []

    async def reply(self, history: Sequence[Message]) -> Reply:
        self.histories.append([(message.role, message.text) for message in history])
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return Reply(text=reply, calls=(call("chatbot.generate"),))


def says(text: str) -> UserMove:
    return UserMove(text=text, calls=(call("user.message"),))


async def held(user: ScriptedUser, bot: ScriptedBot, max_turns: int = 5) -> Conversation:
    return await converse(KEY, user, bot, max_turns)


async def test_the_user_stops_when_the_goal_is_reached() -> None:
    stop = UserMove(text=None, stop="goal_reached", calls=(call("user.goal"),))
    made = await held(ScriptedUser(says("Where do I complain?"), stop), ScriptedBot("At the commission."))
    assert (made.stop_reason, len(made.turns), made.error) == ("goal_reached", 1, None)
    assert [spent.purpose for spent in made.calls] == ["user.goal"]


async def test_the_user_may_give_up() -> None:
    made = await held(ScriptedUser(says("Hello?"), UserMove(text=None, stop="gave_up")), ScriptedBot("No."))
    assert made.stop_reason == "gave_up"


async def test_the_chatbot_sees_the_whole_history_until_the_last_turn() -> None:
    bot = ScriptedBot("First.", "Second.")
    made = await held(ScriptedUser(says("One?"), says("Two, then?")), bot, 2)
    assert (made.stop_reason, [turn.index for turn in made.turns]) == ("max_turns", [0, 1])
    assert bot.histories[1] == [("user", "One?"), ("assistant", "First."), ("user", "Two, then?")]


async def test_a_turn_keeps_the_calls_of_both_sides() -> None:
    made = await held(ScriptedUser(says("One?")), ScriptedBot("First."), 1)
    assert [spent.purpose for spent in made.turns[0].calls] == ["user.message", "chatbot.generate"]


async def test_a_failed_chatbot_ends_it_and_keeps_what_was_spent() -> None:
    bot = ScriptedBot("First.", ChatbotError("no answer", [call("chatbot.reformulate")]))
    made = await held(ScriptedUser(says("One?"), says("Two, then?")), bot)
    assert (made.stop_reason, made.error, len(made.turns)) == ("error", "chatbot bot: no answer", 1)
    assert [spent.purpose for spent in made.calls] == ["user.message", "chatbot.reformulate"]


@pytest.mark.parametrize(
    ("raised", "told"),
    [(KeyError("passages"), "KeyError: 'passages'"), (ValueError("bad \ud800"), "ValueError: bad \ufffd")],
)
async def test_whatever_a_chatbot_raises_is_recorded_so_that_it_can_be_written(
    raised: Exception, told: str
) -> None:
    made = await held(ScriptedUser(says("One?")), ScriptedBot(raised))
    assert (made.stop_reason, made.error) == ("error", f"chatbot bot: {told}")


async def test_a_reply_that_no_file_can_hold_is_recorded_as_a_failure() -> None:
    made = await held(ScriptedUser(says("Hello?")), ScriptedBot("bad \ud800"))
    assert (made.stop_reason, made.turns) == ("error", ())
    assert (made.error or "").startswith("chatbot bot: PydanticSerializationError: ")
    assert Conversation.model_validate_json(made.model_dump_json()) == made


async def test_a_failed_user_ends_it_and_keeps_what_was_spent() -> None:
    made = await held(ScriptedUser(UserFailed("no answer", [call("user.message")])), ScriptedBot())
    assert (made.stop_reason, made.error, made.turns) == ("error", "simulated user: no answer", ())
    assert [spent.purpose for spent in made.calls] == ["user.message"]


async def test_a_loop_is_stopped() -> None:
    same = "Which commission do I have to go to with my complaint?"
    answer = "You go to the District Commission with your complaint."
    made = await held(ScriptedUser(*[says(same)] * 5), ScriptedBot(*[answer] * 5))
    assert made.stop_reason == "loop"
    assert len(made.turns) < 5


EARLIER = (Turn(index=0, user="Where do I complain?", reply="At the commission."),)


async def test_a_conversation_goes_on_behind_earlier_turns() -> None:
    bot = ScriptedBot("Yes.")
    asked: list[Turn] = []
    made = await converse(KEY, ScriptedUser(says("Is it free?")), bot, 2, asked.append, EARLIER)
    assert (made.stop_reason, [turn.reply for turn in made.turns]) == (
        "max_turns",
        ["At the commission.", "Yes."],
    )
    assert [turn.index for turn in asked] == [1]
    assert bot.histories == [
        [("user", "Where do I complain?"), ("assistant", "At the commission."), ("user", "Is it free?")]
    ]


async def test_one_that_was_cut_off_behind_its_last_turn_asks_nothing() -> None:
    made = await converse(KEY, ScriptedUser(), ScriptedBot(), 1, earlier=EARLIER)
    assert (made.stop_reason, made.turns) == ("max_turns", EARLIER)


async def test_one_that_was_cut_off_in_a_loop_has_ended() -> None:
    again = tuple(EARLIER[0].model_copy(update={"index": index}) for index in range(4))
    made = await converse(KEY, ScriptedUser(), ScriptedBot(), 9, earlier=again)
    assert made.stop_reason == "loop"


async def test_what_cannot_be_journalled_ends_the_run() -> None:
    def refuse(turn: Turn) -> None:
        raise OperationalError("the disk is full.")

    with pytest.raises(OperationalError, match=r"the disk is full."):
        await converse(KEY, ScriptedUser(says("Hello?")), ScriptedBot("Yes."), 2, refuse)


class SleepingBot:
    async def reply(self, history: Sequence[Message]) -> Reply:
        await asyncio.sleep(600)
        return Reply(text="Late.")


async def test_one_that_is_cancelled_leaves_no_task_behind() -> None:
    before = asyncio.all_tasks()
    holding = asyncio.create_task(converse(KEY, ScriptedUser(says("Hello?")), SleepingBot(), 2))
    await asyncio.sleep(0.05)
    holding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holding
    assert asyncio.all_tasks() == before


def test_autogen_does_not_tell_that_a_run_was_stopped(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("autogen_core")
    logger.error("cancelled", exc_info=asyncio.CancelledError())
    logger.error("wrong", exc_info=ValueError())
    logger.error("plain")
    assert caplog.messages == ["wrong", "plain"]
