"""The simulated user in an AutoGen team."""

from __future__ import annotations

from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import StopMessageTermination
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken

from hallulab.agents.autogen import SessionClient
from hallulab.agents.users.user import SimulatedUser, UserAgent
from hallulab.testing.scripted import scripted_pool
from tests.agents.users.test_user import ASKED, PERSONA, Model


async def test_a_team_talks_until_the_user_has_what_it_came_for() -> None:
    user_model = Model({"Learn the fee": 0.95, "Learn the deadline": 0.95}, messages=[ASKED])

    def script(body: dict[str, Any]) -> Any:
        helps = body["messages"][0]["content"] == "Help."
        return "Rs 200, within two years." if helps else user_model(body)

    pool, _ = scripted_pool(script)
    user = UserAgent(SimulatedUser(PERSONA, "appliances", pool, 1, min_turns=1))
    client = SessionClient(pool.session("chatbot"), "answer")
    assistant = AssistantAgent("assistant", client, system_message="Help.")
    team = RoundRobinGroupChat([user, assistant], termination_condition=StopMessageTermination())
    found = await team.run()
    assert [(message.source, message.to_text()) for message in found.messages] == [
        ("user", ASKED),
        ("assistant", "Rs 200, within two years."),
        ("user", "goal_reached"),
    ]


async def test_a_reset_user_begins_anew() -> None:
    pool, transport = scripted_pool(lambda _: ASKED)
    user = UserAgent(SimulatedUser(PERSONA, "appliances", pool, 1))
    for _ in range(2):
        response = await user.on_messages([], CancellationToken())
        assert isinstance(response.chat_message, TextMessage)
        assert response.chat_message.content == ASKED
        await user.on_reset(CancellationToken())
    assert len(transport.requests) == 1
