"""A report says by which variant and from which threshold on its detectors judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.models.abilities import ReadHow
from hallulab.agents.models.replicas import Answered
from hallulab.detectors.base.protocol import JudgingMethod
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Unit, Verdict
from hallulab.simulator.metrics.methods import MethodMetric, SignCount, find_signs
from hallulab.simulator.report.build import describe_models, describe_omissions
from hallulab.simulator.report.write import render_report_csv
from tests.builders import conversation, scored
from tests.simulator.cli.test_commands import saved_run
from tests.simulator.counted import build_report, result


@pytest.mark.parametrize(
    ("method", "line"),
    [
        (
            JudgingMethod(variant="word", as_published=True, threshold=4.0, threshold_protocol="published"),
            "d judged by word, as in its paper, from 4 on (the paper's).",
        ),
        (
            JudgingMethod(variant="mixture", as_published=False, threshold=4.0, threshold_protocol="tuned"),
            "d judged by mixture, which is not as in its paper, from 4 on (tuned on labelled data).",
        ),
        (
            JudgingMethod(threshold=0.375, threshold_protocol="untuned"),
            "d judged, from 0.375 on (not tuned for this model).",
        ),
        (JudgingMethod(), "d judged, without a threshold."),
    ],
)
def test_a_line_a_detector(method: JudgingMethod, line: str) -> None:
    report = build_report([], [], chatbots=[], detectors=["d"], flaws={}, methods={"d": method})
    assert describe_models(report)[:1] == [line]


@pytest.mark.parametrize(("variant", "warned"), [("mixture", 1), ("word", 0), ("probability", 0)])
def test_who_is_judged_by_the_default_judge_is_told_that_it_orders_nothing(variant: str, warned: int) -> None:
    methods = dict.fromkeys("de", JudgingMethod(variant=variant, as_published=False, threshold=4.0))
    report = build_report([], [], chatbots=[], detectors=["d", "e"], flaws={}, methods=methods)
    told = [line for line in describe_models(report) if "(kappa 0.16)" in line]
    assert len(told) == warned
    assert all(
        "Let a capable model judge before you say which chatbot hallucinates least" in line for line in told
    )


def test_report_csv_names_the_method_of_each_row() -> None:
    method = JudgingMethod(variant="word", as_published=True, threshold=4.0, threshold_protocol="published")
    held = [conversation("c", ["A reply."])]
    report = build_report(
        held, [scored("c", 0)], chatbots=["vanilla"], detectors=["d"], flaws={}, methods={"d": method}
    )
    head, row = render_report_csv(report).splitlines()
    found = dict(zip(head.split(","), row.split(","), strict=True))
    names = ("variant", "as_published", "threshold", "threshold_protocol")
    assert [found[name] for name in names] == ["word", "True", "4.0", "published"]


def test_an_older_run_names_none() -> None:
    report = build_report([], [], chatbots=[], detectors=["d"], flaws={})
    assert (report.judged_by, describe_models(report)) == ((), [])
    assert "variant" not in render_report_csv(report)


def agreeing(turns: int) -> list[Verdict]:
    """Verdicts of a model that affirms each fact's rewording and its opposite."""
    unit = Unit(text="x", score=0.5, details={"synonym 1 P(YES)": 1.0, "antonym 1 P(YES)": 1.0})
    return [scored("c", turn).model_copy(update={"units": (unit,)}) for turn in range(turns)]


def test_answers_like_a_small_models_are_noticed() -> None:
    held = [conversation("c", ["A reply."] * 10)]
    more: dict[str, Any] = {"chatbots": ["vanilla"], "detectors": ["d"]}
    [sign] = result(MethodMetric, held, agreeing(10), **more).small_model_signs
    assert (sign.detector, sign.sign, sign.met, sign.seen) == ("d", "agrees with opposites", 10, 10)
    report = build_report(held, agreeing(10), flaws={}, **more)
    assert (
        "d: of 10 of 10 facts its model affirmed both a rewording and its opposite, as small models do: its "
        "verdicts tell little (docs/studies/published-methods.md)."
    ) in describe_omissions(report)


def fact(**said: str) -> Unit:
    """A factoid whose variants were verified by a printed word each."""
    details: dict[str, Any] = {}
    for name, word in said.items():
        key = name.replace("_", " ")
        details |= {key: "a variant", f"{key} penalty": 0.0, f"{key} P({word})": 1.0}
    return Unit(text="x", score=0.5, details=details)


