"""The values of a run that must not change while its folder grows: `identity` in `experiment.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hallulab.agents.models.prompt import load_prompt
from hallulab.chatbots.registry import read_chatbot_options
from hallulab.scenarios.attacks.attack import hash_attack
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.packs.pack import Scenario
from hallulab.simulator.records.choices import (
    choose_language,
    compute_scenario_version,
    get_model_name,
    select_personas,
)
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder


def require_same_experiment(
    folder: RunFolder, experiment: Experiment, scenario: Scenario, prefixes: Mapping[str, str] | None = None
) -> None:
    """Raise UsageError if the folder holds another experiment, or another edition of a persona or history.

    Args:
        folder: the run, which need not exist.
        prefixes: hashes of the texts that conversations branch off from; None: they begin at their beginning.
    """
    saved = folder.read_experiment()
    if saved is None:
        return
    if (saved.branched_from is None) != (prefixes is None):
        held = "conversations that branch off" if prefixes is None else "conversations from their beginning"
        raise UsageError(
            f"{folder.path} holds {held}, and the two are not mixed. "
            "Use --fresh to start it over, or another --out."
        )
    identity = compute_identity(experiment, scenario, prefixes or {})
    before = {"attack": None, **saved.identity}  # older folders do not name it, and had none
    differing = sorted(name for name in identity.keys() & before.keys() if identity[name] != before[name])
    if differing:
        raise UsageError(
            f"{folder.path} holds another experiment (it differs in {', '.join(differing)}). "
            "Use --fresh to start it over, or another --out."
        )


def compute_identity(
    experiment: Experiment, scenario: Scenario, prefixes: Mapping[str, str]
) -> dict[str, Any]:
    """Return what must not change while a run folder grows; it may get personas, chatbots and detectors.

    Code and prompts are not in it: if they change, their results are made again (`Provenance.write`).
    """
    language = choose_language(experiment, scenario)
    # The names are words of the sentence that says what differs (`require_same_experiment`).
    return {
        "scenario": f"{scenario.name} {compute_scenario_version(scenario)}",
        "user model": ", ".join(map(experiment.served_name, experiment.user_models)),
        "chatbot model": get_model_name(experiment, "chatbot"),
        "min_turns": experiment.min_turns,
        "max_turns": experiment.max_turns,
        "top_k": experiment.top_k,
        "embedding_model": experiment.embedding_model,
        "reply_tokens": experiment.reply_tokens,
        "attack": hash_attack(experiment.attack),
        # Only where they are given: folders from before there were manners and languages stay the same run.
        **({"manners": ", ".join(experiment.manners)} if experiment.manners else {}),
        **({"language": language} if language else {}),
        **({"pressure": ", ".join(experiment.pressure)} if experiment.pressure else {}),
        **{
            f"options of chatbot {bot.name}": digest([bot.kind, read_chatbot_options(bot.kind, bot.options)])[
                :16
            ]
            for bot in experiment.chatbots
        },
        "the prompt for JSON": load_prompt("hallulab.agents", "json_answer").version,
        **{
            f"persona {persona.id}": digest(persona.described())[:16]
            for persona in select_personas(experiment, scenario)
        },
        **prefixes,
    }
