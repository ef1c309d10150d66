"""Tuned numbers go by what a model is, and not by the name that it is served under."""

from __future__ import annotations

import pytest

from detectors.base.protocol import Detector, DetectorContext
from detectors.registry import make_detector
from tests.scripted import scripted_pool

OURS = "qwen2.5-coder-1.5b"
ROOT = "/cache/models/qwen2.5-coder-1.5b-w8a8-cc324af070c2"
FOREIGN = "other/model"

KINDS = ("halludetect", "metarag", "logic-graph", "direct-judge")


async def made(kind: str, name: str, root: str | None) -> Detector:
    """A detector, made before its model is served under that name and the endpoint says what it is."""
    pool, _ = scripted_pool(lambda _: "", name, root)
    detector = make_detector(kind, kind, DetectorContext(models=pool))
    await pool.check()
    return detector


@pytest.mark.parametrize(
    ("kind", "tuned", "published"),
    [("metarag", 0.4, 0.5), ("logic-graph", 0.22, 0.6), ("direct-judge", 0.34, 0.5)],
)
async def test_thresholds_are_those_tuned_for_the_model(kind: str, tuned: float, published: float) -> None:
    served = [(OURS, ROOT), ("mine", ROOT), (OURS, None), (OURS, FOREIGN), ("mine", FOREIGN)]
    found = [(await made(kind, name, root)).threshold for name, root in served]
    assert found == [tuned, tuned, tuned, published, published]


@pytest.mark.parametrize("kind", KINDS)
async def test_one_model_under_two_names_gives_the_same_verdicts(kind: str) -> None:
    versions = {(await made(kind, name, root)).version for name, root in ((OURS, ROOT), ("mine", ROOT))}
    assert len(versions) == 1
    assert (await made(kind, OURS, None)).version in versions


@pytest.mark.parametrize("kind", KINDS)
async def test_two_models_under_one_name_give_different_verdicts(kind: str) -> None:
    served = [(await made(kind, "m", root)).version for root in (ROOT, FOREIGN, "another/model", None)]
    assert len(set(served)) == 4


@pytest.mark.parametrize(
    ("name", "root", "protocol"),
    [("mine", ROOT, "tuned"), (OURS, FOREIGN, "untuned")],
)
async def test_halludetects_mixture_goes_by_the_model(name: str, root: str, protocol: str) -> None:
    assert (await made("halludetect", name, root)).threshold_protocol == protocol


async def test_a_detector_that_asks_no_model_does_not_depend_on_it() -> None:
    versions = {(await made("lexical", "m", root)).version for root in (ROOT, FOREIGN)}
    assert len(versions) == 1


@pytest.mark.parametrize(
    ("kind", "options", "protocol"),
    [
        ("halludetect", {"reading": "word"}, "published"),
        ("halludetect", {"reading": "probability"}, "untuned"),
        ("halludetect", {}, "untuned"),
        ("metarag", {"reading": "word"}, "published"),
        ("metarag", {}, "untuned"),
        ("logic-graph", {}, "untuned"),
        ("direct-judge", {}, "untuned"),
        ("self-check", {}, "untuned"),
    ],
)
async def test_only_the_papers_own_reading_has_its_published_threshold(
    kind: str, options: dict[str, str], protocol: str
) -> None:
    """For a model that nothing was tuned for."""
    pool, _ = scripted_pool(lambda _: "", OURS, FOREIGN)
    detector = make_detector(kind, kind, DetectorContext(models=pool, options=options))
    await pool.check()
    assert detector.threshold_protocol == protocol
