from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hallulab.scenarios.transcript import Conversation, Passage, Span, Turn, Verdict
from hallulab.simulator.metrics.flagged import DetectorFlags, Flagged, FlaggedReplies
from hallulab.simulator.metrics.metric import RunFacts, Tallied
from hallulab.simulator.metrics.run_sums import RunSums
from tests.builders import conversation

HELPLINE = Passage(id="h#1", document="h", text="The National Consumer Helpline is 1915. The police is 100.")


def spoken(chatbot: str, *replies: str) -> Conversation:
    turns = tuple(
        Turn(index=index, user="What is the helpline?", query="q", passages=(HELPLINE,), reply=reply)
        for index, reply in enumerate(replies)
    )
    return conversation(chatbot, [], chatbot, turns=turns)


def judged(chat: Conversation, **flags: tuple[bool | None, ...]) -> Mapping[str, Mapping[int, Verdict]]:
    """Verdicts by detector: flagged with the whole reply, clean, or failed."""

    def verdict(detector: str, turn: Turn, flag: bool | None) -> Verdict:
        span = Span(start=0, end=len(turn.reply), text=turn.reply, reason="r")
        fields: dict[str, Any] = (
            {"outcome": "failed", "error": "e"}
            if flag is None
            else {"outcome": "scored", "score": 0.5, "flagged": flag, "spans": (span,) if flag else ()}
        )
        return Verdict(conversation=chat.id, turn=turn.index, detector=detector, version="v", **fields)

    return {
        name: {turn.index: verdict(name, turn, flag) for turn, flag in zip(chat.turns, given, strict=True)}
        for name, given in flags.items()
    }


def counted(*chats: tuple[Conversation, Mapping[str, Mapping[int, Verdict]]]) -> Flagged:
    flagging = FlaggedReplies(RunFacts([chat.chatbot for chat, _ in chats], ["d", "e"]))
    for chat, verdicts in chats:
        flagging.add(chat, verdicts, ())
    found = flagging.result(Tallied(RunSums((), ()), ())).flagged
    assert found is not None
    return found


def test_replies_are_counted_that_all_flag_that_some_flag_and_that_some_did_not_score() -> None:
    chat = spoken("a", "Call 1915.", "Call 15100.", "Call 15100.", "Call 100.")
    made = counted((chat, judged(chat, d=(False, True, True, True), e=(False, True, False, None))))
    assert (made.replies, made.scored, made.by_all, made.by_some) == (4, 3, 1, 1)


def test_the_chatbot_with_the_largest_share_is_named_with_its_numbers() -> None:
    often, seldom = spoken("often", "Call 15100.", "Call 1915."), spoken("seldom", "Call 1915.", "Call 1915.")
    made = counted(
        (seldom, judged(seldom, d=(False, False), e=(False, False))),
        (often, judged(often, d=(True, False), e=(True, False))),
    )
    assert (made.most_often, made.their_share) == (("often",), (1, 2))


def test_where_all_have_the_same_share_none_is_named() -> None:
    one, other = spoken("one", "Call 15100."), spoken("other", "Call 15100.")
    made = counted((one, judged(one, d=(True,), e=(True,))), (other, judged(other, d=(True,), e=(True,))))
    assert (made.most_often, made.their_share) == ((), None)


def test_the_example_is_the_one_that_shows_best_what_is_wrong() -> None:
    chat = spoken("a", "It is kind.", "The National Consumer Helpline is 15100.")
    made = counted((chat, judged(chat, d=(True, True), e=(True, True))))
    assert made.example is not None
    assert (made.example.turn, made.example.text) == (1, "The National Consumer Helpline is 15100.")
    assert '"1915"' in made.example.reason


def test_without_a_reply_there_is_nothing() -> None:
    none = tuple(DetectorFlags(detector=name, scored=0, flagged=0) for name in ("d", "e"))
    assert counted() == Flagged(
        replies=0, scored=0, by_all=0, by_some=0, most_often=(), their_share=None, example=None, alone=none
    )


def test_what_each_detector_flags_is_counted_also_where_the_other_failed() -> None:
    chat = spoken("a", "Call 1915.", "Call 15100.", "Call 15100.")
    made = counted((chat, judged(chat, d=(False, True, True), e=(None, None, False))))
    assert made.alone == (
        DetectorFlags(detector="d", scored=3, flagged=2),
        DetectorFlags(detector="e", scored=1, flagged=0),
    )


def test_a_sentence_that_nobody_would_read_is_no_example() -> None:
    chat = spoken("a", "It is 15100. " * 100)
    made = counted((chat, judged(chat, d=(True,), e=(True,))))
    assert (made.by_all, made.example) == (1, None)


def test_where_equal_shares_have_different_numbers_none_are_given() -> None:
    short, long = spoken("short", "Call 15100."), spoken("long", "Call 15100.", "Call 15100.")
    clean = spoken("clean", "Call 1915.")
    made = counted(
        (short, judged(short, d=(True,), e=(True,))),
        (long, judged(long, d=(True, True), e=(True, True))),
        (clean, judged(clean, d=(False,), e=(False,))),
    )
    assert (made.most_often, made.their_share) == (("short", "long"), None)
