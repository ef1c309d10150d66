"""The provenance of a run: who and what makes and judges its conversations, as `experiment.json` keeps it.

Versions say that something has changed, and then conversations or verdicts are made again; the hashes of
prompt files and documents say which file.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version as installed
from typing import Any

from hallulab.agents.models.abilities import ReadHow
from hallulab.agents.models.model import DEFAULT_MODEL
from hallulab.agents.models.prompt import load_prompt, load_prompt_at
from hallulab.agents.served_model import ClaimCheck, ClaimChecks
from hallulab.agents.users.flaws import USER_PROMPTS
from hallulab.agents.users.pressure import compute_pressure_version
from hallulab.agents.users.user import compute_user_version
from hallulab.agents.versions import compute_code_version
from hallulab.chatbots.guarded.policy import KIND as GUARDED
from hallulab.chatbots.guarded.policy import find_wrapped_chatbot
from hallulab.chatbots.registry import CHATBOTS, compute_chatbot_version
from hallulab.detectors.base.protocol import Detector, describe_judging, describe_method
from hallulab.scenarios.attacks.attack import AttackRecord
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.packs.pack import Scenario
from hallulab.simulator.records.choices import enumerate_seeds, get_model_name
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_json import (
    BranchedFrom,
    ComponentVersions,
    SavedExperiment,
    Sources,
)
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.identity import compute_identity
from hallulab.simulator.records.journals import Journals

_log = logging.getLogger(__name__)

_SHOWN = 12
"""Hexadecimal digits of a version that are shown."""


@dataclass(frozen=True)
class Provenance:
    """Who and what makes and judges the conversations of a run now."""

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
    branched_from: BranchedFrom | None = None
    """The run that conversations branch off from; None: they begin at their beginning."""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """Hashes of the texts that they branch off from."""
    revision: str | None = None
    read_how: Sequence[ReadHow] = ()
    """How the models' answers are read now; earlier entries stay."""

    def update(self, before: SavedExperiment | None, held_seeds: Sequence[int] = ()) -> SavedExperiment:
        """Return the content of `experiment.json` after this run.

        Args:
            before: its content; None: there is none.
            held_seeds: seeds of the conversations in the folder, for a new file if none are made.

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
            update["experiment"] = kept
            identity = compute_identity(self.experiment, self.scenario, self.prefixes)
            update["identity"] = {**before.identity, **identity}
            update["branched_from"] = self.branched_from
            same_user = before.made_by is not None and before.made_by.user == self.made_by.user
            sources = describe_sources(self.experiment, self.scenario, self.branched_from is not None)
            if before.sources is not None:  # chatbots that took part earlier and do not now stay
                known = {**before.sources.chatbots, **sources.chatbots}
                sources = sources.model_copy(update={"chatbots": known})
            update["sources"] = sources
            # Conversations of another user count no more, and so do their seeds.
            earlier = before.seeds if same_user else ()
            update["seeds"] = tuple(sorted({*earlier, *enumerate_seeds(self.experiment, self.scenario)}))
            planted = self.planted
            if planted is not None and before.planted is not None:
                instructions = {**before.planted.instructions, **planted.instructions}
                planted = planted.model_copy(update={"instructions": instructions})
            update["planted"] = planted
            update["made_by"] = self.made_by.joining(before.made_by)
        return before.model_copy(update=update)

    def write(
        self,
        folder: RunFolder,
        journals: Journals | None = None,
        fresh: bool = False,
        copied: Journals | None = None,
    ) -> None:
        """Write experiment.json, or update the existing one; warn of results that no longer count.

        Args:
            journals: all of its journals; None: they are new.
            fresh: nothing stays; the run's files are deleted when everything else is right.
            copied: journals of the run that this one branches off from; None: there is none.

        Raises:
            OperationalError: it cannot be written.
            UsageError: a detector's description of itself is invalid, or experiment.json is damaged.
        """
        before = None if fresh else folder.read_experiment()
        unknown = before is None and self.made_by is None
        seeds = sorted({one.seed for one in folder.read_conversations()}) if unknown else ()
        saved = self.update(before, seeds)
        if before is not None and journals is not None and folder.has_journal:
            if saved.made_by is not None and self.made_by is not None:
                for sentence in saved.made_by.describe_stale(journals.of(before.made_by).heads):
                    _log.warning(sentence)
            for name in (one.name for one in self.detectors):
                if before.detectors.get(name, saved.detectors[name]) != saved.detectors[name]:
                    _log.warning("detector %s has changed: its verdicts are computed again.", name)
        if fresh:
            folder.clear()
        if copied is not None:
            folder.write_free_running(copied)
        folder.write_experiment(saved)


def identify_makers(
    experiment: Experiment,
    models: Mapping[str, str] | None = None,
    parts: Mapping[str, str] | None = None,
    branched: bool = False,
) -> ComponentVersions:
    """Return who makes the experiment's conversations.

    Args:
        models: `hallulab.agents.served_model.identify_models` of its models; None: the names that they are
            served under.
        parts: `hallulab.chatbots.protocol.describe_parts_version` of chatbots by name; None: not known.
        branched: whether they branch off from other conversations, so that no user is simulated.

    Raises:
        UsageError: there is no such chatbot, or an option is unknown or wrong.
    """
    names = {DEFAULT_MODEL: experiment.model or ""}
    names |= {name: model.model for name, model in experiment.models.items()}
    known = {**names, **(models or {})}
    user = [compute_code_version("hallulab.simulator.engine.conversation")]
    if not branched:
        players = [known[name] for name in dict.fromkeys(experiment.user_models)]
        user[:0] = map(compute_user_version, players)
        if experiment.pressure:
            user += map(compute_pressure_version, players)
    chatbots = {}
    for bot in experiment.chatbots:
        asked = {option: known[value] for option, value in _iterate_texts(bot.options) if value in known}
        asked["chatbot"] = known[experiment.roles.get("chatbot", DEFAULT_MODEL)]
        with experiment.placing_errors(bot):
            version = compute_chatbot_version(bot.kind, experiment.options_of(bot), asked)
        chatbots[bot.name] = digest([version, *filter(None, [(parts or {}).get(bot.name)])])[:_SHOWN]
    return ComponentVersions(user=digest(user)[:_SHOWN], chatbots=chatbots)


def _iterate_texts(options: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts among options and the options of their parts: `chatbot.options.verifier`."""
    for name, value in options.items():
        if isinstance(value, str):
            yield f"{within}{name}", value
        elif isinstance(value, Mapping):
            yield from _iterate_texts(value, f"{within}{name}.")


def describe_sources(experiment: Experiment, scenario: Scenario, branched: bool = False) -> Sources:
    """Return what an experiment's conversations are made of.

    Args:
        scenario: its pack, with what an attack put there.
        branched: whether they branch off from other conversations, so that no user is simulated.
    """
    asked = () if branched else USER_PROMPTS
    return Sources(
        user={name: load_prompt("hallulab.agents.users", name).version for name in asked},
        chatbots={bot.name: list_prompts(bot.kind, bot.options) for bot in experiment.chatbots},
        documents={one.name: digest(one.model_dump(mode="json"))[:16] for one in scenario.documents},
    )


def list_prompts(kind: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the prompt files of a chatbot with their versions, those of a wrapped chatbot included."""
    own = CHATBOTS.get(kind)
    if own is None:
        return {}
    wrapped = find_wrapped_chatbot(options) if kind == GUARDED else None
    inner = {} if wrapped is None else list_prompts(wrapped.kind, wrapped.options)
    return {**inner, **{path: load_prompt_at(path).version for path in own.PROMPTS}}
