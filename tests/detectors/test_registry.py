"""Detectors by name."""

from __future__ import annotations

import inspect
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any

import pytest

from hallulab.detectors import registry
from hallulab.detectors.base.protocol import Detector, DetectorContext
from hallulab.detectors.registry import DETECTORS, find_detector, list_detector_names, make_detector
from hallulab.scenarios import components as plugins
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.transcript import Judgement, Span
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import scripted_pool
from tests.test_examples import blocks


@pytest.mark.parametrize("kind", ["halludetect", "metarag", "lexical", "direct-judge", "self-check"])
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
    assert list_detector_names()[:3] == ["halludetect", "metarag", "lexical"]


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
    assert list_detector_names() == [*DETECTORS, "theirs"]


def test_an_entry_point_that_does_not_load_is_named(offered: list[EntryPoint]) -> None:
    offered.append(EntryPoint("theirs", "no_such_module:x", registry.GROUP))
    with pytest.raises(UsageError, match="detector 'theirs': cannot load its entry point no_such_module:x"):
        find_detector("theirs")


def raising(error: Exception) -> EntryPoint:
    """An entry point whose target raises the error when it is called."""

    def make(name: str, context: DetectorContext) -> Any:
        raise error

    return _point(make)


class Theirs(Detector):
    """A detector of somebody else."""

    name, version = "theirs", "1"

    async def detect(self, view: TurnView) -> Judgement:
        raise AssertionError


def _point(factory: Any) -> Any:
    return SimpleNamespace(name="theirs", value="theirs:Made", load=lambda: factory)


def making_theirs() -> Any:
    pool, _ = scripted_pool(lambda _: "")
    return make_detector("theirs", "mine", DetectorContext(models=pool))


@pytest.mark.parametrize(
    ("error", "told"),
    [(KeyError("no\nkey"), "KeyError: 'no\\nkey'"), (ValueError("no\n  water"), "ValueError: no water")],
)
def test_a_constructor_that_raises_is_one_sentence(
    offered: list[EntryPoint], error: Exception, told: str
) -> None:
    offered.append(raising(error))
    with pytest.raises(UsageError) as caught:
        making_theirs()
    assert str(caught.value) == f"detector 'theirs': its constructor raised {told}."


def test_a_sentence_of_ours_passes_through_a_constructor(offered: list[EntryPoint]) -> None:
    offered.append(raising(OperationalError("the disk is full.")))
    with pytest.raises(OperationalError, match=r"^the disk is full\.$"):
        making_theirs()


class Alike:
    """Has all that a detector has, and is none."""

    name, version, threshold, threshold_protocol = "alike", "1", None, "given"

    async def detect(self, view: TurnView) -> Judgement:
        raise AssertionError


def test_what_is_like_a_detector_is_told_how_to_become_one(offered: list[EntryPoint]) -> None:
    offered.append(_point(lambda name, context: Alike()))
    with pytest.raises(UsageError) as caught:
        making_theirs()
    assert str(caught.value) == (
        "detector 'theirs': its constructor gave Alike, which is no subclass of hallulab.Detector. Make it "
        "one: `class Alike(hallulab.Detector)`."
    )


def test_a_detector_that_cannot_detect_is_not_made(offered: list[EntryPoint]) -> None:
    offered.append(_point(lambda name, context: Detector()))  # type: ignore[abstract]
    with pytest.raises(
        UsageError, match="its constructor raised TypeError: Can't instantiate abstract class"
    ):
        making_theirs()


@pytest.mark.parametrize(
    ("attribute", "value", "complaint"),
    [
        ("threshold", "0.5", "`threshold` is '0.5', no finite number and not None."),
        ("threshold", float("nan"), "`threshold` is nan, no finite number and not None."),
        (
            "threshold_protocol",
            "mine",
            "`threshold_protocol` is 'mine'; there are published, untuned, tuned, calibrated, given.",
        ),
        ("version", 1, "`version` is 1, no text."),
        ("name", None, "`name` is None, no text."),
        ("traits", {}, "`traits` is {}, no hallulab.Traits."),
    ],
)
def test_what_a_detector_says_of_itself_is_checked(
    offered: list[EntryPoint], attribute: str, value: object, complaint: str
) -> None:
    offered.append(_point(lambda name, context: type("Made", (Theirs,), {attribute: value})()))
    with pytest.raises(UsageError) as caught:
        making_theirs()
    assert str(caught.value) == f"detector 'theirs': its {complaint}"


async def test_the_detector_of_the_tutorial_works_as_it_stands(offered: list[EntryPoint]) -> None:
    [snippet] = blocks("docs/tutorial/detector.md")
    module: dict[str, Any] = {}
    exec(snippet, module)
    offered.append(_point(module["EveryNumber"]))
    detector = making_theirs()
    assert (detector.name, detector.traits.needs_model) == ("mine", False)
    view = TurnView(question="When?", passages=(), reply="At 7.")
    assert (await detector.detect(view)).spans == (Span(start=3, end=4, text="7", reason="a number"),)
