"""The first parts of a run's page, on small literal runs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.transcript import Conversation, Passage, Span, Turn, Verdict
from hallulab.simulator.metrics.metric import RunFacts
from hallulab.simulator.report.build import RunCounts
from hallulab.simulator.report.document import build_page
from hallulab.simulator.report.first_screen import (
    EXCERPT,
    build_marked_replies,
    build_rows,
    cut_excerpt,
    find_nearest,
)
from hallulab.simulator.report.worst import LISTED, WorstReplies
from hallulab.simulator.show.document import Folded, GroupedTable, MarkedReplies, Paragraph
from tests.builders import EVIDENCE, conversation, scored, unscored
from tests.simulator.counted import judged


def worst_of(
    chats: Sequence[Conversation], verdicts: Sequence[Verdict], detectors: Sequence[str] = ("d",)
) -> WorstReplies:
    found = WorstReplies(detectors)
    for chat, own in judged(chats, verdicts):
        found.add(chat, own)
    return found


def verdict(id: str, score: float, turn: int = 0, detector: str = "d", flags: bool = True) -> Verdict:
    own = scored(id, turn, [(0, 1)] if flags else [], detector)
    return own.model_copy(update={"score": score})


def address(id: str, turn: int) -> str:
    return f"#{id}-{turn}"


def listed(found: WorstReplies) -> list[tuple[str, int]]:
    return [(one.conversation, one.number) for one in found.list_conversations()]


def chosen(found: WorstReplies) -> list[str]:
    return [one.conversation for one in found.choose_replies()]


def test_a_conversation_is_as_bad_as_its_worst_reply() -> None:
    chats = [conversation("a", ["x", "y", "z"]), conversation("b", ["x"]), conversation("c", [])]
    verdicts = [verdict("a", 1, 0), verdict("a", 4, 1), verdict("a", 2, 2, flags=False), verdict("b", 3)]
    found = worst_of(chats, verdicts)
    assert listed(found) == [("a", 2), ("b", 1)]
    assert [(one.flagged, one.scored) for one in found.list_conversations()] == [(2, 3), (1, 1)]


def test_first_is_what_most_detectors_flag_then_the_score_of_the_first_then_of_the_next() -> None:
    chats = [conversation(id, ["x"]) for id in "abcde"]
    verdicts = [
        *(verdict("a", 9), verdict("a", 0, detector="e", flags=False)),
        *(verdict("b", 5), verdict("b", 1, detector="e")),
        *(verdict("c", 5), verdict("c", 2, detector="e")),
        unscored("d", 0),
    ]
    found = worst_of(chats, verdicts, ["d", "e"])
    assert listed(found) == [("c", 1), ("b", 1), ("a", 1), ("d", 1), ("e", 1)]
    assert chosen(found) == ["c", "b", "a"]


def test_what_ties_is_in_the_order_of_its_place() -> None:
    chats = [
        conversation(id, ["x"], persona=name) for id, name in [("b", "ravi"), ("a", "ravi"), ("c", "dev")]
    ]
    assert listed(worst_of(chats, [])) == [("c", 1), ("a", 1), ("b", 1)]


def test_of_each_chatbot_and_persona_there_is_a_reply_before_a_second_one_of_any() -> None:
    chats = [
        conversation("a", ["x"], "one", "ravi"),
        conversation("b", ["x"], "one", "dev"),
        conversation("c", ["x"], "two", "ravi"),
        conversation("d", ["x"], "two", "dev"),
        conversation("e", ["x"], "three", "asha"),
    ]
    found = worst_of(chats, [verdict(id, score) for id, score in zip("abcde", (9, 8, 7, 6, 1), strict=True)])
    assert chosen(found) == ["a", "d", "e"]
    assert listed(found)[:3] == [("a", 1), ("b", 1), ("c", 1)]


def test_another_text_stands_before_one_that_was_chosen() -> None:
    chats = [conversation(id, [text]) for id, text in zip("abcd", ("x", "x", "y", "z"), strict=True)]
    found = worst_of(chats, [verdict(id, score) for id, score in zip("abcd", (9, 8, 2, 1), strict=True)])
    assert chosen(found) == ["a", "c", "d"]


def test_what_nobody_flags_is_no_worst_reply() -> None:
    found = worst_of([conversation("a", ["x"])], [verdict("a", 9, flags=False)])
    assert (chosen(found), listed(found)) == ([], [("a", 1)])
    assert build_marked_replies(found, ["d"], address) == []


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 2)), max_size=8), st.randoms())
def test_parts_of_a_run_in_any_order_give_the_same(rows: list[tuple[int, bool, int]], chance: object) -> None:
    chats = [conversation(str(at), ["x"], f"bot{bot}") for at, (_, _, bot) in enumerate(rows)]
    verdicts = [verdict(str(at), score, flags=flags) for at, (score, flags, _) in enumerate(rows)]
    whole = worst_of(chats, verdicts)
    half = len(chats) // 2
    later = worst_of(chats[half:], verdicts[half:])
    later.merge(worst_of(chats[:half], verdicts[:half]))
    assert (listed(later), chosen(later)) == (listed(whole), chosen(whole))


def test_of_many_conversations_the_worst_are_kept() -> None:
    chats = [conversation(f"{at:03}", ["x"]) for at in range(LISTED + 5)]
    found = worst_of(chats, [verdict(chat.id, at) for at, chat in enumerate(chats)])
    assert listed(found) == [(f"{at:03}", 1) for at in range(LISTED + 4, 4, -1)]


def pay(reply: str, *spans: Span) -> WorstReplies:
    """A run of one flagged reply to which two passages belong."""
    passages = (
        Passage(id="law#0", document="law", text="Title: Fees\nCome in person. The fee is Rs 200."),
        Passage(id="faq#0", document="faq", text="Title: Hours\nThe office opens at 9."),
    )
    turn = Turn(index=0, user="Hi", reply=reply, passages=passages)
    chat = conversation("a/1", []).model_copy(update={"turns": (turn,)})
    own = scored("a/1", 0).model_copy(update={"spans": spans, "flagged": True, "score": 4.815})
    return worst_of([chat], [own])


def test_a_marked_reply_stands_beside_the_nearest_sentence() -> None:
    span = Span(start=6, end=23, text="The fee is Rs 500", severity=4, reason="It says Rs 200.")
    found = pay(
        "**Ok** The fee is Rs 500.".replace("**Ok** ", "So it: "),
        span.model_copy(update={"start": 7, "end": 24}),
    )
    [part] = build_marked_replies(found, ["d"], address)
    assert isinstance(part, MarkedReplies)
    assert (part.title, part.meaning) == ("The worst reply", "The highest score by d.")
    [reply] = part.replies
    assert reply.where == "asha, turn 1"
    assert reply.pieces == [("So it: ", False, ""), ("The fee is Rs 500", True, ""), (".", False, "")]
    assert (reply.by, reply.verdicts) == ("d", [("d", "flagged, 4.82")])
    assert (reply.evidence, reply.source) == ("The fee is Rs 200.", "law")
    assert reply.reason == "It says Rs 200."
    assert reply.link == ("Read the conversation", "#a/1-0")


def test_the_worst_of_several_spans_chooses_reason_and_evidence() -> None:
    spans = [
        Span(start=0, end=9, text="opens at 7", probability=0.5, reason="one"),
        Span(start=10, end=15, text="the fee", probability=0.9, reason="two"),
    ]
    found = pay("Opens at 7 for the fee", *spans)
    [part] = build_marked_replies(found, ["d"], address)
    assert isinstance(part, MarkedReplies)
    assert [(one.reason, one.source) for one in part.replies] == [("two", "law")]


def test_a_reply_that_is_flagged_as_a_whole_has_no_marks() -> None:
    found = pay("The office opens at 7.")
    [part] = build_marked_replies(found, ["d"], address)
    assert isinstance(part, MarkedReplies)
    [reply] = part.replies
    assert (reply.pieces, reply.reason) == ([("The office opens at 7.", False, "")], "")
    assert (reply.evidence, reply.source) == ("The office opens at 9.", "faq")


@pytest.mark.parametrize(
    ("passages", "source"),
    [
        ((), "No document was retrieved for this reply."),
        ((EVIDENCE,), "No retrieved passage has a word of what is marked."),
    ],
)
def test_without_a_near_sentence_the_source_says_why(passages: tuple[Passage, ...], source: str) -> None:
    assert find_nearest(Turn(index=0, user="Hi", reply="x", passages=passages), "Rs 500") == ("", source)


def test_a_long_reply_is_cut_between_words_around_its_worst_words() -> None:
    reply = "word " * 60 + "\nThe fee is Rs 500. " + "more " * 60
    start = reply.index("The")
    span = Span(start=start, end=start + 17, text=reply[start : start + 17])
    pieces = cut_excerpt(reply, [span], span)
    assert pieces[:2] == [("… ", False, ""), ("The fee is Rs 500", True, "")]
    assert pieces[2][0].startswith(". more more")
    assert pieces[2][0].endswith("more")
    assert pieces[3] == (" …", False, "")


@given(st.text(alphabet="ab \n", max_size=600), st.integers(0, 599), st.integers(1, 40))
def test_the_first_marked_letter_is_in_the_excerpt(reply: str, start: int, length: int) -> None:
    start = min(start, max(len(reply) - 1, 0))
    span = Span(start=start, end=start + length, text="x")
    pieces = cut_excerpt(reply, [span], span)
    text = "".join(text for text, _, _ in pieces).removeprefix("… ").removesuffix(" …")
    assert text in reply
    assert len(text) <= EXCERPT
    assert not reply or any(is_marked for _, is_marked, _ in pieces)


def test_rows_have_text_score_and_flag_of_each_detector() -> None:
    chats = [conversation("a", ["**Free**\n- of charge"], "one"), conversation("b", ["No."], "two", "dev")]
    verdicts = [verdict("a", 0.25, flags=False), verdict("b", 0.5), unscored("b", 0, "abstained", "e")]
    [hint, table] = build_rows(worst_of(chats, verdicts, ["d", "e"]), ["d", "e"], address, 2)
    assert hint == Paragraph("All conversations, each with its worst reply; the worst first.")
    assert isinstance(table, GroupedTable)
    assert [column.label for column in table.columns] == [
        *("Conversation", "Chatbot", "Worst reply", "d", "e", "Flagged")
    ]
    [rows] = table.groups
    assert [[column.text(row) for column in table.columns] for row in rows] == [
        ["dev, turn 1", "two", "No.", "flagged, 0.50", "abstained", "1 of 1"],
        ["asha, turn 1", "one", "Free • of charge", "not flagged, 0.25", "no verdict", "0 of 1"],
    ]
    assert [row["address"] for row in rows] == ["#b-0", "#a-0"]
    assert [table.columns[3].warns(table.columns[3].of(row)) for row in rows] == [True, False]


def test_flags_are_counted_of_scored_turns() -> None:
    chats = [conversation("a", ["Free.", "No.", "Yes."], "one"), conversation("b", ["No."], "two")]
    verdicts = [
        verdict("a", 0.5),
        unscored("a", 1),
        verdict("a", 0.25, flags=False, turn=2),
        unscored("b", 0),
    ]
    [_, table] = build_rows(worst_of(chats, verdicts, ["d"]), ["d"], address, 2)
    assert isinstance(table, GroupedTable)
    assert [row["flagged"] for row in table.groups[0]] == ["1 of 2", "–"]


def test_rows_behind_the_first_ones_are_folded_away() -> None:
    chats = [conversation(f"{at:02}", ["x"]) for at in range(LISTED + 1)]
    [hint, table, more] = build_rows(worst_of(chats, []), ["d"], address, len(chats))
    assert isinstance(hint, Paragraph)
    assert hint.text == "The 50 worst of 51 conversations, each with its worst reply; the worst first."
    assert isinstance(more, Folded)
    assert more.summary == "38 more"
    assert "Chatbot" not in [column.label for column in getattr(table, "columns", ())]


def test_without_detectors_no_conversation_is_the_worst() -> None:
    assert build_rows(worst_of([conversation("a", ["x"])], [], []), [], address, 1) == []


def count(chats: Sequence[Conversation], verdicts: Sequence[Verdict], **more: bool) -> RunCounts:
    counts = RunCounts(RunFacts(list(dict.fromkeys(chat.chatbot for chat in chats)), ["d"], **more))
    for chat, own in judged(chats, verdicts):
        counts.add(chat, own, ())
    return counts


def test_of_imported_conversations_what_is_not_known_is_left_out() -> None:
    chats = [
        conversation(id, ["x"], "imported", id, model="unknown", scenario="imported") for id in ("c1", "c2")
    ]
    counts = count(chats, [verdict("c2", 0.9)], imported=True)
    document = build_page(counts.report(), counts, None, address)
    assert document.title == "Imported conversations"
    assert document.facts == [(1, "chatbot"), (1, "detector"), (2, "conversations"), (2, "turns")]
    anchors = [section.anchor for section in document.sections]
    assert anchors == ["results", "reader", "concentration", "answered", "user_messages"]


def test_the_sentence_and_the_worst_replies_come_first_then_numbers_then_conversations() -> None:
    chats = [conversation("a", ["x", "y"], "one"), conversation("b", ["x"], "two")]
    counts = count(chats, [verdict("a", 0.9), verdict("a", 0.1, 1)])
    document = build_page(counts.report(), counts, None, address)
    assert [part.kind for part in document.lead] == ["paragraph", "marked"]
    assert [section.anchor for section in document.sections][:3] == ["results", "reader", "depth"]
    kinds = [part.kind for part in document.sections[0].parts if part.kind != "paragraph"]
    assert kinds == ["figures", "table", "folded"]
