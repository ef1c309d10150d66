"""Detectors by name."""

from __future__ import annotations

import inspect

import pytest

from detectors.protocol import DetectorContext
from detectors.registry import DETECTORS, detector_names, make_detector
from scenarios.errors import UsageError
from tests.scripted import scripted_pool


@pytest.mark.parametrize("kind", ["halludetect", "metarag", "lexical"])
def test_a_detector_reports_under_the_name_it_is_given(kind: str) -> None:
    pool, _ = scripted_pool(lambda _: "")
    detector = make_detector(kind, "mine", DetectorContext(models=pool))
    assert detector.name == "mine"
    assert detector.threshold is not None
    assert detector.version == make_detector(kind, "other", DetectorContext(models=pool)).version


def test_an_unknown_detector_is_refused_with_the_names_there_are() -> None:
    pool, _ = scripted_pool(lambda _: "")
    with pytest.raises(UsageError, match="no detector 'halu'; there are: halludetect, metarag, lexical"):
        make_detector("halu", "halu", DetectorContext(models=pool))
    assert detector_names()[:3] == ["halludetect", "metarag", "lexical"]


@pytest.mark.parametrize("kind", sorted(DETECTORS))
def test_the_line_that_the_list_prints_is_one_short_sentence(kind: str) -> None:
    line = (inspect.getdoc(DETECTORS[kind]) or "").partition("\n")[0]
    assert line.endswith(".")
    assert len(line) <= 100
