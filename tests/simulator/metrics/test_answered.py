"""Answered and declined replies, on literal turns."""

from __future__ import annotations

from typing import Any

from hallulab.scenarios.transcript import Conversation, Passage, Turn
from hallulab.simulator.metrics.answered import AnsweredReplies, AnsweredRow
from tests.builders import conversation, scored, unscored
from tests.simulator.counted import build_report, result

FEES = Passage(
    id="fees#0",
    document="fees",
    text="Title: Complaint fees\nA complaint over five lakh rupees costs 200 rupees. It is paid online.",
)
KNOWN = "What does a complaint over five lakh rupees cost?"
UNKNOWN = "Do purple elephants deliver stamped envelopes gladly?"
RIGHT = "A complaint over five lakh rupees costs 200 rupees."
DECLINED = "I cannot find that. Please contact the help desk."


def hold(id: str, *said: tuple[str, str], chatbot: str = "vanilla", persona: str = "asha") -> Conversation:
    turns = tuple(
        Turn(index=at, user=user, query=user, passages=(FEES,), reply=reply)
        for at, (user, reply) in enumerate(said)
    )
    return conversation(id, [], chatbot, persona=persona).model_copy(update={"turns": turns})


CHATS = [
    hold("a", (KNOWN, RIGHT), (KNOWN, DECLINED), (UNKNOWN, RIGHT), (UNKNOWN, DECLINED)),
    hold("b", ("Thanks!", "You're welcome!"), (KNOWN, "Was kostet das in diesem Jahr?"), persona="ravi"),
    hold("c", (KNOWN, DECLINED), chatbot="silent"),
]
VERDICTS = [
    scored("a", 0),
    scored("a", 1),
    scored("a", 2, [(0, 1), (2, 3)]),
    scored("a", 3),
    unscored("b", 0),
    scored("c", 0),
]
NAMES: dict[str, Any] = {"chatbots": ["vanilla", "silent"], "detectors": ["d"], "planned": 3}


def test_answers_are_counted_apart_from_what_is_declined() -> None:
    assert result(AnsweredReplies, CHATS, VERDICTS, passages=[FEES], **NAMES).answered == (
        AnsweredRow(
            detector="d",
            chatbot="vanilla",
            replies=4,
            answered=0.5,
            answered_ci95=None,
            in_documents=2,
            over_declined=0.5,
            not_in_documents=2,
            over_answered=0.5,
            scored_answers=2,
            hpt_of_answers=1.0,
            hpt_of_answers_ci95=None,
        ),
        AnsweredRow(
            detector="d",
            chatbot="silent",
            replies=1,
            answered=0.0,
            answered_ci95=None,
            in_documents=1,
            over_declined=1.0,
            not_in_documents=0,
            over_answered=None,
            scored_answers=0,
            hpt_of_answers=None,
            hpt_of_answers_ci95=None,
        ),
    )


def test_without_documents_it_is_not_known_what_they_have() -> None:
    rows = result(AnsweredReplies, CHATS, VERDICTS, **NAMES).answered
    assert [(row.answered, row.in_documents, row.over_declined) for row in rows] == [
        (0.5, 0, None),
        (0.0, 0, None),
    ]


def test_courtesies_and_other_languages_alone_make_no_row() -> None:
    assert result(AnsweredReplies, CHATS[1:2], VERDICTS[4:5], **NAMES).answered == ()


def test_the_section_says_that_fewer_answers_are_not_better() -> None:
    section = AnsweredReplies.section(build_report(CHATS, VERDICTS, flaws={}, **NAMES))
    assert section is not None
    assert "is not better by that alone" in str(section.parts[0])
