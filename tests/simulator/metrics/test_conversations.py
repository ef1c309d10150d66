from __future__ import annotations

from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.metrics.costs import ChatStatistics, Lengths, LengthSection
from hallulab.simulator.metrics.user_flaws import UserAudit
from tests.builders import conversation, scored
from tests.simulator.counted import result
from tests.simulator.example_run import ExampleFlaw


def chat_statistics(chats: list[Conversation], chatbots: list[str]) -> tuple[ChatStatistics, ...]:
    section: LengthSection = result(Lengths, chats, [], chatbots)
    return section.conversations


def test_mean_and_deviation_of_turns_and_tokens() -> None:
    # The user's "Hi there" adds two tokens to every turn.
    chats = [conversation("a", ["one", "two"]), conversation("b", ["one two three four"])]
    line = chat_statistics(chats, ["vanilla"])[0]
    assert (line.turns_mean, line.turns_std) == (1.5, 0.707107)
    assert (line.tokens_mean, line.tokens_std) == (6.0, 0.0)
    assert line.stop_reasons == {"max_turns": 2}


def test_one_conversation_has_no_deviation_and_none_no_mean() -> None:
    one, none = chat_statistics([conversation("a", ["one"])], ["vanilla", "agent"])
    assert (one.turns_mean, one.turns_std) == (1.0, None)
    assert (none.conversations, none.turns_mean, none.stop_reasons) == (0, None, {})


def test_rows_are_computed_again_without_affected_conversations() -> None:
    chats = [conversation("a", ["one"]), conversation("b", ["one"], persona="dev")]
    verdicts = [scored("a", 0, [(0, 3)]), scored("b", 0)]
    flaws = {
        "a": [ExampleFlaw(0, "empty", ""), ExampleFlaw(0, "repeated", ""), ExampleFlaw(0, "repeated", "")],
        "b": [],
    }
    audit = result(UserAudit, chats, verdicts, ["vanilla"], ["d"], flaws=flaws).simulator_audit
    assert (audit.conversations, audit.affected_conversations) == (2, 1)
    assert audit.flaws == {"empty": 1, "repeated": 2}
    assert audit.affected == {"vanilla": {"empty": 1, "repeated": 1}}
    assert (audit.rows_without_affected[0].conversations, audit.rows_without_affected[0].hpt_1) == (1, 0.0)
