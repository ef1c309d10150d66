"""In six languages, detectors without a model score wrong twins higher and flag no right one, or abstain."""

from __future__ import annotations

import pytest

from hallulab.agents.models.recording import Recording
from hallulab.detectors.base.protocol import Detector, DetectorContext, run_detector
from hallulab.detectors.peers.detector import PeerDetector
from hallulab.detectors.registry import DETECTORS, make_detector
from hallulab.scenarios.transcript import Judgement
from hallulab.testing.scripted import scripted_pool
from tests.detectors.languages.twins import TWINS, Twins
from tests.detectors.vignettes import STRONG_MODEL, recorded_pool
from tests.places import RECORDINGS

WITHOUT_A_MODEL = [
    "lexical",
    "evidence-chain-lexical",
    "evidence-chain-bm25",
    "evidence-chain-tfidf",
    "evidence-chain-nli-rules",
    "evidence-chain-lr",
    "evidence-chain-rf",
    "combined",
]


async def judge(kind: str, twins: Twins) -> list[Judgement]:
    pool, _ = scripted_pool(lambda _: "unused")
    detector = make_detector(kind, kind, DetectorContext(models=pool))
    return await run_detector(
        detector, [twins.view(reply) for reply in (twins.right, twins.wrong_number, twins.wrong_name)]
    )


def test_these_are_all_detectors_that_need_no_model_and_no_weights() -> None:
    made = {kind: one for kind, one in DETECTORS.items() if isinstance(one, type)}
    found = [
        kind
        for kind, one in made.items()
        if issubclass(one, Detector) and not issubclass(one, PeerDetector) and not one.traits.needs_model
    ]
    assert found == WITHOUT_A_MODEL


@pytest.mark.parametrize("twins", TWINS, ids=lambda twins: twins.language)
async def test_lexical_scores_both_wrong_twins_higher_and_flags_no_right_one(twins: Twins) -> None:
    judged = await judge("lexical", twins)
    right, *wrong = [one.score for one in judged if one.score is not None]
    assert len(wrong) == 2
    assert right < min(wrong)
    assert judged[0].flagged is False


@pytest.mark.parametrize("kind", WITHOUT_A_MODEL[1:])
@pytest.mark.parametrize("twins", TWINS, ids=lambda twins: twins.language)
async def test_detectors_that_learnt_from_english_abstain_with_the_reason(kind: str, twins: Twins) -> None:
    names = {"de": "German", "hi": "Hindi", "ar": "Arabic", "zh": "Chinese", "ja": "Japanese", "th": "Thai"}
    reason = f"the reply is in {names[twins.language]}, and {kind} reads English only"
    assert [(one.outcome, one.error) for one in await judge(kind, twins)] == [("abstained", reason)] * 3


RECORDED = RECORDINGS / "languages_strong.jsonl"
"""What a strong general-purpose language model answered to each prompt of `direct-judge`. It read the prompts
without their labels, in the order of a hash; but it had written the twins itself. So this shows that the
detector asks and reads in these languages, not how well a model judges. There are no log-probabilities."""


@pytest.mark.parametrize("twins", TWINS, ids=lambda twins: twins.language)
async def test_direct_judge_tells_the_twins_apart_by_a_strong_models_answers(twins: Twins) -> None:
    recording = Recording.replay(RECORDED)
    models = recorded_pool(recording, model=STRONG_MODEL)
    detector = make_detector("direct-judge", "direct-judge", DetectorContext(models=models))
    replies = (twins.right, twins.wrong_number, twins.wrong_name)
    judged = await run_detector(detector, [twins.view(reply) for reply in replies])
    await models.close()
    recording.close()
    # The second German reply leaves out for which gardens its fee is, and the model calls that unsupported.
    right = (1.0, True) if twins is TWINS[1] else (0.0, False)
    assert [(one.score, one.flagged) for one in judged] == [right, (1.0, True), (1.0, True)]
