"""HotPotQA-derived, with a scripted model that writes the wrong answers."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from hallulab.scenarios.datasets.hotpotqa import HotpotQuestion
from hallulab.simulator.bench.hotpotqa_derived import (
    COMPARISON,
    NO_ANSWER,
    NO_VARIANT,
    TRIES,
    Derived,
    build_hotpotqa_derived,
    explain_refusal,
    list_left_out,
)
from hallulab.testing.scripted import Script, last_user, scripted_pool
from tests.agents.models.endpoints import refusal


def question(**changes: Any) -> HotpotQuestion:
    row: dict[str, Any] = {
        "_id": "q1",
        "question": "What position did the manager of Quanjian play?",
        "answer": "the team Captain",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["Quanjian", 0], ["Cannavaro", 7], ["Cannavaro", 0]],
        "context": [
            ["Quanjian", ["Quanjian is managed by Cannavaro.", " It plays at home."]],
            ["Haihe", ["Haihe is a stadium."]],
            ["Cannavaro", ["Cannavaro was a Defender and Captain."]],
        ],
    }
    return HotpotQuestion.model_validate({**row, **changes})


async def built(script: Script, *questions: HotpotQuestion, **options: Any) -> Derived:
    pool, _ = scripted_pool(script, attempts=1)
    return await build_hotpotqa_derived(questions or (question(),), pool, **options)


SAME = "it says the same as the right answer"
SUPPORTED = "it stands in the supporting sentences"
KIND = "it is of another kind"
FORM = "it comes with words or marks that the right answer has not"


@pytest.mark.parametrize(
    ("answer", "gold", "reason"),
    [
        ("Goalkeeper", "the team Captain", None),
        ("", "the team Captain", "it is empty"),
        ("Captain of the team", "the team Captain", SAME),
        ("Captain", "the team Captain", SAME),
        ("1200", "1,200", SAME),
        ("2", "two", SAME),
        ("three", "3", SAME),
        ("Zurich", "Zürich", SAME),
        ("United States", "U.S.", SAME),
        ("NYC", "New York City", SAME),
        ("a Defender", "the team Captain", SUPPORTED),
        ("Haihe", "the team Captain", None),
        ("goalkeeper", "the team Captain", KIND),
        ("Number 9", "the team Captain", KIND),
        ("seven", "1927", None),
        ("fifteen", "1927", None),
        ("last year", "1927", KIND),
        (
            "Goalkeeper and striker of the junior squad",
            "the team Captain",
            "it is longer or shorter than the right answer",
        ),
        ("Oliver!", "Mamma Mia!", None),
        ("$5 million", "7 million", None),
    ],
)
def test_answers_are_refused_for_a_reason(answer: str, gold: str, reason: str | None) -> None:
    assert explain_refusal(answer, question(answer=gold)) == reason


def test_another_spelling_of_the_supporting_sentences_is_refused() -> None:
    context = [["Quanjian", ["It has 1,200 seats."]], ["Cannavaro", ["A man."]]]
    assert explain_refusal("1200", question(answer="1927", context=context)) == SUPPORTED


@pytest.mark.parametrize(
    "written",
    [
        *("**Vltava**", "*Vltava*", "_Vltava_", "`Vltava`", "- Vltava", "1. Vltava", "# Vltava", "> Vltava"),
        *("A: Vltava", "Answer - Vltava", "**Answer:** Vltava", "Incorrect answer: Vltava", '"Vltava."'),
        *("Vltava.</s>", "<s> Vltava", "Vltava<|im_end|>\nMore", "«Vltava»", "```text\nVltava\n```"),
    ],
)
async def test_what_models_put_around_an_answer_is_taken_off(written: str) -> None:
    derived = await built(lambda _: written, question(answer="Ostravice"), both=True)
    assert derived.data[1].reply == "Vltava"


@pytest.mark.parametrize(
    ("written", "gold", "reply"),
    [
        ("The **Vltava** at `Prague`", "The Ostravice", "The Vltava at Prague"),
        ('"Hey Jude"', '"Yesterday"', '"Hey Jude"'),
    ],
    ids=["emphasis within", "as the right answer has it"],
)
async def test_marks_stay_where_the_right_answer_has_them(written: str, gold: str, reply: str) -> None:
    derived = await built(lambda _: written, question(answer=gold), both=True)
    assert derived.data[1].reply == reply


async def test_two_quotations_are_not_one() -> None:
    derived = await built(lambda _: "“Help” and “Girl”", question(answer="Yesterday Song"))
    assert derived.refused == {FORM: TRIES}


@pytest.mark.parametrize(
    "answer",
    [
        *("Vltava!", "Vltava,", "Vltava:", "(Vltava", "Vltava ✗", "Vltava (incorrect)", "It is Vltava"),
        *("The answer is Vltava", "Hallucinated: Vltava", "It's Vltava", "Sure! Vltava"),
        *("Unknown", "Not mentioned", "I can't say", "Sorry, no"),
    ],
)
def test_an_answer_that_is_known_by_its_form_is_refused(answer: str) -> None:
    assert explain_refusal(answer, question(answer="Ostravice")) == FORM


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("the Stadium", None),
        ("Striker", "it stands in no passage"),
        ("Quanjian", SUPPORTED),
        ("Home", "it stands in a supporting passage"),
    ],
)
def test_a_misplaced_answer_stands_in_another_passage_alone(answer: str, reason: str | None) -> None:
    assert explain_refusal(answer, question(), "misplaced") == reason


async def test_passages_that_share_most_with_the_question_are_asked_for_misplaced_answers_first() -> None:
    seen: list[str] = []

    def script(body: dict[str, Any]) -> str:
        seen.append(last_user(body))
        return "Striker" if len(seen) < 2 else "Goalkeeper"

    context = [
        *question().model_dump()["context"],
        ["Lippi", ["The manager Lippi did not play."]],
        ["Buffon", ["What a Goalkeeper."]],
    ]
    derived = await built(script, question(context=context), wrong="misplaced", both=True)
    assert derived.data[1].reply == "Goalkeeper"
    assert [text.split("\n")[1] for text in seen] == [
        "Lippi: The manager Lippi did not play.",
        "Buffon: What a Goalkeeper.",
    ]
    assert seen[0].endswith("Which name in the passage comes closest to an answer?")
    assert "Captain" not in seen[0]


async def test_both_answers_of_a_question_share_its_group_and_passages() -> None:
    derived = await built(lambda _: 'Answer: "Goalkeeper".\nBecause he was.', both=True)
    data = derived.data
    assert [(reply.id, reply.reply, reply.label) for reply in data] == [
        ("q1-faithful", "the team Captain", False),
        ("q1-hallucinated", "Goalkeeper", True),
    ]
    assert {reply.group for reply in data} == {"q1"}
    assert [passage.document for passage in data[0].passages] == ["Quanjian", "Haihe", "Cannavaro"]
    assert data[1].meta == {"level": "hard", "gold": "the team Captain"}


async def test_each_question_is_drawn_once_by_the_seed() -> None:
    questions = [question(_id=f"q{number}") for number in range(40)]
    first = (await built(lambda _: "Goalkeeper", *questions, seed=3)).data
    assert len(first) == 40
    assert 10 < sum(bool(reply.label) for reply in first) < 30
    assert (await built(lambda _: "Goalkeeper", *questions, seed=3)).data == first
    assert (await built(lambda _: "Goalkeeper", *questions, seed=4)).data != first


async def test_a_refused_answer_is_sampled_again() -> None:
    bodies: list[dict[str, Any]] = []

    def script(body: dict[str, Any]) -> str:
        bodies.append(body)
        return "Captain" if len(bodies) < 3 else "Goalkeeper"

    derived = await built(script, both=True, seed=7)
    assert derived.data[1].reply == "Goalkeeper"
    assert [(body["temperature"], body["seed"]) for body in bodies] == [(0.0, 7), (0.9, 8), (0.9, 9)]


async def test_the_model_sees_the_supporting_paragraphs_alone() -> None:
    seen: list[str] = []

    def script(body: dict[str, Any]) -> str:
        seen.append(last_user(body))
        return "Goalkeeper"

    await built(script)
    assert "Golden Answer: the team Captain\nContext:\nQuanjian: Quanjian is managed" in seen[0]
    assert "Haihe" not in seen[0]


async def test_what_is_left_out_is_counted() -> None:
    asked: list[str] = []

    def script(body: dict[str, Any]) -> str | httpx2.Response:
        asked.append(last_user(body))
        return refusal(400, "too long") if "Broken" in asked[-1] else "Captain"

    derived = await built(
        script, question(), question(_id="q2", question="Broken?"), question(_id="q3", type="comparison")
    )
    assert (len(derived.data), derived.data.left_out) == (0, {COMPARISON: 1, NO_VARIANT: 1, NO_ANSWER: 1})
    assert len(asked) == TRIES + 1


async def test_the_account_says_what_the_checks_refused() -> None:
    answers = iter(["Captain", "Defender", "Captain", "9", "Captain", "Captain"])
    derived = await built(lambda _: next(answers))
    assert list_left_out(derived) == [
        "1 question left out: no hallucinated answer passed the checks (of 6 answers 4: it says the same as "
        "the right answer; 1: it stands in the supporting sentences; 1: it is of another kind)"
    ]


async def test_the_account_has_the_first_error() -> None:
    derived = await built(lambda _: httpx2.Response(400, json={}))
    (line,) = list_left_out(derived)
    assert line.startswith(
        "1 question left out: the model gave no answer (first error: model 'scripted' at http"
    )


async def test_every_question_that_is_done_is_told_of() -> None:
    done: list[None] = []
    await built(
        lambda _: "Goalkeeper",
        question(),
        question(_id="q2", type="comparison"),
        on_done=lambda: done.append(None),
    )
    assert len(done) == 2
