"""HotPotQA-derived, with a scripted model that writes the wrong answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from scenarios.labelled import LabelledData
from scenarios.loaders.hotpotqa import HotpotQuestion
from scenarios.loaders.jsonl import load_jsonl
from simulator.bench.hotpotqa_derived import (
    COMPARISON,
    NO_ANSWER,
    NO_VARIANT,
    TRIES,
    as_jsonl,
    build_hotpotqa_derived,
    refusal,
)
from tests.scripted import Script, last_user, scripted_pool


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


async def built(script: Script, *questions: HotpotQuestion, **options: Any) -> LabelledData:
    pool, _ = scripted_pool(script, attempts=1)
    return await build_hotpotqa_derived(questions or (question(),), pool, **options)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("Goalkeeper", None),
        ("", "it is empty"),
        ("Captain of the team", "it says the same as the right answer"),
        ("Captain", "it says the same as the right answer"),
        ("a Defender", "it stands in the supporting sentences"),
        ("Haihe", None),
        ("goalkeeper", "it is of another kind"),
        ("Number 9", "it is of another kind"),
        ("Goalkeeper and striker of the junior squad", "it is longer or shorter than the right answer"),
    ],
)
def test_answers_are_refused_for_a_reason(answer: str, reason: str | None) -> None:
    assert refusal(answer, question()) == reason


def test_a_number_is_answered_by_a_number() -> None:
    assert refusal("seven", question(answer="1927")) is None
    assert refusal("last year", question(answer="1927")) == "it is of another kind"


async def test_both_answers_of_a_question_share_its_group_and_passages() -> None:
    data = await built(lambda _: 'Answer: "Goalkeeper".\nBecause he was.', pairing="both")
    assert [(reply.id, reply.reply, reply.label) for reply in data] == [
        ("q1-faithful", "the team Captain", False),
        ("q1-hallucinated", "Goalkeeper", True),
    ]
    assert {reply.group for reply in data} == {"q1"}
    assert [passage.document for passage in data[0].passages] == ["Quanjian", "Haihe", "Cannavaro"]
    assert data[1].meta == {"level": "hard", "gold": "the team Captain"}


async def test_each_question_is_drawn_once_by_the_seed() -> None:
    questions = [question(_id=f"q{number}") for number in range(40)]
    first = await built(lambda _: "Goalkeeper", *questions, seed=3)
    assert len(first) == 40
    assert 10 < sum(bool(reply.label) for reply in first) < 30
    assert (await built(lambda _: "Goalkeeper", *questions, seed=3)).replies == first.replies
    assert (await built(lambda _: "Goalkeeper", *questions, seed=4)).replies != first.replies


async def test_a_refused_answer_is_sampled_again() -> None:
    bodies: list[dict[str, Any]] = []

    def script(body: dict[str, Any]) -> str:
        bodies.append(body)
        return "Captain" if len(bodies) < 3 else "Goalkeeper"

    data = await built(script, pairing="both", seed=7)
    assert data[1].reply == "Goalkeeper"
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
        return httpx2.Response(400, json={}) if "Broken" in asked[-1] else "Captain"

    data = await built(
        script, question(), question(_id="q2", question="Broken?"), question(_id="q3", type="comparison")
    )
    assert (len(data), data.left_out) == (0, {COMPARISON: 1, NO_VARIANT: 1, NO_ANSWER: 1})
    assert len(asked) == TRIES + 1


async def test_it_is_written_as_our_own_format(tmp_path: Path) -> None:
    data = await built(lambda _: "Goalkeeper", pairing="both")
    path = tmp_path / "hotpotqa-derived.jsonl"
    path.write_text(as_jsonl(data.replies), encoding="utf-8")
    assert load_jsonl(path).replies == data.replies
