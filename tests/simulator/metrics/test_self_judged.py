"""Chatbots that are judged by the model that verifies or the detector that guards them are marked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.served_model import ClaimCheck, ClaimChecks
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.metrics.hallucinations import Row
from hallulab.simulator.metrics.results import explain_self_judging, mark_self_judged
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.provenance import Provenance
from hallulab.simulator.report.write import write_reports
from tests.builders import conversation
from tests.places import ROOT
from tests.simulator.counted import empty_row

VERIFY, OTHER = {"verify": "aaa"}, {"supported": "bbb"}


def marked(verifying: ClaimCheck | None, judging: ClaimCheck | None) -> Row:
    checks = ClaimChecks(chatbots={"bot": verifying}, detectors={} if judging is None else {"judge": judging})
    [found] = mark_self_judged([empty_row("bot", "judge")], checks)
    return found


@pytest.mark.parametrize(
    ("judging", "degree", "asking"),
    [
        (ClaimCheck(models=("m",), prompts=OTHER), "same model", ", asking other questions"),
        # The same prompt file under another name is the same question.
        (
            ClaimCheck(models=("m",), prompts={**OTHER, "renamed": "aaa"}),
            "same model and same question",
            ", asking the same question",
        ),
        (ClaimCheck(models=("m",)), "same model", ""),
    ],
)
def test_the_same_model_with_other_questions_the_same_or_unknown_ones(
    judging: ClaimCheck, degree: str, asking: str
) -> None:
    found = marked(ClaimCheck(models=("a", "m"), prompts=VERIFY), judging)
    assert (found.self_judged, found.self_judged_degree) == (True, degree)
    assert found.self_judged_reason == (f"bot verifies its claims with m, by which judge judges, too{asking}")


@pytest.mark.parametrize("verifying", [ClaimCheck(), ClaimCheck(models=("other",), prompts=VERIFY)])
def test_another_model_or_none_is_no_circle(verifying: ClaimCheck) -> None:
    found = marked(verifying, ClaimCheck(models=("m",), prompts=VERIFY))
    assert (found.self_judged, found.self_judged_degree, found.self_judged_reason) == (False, None, None)


@pytest.mark.parametrize("known", ["chatbot", "detector", "neither"])
def test_what_is_not_known_is_neither_marked_nor_cleared(known: str) -> None:
    check = ClaimCheck(models=("m",))
    found = marked(check if known == "chatbot" else None, check if known == "detector" else None)
    assert (found.self_judged, found.self_judged_degree) == (None, None)


def test_a_note_for_each_sign_of_a_chatbot_says_what_it_means_and_what_to_do() -> None:
    verifying = ClaimCheck(models=("m",), prompts=VERIFY)
    checks = ClaimChecks(
        chatbots={"bot": verifying},
        detectors={
            "one": ClaimCheck(models=("m",), prompts=OTHER),
            "two": ClaimCheck(models=("m",)),
            "three": ClaimCheck(models=("m",), prompts=VERIFY),
            "four": ClaimCheck(models=("n",)),
        },
    )
    rows = mark_self_judged([empty_row("bot", name) for name in checks.detectors], checks)
    remedy = (
        "such a judgement may favour it. To avoid that, give one of the two a second model "
        "(docs/experiment.md, `Not one's own judge`)."
    )
    assert explain_self_judging(rows) == [
        f"† The model by which one and two judge also verifies what bot says: {remedy}",
        f"‡ The model by which three judges also verifies what bot says, by the same question: {remedy}",
    ]


def test_a_chatbot_is_marked_as_judged_by_its_own_guard() -> None:
    method = "hallulab.detectors.lexical.detector.LexicalDetector"
    found = marked(ClaimCheck(methods=(method,)), ClaimCheck(methods=(method,)))
    assert (found.self_judged, found.self_judged_degree) == (True, "own guard")
    assert found.self_judged_reason == "bot is guarded by the detector by which judge judges"
    assert explain_self_judging([found]) == [
        "§ judge also guards bot, which has already removed what its guard objects to. Another detector ends "
        "that (docs/safeguards.md)."
    ]


def experiment(**fields: Any) -> Experiment:
    """FactChecker and another one before a judge that asks a model and one that does not."""
    return load_experiment(
        None,
        {
            "scenario": "pregnancy-medication",
            "model": "m",
            "chatbots": ["vanilla", "fact-checker"],
            "detectors": ["direct-judge", "lexical"],
            "limit": 1,
            **fields,
        },
    )


async def degrees(folder: Path, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> dict[Any, Any]:
    """What the report of a run says of each (chatbot, detector); the run's own conversations are left out."""
    monkeypatch.setattr("hallulab.simulator.engine.run.execute", _nothing)
    run = RunFolder(folder)
    settings = RunSettings(replay=ROOT / "tests" / "recordings" / "demo.jsonl.gz", quiet=True)
    await run_experiment(experiment(**fields), run, settings, simulate=True)
    run.conversations.write_text(conversation("a", ["x"], "fact-checker").model_dump_json() + "\n")
    return {
        (row.chatbot, row.detector): (row.self_judged, row.self_judged_degree)
        for row in write_reports(run).rows
    }


