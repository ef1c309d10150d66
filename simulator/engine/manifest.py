"""The manifest of a run: what experiment.json says, compared with what is asked for now, and updated."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version as installed
from typing import Any

from pydantic import ValidationError

from hallulab.agents.models.abilities import ReadHow
from hallulab.agents.models.prompt import load_prompt
from hallulab.agents.models.replicas import Answered
from hallulab.agents.served_model import ClaimCheck, ClaimChecks
from hallulab.chatbots.registry import read_chatbot_options
from hallulab.detectors.base.protocol import Detector, describe_judging, describe_method
from hallulab.scenarios.attacks.attack import AttackRecord, hash_attack
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.packs.pack_files import list_built_in_packs, load_scenario
from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.engine.fixed_prefix import Branching
from hallulab.simulator.engine.plan import (
    choose_language,
    compute_scenario_version,
    enumerate_seeds,
    get_model_name,
    select_personas,
)
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.experiment_json import SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.records.makers import ComponentVersions, describe_made_anew
from hallulab.simulator.records.sources import describe_sources

_log = logging.getLogger(__name__)


def load_experiment_to_judge(folder: RunFolder, scenario: str | None) -> dict[str, Any]:
    """Return the fields of the experiment that made a folder's conversations.

    They come from its experiment.json. Without that file, scenario, chatbots and seed come from the journal,
    and the other fields are left out.

    Args:
        scenario: the pack of the conversations, for a folder without experiment.json. None: a built-in one.

    Raises:
        UsageError: experiment.json is damaged, or is missing and the journal does not say enough.
    """
    saved = folder.read_experiment()
    if saved is not None:
        return saved.experiment.model_dump(mode="json", exclude_unset=True)
    conversations = folder.read_conversations()
    if not conversations:
        raise UsageError(f"{folder.conversations} is empty: there is nothing to judge yet.")
    names = sorted({conversation.chatbot for conversation in conversations})
    return {
        "scenario": _determine_scenario(folder, conversations, scenario),
        "chatbots": [_build_chatbot(folder, name).model_dump(exclude_unset=True) for name in names],
        "seed": min(conversation.seed for conversation in conversations),
    }


def _determine_scenario(folder: RunFolder, conversations: Sequence[Conversation], given: str | None) -> str:
    names = sorted({conversation.scenario for conversation in conversations})
    if len(names) > 1:
        raise UsageError(
            f"{folder.conversations}: its conversations are about several scenarios ({', '.join(names)}). "
            "Put those of each into a folder of its own."
        )
    about = f"{folder.conversations}: its conversations are about scenario {names[0]!r}"
    if given is not None:
        found = load_scenario(given).name
        if found != names[0]:
            raise UsageError(f"{about}, not {found!r} as -c says.")
        return given
    if names[0] not in list_built_in_packs():
        raise UsageError(
            f"{about}, which is no built-in pack. Restore the folder's experiment.json, or give a file with "
            "`scenario: PATH` by -c."
        )
    return names[0]


def _build_chatbot(folder: RunFolder, name: str) -> Component:
    """Make a component for a chatbot that is known by name only."""
    try:
        return Component(name=name, kind=name)
    except ValidationError as error:
        raise UsageError(
            f"{folder.conversations}: a chatbot is called {name!r}. Rename it: letters, digits, `.`, `_` and "
            "`-` make a name."
        ) from error


def check_folder(
    experiment: Experiment, scenario: Scenario, folder: RunFolder, branching: Branching | None = None
) -> None:
    """Raise UsageError if the folder holds another experiment, or another edition of a persona or history."""
    saved = folder.read_experiment()
    if saved is None:
        return
    if (saved.branched_from is None) != (branching is None):
        held = "conversations from their beginning" if branching else "conversations that branch off"
        raise UsageError(
            f"{folder.path} holds {held}, and the two are not mixed. "
            "Use --fresh to start it over, or another --out."
        )
    identity = build_experiment_identity(experiment, scenario, branching)
    before = {"attack": None, **saved.identity}  # older folders do not name it, and had none
    differing = sorted(name for name in identity.keys() & before.keys() if identity[name] != before[name])
    if differing:
        raise UsageError(
            f"{folder.path} holds another experiment (it differs in {', '.join(differing)}). "
            "Use --fresh to start it over, or another --out."
        )


@dataclass(frozen=True)
class Manifest:
    """What `experiment.json` says of a run."""

    experiment: Experiment
    scenario: Scenario
    detectors: Sequence[Detector]
    """Those that judge now; their versions are kept."""
    made_by: ComponentVersions | None = None
    """Who makes conversations; None: nobody does. Then what the file says of them stays, and a new file gets
    only the fields of the experiment that were set."""
    verifying: Mapping[str, ClaimCheck | None] = field(default_factory=dict)
    """Name of a chatbot → how it verifies its claims; the other chatbots' entries stay."""
    planted: AttackRecord | None = None
    """What the attack put into the scenario; None without one."""
    branching: Branching | None = None
    """The run that they branch off from; its journals are copied. None: there is none."""
    revision: str | None = None
    """Revision of the served model; None: not known."""
    read_how: Sequence[ReadHow] = ()
    """How the models' answers are read now; earlier entries stay."""

    def update(self, before: SavedExperiment | None, held_seeds: Sequence[int] = ()) -> SavedExperiment:
        """Return the file's content after this run.

        Args:
            before: its content; None: there is none.
            held_seeds: those of the conversations that are there, for a new file if none are made.

        Raises:
            UsageError: a detector's description of itself is invalid.
        """
        kept = self.experiment
        if self.made_by is not None:
            kept = Experiment.model_validate(self.experiment.model_dump())  # every field counts as set
        seeds = held_seeds if before is None else before.seeds
        before = before or SavedExperiment(experiment=kept, identity={}, detectors={})
        model, checks = get_model_name(self.experiment, "detector"), before.claim_checks
        judges = {one.name: describe_judging(one, model) for one in self.detectors}
        update: dict[str, Any] = {
            "hallulab": installed("hallulab"),
            "packages": {name: installed(name) for name in ("autogen-agentchat", "httpx2", "pydantic")},
            "model_revision": self.revision or before.model_revision,
            "detectors": {**before.detectors, **{one.name: one.version for one in self.detectors}},
            "methods": {**before.methods, **{one.name: describe_method(one) for one in self.detectors}},
            "claim_checks": ClaimChecks(
                chatbots={**checks.chatbots, **self.verifying}, detectors={**checks.detectors, **judges}
            ),
            "read_how": tuple(dict.fromkeys((*before.read_how, *self.read_how))),
            "seeds": tuple(seeds),
        }
        if self.made_by is not None:
            identity = build_experiment_identity(self.experiment, self.scenario, self.branching)
            update["experiment"] = kept
            update["identity"] = {**before.identity, **identity}
            update["branched_from"] = self.branching and self.branching.saved()
            same_user = before.made_by is not None and before.made_by.user == self.made_by.user
            held = before.seeds if same_user else ()  # conversations of another user count no more
            update["seeds"] = tuple(sorted({*held, *enumerate_seeds(self.experiment, self.scenario)}))
            update["made_by"] = self.made_by.joining(before.made_by)
            sources = describe_sources(self.experiment, self.scenario, self.branching is not None)
            update["sources"] = sources.joining(before.sources)
            update["planted"] = _merge_attacks(self.planted, before.planted)
        return before.model_copy(update=update)


