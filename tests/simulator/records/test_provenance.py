"""Whose results an edit of our code makes stale, and the prompts and documents that a run names."""

from __future__ import annotations

import pytest

from hallulab.agents.models.prompt import load_prompt
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.simulator.engine.models import list_asked_models
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.experiment_json import ComponentVersions, Sources
from hallulab.simulator.records.provenance import Provenance, describe_sources, identify_makers, list_prompts
from hallulab.testing.scripted import scripted_pool
from tests.builders import conversation
from tests.edited_code import Edit

DETECTORS = ("halludetect", "metarag", "lexical", "combined")
CHATBOTS = ("vanilla", "prompt-engineered", "editor", "fact-checker", "agent")
DRAFTING = {"prompt-engineered", "editor", "fact-checker"}
"""Those that begin with a careful draft."""
ALL = {"user", *CHATBOTS, *DETECTORS}


def add_line(text: str) -> str:
    return f"{text}\nEDITED = True\n"


def versions() -> dict[str, str]:
    """By user, chatbot and detector."""
    pool, _ = scripted_pool(lambda _: "")
    made = identify_makers(load_experiment(None, {"chatbots": list(CHATBOTS), "model": "scripted"}))
    judges = {kind: make_detector(kind, kind, DetectorContext(models=pool)).version for kind in DETECTORS}
    return {"user": made.user, **made.chatbots, **judges}


@pytest.mark.parametrize(
    ("module", "stale"),
    [
        ("hallulab.chatbots.vanilla", {"vanilla"}),
        ("hallulab.chatbots.fact_checker", {"fact-checker"}),
        ("hallulab.chatbots.prompt_engineered", DRAFTING),
        ("hallulab.chatbots.pipeline", set(CHATBOTS)),
        ("hallulab.agents.users.flaws", {"user"}),
        ("hallulab.simulator.engine.conversation", {"user"}),
        ("hallulab.agents.autogen", ALL),
        ("hallulab.agents.retrieval.knowledge", ALL),
        ("hallulab.scenarios.text.chunking", ALL),
        ("hallulab.scenarios.text.spans", ALL),
        ("hallulab.detectors.metarag.steps", {"metarag"}),
        ("hallulab.detectors.halludetect.evidence", {"halludetect"}),
        ("hallulab.detectors.features.matching", {"combined"}),
        ("hallulab.detectors.base.judging", {"halludetect", "metarag", "lexical"}),
        ("hallulab.agents.models.transport", set()),
        ("hallulab.agents.models.recording", set()),
        ("hallulab.agents.serving.catalogue", set()),
        ("hallulab.scenarios.transcript", set()),
        ("hallulab.chatbots.registry", set()),
        ("hallulab.simulator.metrics.run_report", set()),
    ],
)
def test_an_edited_module_makes_stale_what_it_decides(module: str, stale: set[str], edit_code: Edit) -> None:
    before = versions()
    edit_code(module, add_line)
    after = versions()
    assert {name for name in before if before[name] != after[name]} == stale


def guarded(**parts: str) -> str:
    """Version of a guard around FactChecker, whose verifier is another model."""
    wrapped = {"kind": "fact-checker", "options": {"verifier": "judge"}}
    bot = {"name": "guarded", "options": {"chatbot": wrapped, "detector": "lexical"}}
    asked = load_experiment(None, {"chatbots": [bot], "model": "m", "models": {"judge": {"model": "j"}}})
    return identify_makers(asked, {"judge": parts.pop("judge", "root one")}, parts=parts).chatbots["guarded"]


def test_a_guarded_chatbot_is_stale_with_what_it_wraps_and_with_its_detector(edit_code: Edit) -> None:
    before = guarded(guarded="v1")
    assert before == guarded(guarded="v1")
    assert before != guarded(guarded="v2")
    assert before != guarded(guarded="v1", judge="root other")
    edit_code("hallulab.chatbots.fact_checker", add_line)
    assert before != guarded(guarded="v1")


def test_a_guarded_chatbot_is_stale_with_the_detectors_code_that_its_marks_use(edit_code: Edit) -> None:
    before = guarded()
    edit_code("hallulab.detectors.features.matching", add_line)
    assert guarded() != before


def test_how_models_are_asked_counts_for_all_who_ask(edit_code: Edit) -> None:
    before = versions()
    edit_code("hallulab.agents.models.model", add_line)
    after = versions()
    assert {name for name in before if before[name] != after[name]} == ALL


