"""Citations are right where their passage is there and supports their sentence, on literal replies."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.transcript import Conversation, Passage, Step, Turn
from hallulab.simulator.metrics.citations import CitationRow, CitedPassages, judge_citations
from hallulab.simulator.metrics.run_report import RunReport
from tests.builders import conversation
from tests.simulator.counted import build_report, result

FILMS = Passage(
    id="films.md#0",
    document="films.md",
    text="Title: Films\nFilms are lent for 7 days. A film that is late costs 20 cents a day.",
)
BOOKS = Passage(
    id="books.md#0",
    document="books.md",
    text="Title: Books\nBooks are lent for 21 days. They can be renewed twice by telephone.",
)
DESK = Passage(
    id="desk.md#0",
    document="desk.md",
    text="Title: Help desk\nThe help desk opens at 9 in the morning, also on Saturdays. "
    "Book it at https://library.org/desk.",
)
PASSAGES = (FILMS, BOOKS, DESK)
SEVEN, LATE = "Films are lent for 7 days", "A late film costs 20 cents a day"
BOTH = "Films are lent for 7 days, and books are lent for 21 days"


def judge(reply: str, passages: Sequence[Passage] = PASSAGES, user: str = "") -> list[bool | None]:
    return [one.is_right for one in judge_citations(reply, passages, user)]


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        (f"{SEVEN} [1].", [True]),
        (f"{SEVEN} [2].", [False]),
        (f"{SEVEN} [4].", [False]),
        ("Films are lent for 14 days [1].", [False]),
        ("Purple elephants gladly deliver stamped envelopes [1].", [False]),
        (f"{SEVEN}. [1] {LATE}. [2]", [True, False]),
        (f"{SEVEN}.[1] {LATE}.[3]", [True, False]),
        (f"- {SEVEN} [1]\n- Books are lent for 21 days [1]", [True, False]),
        (f"{LATE}.\n\n[2] Books are lent for 21 days.", [True]),
        (f"{LATE}.\n[1]\nBooks are lent for 21 days.", [True]),
        (f"According to films.md, {LATE.lower()}.", [True]),
        (f"{SEVEN} [1]. According to books.md, {LATE.lower()}.", [True, False]),
        (f"{SEVEN} [1]. [1] says that {LATE.lower()}.", [True, True]),
        (f"{SEVEN} [1].\n\nPassage 2:\n\n{LATE}.", [True]),
        (f"{LATE} (Source: books.md).", [False]),
        (f"{LATE} (Source: made-up.md).", [False]),
    ],
)
def test_a_citation_is_right_if_its_passage_supports_its_sentence(reply: str, right: list[bool]) -> None:
    assert judge(reply) == right


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        (f"{BOTH} [1][2].", [True, True]),
        (f"{BOTH} [1, 2, 3].", [True, True, False]),
        (f"{BOTH} [1].", [False]),
        (f"{SEVEN} [1][2].", [True, False]),
        ("Films are lent for 7 days [1], and books are lent for 21 days [2].", [True, True]),
        ("Films are lent for 7 days [2], and books are lent for 21 days [1].", [False, False]),
        ("They are lent for 7 days [1], 21 days [2], or 9 days [4].", [True, None, False]),
    ],
)
def test_of_several_each_is_needed_and_each_place_has_its_words(reply: str, right: list[bool]) -> None:
    assert judge(reply) == right


def test_any_passage_of_a_cited_document_may_support_the_sentence() -> None:
    late = FILMS.model_copy(update={"id": "films.md#1", "text": "A film that is late costs 20 cents a day."})
    seven = FILMS.model_copy(update={"text": "Films are lent for 7 days."})
    assert judge(f"{LATE} [films.md].", (seven, BOOKS, late)) == [True]


@pytest.mark.parametrize(
    "reply",
    [
        "Do you mean how long films are lent [1]?",
        "I cannot find that in the documents [2].",
        "Passage 2 does not say who pays for it.",
        "Passage 2 describes how long everybody may keep books and films.",
        "Thank you for your question [9]!",
        "You are welcome.",
        "Book the desk [here](https://library.org/desk).",
    ],
)
def test_sentences_that_claim_nothing_cite_nothing_and_addresses_of_passages_are_no_citations(
    reply: str,
) -> None:
    assert judge(reply) == []


def test_a_link_that_the_user_sent_is_no_citation() -> None:
    reply = "Films on [your page](https://me.org/films) are lent for 7 days."
    assert judge(reply) == [False]
    assert judge(reply, user="Is https://me.org/films right?") == []


@pytest.mark.parametrize(
    "reply",
    [
        "Filme werden für 7 Tage verliehen, und die Bücher sind für alle da [1][9].",
        "फ़िल्में 7 दिनों के लिए दी जाती हैं [1].",
        "Yes [1].",
        "Films are lent quickly for 7 days at the desk [1].",
        "Everybody may keep films a whole week without paying anything [1].",
    ],
)
def test_other_languages_few_words_and_half_support_are_not_judged(reply: str) -> None:
    assert set(judge(reply)) == {None}


def test_a_passage_in_another_language_is_not_judged() -> None:
    german = FILMS.model_copy(update={"text": "Filme werden für 7 Tage verliehen und die Bücher sind da."})
    assert judge(f"{SEVEN} [1].", (german,)) == [None]


def test_a_source_in_a_list_is_only_looked_for() -> None:
    assert judge(f"{SEVEN}.\n\nSources:\n- films.md\n- made-up.md") == [None, False]


@given(st.permutations(range(3)))
def test_renumbering_passages_and_marks_together_changes_nothing(order: list[int]) -> None:
    reply = f"{SEVEN} [%s]. {BOTH} [%s][%s]. Books are lent for 21 days [%s]."
    cited = (0, 0, 1, 2)
    moved = [PASSAGES[place] for place in order]
    marks = tuple(order.index(place) + 1 for place in cited)
    assert judge(reply % marks, moved) == [True, True, True, False]


def chat(id: str, replies: Sequence[str], chatbot: str = "vanilla", persona: str = "asha") -> Conversation:
    turns = tuple(
        Turn(index=index, user="Hello", passages=PASSAGES, reply=reply) for index, reply in enumerate(replies)
    )
    return conversation(id, [], chatbot, persona=persona).model_copy(update={"turns": turns})


def test_citations_are_counted_by_chatbot_and_one_that_cites_nothing_has_no_share() -> None:
    chats = [chat("a", [f"{SEVEN} [1]. {LATE} [7].", "Yes [1]."]), chat("b", [f"{SEVEN}."], "editor")]
    assert result(CitedPassages, chats, chatbots=["vanilla", "editor"]).citations == (
        CitationRow(
            chatbot="vanilla",
            citations=3,
            judged=2,
            coverage=0.666667,
            right=0.5,
            right_ci95=None,
            not_there=1,
        ),
        CitationRow(
            chatbot="editor", citations=0, judged=0, coverage=None, right=None, right_ci95=None, not_there=0
        ),
    )


def test_the_share_has_an_interval_over_personas() -> None:
    replies = [f"{SEVEN} [1].", f"{SEVEN} [2]."]
    chats = [chat(str(at), [replies[at % 2]], persona=f"p{at}") for at in range(6)]
    (row,) = result(CitedPassages, chats, chatbots=["vanilla"]).citations
    assert (row.right, row.right_ci95) == (0.5, (0.091189, 0.908811))
    same = [chat(str(at), [replies[0]], persona=f"p{at}") for at in range(6)]
    (row,) = result(CitedPassages, same, chatbots=["vanilla"]).citations
    assert (row.right, row.right_ci95) == (1.0, (0.540742, 1.0))


def test_turns_whose_passages_are_not_known_are_left_out() -> None:
    one = chat("a", [f"{SEVEN} [1]."])
    (turn,) = one.turns
    empty = turn.model_copy(update={"passages": ()})
    guessed = turn.model_copy(update={"steps": (Step(name="evidence", text="found by hallulab"),)})
    for left_out in (empty, guessed):
        found = result(CitedPassages, [one.model_copy(update={"turns": (left_out,)})], chatbots=["vanilla"])
        assert found.citations == ()


def test_a_run_without_citations_has_no_section_and_one_with_them_has_page_and_terminal() -> None:
    def report(reply: str) -> RunReport:
        return build_report([chat("a", [reply])], [], chatbots=["vanilla"], detectors=[], flaws={})

    assert CitedPassages.section(report(f"{SEVEN}.")) is None
    section = CitedPassages.section(report(f"{SEVEN} [1]."))
    assert section is not None
    assert (section.title, len(section.parts)) == ("Citations", 2)
    assert len(CitedPassages.tables(report(f"{SEVEN} [1]."))) == 2
