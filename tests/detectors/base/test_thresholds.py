"""What `hallulab calibrate` keeps, and which detector takes it up."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.base.thresholds import (
    Fitted,
    GroupCounts,
    UnitCounts,
    find_fitted,
    find_fitted_by_version,
    locate_fitted_file,
)
from hallulab.detectors.combined.detector import CombinedDetector
from hallulab.detectors.direct_judge.detector import DirectJudgeDetector
from hallulab.detectors.lexical.detector import LexicalDetector
from hallulab.testing.scripted import scripted_pool
from tests.kit.refusals import refusal

pytestmark = pytest.mark.usefixtures("own_cache")


NOTHING = UnitCounts(clean=0, clean_flagged=0, wrong=0, wrong_flagged=0)


def fitted(scoring: str, threshold: float = 0.4, version: str = "v") -> Fitted:
    return Fitted(
        detector="d",
        scoring=scoring,
        version=version,
        threshold=threshold,
        measured_on="2 errors",
        groups=(GroupCounts(replies=NOTHING, sentences=NOTHING),),
    )


def keep(one: Fitted) -> Path:
    path, text = locate_fitted_file(one)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def made(
    kind: type[LexicalDetector | CombinedDetector | DirectJudgeDetector], **options: object
) -> LexicalDetector | CombinedDetector | DirectJudgeDetector:
    pool, _ = scripted_pool(lambda _: "unused")
    return kind("d", DetectorContext(models=pool, options=options))


def test_a_fit_is_found_by_its_way_to_score_and_by_its_version() -> None:
    assert find_fitted("a") is None
    assert find_fitted_by_version("d", "v") is None
    keep(fitted("a"))
    assert find_fitted("a") == fitted("a")
    assert find_fitted("b") is None
    assert find_fitted_by_version("d", "v") == fitted("a")
    assert find_fitted_by_version("e", "v") is None
    assert find_fitted_by_version("d", "w") is None


def test_a_damaged_file_is_named_with_a_remedy() -> None:
    path = keep(fitted("a"))
    path.write_text(path.read_text().replace("0.4", '"high"'))
    assert refusal(find_fitted, "a") == (
        f"{path}: field `threshold`: input should be a valid number, unable to parse string as a number. "
        "Delete it, or run `hallulab calibrate` again."
    )


@pytest.mark.parametrize("kind", [LexicalDetector, CombinedDetector, DirectJudgeDetector])
def test_a_detector_judges_by_its_fit_unless_a_threshold_is_given(
    kind: type[LexicalDetector | CombinedDetector | DirectJudgeDetector],
) -> None:
    before = made(kind)
    assert before.scoring is not None
    known = (before.threshold, before.threshold_protocol, before.version)
    keep(fitted(before.scoring, 0.4))
    after, given = made(kind), made(kind, threshold=0.6)
    assert (after.threshold, after.threshold_protocol) == (0.4, "calibrated")
    assert (given.threshold, given.threshold_protocol) == (0.6, "given")
    assert after.scoring == given.scoring == before.scoring
    assert len({known[2], after.version, given.version}) == 3
    # The same threshold is the same version, wherever it comes from.
    assert made(kind, threshold=0.4).version == after.version


def test_other_options_are_another_way_to_score() -> None:
    before = made(LexicalDetector)
    assert before.scoring is not None
    keep(fitted(before.scoring))
    assert made(LexicalDetector, dialogue_is_evidence=True).threshold == 0.25
