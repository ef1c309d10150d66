"""MetaRAG with all variants and verdicts of a reply in one request, on a scripted model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hallulab.detectors.base.protocol import DetectorContext, JudgingMethod, describe_method
from hallulab.detectors.metarag.detector import MetaRagDetector
from hallulab.scenarios.errors import UsageError
from hallulab.testing.scripted import Script, last_user, scripted_pool
from tests.detectors.metarag.test_detector import FACTS, VIEW

TRUE, FALSE, UNTOLD = ("YES", "NO"), ("NO", "YES"), ("NOT SURE", "NOT SURE")


def write_fact(number: int, verdicts: tuple[str, str], count: int = 2) -> dict[str, Any]:
    same, opposite = (
        [{"text": f"{relation} {place}", "verdict": verdict} for place in range(1, count + 1)]
        for relation, verdict in zip(("same", "opposite"), verdicts, strict=True)
    )
    return {"number": number, "same": same, "opposite": opposite}


def answers(*facts: dict[str, Any]) -> Script:
    written = json.dumps({"facts": facts})
    return lambda body: written if "response_format" in body else FACTS


def detector(script: Script, **options: Any) -> tuple[MetaRagDetector, list[dict[str, Any]]]:
    pool, transport = scripted_pool(script)
    context = DetectorContext(models=pool, seed=5, options={"together": True, **options})
    return MetaRagDetector("metarag", context), transport.requests


async def test_a_reply_takes_two_requests_and_facts_have_the_scores_of_table_1() -> None:
    judge, requests = detector(answers(write_fact(1, TRUE), write_fact(2, FALSE)))
    judgement = await judge.detect(VIEW)
    assert [call.purpose for call in judgement.calls] == ["metarag.decompose", "metarag.together"]
    assert [unit.score for unit in judgement.units] == [0.0, 1.0]
    assert [span.text for span in judgement.spans or ()] == ["The pool costs 9 euros."]
    assert "1. The pool opens at 6.\n2. The pool costs 9 euros." in last_user(requests[1])
    assert judgement.units[1].details["antonym 2"] == "opposite 2"
    assert judgement.units[1].details["antonym 2 P(YES)"] == 1.0


async def test_what_the_evidence_does_not_tell_scores_a_half_and_is_flagged() -> None:
    judge, _ = detector(answers(write_fact(1, TRUE), write_fact(2, UNTOLD)))
    judgement = await judge.detect(VIEW)
    assert (judgement.score, judgement.flagged) == (0.5, True)


async def test_it_is_named_as_another_variant_than_the_papers() -> None:
    judge, _ = detector(answers())
    assert describe_method(judge) == JudgingMethod(
        variant="word, together", as_published=False, threshold=0.5, threshold_protocol="untuned"
    )


async def test_the_schema_is_strict_and_asks_for_as_many_variants_as_given() -> None:
    judge, requests = detector(answers(write_fact(1, TRUE, 3), write_fact(2, TRUE, 3)), mutations=3)
    await judge.detect(VIEW)
    schema = requests[1]["response_format"]["json_schema"]["schema"]
    objects = [schema, *schema["$defs"].values()]
    assert [one["additionalProperties"] for one in objects if one["type"] == "object"] == [False] * 3
    same = schema["$defs"]["CountedFact"]["properties"]["same"]
    assert (same["minItems"], same["maxItems"]) == (3, 3)


async def test_a_fact_that_is_left_out_is_no_clean_one() -> None:
    judge, _ = detector(answers(write_fact(1, TRUE)))
    judgement = await judge.detect(VIEW)
    assert (judgement.outcome, judgement.error) == (
        "failed",
        "1 of 2 factoids could not be scored, no other is flagged: together: the model's answer leaves this "
        "fact out, or a rewording of it",
    )


async def test_an_answer_that_does_not_parse_is_asked_for_once_more() -> None:
    judge, requests = detector(answers(write_fact(1, TRUE, 1)))
    judgement = await judge.detect(VIEW)
    assert judgement.outcome == "failed"
    assert [request["temperature"] for request in requests] == [0.0, 0.0, 0.7]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mutator": "default"}, "Leave out `mutator`"),
        ({"verifiers": ["default", "default"]}, "name at most one of `verifiers`"),
        ({"reading": "probability"}, "`together` reads printed words"),
    ],
)
def test_what_one_request_cannot_do_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        detector(answers(), **options)