@pytest.mark.parametrize(
    ("said", "met"),
    [
        ({"synonym_1": "YES", "antonym_1": "NO"}, False),
        ({"synonym_1": "NOT SURE", "antonym_1": "YES"}, False),
        ({"synonym_1": "YES", "synonym_2": "NO", "antonym_1": "NO", "antonym_2": "YES"}, True),
    ],
)
def test_a_fact_whose_rewording_and_opposite_are_affirmed_is_a_sign(said: dict[str, str], met: bool) -> None:
    assert list(find_signs([fact(**said)])) == [("agrees with opposites", met)]


@pytest.mark.parametrize(("severity", "met"), [(3.0, False), (4.0, True)])
def test_an_objection_that_the_filter_keeps_is_a_sign(severity: float, met: bool) -> None:
    graded = Unit(text="x", score=severity, details={"votes": 1.0, "refiner": "It matters."})
    assert list(find_signs([graded])) == [("filters nothing", met)]


def test_probabilities_and_rules_are_no_sign() -> None:
    units = (
        Unit(text="x", score=0.5, details={"synonym 1 P(YES)": 0.7, "antonym 1 P(YES)": 0.6}),
        Unit(text="x", score=1.0, details={"votes": 1.0, "rule": "repeats what the user said"}),
        Unit(text="x", details={"error": "no answer"}),
    )
    assert list(find_signs(units)) == []


def test_the_1_5b_model_looks_small_and_the_strong_one_does_not() -> None:
    """The counts that were measured (docs/studies/published-methods.md)."""
    assert SignCount(met=10, seen=19).is_small("agrees with opposites")
    assert not SignCount(met=0, seen=212).is_small("agrees with opposites")
    assert SignCount(met=13, seen=14).is_small("filters nothing")
    assert not SignCount(met=75, seen=88).is_small("filters nothing")
    assert not SignCount(met=92, seen=191).is_small("filters nothing")


def test_few_answers_tell_nothing() -> None:
    assert not SignCount(met=9, seen=9).is_small("agrees with opposites")
    assert not SignCount(met=13, seen=13).is_small("filters nothing")


@pytest.mark.parametrize(
    ("read_how", "line"),
    [
        (
            ReadHow(model="m", asked=True, decision_samples=5),
            "m was read by: log-probabilities, JSON schema, seed kept.",
        ),
        (
            ReadHow(model="m", asked=True, log_probabilities=False, seed="refused"),
            "m was read by: printed word, JSON schema, seed refused.",
        ),
        (
            ReadHow(model="m", asked=True, log_probabilities=False, json_schema=False, decision_samples=5),
            "m was read by: share of 5 printed words, JSON asked for in the prompt, seed kept.",
        ),
        (
            ReadHow(model="m"),
            "m was read by: log-probabilities, JSON schema, seed kept (assumed, the endpoint did not say).",
        ),
    ],
)
def test_a_line_a_model(read_how: ReadHow, line: str) -> None:
    report = build_report([], [], chatbots=[], detectors=[], flaws={}, read_how=[read_how])
    assert describe_models(report) == [line]


def test_a_line_an_endpoint() -> None:
    done = [
        Answered(base_url="http://a/v1", answered=1),
        Answered(base_url="http://b/v1", answered=20, failed=2),
    ]
    report = build_report([], [], chatbots=[], detectors=[], flaws={}, endpoints=done)
    assert describe_models(report) == [
        "http://a/v1 answered 1 request.",
        "http://b/v1 answered 20 requests, and failed 2 times.",
    ]


def test_a_report_of_an_older_folder_says_nothing_of_it() -> None:
    assert build_report([], [], chatbots=[], detectors=[], flaws={}).read_how == ()


def test_what_is_damaged_is_one_sentence(tmp_path: Path) -> None:
    folder = saved_run(tmp_path)
    saved = {**json.loads(folder.experiment.read_text()), "read_how": [{"model": "m", "seed": "sown"}]}
    folder.experiment.write_text(json.dumps(saved))
    with pytest.raises(UsageError, match=r"field `read_how\.0\.seed`: .*Restore it or use --fresh\."):
        folder.read_experiment()
