"""Conversations that were held anew, beside those that were held once."""

from __future__ import annotations

from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.metrics.omissions import Retried, Retries
from tests.builders import conversation, judge
from tests.simulator.counted import result


def chat(name: str, persona: str = "p", replies: int = 1, chatbot: str = "vanilla") -> Conversation:
    return conversation(name, ["It is."] * replies, chatbot, persona)


def test_without_retries_there_is_no_row() -> None:
    assert result(Retries, [chat("a")], judge("a", 1), ["vanilla"], ["d"]).retries == ()


def test_hallucinations_per_turn_of_both_kinds_stand_side_by_side() -> None:
    chats = [chat("a", "p", 2), chat("b-try2", "q", 2), chat("c-try3", "r"), chat("e", chatbot="other")]
    verdicts = [*judge("a", 1, 0), *judge("b-try2", 2, 1), *judge("e", 1)]
    assert result(Retries, chats, verdicts, ["vanilla", "other"], ["d"]).retries == (
        Retried(
            chatbot="vanilla", detector="d", first_tries=1, first_hpt=0.5, first_hpt_ci95=None, retries=2,
            retried_hpt=1.5, retried_hpt_ci95=None,
        ),
    )  # fmt: skip


def test_an_empty_set_has_no_number() -> None:
    [row] = result(Retries, [chat("a-try2")], [], ["vanilla"], ["d"]).retries
    assert (row.first_tries, row.first_hpt, row.retries, row.retried_hpt) == (0, None, 1, None)
