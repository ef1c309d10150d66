"""The table of whose fault hallucinated replies are, and where they are by what the search found."""

from __future__ import annotations

from typing import Any

import pytest

from hallulab.agents.users.flaws import Flaw
from hallulab.scenarios.transcript import Conversation, Passage, Span, Step, Turn, Verdict
from hallulab.simulator.metrics.blame import BlameRow, Blames
from hallulab.simulator.metrics.blame_counts import Library
from hallulab.simulator.metrics.concentration import Concentrations
from tests.builders import conversation
from tests.simulator.counted import build_report, result

FEES = Passage(
    id="fees#0",
    document="fees",
    text="Title: Complaint fees\nA complaint over five lakh rupees costs 200 rupees. It is paid online.",
)
TRAINS = Passage(id="trains#0", document="trains", text="Title: Trains\nTrains to the coast leave at 5 PM.")
LIBRARY = Library([FEES, TRAINS], 2)
QUERY = "What does a complaint over five lakh rupees cost?"
RIGHT = "A complaint over five lakh rupees costs 200 rupees."
INVENTED = "Purple elephants gladly deliver stamped envelopes."


def held(id: str, persona: str, *turns: tuple[str, tuple[Passage, ...]], query: str = QUERY) -> Conversation:
    """A conversation of turns: a reply, and its passages."""
    made = tuple(
        Turn(index=at, user="And?", query=query, passages=passages, reply=reply)
        for at, (reply, passages) in enumerate(turns)
    )
    return conversation(id, [], persona=persona).model_copy(update={"turns": made})


def flagged(one: Conversation, turn: int, flag: bool = True) -> Verdict:
    reply = one.turns[turn].reply
    return Verdict(
        conversation=one.id,
        turn=turn,
        detector="d",
        version="1",
        outcome="scored",
        score=float(flag),
        flagged=flag,
        spans=(Span(start=0, end=len(reply), text=reply),) if flag else (),
    )


ASHA = held("a", "asha", (RIGHT, (TRAINS,)), (INVENTED, (FEES,)), (RIGHT, (FEES, TRAINS)), (RIGHT, (FEES,)))
RAVI = held("b", "ravi", ("It costs money.", ()), query="Fees?")
VERDICTS = [*(flagged(ASHA, turn) for turn in range(3)), flagged(ASHA, 3, flag=False), flagged(RAVI, 0)]


def row(**more: Any) -> BlameRow:
    found: tuple[BlameRow, ...] = result(
        Blames, [ASHA, RAVI], VERDICTS, ["vanilla"], ["d"], **{"library": LIBRARY, **more}
    ).blame
    assert len(found) == 1
    return found[0]


def test_hallucinated_replies_are_counted_by_whose_fault_they_are() -> None:
    found = row()
    assert (found.hallucinated, found.told, found.coverage) == (4, 3, 0.75)
    assert (found.retriever, found.writer, found.supported) == (1, 1, 1)
    assert found.retriever_share == found.writer_share == found.supported_share == pytest.approx(1 / 3)
    assert (found.retriever_share_ci95, found.no_interval) == (None, "1 persona; 6 needed for an interval")


def test_recall_and_precision_are_of_hallucinated_replies_alone() -> None:
    found = row()
    # needed: question and statement; question; question and statement; nothing known
    assert (found.recall, found.recall_replies) == (0.6, 3)
    # passages: trains; fees; fees and trains; none
    assert (found.precision, found.precision_replies) == (0.5, 3)


@pytest.mark.parametrize("kind", ["role_swap", "leaked_instructions"])
def test_a_reply_to_a_flawed_message_is_the_users_fault_and_nobody_elses(kind: Any) -> None:
    flaws = {ASHA.id: (Flaw(turn=1, kind=kind, detail="As an AI"),)}
    found = row(flaws=flaws)
    assert (found.told, found.retriever, found.writer, found.supported, found.user) == (3, 1, 0, 1, 1)
    assert found.user_share == found.retriever_share == pytest.approx(1 / 3)


def test_the_user_may_be_to_blame_where_it_is_not_known_what_the_chatbot_read() -> None:
    closed = held("c", "ravi", (INVENTED, (FEES,)))
    turn = closed.turns[0].model_copy(update={"steps": (Step(name="evidence", text=""),)})
    closed = closed.model_copy(update={"turns": (turn,)})
    flaws = {"c": (Flaw(turn=0, kind="role_swap", detail="As an AI"),)}
    [found] = result(
        Blames, [closed], [flagged(closed, 0)], ["vanilla"], ["d"], library=LIBRARY, flaws=flaws
    ).blame
    assert (found.hallucinated, found.told, found.user, found.recall) == (1, 1, 1, None)


@pytest.mark.parametrize("kind", ["repeated", "empty", "premature_stop"])
def test_other_flaws_of_the_user_excuse_nobody(kind: Any) -> None:
    found = row(flaws={ASHA.id: (Flaw(turn=1, kind=kind, detail=""),)})
    assert (found.writer, found.user) == (1, 0)


def test_nothing_hallucinated_has_no_shares() -> None:
    [found] = result(Blames, [ASHA], [], ["vanilla"], ["d"], library=LIBRARY).blame
    assert (found.hallucinated, found.coverage, found.retriever_share, found.recall, found.precision) == (
        0,
        None,
        None,
        None,
        None,
    )


def test_without_documents_there_is_no_table() -> None:
    assert result(Blames, [ASHA], VERDICTS[:4], ["vanilla"], ["d"]).blame == ()


def test_hallucinated_replies_concentrate_by_what_the_search_found() -> None:
    found = result(Concentrations, [ASHA, RAVI], VERDICTS, ["vanilla"], ["d"], library=LIBRARY).concentration
    assert [(one.value, one.replies, one.hallucinated) for one in found if one.by == "search"] == [
        ("among the passages", 3, 2),
        ("missed", 1, 1),
        ("(not told)", 1, 1),
    ]


def test_without_documents_nothing_is_said_of_searches() -> None:
    found = result(Concentrations, [ASHA], VERDICTS[:4], ["vanilla"], ["d"]).concentration
    assert all(one.by != "search" for one in found)


def test_the_page_has_the_table_where_there_is_one_and_the_file_has_its_head_always() -> None:
    reports = [
        build_report([ASHA], VERDICTS[:4], chatbots=["vanilla"], detectors=["d"], flaws={}, library=library)
        for library in (LIBRARY, None)
    ]
    sections, files = [Blames.section(one) for one in reports], [Blames.csv(one) for one in reports]
    assert [one and one.title for one in sections] == ["Whose fault hallucinated replies are", None]
    assert [(one.file, len(one.rows)) for one in files if one] == [
        ("report-blame.csv", 1),
        ("report-blame.csv", 0),
    ]
