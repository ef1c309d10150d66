from __future__ import annotations

from typing import Any

from hallulab.simulator.metrics.depth import DepthRate, Depths
from tests.builders import conversation, scored, unscored
from tests.simulator.counted import build_report, result

CHATS = [
    conversation("a", ["x", "y"], persona="asha"),
    conversation("b", ["x", "y", "z"], persona="ravi"),
    conversation("c", ["x"], "editor", persona="asha"),
]
VERDICTS = [
    scored("a", 0, [(0, 1), (0, 1)]),
    scored("a", 1),
    scored("b", 0),
    unscored("b", 1),
    scored("b", 2, [(0, 1)]),
    scored("c", 0, [(0, 1)]),
]
NAMES: dict[str, Any] = {"chatbots": ["vanilla", "editor"], "detectors": ["d"]}


def rate(chatbot: str, turn: str, scored: int, hpt: float) -> DepthRate:
    return DepthRate(chatbot=chatbot, detector="d", turn=turn, scored=scored, hpt=hpt, hpt_ci95=None)


def test_hallucinations_are_counted_by_chatbot_and_turn() -> None:
    assert result(Depths, CHATS, VERDICTS, **NAMES).depth == (
        rate("vanilla", "1", 2, 1.0),
        rate("vanilla", "2", 1, 0.0),
        rate("vanilla", "3", 1, 1.0),
        rate("editor", "1", 1, 1.0),
    )


def test_late_turns_share_a_band() -> None:
    long = conversation("a", ["x"] * 11)
    verdicts = [scored("a", turn, [(0, 1)] if turn == 5 else []) for turn in range(11)]
    found = result(Depths, [long], verdicts, ["vanilla"], ["d"]).depth
    assert [(row.turn, row.scored, row.hpt) for row in found[4:]] == [
        ("5 to 9", 5, 0.2),
        ("10 and later", 2, 0),
    ]


def test_enough_personas_give_intervals() -> None:
    chats = [conversation(str(number), ["x", "y"], persona=f"p{number}") for number in range(6)]
    verdicts = [
        scored(chat.id, turn, [(0, 1)] * (int(chat.id) % 2 or turn)) for chat in chats for turn in (0, 1)
    ]
    found = result(Depths, chats, verdicts, ["vanilla"], ["d"]).depth
    assert [row.hpt_ci95 for row in found] == [(0.158382, 1.578464), None]


def test_conversations_of_one_turn_have_no_rows_section_and_file() -> None:
    assert result(Depths, CHATS[2:], VERDICTS[5:], **NAMES).depth == ()
    report = build_report(CHATS[2:], VERDICTS[5:], flaws={}, **NAMES)
    assert Depths.section(report) is None
    assert Depths.csv(report) is None


def test_the_section_has_a_chart_for_each_chatbot() -> None:
    section = Depths.section(build_report(CHATS, VERDICTS, flaws={}, **NAMES))
    assert section is not None
    _, figures = section.parts
    assert [title for title, _ in figures.figures] == ["vanilla", "editor"]  # type: ignore[union-attr]
