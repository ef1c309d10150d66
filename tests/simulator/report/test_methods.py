"""A report says by which variant and from which threshold on its detectors judged."""

from __future__ import annotations

from typing import Any

import pytest

from hallulab.detectors.base.protocol import JudgingMethod
from hallulab.scenarios.transcript import Unit, Verdict
from hallulab.simulator.metrics.methods import MethodMetric
from hallulab.simulator.report.build import describe_models, describe_omissions
from hallulab.simulator.report.write import render_report_csv
from tests.builders import conversation, scored
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
            "d judged by mixture, which is not as in its paper, from 4 on (tuned for this model).",
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
    told = [line for line in describe_models(report) if "(kappa 0.07)" in line]
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
        "verdicts tell little (docs/methods.md)."
    ) in describe_omissions(report)