@pytest.mark.parametrize(
    ("models", "stale"),
    [
        ({"default": "root other/model"}, {"user", "vanilla", "fact-checker"}),
        ({"judge": "root other/model"}, {"fact-checker"}),
    ],
)
def test_another_model_makes_stale_whoever_asks_it(models: dict[str, str], stale: set[str]) -> None:
    checker = {"name": "fact-checker", "options": {"verifier": "judge"}}
    asked = load_experiment(
        None, {"chatbots": ["vanilla", checker], "model": "m", "models": {"judge": {"model": "j"}}}
    )
    before, after = identify_makers(asked), identify_makers(asked, models)
    changed = {name for name in before.chatbots if before.chatbots[name] != after.chatbots[name]}
    assert changed | ({"user"} if before.user != after.user else set()) == stale


NOW = ComponentVersions(user="u2", chatbots={"vanilla": "v2", "editor": "e1"})


@pytest.mark.parametrize(
    ("chatbot", "version", "said"),
    [
        ("vanilla", "u2-v2", []),
        ("vanilla", "u2-v1", ["chatbot vanilla has changed: 1 conversation with vanilla"]),
        (
            "editor",
            "u1-e1",
            ["the simulated user or how conversations go has changed: 1 conversation with editor"],
        ),
        ("agent", "", ["hallulab has changed: 1 conversation with agent"]),
    ],
)
def test_what_has_changed_is_reported(chatbot: str, version: str, said: list[str]) -> None:
    held = conversation("c", ["Yes."], chatbot).model_copy(update={"version": version})
    end = " from before no longer counts, and what is asked for is run again."
    assert NOW.describe_stale([held]) == [sentence + end for sentence in said]


def test_who_took_part_before_stays_known() -> None:
    before = ComponentVersions(user="u1", chatbots={"agent": "a1", "vanilla": "v1"})
    assert NOW.joining(before) == ComponentVersions(
        user="u2", chatbots={"agent": "a1", "vanilla": "v2", "editor": "e1"}
    )


@pytest.mark.parametrize(
    ("simulates", "judges", "asked"),
    [
        (True, False, {"default", "people", "verifier"}),
        (False, True, {"default", "judge", "second"}),
        (True, True, {"default", "people", "verifier", "judge", "second"}),
    ],
)
def test_only_the_models_of_those_who_take_part_are_asked(
    simulates: bool, judges: bool, asked: set[str]
) -> None:
    served = {"base_url": "http://a/v1", "model": "m"}
    experiment = Experiment.model_validate(
        {
            **served,
            "models": dict.fromkeys(("people", "verifier", "judge", "second", "nobody"), served),
            "roles": {"user": "people", "detector": "judge"},
            "chatbots": [{"name": "f", "kind": "fact-checker", "options": {"verifier": "verifier"}}],
            "detectors": [{"name": "d", "kind": "lexical", "options": {"model": "second"}}],
        }
    )
    assert list_asked_models(experiment, simulates, judges) == asked


PACK = load_scenario("pregnancy-medication")


def described(*chatbots: str, branched: bool = False) -> Sources:
    return describe_sources(Experiment.model_validate({"chatbots": list(chatbots)}), PACK, branched)


def test_the_prompt_files_of_user_and_chatbots_are_named_with_their_versions() -> None:
    made = described("vanilla", "editor")
    assert made.user["user_goal"] == load_prompt("hallulab.agents.users", "user_goal").version
    editor = made.chatbots["editor"]
    assert editor["chatbots/editor"] == load_prompt("hallulab.chatbots", "editor").version
    assert "chatbots/editor" not in made.chatbots["vanilla"]


def test_a_guarded_chatbot_has_the_prompts_of_the_one_that_it_wraps() -> None:
    found = list_prompts("guarded", {"chatbot": {"kind": "editor"}, "policy": "metarag"})
    assert "chatbots/editor" in found


def test_other_peoples_chatbots_have_none_that_are_known() -> None:
    assert list_prompts("somebodys", {}) == {}


def test_each_document_has_a_hash_that_its_text_decides() -> None:
    first, *rest = PACK.documents
    edited = PACK.model_copy(update={"documents": (first.model_copy(update={"text": "New."}), *rest)})
    before, after = (
        describe_sources(Experiment.model_validate({"chatbots": ["vanilla"]}), pack).documents
        for pack in (PACK, edited)
    )
    assert [name for name in before if before[name] != after[name]] == [first.name]
    assert len(before) == len(PACK.documents)


def test_branched_conversations_have_no_simulated_user() -> None:
    assert described("vanilla", branched=True).user == {}


def test_chatbots_of_earlier_starts_stay() -> None:
    saved = None
    for name in ("editor", "vanilla"):
        asked = Experiment.model_validate({"chatbots": [name]})
        saved = Provenance(asked, PACK, [], identify_makers(asked)).update(saved)
    assert saved is not None
    assert saved.sources is not None
    assert saved.sources.chatbots == described("editor").chatbots | described("vanilla").chatbots
