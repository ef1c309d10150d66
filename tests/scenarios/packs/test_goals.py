"""Labels of goals: read from `personas.yaml`, written back, and refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.scenarios.files.yaml_text import read_yaml
from hallulab.scenarios.packs.goals import GoalLabel
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.packs.pack_files import (
    list_built_in_packs,
    load_scenario,
    render_persona_block,
    render_personas_file,
)
from hallulab.scenarios.text.words import TOKEN
from hallulab.testing.tiny_pack import make_pack
from tests.kit.refusals import refusal

PERSONA = """\
personas:
  - id: ann
    name: Ann
    grievance: Her tea is cold.
    goals:
      - Warm tea
      - {goal: Learn the price, expect: decline, because: nowhere}
      - GOAL
    manner: Brief.
    summary: She asked for warm tea.
"""
NOWHERE = GoalLabel(expect="decline", because="nowhere")


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    folder = make_pack(tmp_path / "pack")
    documents = folder / "documents"
    for file in documents.iterdir():
        file.unlink()
    (documents / "kettle.md").write_text("# The kettle\n\nTea steeps for three\nminutes.\n")
    (documents / "pot.md").write_text("# The pot\n\nTea steeps for five minutes.\n")
    return folder


def write_goal(pack: Path, goal: str) -> Path:
    (pack / "personas.yaml").write_text(PERSONA.replace("GOAL", goal))
    return pack


def test_labels_are_kept_beside_goals_that_are_texts(pack: Path) -> None:
    depends = "{goal: Learn the time, expect: ask-back, because: depends, documents: [pot], needs: which tea}"
    (ann,) = load_scenario(write_goal(pack, depends)).personas
    assert ann.goals == ("Warm tea", "Learn the price", "Learn the time")
    assert ann.labels == (
        None,
        NOWHERE,
        GoalLabel(expect="ask-back", because="depends", documents=("pot",), needs="which tea"),
    )


def test_a_persona_without_labels_has_none(pack: Path) -> None:
    plain = PERSONA.replace("{goal: Learn the price, expect: decline, because: nowhere}", "Learn the price")
    (pack / "personas.yaml").write_text(plain)
    (ann,) = load_scenario(pack).personas
    assert (len(ann.goals), ann.labels) == (3, ())


def test_a_label_changes_no_description_and_so_no_conversation(pack: Path) -> None:
    (labelled,) = load_scenario(write_goal(pack, "Learn the time")).personas
    plain = labelled.model_copy(update={"labels": ()})
    assert labelled.labels == (None, NOWHERE, None)
    assert labelled.described() == plain.described()
    assert labelled.described()["goals"] == ["Warm tea", "Learn the price", "Learn the time"]


def test_a_written_persona_is_read_with_its_labels(pack: Path, tmp_path: Path) -> None:
    (ann,) = load_scenario(write_goal(pack, "Learn the time")).personas
    block = render_persona_block(ann, (), ())
    path = tmp_path / "personas.yaml"
    path.write_text(render_personas_file([block], "by hand"))
    assert read_yaml(path, "").data["personas"][0]["goals"] == [
        "Warm tea",
        {"goal": "Learn the price", "expect": "decline", "because": "nowhere"},
        "Learn the time",
    ]
    (pack / "personas.yaml").write_text(path.read_text())
    assert load_scenario(pack).personas == (ann,)


def test_a_persona_is_read_from_its_own_json(pack: Path) -> None:
    (ann,) = load_scenario(write_goal(pack, "Learn the time")).personas
    assert Persona.model_validate_json(ann.model_dump_json()) == ann


BECAUSE = (
    "`because` does not fit `expect: EXPECT`; give `decline` with `nowhere` or `contradiction`, `ask-back` "
    "with `depends`, and `answer` with none"
)
CONTRADICTION = (
    "give `documents` and `says` with `because: contradiction`: the documents, and at least two wordings of "
    "theirs that contradict each other"
)


@pytest.mark.parametrize(
    ("goal", "place", "complaint"),
    [
        ("{goal: G, expect: refuse}", ".expect", "input should be 'answer', 'decline' or 'ask-back'"),
        ("{goal: G, expct: answer}", ".expct", "unknown key. Correct its spelling"),
        ("{expect: answer}", ".goal", "this key is missing. Add it"),
        ("{goal: G, expect: decline}", "", BECAUSE.replace("EXPECT", "decline")),
        ("{goal: G, expect: answer, because: nowhere}", "", BECAUSE.replace("EXPECT", "answer")),
        (
            "{goal: G, expect: ask-back, because: depends}",
            "",
            "give `needs`, the fact to ask for, with `because: depends`, and only there",
        ),
        (
            "{goal: G, expect: decline, because: nowhere, documents: [pot]}",
            "",
            "`documents` must be left out with `because: nowhere`: none has the answer",
        ),
        (
            "{goal: G, expect: decline, because: contradiction, documents: [pot], says: [five]}",
            "",
            CONTRADICTION,
        ),
        ("{goal: G, expect: answer, says: [five]}", "", "give `says` with `because: contradiction` only"),
        (
            "{goal: G, expect: answer, documents: [kettel]}",
            ".documents.0",
            "persona ann: there is no document kettel (did you mean `kettle`?). Give the path of a file",
        ),
        (
            "{goal: G, expect: decline, because: contradiction, documents: [kettle, pot], "
            "says: [three minutes, six minutes]}",
            ".says.1",
            "persona ann: none of the documents named has these words. Copy a few",
        ),
    ],
)
def test_a_wrong_label_is_one_sentence_with_its_place(
    pack: Path, goal: str, place: str, complaint: str
) -> None:
    told = refusal(load_scenario, write_goal(pack, goal))
    assert told.startswith(f"personas.yaml, line 8: personas.0.goals.2{place}: {complaint}")


@pytest.mark.parametrize(
    ("goal", "complaint"),
    [("' '", "goal 3 is blank"), ("Warm tea", "goal 3 stands there twice: 'Warm tea'")],
)
def test_a_goal_that_says_nothing_new_is_refused(pack: Path, goal: str, complaint: str) -> None:
    told = refusal(load_scenario, write_goal(pack, goal))
    assert told.startswith(f"personas.yaml, line 5: personas.0.goals: {complaint}")


def test_words_that_contradict_may_stand_over_two_lines(pack: Path) -> None:
    goal = (
        "{goal: G, expect: decline, because: contradiction, documents: [kettle, pot], "
        "says: [three minutes, five minutes]}"
    )
    assert load_scenario(write_goal(pack, goal)).personas[0].labels[2] is not None


def test_a_message_is_about_one_of_the_goals(pack: Path) -> None:
    (pack / "personas.yaml").write_text(
        "personas:\n  - {id: ann, goals: [Warm tea], messages: [{text: Tea?, goal: Cold tea}]}\n"
    )
    assert refusal(load_scenario, pack).startswith(
        "personas.yaml, line 2: personas.0: `goal` of message 1 is none of the goals of persona ann; write "
        "it as in `goals`"
    )


ABSENT = {
    "Learn how many hours before the film a cinema ticket can be cancelled": ("cinema", "film"),
    "Learn what share of an advance a wedding caterer may keep": ("caterer", "wedding"),
    "Learn what a pack of doxylamine with pyridoxine costs at the pharmacy": ("costs", "price"),
    "Learn whether an opened insulin pen belongs in the fridge": ("fridge", "pen"),
    "Learn how many extra days off he gets for his brother's wedding": ("wedding", "marriage", "brother"),
    "Learn for how many months she may drive with her Afghan driving licence": ("drive", "licence"),
    "Learn whether the bank's app can be used in Spanish": ("spanish", "bilingual"),
    "Learn what the bank charges for papers that a notary has signed": ("notary", "notarized", "notarised"),
    "यह जानना कि पुस्तकालय में वाई-फ़ाई है या नहीं": ("वाई", "इंटरनेट"),
    "यह जानना कि प्रमाणपत्र डाक से घर भेजा जाता है या नहीं": ("डाक",),
}
"""Words of goals that no document answers, which are in no document of their pack."""


@pytest.mark.parametrize("name", list_built_in_packs())
def test_no_document_has_the_words_of_a_goal_that_none_answers(name: str) -> None:
    scenario = load_scenario(name)
    words = {
        word.group().lower()
        for one in scenario.documents
        for word in TOKEN.finditer(f"{one.title} {one.text}")
    }
    texts = " ".join(one.text for one in scenario.documents)
    nowhere = [
        goal
        for one in scenario.personas
        for goal, label in zip(one.goals, one.labels, strict=False)
        if label == NOWHERE
    ]
    assert nowhere
    for goal in nowhere:
        assert words.isdisjoint(ABSENT[goal])
        assert goal.isascii() or not any(word in texts for word in ABSENT[goal])


@pytest.mark.parametrize("name", list_built_in_packs())
def test_every_pack_has_goals_of_each_kind_behind_its_other_personas(name: str) -> None:
    labelled = [one for one in load_scenario(name).personas if one.labels]
    reasons = [label.because for one in labelled for label in one.labels if label is not None]
    assert len(labelled) >= 4
    assert {"nowhere", "depends", "contradiction", None} == set(reasons)
    assert load_scenario(name).personas[-len(labelled) :] == tuple(labelled)


def test_a_goal_of_the_hard_pack_is_about_two_documents_that_contradict_each_other() -> None:
    pack = load_scenario("banking-knowledge")
    texts = {one.name: one.text for one in pack.documents}
    [label] = [
        label
        for one in pack.personas
        for label in one.labels
        if label is not None and label.because == "contradiction"
    ]
    first, second = (texts[name] for name in label.documents)
    assert [said in first for said in label.says] == [True, False]
    assert [said in second for said in label.says] == [False, True]
