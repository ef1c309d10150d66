"""False statements take the place of true ones, and each is remembered."""

from __future__ import annotations

from hallulab.scenarios.attacks.poison import Poison, plant_poisons
from hallulab.scenarios.packs.pack import Document
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.text.edits import SentenceBank, collect_sentences

NOTHING = SentenceBank(())
FEE = "The fee for a first complaint at the office is 200 rupees."
AIM = "Everybody who has a complaint is heard at the office with care."


def document(name: str, text: str) -> Document:
    return Document(name=name, title=name, source="", text=text)


def test_the_false_statement_stands_where_the_true_one_stood() -> None:
    [made], [poison] = plant_poisons([document("fees", f"{AIM}\n\n{FEE} {AIM}")], 1.0, NOTHING, 0, False)
    assert made.text == f"{AIM}\n\n{poison.false} {AIM}"
    assert (poison.document, poison.true, poison.true_value) == ("fees", FEE, "200 rupees")
    assert poison.false == FEE.replace("200 rupees", poison.false_value)
    assert poison.false_value in ("400 rupees", "600 rupees", "300 rupees")


def test_a_document_without_a_value_is_passed_over() -> None:
    documents = [document("aims", AIM), document("fees", FEE)]
    for seed in range(5):
        made, poisons = plant_poisons(documents, 0.5, NOTHING, seed, False)
        assert (made[0], [one.document for one in poisons]) == (documents[0], ["fees"])


def test_a_false_value_stands_nowhere_in_the_document() -> None:
    others = (
        "The fee for a second complaint at the office is 400 rupees. The other one costs 600 rupees there."
    )
    for seed in range(10):
        _, poisons = plant_poisons([document("fees", f"{FEE} {others}")], 1.0, NOTHING, seed, False)
        assert not {one.false_value for one in poisons} & {"200 rupees", "400 rupees", "600 rupees"}


def test_a_higher_ratio_poisons_the_same_documents_and_more() -> None:
    pack = load_scenario("migration-labour-rights")
    few, many = (
        {
            one.document: one
            for one in plant_poisons(pack.documents, ratio, collect_sentences(pack.documents), 3, False)[1]
        }
        for ratio in (0.1, 0.3)
    )
    assert (len(few), len(many)) == (2, 8)
    assert few.items() <= many.items()


def test_equal_seeds_give_equal_documents_and_others_other_ones() -> None:
    pack = load_scenario("consumer-grievance-india")
    made = [
        plant_poisons(pack.documents, 0.3, collect_sentences(pack.documents), seed, False)
        for seed in (1, 1, 2)
    ]
    assert made[0] == made[1] != made[2]
    assert [len({one.document for one in poisons}) for _, poisons in made] == [22, 22, 22]


def test_a_ratio_of_none_changes_nothing() -> None:
    documents = (document("fees", FEE),)
    assert plant_poisons(documents, 0.0, NOTHING, 0, True) == (documents, ())


def test_documents_agree_on_one_falsehood() -> None:
    documents = [document(name, f"A reply to the {name} is due within 30 days.") for name in "abcdef"]
    agreed = plant_poisons(documents, 1.0, NOTHING, 0, True)[1]
    alone = plant_poisons(documents, 1.0, NOTHING, 0, False)[1]
    assert len({one.false_value for one in agreed}) == 1
    assert len({one.false_value for one in alone}) > 1
    assert {one.true_value for one in (*agreed, *alone)} == {"30 days"}


def test_a_value_of_one_document_needs_no_agreement() -> None:
    [poison] = plant_poisons([document("fees", FEE)], 1.0, NOTHING, 0, True)[1]
    assert isinstance(poison, Poison)
    assert poison.true_value == "200 rupees"
