"""Endpoints of many providers, by their rules: a run goes through, and a perfect judge is perfect there."""

from __future__ import annotations

from pathlib import Path

import pytest
from sklearn.metrics import roc_auc_score

import hallulab
from hallulab.testing.providers import FORMS, PROVIDERS, Provider, ProviderModel
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.simulator.perfect_model import LABELLED, PASSAGES, REPLY, answer_perfectly

DETECTORS = ("halludetect", "metarag", "direct-judge")
BOTS = ("vanilla", "prompt-engineered", "editor", "fact-checker", "agent")


@pytest.fixture(params=[*PROVIDERS, *FORMS], ids=lambda provider: provider.name)
def provider(request: pytest.FixtureRequest) -> Provider:
    """Each provider in turn."""
    found: Provider = request.param
    return found


def experiment_at(model: ProviderModel, provider: Provider, pack: Path) -> dict[str, object]:
    """One persona with five chatbots, judged by three detectors."""
    return {
        "scenario": str(pack),
        "chatbots": list(BOTS),
        "detectors": list(DETECTORS),
        "model": provider.model,
        "base_url": model.base_url,
        "min_turns": 1,
        "max_turns": 1,
        **provider.options,
    }


def test_five_chatbots_and_three_detectors_run_through(provider: Provider, tmp_path: Path) -> None:
    with ProviderModel(provider, answer_perfectly) as model, words_for_vectors():
        experiment = experiment_at(model, provider, make_pack(tmp_path / "pack"))
        run = hallulab.run(experiment, out=str(tmp_path / "run"), quiet=True)
    assert {one.chatbot: one.error for one in run.conversations} == dict.fromkeys(BOTS)
    assert set(run.verdicts().outcome) == {"scored"}
    assert not run.verdicts().flagged.any()
    assert set(run.turns().reply) == {REPLY}


@pytest.mark.parametrize("detector", DETECTORS)
def test_a_perfect_judge_is_perfect(provider: Provider, detector: str) -> None:
    with ProviderModel(provider, answer_perfectly) as model:
        judgements = hallulab.judge(
            [{"question": "How hot?", "reply": reply, "passages": PASSAGES} for reply, _ in LABELLED],
            detector,
            model=provider.model,
            base_url=model.base_url,
            **provider.options,
        )
    assert [one.outcome for one in judgements] == ["scored"] * len(LABELLED)
    assert roc_auc_score([label for _, label in LABELLED], [one.score for one in judgements]) == 1.0
