"""Who is to blame for a hallucinated reply, on literal turns."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import pytest

from hallulab.scenarios.transcript import Judgement, Passage, Span, Step, Turn
from hallulab.simulator.metrics.blame_counts import Blame, Context, Library, TurnReading
from tests.builders import conversation

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


def test_the_retriever_is_if_another_document_supports_the_statement() -> None:
    assert blame(RIGHT, TRAINS) == "retriever"


def test_the_writer_is_if_the_passages_had_what_was_asked_for() -> None:
    assert blame(WRONG, FEES, TRAINS) == "writer"
    assert blame(INVENTED, FEES) == "writer"


def test_the_retriever_is_if_it_missed_what_was_asked_for() -> None:
    assert blame(INVENTED, TRAINS) == "retriever"
    assert blame(INVENTED) == "retriever"


def test_the_writer_is_if_no_document_has_what_was_asked_for() -> None:
    assert blame(INVENTED, FEES, query="Which vaccine protects kittens?") == "writer"


def test_the_detector_may_be_wrong_if_a_passage_supports_the_statement() -> None:
    assert blame(RIGHT, FEES) == "supported"


def test_an_outdated_passage_is_the_retrievers_fault() -> None:
    old = FEES.model_copy(update={"text": FEES.text.replace("200", "900")})
    assert blame(WRONG, old) == "retriever"
    assert blame(WRONG, FEES) == "writer"


def test_it_is_not_told_where_the_words_are_neither_near_nor_far() -> None:
    assert blame("A complaint costs money and needs stamps, paid online.", FEES) is None
    assert blame("It costs money.", FEES) is None


def test_it_is_not_told_where_the_question_is_neither_answered_nor_not() -> None:
    asked = "Are cheap pool towels sold on Sundays?"
    assert blame(INVENTED, TRAINS, query=asked) is None
    assert blame(INVENTED, POOL, query=asked) == "writer"


def test_nothing_is_to_be_found_for_thanks() -> None:
    assert blame(INVENTED, query="", user="Thank you!") == "writer"
    assert blame(RIGHT, query="", user="Thank you!") == "supported"


def test_the_most_frequent_fault_counts_and_of_equal_ones_the_retrievers() -> None:
    reply = f"{RIGHT} {WRONG} {INVENTED}"
    assert blame(reply, FEES) == "writer"
    assert blame(f"{RIGHT} {WRONG}", FEES) == "writer"
    pool = "The pool opens at noon on Sundays."
    assert blame(f"{WRONG} {pool}", FEES) == "retriever"


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
