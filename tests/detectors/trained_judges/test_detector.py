"""Detectors on served models that were trained to detect, with answers in the form of their model cards."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.transcript import Judgement, Passage
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import Script, scripted_pool

PASSAGES = (
    Passage(id="a#0", document="a", text="France is a country in Europe. Its capital is Paris."),
    Passage(id="a#1", document="a", text="Lyon is a city, too."),
)
VIEW = TurnView(
    question="What is the capital of France? What is its population?",
    passages=PASSAGES,
    reply="The capital of France is Paris. Its population is 2 million.",
)


async def judged(
    kind: str, script: Script | str, view: TurnView = VIEW, **options: Any
) -> tuple[Judgement, list[dict[str, Any]]]:
    pool, transport = scripted_pool(script if callable(script) else lambda _: script)
    detector = make_detector(kind, kind, DetectorContext(models=pool, options=options))
    return await detector.detect(view), transport.requests


def spans(*found: tuple[str, str, str]) -> str:
    named = [{"text": text, "category": kind, "subcategory": sub} for text, kind, sub in found]
    return json.dumps({"hallucinated_spans": named})


async def test_lettucedetect_v2_has_the_cards_form_and_returns_spans_with_their_kinds() -> None:
    answer = spans(("Its population is 2 million.", "unsupported_addition", "numerical"))
    judgement, [body] = await judged("lettucedetect-v2", answer)
    assert (judgement.outcome, judgement.score, judgement.flagged) == ("scored", 1.0, True)
    [span] = judgement.spans or ()
    assert (span.start, span.end, span.reason) == (32, 60, "unsupported addition, numerical")
    assert body["messages"][1]["content"] == (
        "User request: What is the capital of France? What is its population?\n\n"
        "France is a country in Europe. Its capital is Paris.\n\nLyon is a city, too.\n\n"
        "Answer to verify:\nThe capital of France is Paris. Its population is 2 million."
    )
    assert body["temperature"] == 0.0


async def test_no_span_is_a_clean_reply() -> None:
    judgement, _ = await judged("lettucedetect-v2", spans())
    assert (judgement.score, judgement.flagged, judgement.spans) == (0.0, False, ())


async def test_equal_quotations_are_successive_places_and_an_unknown_one_has_none() -> None:
    view = VIEW.model_copy(update={"reply": "It costs 5. Yes, it costs 5."})
    found = ("costs 5", "contradiction", "numerical"), ("costs 5", "contradiction", "numerical")
    judgement, _ = await judged("lettucedetect-v2", spans(*found, ("nowhere at all", "", "")), view)
    assert [(span.start, span.end, span.text) for span in judgement.spans or ()] == [
        (3, 10, "costs 5"),
        (20, 27, "costs 5"),
        (None, None, "nowhere at all"),
    ]


async def test_what_is_no_list_of_spans_fails() -> None:
    judgement, _ = await judged("lettucedetect-v2", "All is well.")
    assert (judgement.outcome, judgement.score) == ("failed", None)


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("<think>\n</think>\n<score> no </score>", 0.0),
        ("<score>yes</score>", 1.0),
        ("<think>It says <score>no</score>, but 2 million is made up.</think><score>Yes</score>", 1.0),
    ],
)
async def test_granite_guardians_last_score_counts(answer: str, score: float) -> None:
    judgement, _ = await judged("granite-guardian", answer, think=True)
    assert (judgement.score, judgement.flagged, judgement.spans) == (score, score == 1.0, None)


async def test_granite_guardian_has_the_cards_form() -> None:
    _, [body] = await judged("granite-guardian", "<score>no</score>")
    system, question, reply, block = body["messages"]
    assert json.loads(system["content"].splitlines()[2]) == {"doc_id": "0", "text": PASSAGES[0].text}
    assert (question["content"], reply) == (VIEW.question, {"role": "assistant", "content": VIEW.reply})
    assert block["content"].startswith("<guardian><no-think>")
    assert "\n\n### Criteria: " in block["content"]
    assert block["content"].endswith(
        "\n\n### Scoring Schema: If the last assistant's text meets the criteria, return 'yes'; otherwise, "
        "return 'no'."
    )


async def test_granite_guardian_thinks_if_it_shall_and_needs_no_question() -> None:
    view = VIEW.model_copy(update={"question": ""})
    _, [body] = await judged("granite-guardian", "<score>no</score>", view, think=True)
    assert [message["role"] for message in body["messages"]] == ["system", "assistant", "user"]
    assert body["messages"][-1]["content"].startswith("<guardian><think>")
    assert body["max_tokens"] == 2048


async def test_an_answer_without_a_score_fails() -> None:
    judgement, _ = await judged("granite-guardian", "It is grounded.")
    assert judgement.outcome == "failed"
    assert "guardian: no <score> of yes or no" in (judgement.error or "")


@pytest.mark.parametrize("kind", ["lettucedetect-v2", "granite-guardian"])
@pytest.mark.parametrize(
    ("change", "reason"),
    [({"reply": "…"}, "the reply has no words"), ({"passages": ()}, "there is no evidence")],
)
async def test_with_nothing_to_judge_it_abstains(kind: str, change: dict[str, Any], reason: str) -> None:
    judgement, requests = await judged(kind, "unused", VIEW.model_copy(update=change))
    assert (judgement.outcome, judgement.error, requests) == ("abstained", reason, [])


async def test_cut_evidence_is_marked() -> None:
    long = VIEW.model_copy(update={"passages": (PASSAGES[0].model_copy(update={"text": "a b " * 100}),)})
    answer = "<score>yes</score>"
    judgement, [body] = await judged("granite-guardian", answer, long, max_evidence_characters=100)
    assert judgement.truncated
    shown = json.loads(body["messages"][0]["content"].splitlines()[2])["text"]
    assert shown == f"{'a b ' * 24}a b [...]"
