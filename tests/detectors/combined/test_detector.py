"""`combined` as the testbed uses it: shipped, trained with and without spans, from a file."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from hallulab.detectors.base.protocol import DetectorContext, TrainableDetector
from hallulab.detectors.combined.detector import SHIPPED, CombinedDetector
from hallulab.detectors.combined.model import save_model
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Judgement
from hallulab.testing.scripted import scripted_pool
from tests.detectors.features.material import BAKERY, corpus, view


def detector(**options: object) -> CombinedDetector:
    pool, _ = scripted_pool(lambda _: "unused")
    return CombinedDetector("combined", DetectorContext(models=pool, options=options))


def judged(made: CombinedDetector, replies: Sequence[LabelledReply]) -> list[Judgement]:
    return asyncio.run(made.detect_many([one.view for one in replies]))


def scores_of_words(reply: str, judgement: Judgement) -> dict[str, float]:
    assert judgement.word_scores is not None
    return dict(zip(reply.split(), judgement.word_scores, strict=True))


def without_spans(replies: Sequence[LabelledReply]) -> list[LabelledReply]:
    return [one.model_copy(update={"spans": None}) for one in replies]


@pytest.fixture(scope="module")
def on_spans() -> CombinedDetector:
    made = detector()
    made.fit(corpus(20), seed=2)
    return made


@pytest.fixture(scope="module")
def on_labels() -> CombinedDetector:
    made = detector()
    made.fit(without_spans(corpus(20)))
    return made


async def test_it_judges_untrained_in_batches_as_one_by_one() -> None:
    made = detector()
    assert made.traits.batch
    assert isinstance(made, TrainableDetector)
    views = [
        view("The bakery opens at 6. Bread costs 3 euros.", *BAKERY),
        view("The bakery moved to Springfield in 2077.", *BAKERY),
    ]
    judgements = await made.detect_many(views)
    assert [await made.detect(one) for one in views] == judgements
    assert [judgement.flagged for judgement in judgements] == [False, True]


async def test_the_shipped_model_says_which_words_are_invented() -> None:
    judgement = await detector().detect(view("The bakery opens at 6 in Springfield.", *BAKERY))
    scores = scores_of_words("The bakery opens at 6 in Springfield.", judgement)
    assert max(scores, key=lambda word: scores[word]) == "Springfield."


async def test_the_shipped_model_scores_as_scikit_learn_does_that_fitted_it() -> None:
    judgement = await detector().detect(
        view("The bakery opens at 6. Bread costs 4 euros in Springfield.", *BAKERY)
    )
    assert judgement.score == 0.546223
    assert [unit.score for unit in judgement.units] == [0.305955, 0.551968]
    assert judgement.word_scores == (
        *(0.011982, 0.011648, 0.011597, 0.012874, 0.013384),
        *(0.045038, 0.043847, 0.111647, 0.061021, 0.069091, 0.159333),
    )


def test_trained_with_spans_it_tells_replies_and_words_apart(on_spans: CombinedDetector) -> None:
    clean, wrong = judged(on_spans, corpus(1))
    assert (clean.flagged, wrong.flagged) == (False, True)
    assert on_spans.model.pieces is not None
    scores = scores_of_words(corpus(1)[1].reply, wrong)
    assert scores["Springfield"] > scores["museum"]


def test_trained_without_spans_it_flags_the_new_words_of_a_flagged_reply(on_labels: CombinedDetector) -> None:
    clean, wrong = judged(on_labels, corpus(1))
    assert on_labels.model.pieces is None
    assert (clean.flagged, wrong.flagged) == (False, True)
    assert wrong.spans is not None
    assert [span.text for span in wrong.spans] == ["moved", "Springfield", "2077."]


def test_trained_on_hallucinated_replies_only_it_learns_places() -> None:
    made = detector()
    made.fit([one for one in corpus(20) if one.label])
    wrong = judged(made, corpus(1))[1]
    assert made.model.replies is None
    scores = scores_of_words(corpus(1)[1].reply, wrong)
    assert scores["Springfield"] > scores["museum"]


@pytest.mark.parametrize(
    ("replies", "error"),
    [
        ([one for one in without_spans(corpus(10)) if one.label], "all hallucinated"),
        ([one for one in corpus(10) if not one.label], "never hallucinated"),
        (corpus(1), "two groups or more"),
    ],
)
def test_what_cannot_be_learnt_from_is_an_error(replies: list[LabelledReply], error: str) -> None:
    with pytest.raises(UsageError, match=error):
        detector().fit(replies)


def test_training_again_replaces_all_that_was_learnt_before(on_labels: CombinedDetector) -> None:
    made = detector(threshold=0.9)
    made.fit(corpus(2), seed=1)
    assert made.model.pieces is not None
    made.fit(without_spans(corpus(20)))
    assert made.model.pieces is None
    assert made.model.identity == on_labels.model.identity
    assert [one.score for one in judged(made, corpus(3))] == [
        one.score for one in judged(on_labels, corpus(3))
    ]
    assert (made.threshold, made.threshold_protocol) == (0.9, "given")


def test_models_are_taken_from_files(
    tmp_path: Path, on_spans: CombinedDetector, on_labels: CombinedDetector
) -> None:
    for made in (on_spans, on_labels):
        path = tmp_path / "mine.npz"
        save_model(made.model, path)
        loaded = detector(model=str(path))
        assert loaded.version != detector().version
        assert judged(loaded, corpus(2)) == judged(made, corpus(2))


def test_a_file_of_another_detector_is_refused() -> None:
    other = Path(SHIPPED).parents[2] / "evidence_chain" / "trained" / "rf-extended.npz"
    with pytest.raises(UsageError, match="this is no trained model of this detector"):
        detector(model=str(other))


def test_the_model_of_the_package_is_small() -> None:
    assert SHIPPED.stat().st_size < 3 * 2**20
