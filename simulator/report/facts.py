"""Facts of a run that metrics need before they count it, and the finder of the simulated user's flaws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from hallulab.agents.served_model import ClaimChecks
from hallulab.agents.users.flaws import MIN_TURNS, find_conversation_flaws
from hallulab.detectors.base.thresholds import find_fitted_by_version
from hallulab.scenarios.attacks.attack import apply_attack, remove_user_orders
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.goals import GoalLabel
from hallulab.scenarios.packs.pack import Persona, Scenario
from hallulab.scenarios.packs.pack_files import load_scenario, load_without_documents
from hallulab.scenarios.text.chunking import cut_into_passages
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.metrics.annotations import Annotations
from hallulab.simulator.metrics.known_errors import derive_from_calibration
from hallulab.simulator.metrics.metric import Flaws, RunFacts
from hallulab.simulator.records.choices import compute_scenario_version
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_json import SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journal_lines import VerdictKey
from hallulab.simulator.records.journals import Journals, read_second_verdicts
from hallulab.simulator.statistics.prevalence import DetectorErrors


def build_facts(
    saved: SavedExperiment | None,
    chatbots: Sequence[str],
    detectors: Sequence[str],
    annotations: Annotations,
    personas: Mapping[str, Persona],
    scenario: Scenario | None = None,
) -> RunFacts:
    """Return what is known of a run before its conversations are read.

    Args:
        saved: its experiment.json; None: there is none.
        personas: the pack's personas, by identifier.
        scenario: the pack as it was searched; None: it is not here.
    """
    if saved is None:
        return RunFacts(chatbots, detectors, annotations=annotations)
    imported = saved.lacks_simulated_user
    documents = () if scenario is None or imported else scenario.documents
    passages = tuple(passage for document in documents for passage in cut_into_passages(document))
    return RunFacts(
        chatbots,
        detectors,
        annotations=annotations,
        imported=imported,
        planted=saved.planted,
        personas=None if imported else personas,
        labels={} if imported else collect_labels(personas.values()),
        claim_checks=saved.claim_checks or ClaimChecks(),
        methods=saved.methods,
        prices=saved.experiment.prices,
        language=saved.identity.get("language"),
        read_how=saved.read_how or (),
        endpoints=saved.endpoints or (),
        branched_from=saved.branched_from,
        deciding=saved if saved.experiment.until_decided is not None and saved.drawn is not None else None,
        passages=passages or None,
        planned=0 if scenario is None else count_planned(saved.experiment, scenario),
    )


def collect_labels(personas: Iterable[Persona]) -> dict[tuple[str, str], GoalLabel]:
    """Return the labels of goals that have one, by persona and goal."""
    return {
        (persona.id, goal): label
        for persona in personas
        for goal, label in zip(persona.goals, persona.labels, strict=False)
        if label is not None
    }


def count_planned(experiment: Experiment, scenario: Scenario) -> int:
    """Return the number of conversations that an experiment plans."""
    users = len(scenario.personas) if experiment.personas is None else len(experiment.personas)
    users = min(users, experiment.limit or users) * experiment.repeats
    return (experiment.count or users) * len(experiment.chatbots)


def index_second_verdicts(folder: RunFolder, journals: Journals) -> dict[VerdictKey, Verdict]:
    """Return the second verdicts of a run by the key of the first ones.

    Raises:
        UsageError: their journal is damaged.
    """
    second = read_second_verdicts(folder.again, journals)
    return dict(zip(second.keys, second.verdicts, strict=True))


def derive_detector_errors(judged: Iterable[tuple[str, str]]) -> dict[str, DetectorErrors]:
    """Return the error rates that calibrations measured of the detectors that judged in a single version."""
    versions: dict[str, set[str]] = {}
    for detector, version in judged:
        versions.setdefault(detector, set()).add(version)
    found = {
        detector: find_fitted_by_version(detector, *own)
        for detector, own in versions.items()
        if len(own) == 1
    }
    return {
        detector: derive_from_calibration(fitted) for detector, fitted in found.items() if fitted is not None
    }


def order_names(named: Sequence[str], found: Iterable[str]) -> tuple[str, ...]:
    """Return names in the experiment's order, then others by name."""
    return tuple(dict.fromkeys([*named, *sorted(set(found))]))


def build_flaw_finder(
    saved: SavedExperiment | None, personas: Mapping[str, Persona]
) -> Callable[[Conversation], Flaws]:
    """Return what finds the simulated user's flaws in a conversation; there are none without one."""
    if saved is not None and saved.lacks_simulated_user:
        return lambda conversation: ()
    orders = saved.planted.orders if saved is not None and saved.planted is not None else ()
    least = MIN_TURNS if saved is None else saved.experiment.min_turns
    return lambda conversation: find_conversation_flaws(
        remove_user_orders(conversation, orders), personas.get(conversation.persona), min_turns=least
    )


def load_pack(saved: SavedExperiment | None, scenario: Scenario | None) -> Scenario | None:
    """Return a run's pack, with what an attack planted; None if it is not here, or another one now."""
    if scenario is not None or saved is None or saved.imported is not None:
        return scenario
    try:
        scenario = load_scenario(saved.experiment.scenario)
        if saved.experiment.attack is not None:
            scenario, _ = apply_attack(scenario, saved.experiment.attack)
    except UsageError:
        return None
    searched = saved.identity.get("scenario")
    now = f"{scenario.name} {compute_scenario_version(scenario)}"
    return scenario if searched in (None, now) else None


def get_personas(saved: SavedExperiment | None, scenario: Scenario | None) -> dict[str, Persona]:
    """Return the pack's personas by identifier; none if the run's pack is not here."""
    if saved is None:
        return {}
    try:
        scenario = scenario or load_without_documents(saved.experiment.scenario)
    except UsageError:
        return {}
    return {persona.id: persona for persona in scenario.personas}
