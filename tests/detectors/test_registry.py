"""Detectors by name."""

from __future__ import annotations

import inspect
from importlib.metadata import EntryPoint

import pytest

from detectors import registry
from detectors.protocol import DetectorContext
from detectors.registry import DETECTORS, detector_names, find_detector, make_detector
from scenarios import plugins
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


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    points: list[EntryPoint] = []
    monkeypatch.setattr(plugins, "entry_points", lambda group: points)
    return points


def test_an_entry_point_is_a_detector_unless_the_name_is_ours(offered: list[EntryPoint]) -> None:
    import math

    offered += [EntryPoint(name, "math:sqrt", registry.GROUP) for name in ("theirs", "lexical")]
    assert find_detector("theirs") is math.sqrt  # type: ignore[comparison-overlap]
    assert find_detector("lexical") is DETECTORS["lexical"]
    assert detector_names() == ["halludetect", "metarag", "lexical", "theirs"]


def test_an_entry_point_that_does_not_load_is_named(offered: list[EntryPoint]) -> None:
    offered.append(EntryPoint("theirs", "no_such_module:x", registry.GROUP))
    with pytest.raises(UsageError, match="detector 'theirs': cannot load its entry point no_such_module:x"):
        find_detector("theirs")
