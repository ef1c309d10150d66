"""Where hallucinated replies are: shares by turn, length, document and topic, recomputed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hallulab.scenarios.transcript import Conversation, Passage, Step, Turn, Verdict
from hallulab.simulator.metrics.concentration import MOST, Concentration, Concentrations
from tests.builders import conversation, scored, unscored
from tests.simulator.counted import result


def chat(id: str, *turns: dict[str, Any], persona: str = "asha") -> Conversation:
    made = tuple(
        Turn(**{"index": index, "user": "?", "reply": "Yes.", **turn}) for index, turn in enumerate(turns)
    )
    return conversation(id, [], turns=made, persona=persona)


def concentration(
    chats: Sequence[Conversation], verdicts: Sequence[Verdict], detectors: Sequence[str]
) -> tuple[Concentration, ...]:
    found: tuple[Concentration, ...] = result(Concentrations, chats, verdicts, [], detectors).concentration
    return found


def passage(document: str, topic: str | None = None) -> Passage:
    return Passage(id=f"{document}#0", document=document, text="Evidence.", topic=topic)


def cells(rows: tuple[Concentration, ...], by: str) -> dict[str, tuple[int, int, int, float | None]]:
    return {row.value: (row.replies, row.scored, row.hallucinated, row.share) for row in rows if row.by == by}


def test_replies_are_counted_by_their_turn() -> None:
    one, two = chat("a", {}, {}), chat("b", {}, {}, persona="dev")
    rows = concentration([one, two], [scored("a", 0), scored("a", 1, [(0, 1)]), scored("b", 1)], ["d"])
    assert cells(rows, "turn") == {"1": (2, 1, 0, 0.0), "2": (2, 2, 1, 0.5)}
    assert cells(rows, "all") == {"replies": (4, 3, 1, 0.333333)}


def test_a_failed_turn_is_not_clean_and_an_empty_cell_has_no_number() -> None:
    rows = concentration([chat("a", {})], [unscored("a", 0)], ["d"])
    (row,) = (row for row in rows if row.by == "turn")
    assert (row.replies, row.scored, row.coverage, row.share, row.share_ci95) == (1, 0, 0.0, None, None)


def test_a_flag_without_places_counts() -> None:
    flagged = scored("a", 0, None).model_copy(update={"flagged": True})
    assert cells(concentration([chat("a", {})], [flagged], ["d"]), "all") == {"replies": (1, 1, 1, 1.0)}


def test_lengths_have_fixed_bands() -> None:
    lengths = (0, 25, 26, 200, 201)
    one = chat("a", *({"reply": "word " * length} for length in lengths))
    rows = concentration([one], [scored("a", index) for index in range(len(lengths))], ["d"])
    assert {name: cell[0] for name, cell in cells(rows, "length").items()} == {
        "up to 25 words": 2,
        "26 to 50": 1,
        "101 to 200": 1,
        "over 200 words": 1,
    }


def test_the_document_is_that_of_the_best_passage() -> None:
    one = chat("a", {"passages": (passage("fees"), passage("limits"))}, {})
    rows = concentration([one], [scored("a", 0, [(0, 1)]), scored("a", 1)], ["d"])
    assert cells(rows, "document") == {"fees": (1, 1, 1, 1.0), "(none)": (1, 1, 0, 0.0)}


def test_documents_beyond_the_most_cited_share_a_row() -> None:
    one = chat("a", *({"passages": (passage(f"d{number:02}"),)} for number in range(MOST + 2)))
    rows = concentration([one], [], ["d"])
    assert len(cells(rows, "document")) == MOST + 1
    assert cells(rows, "document")["(others)"] == (2, 0, 0, None)


def test_a_given_topic_goes_before_that_of_the_document() -> None:
    given = {"steps": (Step(name="topic", text="billing"),), "passages": (passage("fees", "fees"),)}
    rows = concentration([chat("a", given, {"passages": given["passages"]}, {})], [], ["d"])
    assert {name: cell[0] for name, cell in cells(rows, "topic").items()} == {
        "billing": 1,
        "fees": 1,
        "(none)": 1,
    }


def test_without_topics_there_are_no_rows_by_topic() -> None:
    assert cells(concentration([chat("a", {})], [], ["d"]), "topic") == {}


def test_conversations_of_one_persona_count_together() -> None:
    chats = [chat(str(number), {}, persona=f"p{number // 2}") for number in range(12)]
    rows = concentration(
        chats, [scored(str(number), 0, [(0, 1)][: number % 2]) for number in range(12)], ["d"]
    )
    (row,) = (row for row in rows if row.by == "all")
    assert (row.share, row.share_ci95) == (0.5, None)
    assert row.no_interval == "every persona has the same share"