def write_manifest(folder: RunFolder, manifest: Manifest, fresh: bool = False) -> None:
    """Write experiment.json, or update the existing one.

    Args:
        folder: the run.
        manifest: what is written.
        fresh: nothing stays; the run's files are deleted when everything else is right.

    Raises:
        OperationalError: it cannot be written.
        UsageError: a detector's description of itself is invalid, or experiment.json is damaged.
    """
    before = None if fresh else folder.read_experiment()
    unknown = before is None and manifest.made_by is None
    seeds = sorted({one.seed for one in folder.read_conversations()}) if unknown else ()
    saved = manifest.update(before, seeds)
    if fresh:
        folder.clear()
    if manifest.branching is not None:
        folder.write_free_running(manifest.branching.free)
    folder.write_experiment(saved)


def add_answers(folder: RunFolder, done: Sequence[Answered], read_how: Sequence[ReadHow] = ()) -> None:
    """Add what endpoints did just now, and how models were read, to what experiment.json says of them.

    Raises:
        OperationalError: it cannot be written.
        UsageError: it is damaged.
    """
    saved = folder.read_experiment() if done or read_how else None
    if saved is None:
        return
    how = tuple(dict.fromkeys((*saved.read_how, *read_how)))
    if not done and how == saved.read_how:
        return
    known = {one.base_url: one for one in saved.endpoints}
    for one in done:
        before = known.get(one.base_url, Answered(base_url=one.base_url))
        counts = {"answered": before.answered + one.answered, "failed": before.failed + one.failed}
        known[one.base_url] = before.model_copy(update=counts)
    update = {"endpoints": tuple(known.values()), "read_how": how}
    folder.write_experiment(saved.model_copy(update=update))


def _merge_attacks(planted: AttackRecord | None, before: AttackRecord | None) -> AttackRecord | None:
    """Return what was planted, with the instructions of chatbots that took part earlier and do not now."""
    if planted is None or before is None:
        return planted
    return planted.model_copy(update={"instructions": {**before.instructions, **planted.instructions}})


def warn_of_made_anew(
    folder: RunFolder,
    journals: Journals,
    detectors: Sequence[Detector],
    made_by: ComponentVersions | None = None,
) -> None:
    """Warn of results that no longer count, because a user, chatbot or detector has changed.

    Call this before `write_manifest`.

    Args:
        folder: the run.
        journals: all of its journals.
        detectors: those that judge now.
        made_by: who makes conversations now; None: nobody does.

    Raises:
        UsageError: the folder is damaged.
    """
    saved = folder.read_experiment()
    if saved is None or not folder.has_journal:
        return
    if made_by is not None:
        earlier = folder.read_makers()
        for sentence in describe_made_anew(journals.of(earlier).heads, made_by.joining(earlier)):
            _log.warning(sentence)
    for detector in detectors:
        before = saved.detectors.get(detector.name)
        if before is not None and before != detector.version:
            _log.warning("detector %s has changed: its verdicts are made anew.", detector.name)


def build_experiment_identity(
    experiment: Experiment, scenario: Scenario, branching: Branching | None = None
) -> dict[str, Any]:
    """Return what must not change while a run folder grows; it may get personas, chatbots and detectors.

    Code and prompts are not in it: if they change, their results are made again (`warn_of_made_anew`).
    """
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
        **({"manners": ", ".join(experiment.manners)} if experiment.manners else {}),
        **({"language": language} if (language := choose_language(experiment, scenario)) else {}),
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
        **(branching.prefixes.identity() if branching else {}),
    }
