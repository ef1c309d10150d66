"""The six detectors as the testbed uses them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from hallulab.detectors.base.protocol import DetectorContext, TrainableDetector
from hallulab.detectors.evidence_chain.detector import (
    EVIDENCE_CHAIN,
    EvidenceChainDetector,
    locate_shipped_model,
)
from hallulab.detectors.evidence_chain.model import save_model
from hallulab.detectors.features.batch import read_task
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Judgement
from hallulab.scenarios.turn_views import Origin, TurnView
from hallulab.testing.scripted import scripted_pool
from tests.detectors.features.material import BAKERY, corpus, passages, view


def detector(kind: str = "evidence-chain-rf", **options: object) -> EvidenceChainDetector:
    pool, _ = scripted_pool(lambda _: "unused")
    return EVIDENCE_CHAIN[kind](kind, DetectorContext(models=pool, options=options))


def judged(made: EvidenceChainDetector, *views: TurnView) -> list[Judgement]:
    return asyncio.run(made.detect_many(views))


@pytest.mark.parametrize("kind", EVIDENCE_CHAIN)
async def test_all_judge_untrained_in_batches_as_one_by_one(kind: str) -> None:
    made = detector(kind)
    assert made.traits.batch
    assert isinstance(made, TrainableDetector)
    views = [
        view("The bakery opens at 6.", *BAKERY),
        view("The bakery moved to Springfield in 2077.", *BAKERY),
        view("Nobody knows.", "Another source altogether."),
    ]
    judgements = await made.detect_many(views)
    assert [await made.detect(one) for one in views] == judgements
    assert all(judgement.outcome == "scored" for judgement in judgements)
    assert judgements[0].score < judgements[1].score  # type: ignore[operator]


def test_sentences_are_units_and_every_word_has_a_score() -> None:
    reply = "Bread costs 3. Zebras gallop."
    judgement = judged(detector("evidence-chain-lexical"), view(reply, *BAKERY))[0]
    units = [(unit.kind, unit.text, unit.score) for unit in judgement.units]
    assert units == [("sentence", "Bread costs 3.", 0.0), ("sentence", "Zebras gallop.", 1.0)]
    assert judgement.word_scores == (0.0, 0.0, 0.0, 0.8, 0.8)
    assert all(unit.text == reply[unit.start : unit.end] for unit in judgement.units)
    assert judgement.units[0].details["passage"] == "p#1"
    assert judgement.units[1].details["passage"] is None
    assert judgement.score == 1.0


def test_flagged_words_in_a_row_are_one_span_with_the_evidence() -> None:
    reply = "The bakery opens at 6. Bread, jam, zebras, hats."
    judgement = judged(detector("evidence-chain-lexical", threshold=0.2), view(reply, *BAKERY))[0]
    assert judgement.spans is not None
    assert [(span.text, span.score) for span in judgement.spans] == [("jam, zebras, hats.", 0.6)]
    assert judgement.spans[0].evidence == "p#1: Fresh bread costs 3 euros."


def test_a_reply_below_the_threshold_has_no_spans() -> None:
    judgement = judged(detector("evidence-chain-lexical"), view("Bread costs 3, cakes.", *BAKERY))[0]
    assert (judgement.score, judgement.flagged, judgement.spans) == (0.25, False, ())


def test_a_flagged_reply_without_a_flagged_word_points_at_its_riskiest_sentence() -> None:
    reply = "Bread costs 3. The bakery in Lyon opens at 6."
    judgement = judged(detector("evidence-chain-lexical", threshold=0.0), view(reply, *BAKERY))[0]
    assert judgement.spans is not None
    assert [span.text for span in judgement.spans] == ["Bread costs 3."]


@pytest.mark.parametrize(
    ("reply", "evidence", "error"),
    [("?!", BAKERY, "the reply has no words"), ("Yes.", (), "there is no evidence")],
)
async def test_without_words_or_evidence_it_abstains(
    reply: str, evidence: tuple[str, ...], error: str
) -> None:
    judgement = await detector().detect(view(reply, *evidence))
    assert (judgement.outcome, judgement.error) == ("abstained", error)


@pytest.mark.parametrize(
    ("question", "evidence", "task"),
    [
        ("When?", ("Opens at 6.",), "qa"),
        ("", ("Opens at 6.",), "summary"),
        ("", ("A review: good.", "name: Lyon\nstars: 4"), "data2txt"),
    ],
)
def test_the_task_is_told_from_the_texts(question: str, evidence: tuple[str, ...], task: str) -> None:
    assert read_task(question, passages(*evidence)) == task


@pytest.fixture(scope="module")
def trained() -> Callable[[str], EvidenceChainDetector]:
    """Give a detector trained on ten groups by its kind; each is trained once."""

    @cache
    def fit(kind: str) -> EvidenceChainDetector:
        made = detector(kind)
        made.fit(corpus(10), seed=2)
        return made

    return fit


def test_training_changes_the_version_and_the_thresholds(
    trained: Callable[[str], EvidenceChainDetector],
) -> None:
    made = trained("evidence-chain-lr")
    assert made.version != detector("evidence-chain-lr").version
    assert made.threshold == made.model.thresholds.response
    assert made.threshold_protocol == "tuned"
    wrong = corpus(10)[1]
    assert judged(made, wrong.view)[0].flagged is True


@pytest.mark.parametrize("kind", EVIDENCE_CHAIN)
def test_training_again_replaces_all_that_was_learnt_before(
    kind: str, trained: Callable[[str], EvidenceChainDetector]
) -> None:
    made, fresh = detector(kind), trained(kind)
    made.fit(corpus(2), seed=1)
    assert made.version != fresh.version
    made.fit(corpus(10), seed=2)
    views = [one.view for one in corpus(3)]
    assert judged(made, *views) == judged(fresh, *views)
    assert (made.threshold, made.version) == (fresh.threshold, fresh.version)


def test_the_generator_is_read_of_labelled_replies_only_on_request() -> None:
    replies = [
        one.model_copy(update={"meta": {"model": "careless" if one.label else "careful"}}) for one in corpus()
    ]
    views = [
        replies[0].view.model_copy(update={"origin": Origin(generator=generator)})
        for generator in ("careful", "careless")
    ]
    made = detector("evidence-chain-lr", features="paper", context=["generator"])
    made.fit(replies)
    careful, careless = (one.score for one in judged(made, *views))
    assert careful is not None
    assert careless is not None
    assert careful < careless
    made = detector("evidence-chain-lr", features="paper")
    made.fit(replies)
    careful, careless = (one.score for one in judged(made, *views))
    assert careful == careless


@pytest.mark.parametrize(
    ("kind", "options", "reads"),
    [
        ("evidence-chain-rf", {}, False),
        ("evidence-chain-rf", {"context": []}, False),
        ("evidence-chain-rf", {"context": ["task", "temperature"]}, True),
        ("evidence-chain-tfidf", {}, False),
    ],
)
def test_the_origin_is_asked_for_by_an_option(kind: str, options: dict[str, object], reads: bool) -> None:
    made = detector(kind, **options)
    assert made.traits.reads_origin is reads


def test_a_given_threshold_is_kept_after_training() -> None:
    made = detector("evidence-chain-lr", threshold=0.9)
    made.fit(corpus(10))
    assert (made.threshold, made.threshold_protocol) == (0.9, "given")


def test_a_model_is_taken_from_a_file(
    tmp_path: Path, trained: Callable[[str], EvidenceChainDetector]
) -> None:
    path = tmp_path / "mine.npz"
    made = trained("evidence-chain-bm25")
    save_model(made.model, path)
    loaded = detector("evidence-chain-bm25", model=str(path))
    assert loaded.model.thresholds == made.model.thresholds
    assert loaded.version != detector("evidence-chain-bm25").version
    with pytest.raises(UsageError, match="holds a model of evidence-chain-bm25"):
        detector("evidence-chain-rf", model=str(path))


@pytest.mark.parametrize(
    ("kind", "features", "scores", "last_word"),
    [
        ("evidence-chain-lr", "extended", [0.076125, 0.615557], 0.581501),
        ("evidence-chain-rf", "extended", [0.068115, 0.485127], 0.458287),
        ("evidence-chain-lr", "paper", [0.091419, 0.476035], 0.476035),
        ("evidence-chain-rf", "paper", [0.06101, 0.263776], 0.263776),
    ],
)
def test_the_shipped_models_score_as_scikit_learn_does_that_fitted_them(
    kind: str, features: str, scores: list[float], last_word: float
) -> None:
    reply = "The bakery opens at 6. Bread costs 4 euros in Springfield."
    judgement = judged(detector(kind, features=features), view(reply, *BAKERY))[0]
    assert [unit.score for unit in judgement.units] == scores
    assert judgement.word_scores is not None
    assert judgement.word_scores[-1] == last_word


@pytest.mark.parametrize("features", ["paper", "extended"])
def test_the_models_of_the_package_are_small(features: str) -> None:
    assert detector(features=features).model.features == features
    assert locate_shipped_model("rf", "extended").stat().st_size < 2**20
    assert detector("evidence-chain-lr", features=features).model.method == "lr"


def test_the_collector_runs_again_after_a_batch_and_has_nothing_new_to_look_through() -> None:
    made = detector("evidence-chain-lexical")
    gc.collect()
    judgements = judged(made, *[view("Zebras gallop.", *BAKERY)] * 20)
    young = [one for generation in (0, 1) for one in gc.get_objects(generation)]
    assert gc.isenabled()
    assert not {id(one) for one in young} & {id(judgement) for judgement in judgements}


def test_objects_that_somebody_froze_stay_frozen() -> None:
    made = detector("evidence-chain-lexical")
    gc.freeze()
    try:
        judged(made, *[view("Zebras gallop.", *BAKERY)] * 2)
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
