"""What a run folder holds to while it grows, and what is kept when a start fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.models.model import ModelPool
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.packs.pack_files import load_scenario, locate_pack
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.identity import require_same_experiment
from hallulab.simulator.records.provenance import Provenance, identify_makers
from hallulab.simulator.report.write import write_reports
from hallulab.testing.scripted import scripted_pool
from tests.builders import conversation, scored
from tests.kit.run_folders import write_run

PACK = "pregnancy-medication"


def experiment(**fields: Any) -> Experiment:
    return Experiment.model_validate({"scenario": PACK, "model": "m", "chatbots": ["vanilla"], **fields})


def entered(folder: Path, **fields: Any) -> RunFolder:
    """A folder of that experiment, without conversations."""
    made = RunFolder(folder)
    asked = experiment(**fields)
    Provenance(asked, load_scenario(PACK), [], identify_makers(asked)).write(made)
    return made


def with_another_manner(scenario: Scenario, number: int) -> Scenario:
    personas = list(scenario.personas)
    personas[number] = personas[number].model_copy(update={"manner": "Speaks in riddles."})
    return scenario.model_copy(update={"personas": tuple(personas)})


def test_seeds_of_earlier_conversations_stay_when_fewer_are_asked_for(tmp_path: Path) -> None:
    entered(tmp_path, repeats=3)
    saved = entered(tmp_path, repeats=1).read_experiment()
    assert saved is not None
    assert saved.seeds == (0, 1, 2)


def test_it_says_how_each_detector_judged_and_keeps_what_it_said(folder: RunFolder) -> None:
    asked, scenario = experiment(), load_scenario(PACK)
    pool, _ = scripted_pool(lambda _: "", "strong")
    for kind in ("halludetect", "lexical"):
        detector = make_detector(kind, kind, DetectorContext(models=pool))
        Provenance(asked, scenario, [detector], identify_makers(asked)).write(folder)
    saved = folder.read_experiment()
    assert saved is not None
    assert {name: one.model_dump() for name, one in saved.methods.items()} == {
        "halludetect": {
            "variant": "word",
            "as_published": True,
            "threshold": 4.0,
            "threshold_protocol": "published",
        },
        "lexical": {
            "variant": "",
            "as_published": None,
            "threshold": detector.threshold,
            "threshold_protocol": detector.threshold_protocol,
        },
    }


def test_more_personas_and_chatbots_may_come(tmp_path: Path) -> None:
    folder = entered(tmp_path, limit=1)
    require_same_experiment(folder, experiment(limit=2, chatbots=["vanilla", "agent"]), load_scenario(PACK))


def test_an_edited_persona_is_refused_by_name(tmp_path: Path) -> None:
    scenario = load_scenario(PACK)
    folder = entered(tmp_path, limit=1)
    with pytest.raises(UsageError, match=rf"it differs in persona {scenario.personas[0].id}\)\. Use --fresh"):
        require_same_experiment(folder, experiment(limit=1), with_another_manner(scenario, 0))


def test_a_persona_that_took_no_part_may_be_edited(tmp_path: Path) -> None:
    folder = entered(tmp_path, limit=1)
    require_same_experiment(folder, experiment(limit=2), with_another_manner(load_scenario(PACK), 1))


@pytest.mark.parametrize(
    ("before", "now", "differs"),
    [
        ({"reply_tokens": 50}, {"reply_tokens": 60}, "reply_tokens"),
        (
            {},
            {"chatbots": [{"name": "vanilla", "options": {"temperature": 0.7}}]},
            "options of chatbot vanilla",
        ),
    ],
)
def test_another_limit_or_other_options_are_refused(
    tmp_path: Path, before: dict[str, Any], now: dict[str, Any], differs: str
) -> None:
    folder = entered(tmp_path, **before)
    with pytest.raises(UsageError, match=rf"it differs in {differs}\)"):
        require_same_experiment(folder, experiment(**now), load_scenario(PACK))


def test_conversations_of_an_earlier_chatbot_and_verdicts_on_them_do_not_count(tmp_path: Path) -> None:
    folder = entered(tmp_path)
    saved = folder.read_experiment()
    assert saved is not None
    assert saved.made_by is not None
    of_today = saved.made_by.version("vanilla")
    chats = [
        conversation(id, ["No."]).model_copy(update={"version": version})
        for id, version in {"old": "", "other": "u-v", "new": of_today}.items()
    ]
    write_run(folder.path, chats, [scored(one.id, 0) for one in chats])
    journals = folder.read_journals()
    assert [one.id for one in journals.conversations] == ["new"]
    assert [verdict.conversation for verdict in journals.verdicts] == ["new"]
    assert write_reports(folder).layout == 1


def test_a_chatbot_that_the_manifest_does_not_name_is_an_error(tmp_path: Path) -> None:
    folder = entered(tmp_path)
    write_run(folder.path, [conversation("a", ["No."], chatbot="vanila")], [])
    with pytest.raises(UsageError, match=r"has no chatbot 'vanila', which conversation 'a' is with, only "):
        folder.read_journals()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ({"made_by": {"user": 1, "chatbots": {}}}, r"`made_by\.user`: input should be a valid string\."),
        (
            {"planted": {"documents": 1, "ordering": {"fees": "not-there"}}},
            r"`planted`: .*names the order 'not-there', which is not",
        ),
    ],
)
def test_damage_is_refused_by_field(tmp_path: Path, damage: dict[str, Any], said: str) -> None:
    folder = entered(tmp_path)
    saved = json.loads(folder.experiment.read_text())
    folder.experiment.write_text(json.dumps({**saved, **damage}))
    with pytest.raises(UsageError, match=rf"experiment\.json: field {said}"):
        folder.read_journals()


def test_an_attack_on_users_alone_makes_another_experiment(tmp_path: Path) -> None:
    folder = entered(tmp_path)
    saved = json.loads(folder.experiment.read_text())
    del saved["identity"]["attack"]  # as hallulab wrote it before there were attacks
    folder.experiment.write_text(json.dumps(saved))
    require_same_experiment(folder, experiment(), load_scenario(PACK))
    with pytest.raises(UsageError, match=r"it differs in attack\)"):
        require_same_experiment(folder, experiment(attack={"user_injections": 1}), load_scenario(PACK))


async def test_a_fresh_start_without_a_knowledge_base_leaves_the_old_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def served(pool: ModelPool, names: object) -> None:
        pass

    monkeypatch.setattr(ModelPool, "check", served)
    folder = entered(tmp_path)
    folder.conversations.write_text("the old run")
    asked = experiment(embedding_model=str(tmp_path / "nowhere"), base_url="http://127.0.0.1:9/v1")
    with pytest.raises(UsageError, match=r"there is no folder .*nowhere"):
        await run_experiment(asked, folder, RunSettings(fresh=True, quiet=True), simulate=True)
    assert folder.conversations.read_text() == "the old run"


def test_a_stop_that_the_experiment_allows_is_not_premature(tmp_path: Path) -> None:
    folder = entered(tmp_path, min_turns=1)
    persona = load_scenario(PACK).personas[0].id
    chat = conversation("a", ["No."], persona=persona).model_copy(update={"stop_reason": "gave_up"})
    folder.conversations.write_text(chat.model_dump_json() + "\n")
    assert write_reports(folder).simulator_audit.affected_conversations == 0


def test_a_built_in_pack_keeps_its_name() -> None:
    assert locate_pack(PACK) == PACK


def test_a_pack_beside_the_experiment_file_is_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / "pack").mkdir(parents=True)
    (tmp_path / "here" / "run.yaml").write_text("scenario: pack\n")
    monkeypatch.chdir(tmp_path)
    found = load_experiment(Path("here/run.yaml"), {})
    assert found.scenario == str(tmp_path / "here" / "pack")


def test_a_pack_in_the_working_directory_is_found_from_elsewhere_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pack").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_experiment(None, {"scenario": "pack"}).scenario == str(tmp_path / "pack")


def test_a_pack_that_is_not_there_keeps_the_words_for_the_error() -> None:
    assert locate_pack("./no-such-pack") == "./no-such-pack"
