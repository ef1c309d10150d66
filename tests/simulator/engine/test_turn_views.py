"""The evidence of a turn, put together for all detectors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.detectors.base.protocol import DetectorContext, run_detector
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.transcript import Branch, Message, Passage, Turn
from hallulab.scenarios.turn_views import TurnView, choose_earlier_passages
from hallulab.simulator.engine.turn_views import build_view
from hallulab.testing.scripted import last_user, scripted_pool
from tests.builders import conversation


def make_turn(index: int, *texts: str, reply: str = "Yes.") -> Turn:
    passages = tuple(Passage(id=f"{text}#0", document="d", text=text) for text in texts)
    return Turn(index=index, user="Is it?", passages=passages, reply=reply)


FIRST = make_turn(0, "The pool opens at 6.", "A ticket is 9 euros.")
SECOND = make_turn(1, "Dogs stay outside.", reply="It opens at 6, and dogs stay outside.")


def test_a_turn_has_its_own_passages_and_then_those_of_earlier_turns() -> None:
    third = make_turn(2, "A ticket is 9 euros.", "Towels are lent.")
    view = build_view(third, (), [FIRST.passages, SECOND.passages], None)
    assert view.own_passages == third.passages
    assert [passage.text for passage in view.earlier_passages] == [
        "Dogs stay outside.",
        "The pool opens at 6.",
    ]
    assert view.passages == (*view.own_passages, *view.earlier_passages)


def test_a_first_turn_has_its_own_passages() -> None:
    view = build_view(FIRST, (), [], None)
    assert (view.passages, view.earlier, view.earlier_passages) == (FIRST.passages, 0, ())


def test_a_copy_in_other_lines_is_a_copy() -> None:
    again = make_turn(1, "The pool\n opens at 6.")
    chosen = choose_earlier_passages(again.passages, [FIRST.passages])
    assert [one.text for one in chosen] == ["A ticket is 9 euros."]


@pytest.mark.parametrize(("room", "chosen"), [(17, 0), (18, 0), (37, 0), (38, 1), (57, 1), (58, 2)])
def test_earlier_passages_are_as_many_as_fit_whole(room: int, chosen: int) -> None:
    assert len(choose_earlier_passages(SECOND.passages, [FIRST.passages], room)) == chosen


@given(
    st.lists(st.lists(st.sampled_from(["a", "bc", "def", "ghij"]), max_size=3), max_size=4),
    st.integers(0, 40),
)
def test_a_larger_room_adds_behind_what_a_smaller_one_has(turns: list[list[str]], room: int) -> None:
    before = [make_turn(index, *texts).passages for index, texts in enumerate(turns)]
    few, more = (choose_earlier_passages((), before, size) for size in (room, room + 5))
    assert more[: len(few)] == few
    assert sum(len(passage.text) for passage in few) <= room


def test_turns_before_a_branch_are_earlier_ones() -> None:
    said = (Message(role="user", text="Is it?"), Message(role="assistant", text="Yes."))
    branch = Branch(conversation="c", turn=1, history=said, passages=(FIRST.passages,))
    held = conversation("asha", [], turns=(make_turn(0, "Towels are lent."), make_turn(1, "Soap is sold.")))
    held = held.model_copy(update={"branch": branch})
    assert held.list_passages(1) == [FIRST.passages, held.turns[0].passages]


async def judge(detector: str, view: TurnView) -> tuple[float | None, str]:
    pool, transport = scripted_pool(lambda _: {"Yes": 0.9, "No": 0.1})
    made = make_detector(detector, detector, DetectorContext(models=pool))
    [judgement] = await run_detector(made, [view])
    return judgement.score, last_user(transport.requests[0]) if transport.requests else ""


async def test_a_detector_of_words_knows_those_of_earlier_turns() -> None:
    score, _ = await judge("lexical", build_view(SECOND, (), [FIRST.passages], None))
    alone, _ = await judge("lexical", build_view(SECOND, (), [], None))
    assert (score, alone) == (2 / 8, 5 / 8)  # `it` and `and` are nowhere


async def test_a_model_is_shown_the_passages_of_earlier_turns_behind_the_own() -> None:
    _, asked = await judge("direct-judge", build_view(SECOND, (), [FIRST.passages], None))
    assert asked.startswith(
        "Evidence:\nDocument 1: Dogs stay outside.\nDocument 2: The pool opens at 6.\n"
        "Document 3: A ticket is 9 euros.\n\nResponse:\n"
    )
