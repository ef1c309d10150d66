"""Judgements, spans and units: what they refuse."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from scenarios.transcript import Judgement, Span, Unit

INFINITE = pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])


@INFINITE
def test_a_judgements_score_is_finite(value: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        Judgement(outcome="scored", score=value, flagged=False)


@INFINITE
@pytest.mark.parametrize("field", ["score", "severity"])
def test_a_spans_numbers_are_finite(field: str, value: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        Span.model_validate({"start": 0, "end": 1, "text": "a", field: value})


@INFINITE
def test_a_units_score_is_finite(value: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        Unit(text="a", score=value)