async def _nothing(*_: object) -> None:
    pass


async def test_a_verifier_of_the_judges_model_is_marked_in_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await degrees(tmp_path / "run", monkeypatch) == {
        ("vanilla", "direct-judge"): (False, None),
        ("fact-checker", "direct-judge"): (True, "same model"),
        ("vanilla", "lexical"): (False, None),
        ("fact-checker", "lexical"): (False, None),
    }


SECOND = {"models": {"second": {"model": "larger", "base_url": "http://127.0.0.1:9/v1"}}}


@pytest.mark.parametrize(
    ("fields", "mark"),
    [
        ({"chatbots": [{"name": "fact-checker", "options": {"verifier": "second"}}]}, (False, None)),
        ({"roles": {"detector": "second"}}, (False, None)),
        ({"roles": {"chatbot": "second"}}, (False, None)),
        ({"roles": {"chatbot": "second", "detector": "second"}}, (True, "same model")),
        ({"models": {"again": {"model": "m"}}, "roles": {"detector": "again"}}, (True, "same model")),
    ],
)
async def test_a_second_model_takes_the_mark_away_unless_both_have_it_or_it_is_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], mark: tuple[bool, str | None]
) -> None:
    found = await degrees(tmp_path / "run", monkeypatch, **{**SECOND, **fields})
    assert found["fact-checker", "direct-judge"] == mark


def folder_with(tmp_path: Path, **entries: Any) -> RunFolder:
    """A run folder with a conversation of `bot`, whose experiment.json has those entries."""
    folder = RunFolder(tmp_path)
    made = Experiment.model_validate({"scenario": "pregnancy-medication", "model": "m", "chatbots": ["bot"]})
    Provenance(made, load_scenario("pregnancy-medication"), []).write(folder)
    saved = {**json.loads(folder.experiment.read_text()), "detectors": {"d": "1"}, **entries}
    folder.experiment.write_text(json.dumps(saved))
    folder.conversations.write_text(conversation("a", ["x"], "bot").model_dump_json() + "\n")
    return folder


def test_a_folder_of_an_older_hallulab_has_no_marks(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    saved = json.loads(folder.experiment.read_text())
    del saved["claim_checks"]
    folder.experiment.write_text(json.dumps(saved))
    [only] = write_reports(folder).rows
    assert (only.self_judged, only.self_judged_degree, only.self_judged_reason) == (None, None, None)


@pytest.mark.parametrize("damaged", [[], {"chatbots": {"bot": {"models": 3}}}, {"bots": {}}])
def test_a_damaged_entry_is_one_sentence(tmp_path: Path, damaged: Any) -> None:
    folder = folder_with(tmp_path, claim_checks=damaged)
    sentence = r"experiment\.json: .*field `claim_checks.* Restore it or use --fresh"
    with pytest.raises(UsageError, match=sentence):
        write_reports(folder)


def test_what_was_known_of_chatbots_stays_when_a_folder_is_judged_again(tmp_path: Path) -> None:
    checks = {"chatbots": {"bot": {"models": ["m"], "prompts": VERIFY}}, "detectors": {}}
    folder = folder_with(tmp_path, claim_checks=checks)
    made = Experiment.model_validate({"scenario": "pregnancy-medication", "model": "m", "chatbots": ["bot"]})
    Provenance(made, load_scenario("pregnancy-medication"), []).write(folder)
    saved = folder.read_experiment()
    assert saved is not None
    assert saved.claim_checks.chatbots == {"bot": ClaimCheck(models=("m",), prompts=VERIFY)}
