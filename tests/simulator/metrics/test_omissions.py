"""Conversations that were held anew, beside those that were held once."""

from __future__ import annotations

from hallulab.scenarios.transcript import Conversation, Span, Turn, Verdict
from hallulab.simulator.metrics.omissions import Retried, Retries
from tests.simulator.counted import result


def chat(name: str, persona: str = "p", replies: int = 1, chatbot: str = "vanilla") -> Conversation:
    turns = tuple(Turn(index=index, user="Is it?", reply="It is.") for index in range(replies))
    return Conversation(
        id=name, scenario="s", persona=persona, chatbot=chatbot, model="m", seed=0, turns=turns,
        stop_reason="max_turns",
    )  # fmt: skip


def verdict(name: str, turn: int, hallucinations: int) -> Verdict:
    spans = tuple(Span(start=at, end=at + 1, text="It is."[at]) for at in range(hallucinations))
    return Verdict(
        conversation=name, turn=turn, detector="d", version="1", outcome="scored", score=1.0,
        flagged=bool(spans), spans=spans,
    )  # fmt: skip


def test_without_retries_there_is_no_row() -> None:
    assert result(Retries, [chat("a")], [verdict("a", 0, 1)], ["vanilla"], ["d"]).retries == ()


def test_hallucinations_per_turn_of_both_kinds_stand_side_by_side() -> None:
    chats = [chat("a", "p", 2), chat("b-try2", "q", 2), chat("c-try3", "r"), chat("e", chatbot="other")]
    verdicts = [
        verdict("a", 0, 1), verdict("a", 1, 0), verdict("b-try2", 0, 2), verdict("b-try2", 1, 1),
        verdict("e", 0, 1),
    ]  # fmt: skip
    assert result(Retries, chats, verdicts, ["vanilla", "other"], ["d"]).retries == (
        Retried(
            chatbot="vanilla", detector="d", first_tries=1, first_hpt=0.5, first_hpt_ci95=None, retries=2,
            retried_hpt=1.5, retried_hpt_ci95=None,
        ),
    )  # fmt: skip


def test_an_empty_set_has_no_number() -> None:
    [row] = result(Retries, [chat("a-try2")], [], ["vanilla"], ["d"]).retries
    assert (row.first_tries, row.first_hpt, row.retries, row.retried_hpt) == (0, None, 1, None)
