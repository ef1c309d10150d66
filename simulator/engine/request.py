"""What a run is asked for: an experiment with its model and its pack, and what is done with it."""

from __future__ import annotations

from dataclasses import dataclass

from hallulab.chatbots.registry import collect_instructions
from hallulab.scenarios.attacks.attack import AttackRecord, apply_attack
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.simulator.engine.fixed_prefix import REPLIES, Branching
from hallulab.simulator.engine.models import ensure_model
from hallulab.simulator.engine.plan import check_plan
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.importing import load_imported_scenario


@dataclass(frozen=True)
class RunRequest:
    """What is run: an experiment with its model and its pack, and what is done with it."""

    experiment: Experiment
    scenario: Scenario
    """Its pack, with what an attack planted."""
    planted: AttackRecord | None
    """What the attack planted; None without one."""
    branching: Branching | None
    """Where conversations branch off from a finished run; None: they begin at their beginning."""
    simulate: bool
    """False only judges the conversations in the folder."""
    judge: bool
    """False only simulates; the experiment's detectors are saved for later."""
    needs_model: bool = True
    """Whether users or chatbots ask a model; if not, one is served only for detectors that do."""

    @property
    def max_turns(self) -> int:
        """Replies after which a conversation is stopped."""
        return self.experiment.max_turns if self.branching is None else REPLIES


def load_request(
    experiment: Experiment, folder: RunFolder, simulate: bool, judge: bool, branching: Branching | None
) -> RunRequest:
    """Load what an experiment is run with: its pack with the attack, or that of imported chats.

    Raises:
        UsageError: the experiment has a contradiction, or does not fit the folder.
    """
    experiment = ensure_model(experiment)
    chats = None if simulate else load_imported_scenario(folder)
    scenario, planted = load_attacked(experiment) if chats is None else (chats, None)
    if branching is not None:
        branching.require_other(folder)
    elif simulate:
        check_plan(experiment, scenario)
    return RunRequest(experiment, scenario, planted, branching, simulate, judge)


def load_attacked(experiment: Experiment) -> tuple[Scenario, AttackRecord | None]:
    """Load the experiment's scenario, with its attack; and what was planted, None without an attack.

    Raises:
        UsageError: like `load_scenario` and `apply_attack`.
    """
    scenario = load_scenario(experiment.scenario)
    if experiment.attack is None:
        return scenario, None
    scenario, planted = apply_attack(scenario, experiment.attack)
    known = {bot.name: collect_instructions(bot.kind, bot.options) for bot in experiment.chatbots}
    return scenario, planted.model_copy(update={"instructions": known})
