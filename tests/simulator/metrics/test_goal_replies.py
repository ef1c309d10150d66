"""Replies to labelled goals: what each does, and planted goals with replies whose counts are known."""

from __future__ import annotations

from typing import Any

import pytest

from hallulab.scenarios.packs.goals import GoalLabel
from hallulab.scenarios.transcript import Conversation, Turn
from hallulab.simulator.metrics.goal_replies import GoalReplies, GoalReplyRow, find_deed
from hallulab.simulator.show.columns import format_csv
from tests.builders import conversation
from tests.simulator.counted import build_report, result

ANSWER = GoalLabel(expect="answer")
NOWHERE = GoalLabel(expect="decline", because="nowhere")
DEPENDS = GoalLabel(expect="ask-back", because="depends", needs="her age")
CONTRADICTION = GoalLabel(
    expect="decline", because="contradiction", documents=("a", "b"), says=("7 days", "Friday")
)
SEVEN_OR_NINE = GoalLabel(
    expect="decline", because="contradiction", documents=("a", "b"), says=("7天", "9天")
)

ANSWERS = "The fee is 200 rupees."
DECLINES = "I cannot find that. Please contact the help desk."
ASKS = "How old are you?"
HEDGES = "The documents do not mention a fee. A card lasts for three years."
COURTESY = "You're welcome!"
TAMIL = "இது இலவசம்."


@pytest.mark.parametrize(
    ("reply", "label", "deed"),
    [
        (ANSWERS, ANSWER, "answered"),
        (HEDGES, NOWHERE, "hedged"),
        (DECLINES, NOWHERE, "declined"),
        (ASKS, NOWHERE, "asked-back"),
        (COURTESY, NOWHERE, None),
        (TAMIL, NOWHERE, None),
        ("शुल्क 200 रुपये है।", ANSWER, "answered"),
        ("यह जानकारी मेरे पास नहीं है।", NOWHERE, "declined"),
        ("दस्तावेज़ों में शुल्क का उल्लेख नहीं है। कार्ड तीन साल चलता है।", NOWHERE, "hedged"),
        ("12 से कम उम्र में मुफ़्त है। आपकी उम्र क्या है?", DEPENDS, "asked-back"),
        ("कृपया अपनी उम्र बताएं।", DEPENDS, "asked-back"),
        ("12 से कम उम्र में मुफ़्त है।", DEPENDS, "answered"),
        ("दस्तावेज़ों में विरोधाभास है।", CONTRADICTION, "declined"),
        ("7 दिन में बताएं।", CONTRADICTION, "answered"),
        ("धन्यवाद!", NOWHERE, None),
        ("Das kostet in diesem Jahr leider etwas mehr als im letzten.", ANSWER, "answered"),
        ("Die Dokumente widersprechen sich.", CONTRADICTION, "declined"),
        (ASKS, DEPENDS, "asked-back"),
        ("It is free below 12, and 5 euros above. How old is she?", DEPENDS, "asked-back"),
        ("It is free below 12, and 5 euros above.", DEPENDS, "answered"),
        ("I do not have that information. How old are you?", DEPENDS, "asked-back"),
        ("To tell the fee, I need to know the age.", DEPENDS, "asked-back"),
        ("Since it depends on age, when were you born?", DEPENDS, "asked-back"),
        ("It is free. Let me know if you need anything else.", DEPENDS, "answered"),
        ("It is free. Would you like me to draft a letter?", DEPENDS, "answered"),
        ("It is free. Do you have any other questions about your card?", DEPENDS, "answered"),
        ("It is free. Does that answer your question?", DEPENDS, "answered"),
        ("It is free. Is there something else you need?", DEPENDS, "answered"),
        ("It is free. Was this helpful to you?", DEPENDS, "answered"),
        ("It is free. Just tell me if you need more details.", DEPENDS, "answered"),
        ("All you need to know: it is free.", DEPENDS, "answered"),
        ("It is free below 12. Please tell me if she is a student.", DEPENDS, "asked-back"),
        ("It is free below 12. Do you have a question about a child?", DEPENDS, "asked-back"),
        ("Report it within 7 days.", CONTRADICTION, "answered"),
        ("One page says 7-day limit, another one **Fridays**.", CONTRADICTION, "declined"),
        ("One page says *seven* days, another one Friday.", CONTRADICTION, "declined"),
        ("The pages do not contradict each other: 7 days.", CONTRADICTION, "answered"),
        ("There is no contradiction in it: 7 days.", CONTRADICTION, "answered"),
        ("The limit differs from that of other cards: 7 days.", CONTRADICTION, "answered"),
        ("The documents differ about the limit.", CONTRADICTION, "declined"),
        ("The documents are in conflict about it.", CONTRADICTION, "declined"),
        ("One page says 7 days, another one Fridays.", CONTRADICTION, "declined"),
        ("One page says 17 days, another one Friday.", CONTRADICTION, "answered"),
        ("The documents contradict each other.", CONTRADICTION, "declined"),
        ("The documents contradict each other.", NOWHERE, "answered"),
        (DECLINES, CONTRADICTION, "declined"),
        ("一份文件写7天，另一份写9天。", SEVEN_OR_NINE, "declined"),
        ("请在17天内报告，不是9天。", SEVEN_OR_NINE, "answered"),
    ],
)
def test_what_a_reply_does(reply: str, label: GoalLabel, deed: str | None) -> None:
    assert find_deed(reply, label) == deed


