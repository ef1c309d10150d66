"""Tuned numbers go by what a model is, and not by the name that it is served under."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from hallulab.detectors.base.protocol import Detector, DetectorContext, describe_method
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Passage
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import scripted_pool

OURS = "qwen2.5-coder-1.5b"
ROOT = "/cache/models/qwen2.5-coder-1.5b-w8a8-cc324af070c2"
FOREIGN = "other/model"
PAPERS = "llama-3.1-8b-instruct"
"""The HalluDetect paper's model, as the catalogue names it."""
PAPERS_ROOT = "meta-llama/Llama-3.1-8B-Instruct"
"""Its name on the hub, which `hallulab serve` gives as `root` and other servers as its name."""

KINDS = ("halludetect", "metarag", "logic-graph", "direct-judge")


async def made(
    kind: str, name: str, root: str | None, options: Mapping[str, Any] = MappingProxyType({})
) -> Detector:
    """A detector, made before its model is served under that name and the endpoint says what it is."""
    pool, _ = scripted_pool(lambda _: {"Yes": 1.0}, name, root)
    detector = make_detector(kind, kind, DetectorContext(models=pool, options=options))
    await pool.check()
    return detector


@pytest.mark.parametrize(
    ("kind", "tuned", "published"),
    [("metarag", 0.43, 0.5), ("logic-graph", 0.22, 0.6), ("direct-judge", 0.34, 0.5)],
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
    ("name", "root", "protocol", "steps"),
    [
        ("mine", ROOT, "tuned", {"halludetect.verification"}),
        (OURS, FOREIGN, "published", {"halludetect.analysis"}),
    ],
)
async def test_halludetect_reads_as_published_where_nothing_was_learnt_for_the_model(
    name: str, root: str, protocol: str, steps: set[str]
) -> None:
    detector = await made("halludetect", name, root)
    passage = Passage(id="a#0", document="a", text="The pool opens at 6.")
    judgement = await detector.detect(TurnView(question="", passages=(passage,), reply="It opens at 7."))
    assert {call.purpose for call in judgement.calls} == steps
    assert (detector.threshold, detector.threshold_protocol) == (4.0, protocol)


@pytest.mark.parametrize(
    ("name", "root", "reading"),
    [
        ("mine", ROOT, "mixture"),
        (OURS, FOREIGN, "word"),
        ("mine", None, "word"),
        ("smollm2-135m", None, "probability"),
        (PAPERS, None, "word"),
        ("mine", PAPERS_ROOT, "word"),
        (PAPERS_ROOT, None, "word"),
    ],
)
async def test_the_reading_that_is_chosen_gives_the_same_verdicts_as_the_same_reading_given(
    name: str, root: str | None, reading: str
) -> None:
    versions = [
        (await made("halludetect", name, root, options)).version for options in ({}, {"reading": reading})
    ]
    assert versions[0] == versions[1]


@pytest.mark.parametrize(
    ("name", "root", "log_probabilities", "reading", "threshold"),
    [
        ("mine", ROOT, True, "probability", None),
        ("mine", ROOT, False, "word", 0.5),
        (OURS, FOREIGN, True, "word", 0.5),
        (PAPERS, None, True, "word", 0.5),
        ("mine", PAPERS_ROOT, True, "word", 0.5),
        (PAPERS_ROOT, None, True, "word", 0.5),
    ],
)
async def test_metarag_reads_probabilities_of_small_models_and_the_words_of_others(
    name: str, root: str, log_probabilities: bool, reading: str, threshold: float | None
) -> None:
    pool, _ = scripted_pool(lambda _: "", name, root)
    detector = make_detector("metarag", "metarag", DetectorContext(models=pool))
    await pool.check()
    pool.get().abilities = pool.get().abilities.model_copy(update={"log_probabilities": log_probabilities})
    given = make_detector("metarag", "metarag", DetectorContext(models=pool, options={"reading": reading}))
    assert detector.version == given.version
    assert threshold is None or (detector.threshold, detector.threshold_protocol) == (threshold, "published")


async def test_a_detector_that_asks_no_model_does_not_depend_on_it() -> None:
    versions = {(await made("lexical", "m", root)).version for root in (ROOT, FOREIGN)}
    assert len(versions) == 1


@pytest.mark.parametrize(
    ("kind", "options", "protocol"),
    [
        ("halludetect", {"reading": "word"}, "published"),
        ("halludetect", {"reading": "word", "samples": 1}, "untuned"),
        ("halludetect", {"reading": "probability"}, "untuned"),
        ("halludetect", {"reading": "mixture"}, "untuned"),
        ("halludetect", {}, "published"),
        ("metarag", {"reading": "word"}, "published"),
        ("metarag", {"together": True}, "untuned"),
        ("metarag", {"reading": "probability"}, "untuned"),
        ("metarag", {}, "published"),
        ("logic-graph", {}, "untuned"),
        ("direct-judge", {}, "untuned"),
        ("self-check", {}, "untuned"),
    ],
)
async def test_only_the_papers_own_reading_has_its_published_threshold(
    kind: str, options: dict[str, Any], protocol: str
) -> None:
    """For a model that nothing was tuned for."""
    pool, _ = scripted_pool(lambda _: "", OURS, FOREIGN)
    detector = make_detector(kind, kind, DetectorContext(models=pool, options=options))
    await pool.check()
    assert detector.threshold_protocol == protocol


@pytest.mark.parametrize(
    ("kind", "name", "variant", "as_published"),
    [
        ("halludetect", OURS, "mixture", False),
        ("halludetect", "smollm2-135m", "probability", False),
        ("halludetect", PAPERS, "word", True),
        ("metarag", OURS, "probability, with the fact itself", False),
        ("metarag", PAPERS, "word", True),
        ("logic-graph", OURS, "sentences, top 2 groups by softmax, served model and overlap 0.5", False),
        ("evidence-chain-lr", OURS, "extended features, of the origin: task", False),
        ("direct-judge", OURS, "", None),
        ("lexical", OURS, "", None),
    ],
)
async def test_a_detector_names_the_variant_that_it_runs(
    kind: str, name: str, variant: str, as_published: bool | None
) -> None:
    method = describe_method(await made(kind, name, None))
    assert (method.variant, method.as_published) == (variant, as_published)


async def test_a_detector_that_names_a_variant_of_another_type_is_told() -> None:
    detector = await made("lexical", OURS, None)
    detector.variant = 3  # type: ignore[assignment] # somebody else's detector may
    with pytest.raises(UsageError, match="detector lexical: its `variant` is wrong"):
        describe_method(detector)


@pytest.mark.parametrize(
    ("root", "reading", "warned"),
    [
        (ROOT, "word", True),
        (ROOT, "auto", False),
        (ROOT, "probability", False),
        (ROOT, "mixture", False),
        (FOREIGN, "auto", False),
        (PAPERS_ROOT, "word", False),
        (PAPERS_ROOT, "auto", False),
    ],
)
async def test_who_asks_a_small_model_for_lists_is_warned(root: str, reading: str, warned: bool) -> None:
    detector = await made("halludetect", "mine", root, {"reading": reading})
    said = [
        "halludetect: qwen2.5-coder-1.5b is too small for `reading: word`, whose filter it does not follow: "
        "most clean replies are flagged (docs/studies/published-methods.md). Leave `reading` out."
    ]
    assert list(detector.warnings) == (said if warned else [])
