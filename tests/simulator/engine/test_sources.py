from __future__ import annotations

from hallulab.agents.models.prompt import load_prompt
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_json import Sources
from hallulab.simulator.records.provenance import Provenance, describe_sources, identify_makers, list_prompts

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
