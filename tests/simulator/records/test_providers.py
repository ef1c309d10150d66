"""Endpoints of many providers, by their rules: a run goes through, and a perfect judge is perfect there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from sklearn.metrics import roc_auc_score

import hallulab
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.kit.providers import FORMS, PROVIDERS, Provider, ProviderModel
from tests.places import ROOT
from tests.simulator.perfect_model import LABELLED, PASSAGES, REPLY, answer_perfectly

DETECTORS = ("halludetect", "metarag", "direct-judge")
BOTS = ("vanilla", "prompt-engineered", "editor", "fact-checker", "agent")
UNLIKE = ("OpenAI, reasoning models", "Azure OpenAI", "Anthropic", "LMDeploy", "SentencePiece", "harmony")
"""Those whose answers are read in ways of their own."""

every_provider = pytest.mark.parametrize(
    "provider", [*PROVIDERS, *FORMS], ids=lambda provider: provider.name, indirect=True
)


@pytest.fixture(scope="module")
def provider(request: pytest.FixtureRequest) -> Provider:
    """Each provider in turn."""
    found: Provider = request.param
    return found


@pytest.fixture(scope="module")
def asked(provider: Provider) -> Iterator[dict[str, object]]:
    """How an experiment names a model there that is right about everything."""
    with (
        pytest.MonkeyPatch.context() as patch,
        ProviderModel(provider, answer_perfectly) as model,
        words_for_vectors(),
    ):
        patch.setenv("AZURE_OPENAI_API_KEY", "key")
        yield {"model": provider.model, "base_url": model.base_url, **provider.options}


@pytest.fixture(scope="module")
def run(asked: dict[str, object], tmp_path_factory: pytest.TempPathFactory) -> hallulab.Run:
    """One persona with five chatbots, judged by three detectors."""
    folder = tmp_path_factory.mktemp("provider")
    experiment = {
        "scenario": str(make_pack(folder / "pack")),
        "chatbots": list(BOTS),
        "detectors": list(DETECTORS),
        "min_turns": 1,
        "max_turns": 1,
        **asked,
    }
    return hallulab.run(experiment, out=str(folder / "run"), quiet=True)


@every_provider
def test_five_chatbots_and_three_detectors_run_through(run: hallulab.Run) -> None:
    assert {one.chatbot: one.error for one in run.conversations} == dict.fromkeys(BOTS)
    assert set(run.turns().reply) == {REPLY}
    assert set(run.verdicts().outcome) == {"scored"}
    assert not run.verdicts().flagged.any()


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name, indirect=True)
def test_the_page_says_what_is_found_out_there(provider: Provider, run: hallulab.Run) -> None:
    [found] = json.loads((run.path / "experiment.json").read_text())["read_how"]
    cells = (
        provider.name,
        f"`{provider.base_url}`",
        "probabilities" if found["log_probabilities"] else "the printed word",
        found["seed"],
        "by schema" if found["json_schema"] else "in the prompt",
        "; ".join(found["asked_with"]) or "–",
    )
    page = (ROOT / "docs" / "endpoints.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in page if line.startswith(f"| {provider.name} |")]
    assert rows == [f"| {' | '.join(cells)} |"]


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize(
    "provider",
    [one for one in (*PROVIDERS, *FORMS) if one.name in UNLIKE],
    ids=lambda provider: provider.name,
    indirect=True,
)
def test_a_perfect_judge_is_perfect(asked: dict[str, object], detector: str, tmp_path: Path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text(yaml.safe_dump(asked))
    judgements = hallulab.judge_replies(
        [{"question": "How hot?", "reply": reply, "passages": PASSAGES} for reply, _ in LABELLED],
        detector,
        config=file,
    )
    assert [one.outcome for one in judgements] == ["scored"] * len(LABELLED)
    assert roc_auc_score([label for _, label in LABELLED], [one.score for one in judgements]) == 1.0
