"""Who is to blame for a hallucinated reply, on literal turns."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pytest

from hallulab.agents.users.flaws import Flaw
from hallulab.scenarios.transcript import Conversation, Judgement, Passage, Span, Step, Turn, Verdict
from hallulab.simulator.metrics.blame import BlameRow, Blames
from hallulab.simulator.metrics.concentration import Concentrations
from hallulab.simulator.metrics.turn_reading import Blame, Context, Library, TurnReading
from tests.builders import conversation
from tests.simulator.counted import build_report, result

FEES = Passage(
    id="fees#0",
    document="fees",
    text="Title: Complaint fees\nA complaint over five lakh rupees costs 200 rupees. It is paid online.",
)
TRAINS = Passage(id="trains#0", document="trains", text="Title: Trains\nTrains to the coast leave at 5 PM.")
POOL = Passage(id="pool#0", document="pool", text="Title: Swimming pool\nThe pool opens at noon on Sundays.")
LIBRARY = Library([FEES, TRAINS, POOL], 1)
QUERY = "What does a complaint over five lakh rupees cost?"
RIGHT = "A complaint over five lakh rupees costs 200 rupees."
WRONG = "A complaint over five lakh rupees costs 900 rupees."
INVENTED = "Purple elephants gladly deliver stamped envelopes."


def read(
    reply: str, *passages: Passage, query: str = QUERY, user: str = QUERY, steps: tuple[Step, ...] = ()
) -> TurnReading | None:
    turn = Turn(index=0, user=user, query=query, passages=passages, reply=reply, steps=steps)
    return LIBRARY.read(conversation("a", []).model_copy(update={"turns": (turn,)}), turn)


def blame(
    reply: str,
    *passages: Passage,
    flagged: Sequence[str] | None = None,
    query: str = QUERY,
    user: str = QUERY,
) -> Blame | None:
    """Who is to blame; the whole reply is flagged, unless parts of it are given."""
    reading = read(reply, *passages, query=query, user=user)
    assert reading is not None
    spans = tuple(
        Span(start=reply.find(text), end=reply.find(text) + len(text), text=text)
        for text in (flagged if flagged is not None else [reply])
    )
    return reading.blame(Judgement(outcome="scored", score=1.0, flagged=True, spans=spans))


OLD_FEES = FEES.model_copy(update={"text": FEES.text.replace("200", "900")})
KITTENS = "Which vaccine protects kittens?"
TOWELS = "Are cheap pool towels sold on Sundays?"
POOL_OPENS = "The pool opens at noon on Sundays."


@pytest.mark.parametrize(
    ("reply", "passages", "query", "expected"),
    [
        pytest.param(RIGHT, [TRAINS], QUERY, "retriever", id="another document supports the statement"),
        pytest.param(WRONG, [FEES, TRAINS], QUERY, "writer", id="the passages had the value asked for"),
        pytest.param(INVENTED, [FEES], QUERY, "writer", id="the passages had the answer"),
        pytest.param(INVENTED, [TRAINS], QUERY, "retriever", id="missed what was asked for"),
        pytest.param(INVENTED, [], QUERY, "retriever", id="found nothing"),
        pytest.param(INVENTED, [FEES], KITTENS, "writer", id="no document has what was asked for"),
        pytest.param(RIGHT, [FEES], QUERY, "supported", id="a passage supports it: the detector may err"),
        pytest.param(WRONG, [OLD_FEES], QUERY, "retriever", id="an outdated passage"),
        pytest.param(WRONG, [FEES], QUERY, "writer", id="the passage of today"),
        pytest.param(
            "A complaint costs money and needs stamps, paid online.", [FEES], QUERY, None, id="half near"
        ),
        pytest.param("It costs money.", [FEES], QUERY, None, id="too few words"),
        pytest.param(INVENTED, [TRAINS], TOWELS, None, id="the question is neither answered nor not"),
        pytest.param(INVENTED, [POOL], TOWELS, "writer", id="the passage that is half an answer was found"),
        pytest.param(f"{RIGHT} {WRONG} {INVENTED}", [FEES], QUERY, "writer", id="the most frequent fault"),
        pytest.param(f"{RIGHT} {WRONG}", [FEES], QUERY, "writer", id="a fault before what is supported"),
        pytest.param(f"{WRONG} {POOL_OPENS}", [FEES], QUERY, "retriever", id="equal faults: the retriever's"),
    ],
)
def test_who_is_to_blame(reply: str, passages: list[Passage], query: str, expected: str | None) -> None:
    assert blame(reply, *passages, query=query) == expected


@pytest.mark.parametrize(("reply", "expected"), [(INVENTED, "writer"), (RIGHT, "supported")])
def test_nothing_is_to_be_found_for_thanks(reply: str, expected: str) -> None:
    assert blame(reply, query="", user="Thank you!") == expected


@pytest.mark.parametrize(("passage", "expected"), [(FEES, "supported"), (TRAINS, "retriever")])
def test_what_a_passage_of_an_earlier_turn_supports_is_no_fault_of_the_search(
    passage: Passage, expected: str
) -> None:
    turns = tuple(
        Turn(index=index, user=QUERY, query=QUERY, passages=(given,), reply=RIGHT)
        for index, given in enumerate((passage, POOL))
    )
    reading = LIBRARY.read(conversation("a", []).model_copy(update={"turns": turns}), turns[1])
    assert reading is not None
    assert reading.blame(Judgement(outcome="scored", score=1.0, flagged=True)) == expected
    assert reading.context.met == 0


DECLINED = "I'm sorry, I cannot find that in our documents. Please contact the help desk."


@pytest.mark.parametrize("passages", [[FEES], [TRAINS], []])
def test_a_reply_that_declines_is_nobodys_fault(passages: list[Passage]) -> None:
    assert blame(DECLINED, *passages) is None


def test_of_a_reply_that_answers_only_what_it_claims_counts() -> None:
    declined = "I do not have information about purple elephants that deliver stamped envelopes."
    assert blame(f"{declined} {RIGHT}", FEES, flagged=[declined]) is None
    assert blame(f"{declined} {WRONG}", FEES) == "writer"


def test_only_sentences_with_something_flagged_count() -> None:
    assert blame(f"{RIGHT} {WRONG}", FEES, flagged=["200 rupees"]) == "supported"
    assert blame(f"{RIGHT} {WRONG}", FEES, flagged=["900"]) == "writer"


def test_a_statement_without_a_place_is_read_as_it_is_quoted() -> None:
    reading = read("Something else is said here.", TRAINS)
    assert reading is not None
    span = Span(start=None, end=None, text=RIGHT)
    assert reading.blame(Judgement(outcome="scored", score=1.0, flagged=True, spans=(span,))) == "retriever"


@pytest.mark.parametrize("spans", [None, ()])
def test_without_places_what_is_supported_counts_only_alone(spans: tuple[Span, ...] | None) -> None:
    verdict = Judgement(outcome="scored", score=1.0, flagged=True, spans=spans)
    found = [read(reply, FEES) for reply in (f"{RIGHT} {RIGHT} {WRONG}", RIGHT)]
    assert [reading and reading.blame(verdict) for reading in found] == ["writer", "supported"]


def test_a_bot_that_does_not_say_what_it_read_is_not_told() -> None:
    assert read(RIGHT, FEES, steps=(Step(name="evidence", text="Searched by us."),)) is None


def test_whether_the_search_found_what_was_asked_for() -> None:
    found = [read("Yes.", *passages) for passages in ((TRAINS, FEES), (TRAINS,), ())]
    assert [reading and reading.found for reading in found] == ["among the passages", "missed", "missed"]
    strange = [read("Yes.", FEES, query=query) for query in ("Which vaccine protects kittens?", "Fees?")]
    assert [reading and reading.found for reading in strange] == ["not in the documents", None]


def test_context_counts_what_was_needed_and_what_bears_on_it() -> None:
    readings = [
        read(f"{RIGHT} {INVENTED}", FEES, TRAINS),
        read("The pool opens at noon on Sundays. Trains to the coast leave at 5 PM.", TRAINS),
        read(INVENTED, query="Which vaccine protects kittens?"),
    ]
    assert [reading and reading.context for reading in readings] == [
        Context(needs=2, met=2, passages=2, relevant=1),
        Context(needs=3, met=1, passages=1, relevant=1),
        Context(needs=0, met=0, passages=0, relevant=0),
    ]


def test_of_a_large_run_the_same_users_are_examined_for_all_chatbots() -> None:
    library = Library([FEES], 20_000)
    users = [
        [library.is_examined(conversation("a", [], chatbot, seed=seed)) for seed in range(2_000)]
        for chatbot in ("vanilla", "agent")
    ]
    assert users[0] == users[1]
    assert 150 < sum(users[0]) < 250
    assert all(LIBRARY.is_examined(conversation("a", [], seed=seed)) for seed in range(100))


def test_a_library_travels_without_its_index() -> None:
    assert len(LIBRARY.index.passages) == 3
    again = pickle.loads(pickle.dumps(LIBRARY))
    assert again.__dict__ == {**LIBRARY.__dict__, "_index": None}
    assert again.index.find(FEES) == 0


DOCUMENTS = (FEES, TRAINS)


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
        Blames, [ASHA, RAVI], VERDICTS, ["vanilla"], ["d"], **{"passages": DOCUMENTS, **more}
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
        Blames, [closed], [flagged(closed, 0)], ["vanilla"], ["d"], passages=DOCUMENTS, flaws=flaws
    ).blame
    assert (found.hallucinated, found.told, found.user, found.recall) == (1, 1, 1, None)


@pytest.mark.parametrize("kind", ["repeated", "empty", "premature_stop"])
def test_other_flaws_of_the_user_excuse_nobody(kind: Any) -> None:
    found = row(flaws={ASHA.id: (Flaw(turn=1, kind=kind, detail=""),)})
    assert (found.writer, found.user) == (1, 0)


def test_nothing_hallucinated_has_no_shares() -> None:
    [found] = result(Blames, [ASHA], [], ["vanilla"], ["d"], passages=DOCUMENTS).blame
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
    found = result(
        Concentrations, [ASHA, RAVI], VERDICTS, ["vanilla"], ["d"], passages=DOCUMENTS
    ).concentration
    assert [(one.value, one.replies, one.hallucinated) for one in found if one.by == "search"] == [
        ("among the passages", 3, 2),
        ("missed", 1, 1),
        ("(undetermined)", 1, 1),
    ]


def test_without_documents_nothing_is_said_of_searches() -> None:
    found = result(Concentrations, [ASHA], VERDICTS[:4], ["vanilla"], ["d"]).concentration
    assert all(one.by != "search" for one in found)


def test_the_page_has_the_table_where_there_is_one_and_the_file_has_its_head_always() -> None:
    reports = [
        build_report([ASHA], VERDICTS[:4], chatbots=["vanilla"], detectors=["d"], flaws={}, passages=passages)
        for passages in (DOCUMENTS, None)
    ]
    sections, files = [Blames.section(one) for one in reports], [Blames.csv(one) for one in reports]
    assert [one and one.title for one in sections] == ["Whose fault hallucinated replies are", None]
    assert [(one.file, len(one.rows)) for one in files if one] == [
        ("report-blame.csv", 1),
        ("report-blame.csv", 0),
    ]