def hold(id: str, persona: str, *said: tuple[str | None, str], chatbot: str = "vanilla") -> Conversation:
    turns = tuple(
        Turn(index=at, user="And then?", reply=reply, goal=goal) for at, (goal, reply) in enumerate(said)
    )
    return conversation(id, [], chatbot, persona=persona).model_copy(update={"turns": turns})


LABELS = {
    ("asha", "known"): ANSWER,
    ("asha", "absent"): NOWHERE,
    ("ravi", "depends"): DEPENDS,
    ("ravi", "absent"): CONTRADICTION,
}
CHATS = [
    hold("a", "asha", ("known", ANSWERS), ("known", DECLINES), ("absent", ANSWERS), ("absent", DECLINES)),
    hold("b", "ravi", ("depends", ASKS), ("depends", ANSWERS), ("absent", HEDGES), ("absent", TAMIL)),
    hold("c", "asha", (None, ANSWERS), ("other", ANSWERS), ("depends", ASKS), chatbot="silent"),
]
NAMES: dict[str, Any] = {"chatbots": ["vanilla", "silent"], "detectors": ["d"], "labels": LABELS}
NONE = {"answered": 0, "hedged": 0, "declined": 0, "asked-back": 0}


def test_planted_goals_are_counted_exactly() -> None:
    assert result(GoalReplies, CHATS, **NAMES).goal_replies == (
        GoalReplyRow(
            chatbot="vanilla",
            turns=7,
            read=6,
            coverage=6 / 7,
            right=0.5,
            right_ci95=None,
            over_answered=1 / 3,
            over_declined=0.5,
            asked_back=1.0,
            expected={"answer": 2, "decline": 3, "ask-back": 1},
            deeds={
                "answer": {**NONE, "answered": 1, "declined": 1},
                "decline": {**NONE, "answered": 1, "hedged": 1, "declined": 1},
                "ask-back": {**NONE, "asked-back": 1},
            },
        ),
    )


@pytest.mark.parametrize(
    ("reply", "right", "over_answered", "over_declined", "asked_back"),
    [(ANSWERS, 1 / 4, 1.0, 0.0, 0.0), (DECLINES, 2 / 4, 0.0, 1.0, 0.0), (ASKS, 1 / 4, 0.0, 0.0, 1.0)],
)
def test_a_bot_that_always_does_the_same_is_right_where_that_is_expected(
    reply: str, right: float, over_answered: float, over_declined: float, asked_back: float
) -> None:
    goals = {"known": ANSWER, "absent": NOWHERE, "torn": CONTRADICTION, "depends": DEPENDS}
    people = [f"p{number}" for number in range(8)]
    labels = {(person, goal): label for person in people for goal, label in goals.items()}
    chats = [hold(person, person, *((goal, reply) for goal in goals)) for person in people]
    (row,) = result(GoalReplies, chats, chatbots=["vanilla"], labels=labels).goal_replies
    assert (row.right, row.over_answered) == (right, over_answered)
    assert (row.over_declined, row.asked_back, row.coverage) == (over_declined, asked_back, 1.0)


def test_the_share_of_right_replies_has_an_interval_over_personas() -> None:
    labels = {(f"p{number}", "absent"): NOWHERE for number in range(8)}
    chats = [
        hold(person, person, ("absent", DECLINES if place % 2 else ANSWERS))
        for place, (person, _) in enumerate(labels)
    ]
    (row,) = result(GoalReplies, chats, chatbots=["vanilla"], labels=labels).goal_replies
    assert row.right == 0.5
    assert row.right_ci95 is not None
    assert row.right_ci95[0] < 0.5 < row.right_ci95[1]


def test_replies_in_another_language_are_not_measured() -> None:
    chats = [hold("a", "asha", ("known", TAMIL))]
    (row,) = result(GoalReplies, chats, chatbots=["vanilla"], labels=LABELS).goal_replies
    assert (row.turns, row.read, row.coverage) == (1, 0, 0.0)
    assert (row.right, row.right_ci95, row.over_declined) == (None, None, None)


def test_page_and_table_have_a_row_for_each_chatbot_and_say_what_is_not_read() -> None:
    report = build_report(CHATS, [], flaws={}, **NAMES)
    section = GoalReplies.section(report)
    assert section is not None
    assert "replies in languages without rules are only in Coverage" in str(section.parts[0])
    table = GoalReplies.csv(report)
    assert table is not None
    names, *rows = (line.split(",") for line in format_csv(table.columns, table.rows).splitlines())
    (row,) = (dict(zip(names, cells, strict=True)) for cells in rows)
    assert (row["chatbot"], row["right"], row["deeds.decline.hedged"]) == ("vanilla", "0.5", "1")


def test_without_labels_there_is_no_table() -> None:
    report = build_report(CHATS, [], flaws={}, chatbots=["vanilla", "silent"], detectors=["d"])
    assert (GoalReplies.section(report), GoalReplies.csv(report)) == (None, None)
