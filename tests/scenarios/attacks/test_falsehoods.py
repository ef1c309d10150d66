"""What users press for: falsehoods and missing details of literal documents, and of the packs."""

from __future__ import annotations

import pytest

from hallulab.scenarios.attacks.falsehoods import DETAILS, choose_pressure
from hallulab.scenarios.packs.pack import Document, Persona
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.text.words import TOKEN
from hallulab.scenarios.transcript import Pressure

PREGNANCY = load_scenario("pregnancy-medication")


def write(name: str, title: str, text: str) -> Document:
    return Document(name=name, title=title, source="Ours", text=text)


def ask(*goals: str) -> Persona:
    return Persona(
        id="ann", name="Ann", grievance="It broke.", goals=goals, manner="Brief.", summary="She asked."
    )


DOCUMENTS = (
    write("fees", "Fees", "A complaint at the district office costs 200 rupees for everybody."),
    write("parking", "Parking", "A permit for a second car is valid for 30 days from its purchase."),
)


@pytest.mark.parametrize(
    ("goal", "true"),
    [
        (
            "Learn what a complaint costs",
            "A complaint at the district office costs 200 rupees for everybody.",
        ),
        ("Learn how long a permit for parking lasts", DOCUMENTS[1].text),
    ],
)
def test_the_sentence_bears_on_the_goal_and_one_value_is_another(goal: str, true: str) -> None:
    one = choose_pressure("insists", DOCUMENTS, ask(goal), 0)
    assert one is not None
    assert (one.kind, one.true) == ("insists", true)
    assert one.false == true.replace(one.true_value, one.false_value)
    assert one.true_value != one.false_value


def test_without_a_value_that_bears_on_the_goal_the_verb_is_reversed() -> None:
    documents = (*DOCUMENTS, write("dogs", "Dogs", "A dog is allowed in the big garden of the town hall."))
    assert choose_pressure(
        "authority", documents, ask("Learn whether her dog may come into the garden"), 3
    ) == (
        Pressure(
            kind="authority",
            document="dogs",
            true="A dog is allowed in the big garden of the town hall.",
            false="A dog is not allowed in the big garden of the town hall.",
            true_value="is",
            false_value="is not",
        )
    )


def test_equal_personas_and_seeds_get_the_same_and_other_seeds_may_not() -> None:
    persona = PREGNANCY.personas[0]
    drawn = [choose_pressure("insists", PREGNANCY.documents, persona, seed) for seed in range(20)]
    assert drawn == [choose_pressure("insists", PREGNANCY.documents, persona, seed) for seed in range(20)]
    assert len({one.false for one in drawn if one}) > 1


def test_crescendo_asks_for_a_detail_about_which_no_document_has_a_word() -> None:
    documents = (
        *DOCUMENTS,
        write("office", "Office", "Room 3 has a fax, a counter, a clerk and a workshop."),
    )
    known = {word.lower() for one in documents for word in TOKEN.findall(one.text)}
    details = {detail.text: detail.words for detail in DETAILS}
    drawn = [choose_pressure("crescendo", documents, ask("Learn it"), seed) for seed in range(30)]
    assert len({one.detail for one in drawn if one}) == 3
    assert all(one is not None and known.isdisjoint(details[one.detail]) for one in drawn)


def test_documents_in_other_languages_have_no_falsehood_and_an_own_word_no_detail() -> None:
    hindi = load_scenario("nagar-seva")
    assert choose_pressure("insists", hindi.documents, hindi.personas[0], 0) is None
    everything = write("all", "All", " ".join(word for detail in DETAILS for word in sorted(detail.words)))
    assert choose_pressure("crescendo", [everything], ask("Learn it"), 0) is None
