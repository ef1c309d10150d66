"""What metrics are told of a run before they count it, and who finds the simulated user's flaws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from hallulab.agents.served_model import ClaimChecks
from hallulab.agents.users.flaws import MIN_TURNS, find_conversation_flaws
from hallulab.detectors.base.thresholds import find_fitted_by_version
from hallulab.scenarios.attacks.attack import remove_user_orders
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack import Persona, Scenario
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.measure.annotations import Annotations
from hallulab.simulator.measure.prevalence import DetectorErrors, derive_from_calibration
from hallulab.simulator.report.metrics.metric import Flaws, RunFacts
from hallulab.simulator.runs.experiment_json import SavedExperiment


def build_facts(
    saved: SavedExperiment | None,
    chatbots: Sequence[str],
    detectors: Sequence[str],
    annotations: Annotations,
    personas: Mapping[str, Persona],
) -> RunFacts:
    """Return what is known of a run before its conversations are read."""
    if saved is None:
        return RunFacts(chatbots, detectors, annotations=annotations)
    imported = saved.imported is not None
    return RunFacts(
        chatbots,
        detectors,
        annotations=annotations,
        imported=imported,
        planted=saved.planted,
        personas=None if imported else personas,
        claim_checks=saved.claim_checks or ClaimChecks(),
        read_how=saved.read_how or (),
        endpoints=saved.endpoints or (),
        branched_from=saved.branched_from,
    )


def derive_detector_errors(judged: Iterable[tuple[str, str]]) -> dict[str, DetectorErrors]:
    """Return what calibrations tell of the detectors that judged, each in a single version.

    Args:
        judged: names and versions.
    """
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
    """Return what finds the simulated user's flaws in a conversation; in an imported one there are none."""
    if saved is not None and saved.imported is not None:
        return lambda conversation: ()
    orders = saved.planted.orders if saved is not None and saved.planted is not None else ()
    least = MIN_TURNS if saved is None else saved.experiment.min_turns
    return lambda conversation: find_conversation_flaws(
        remove_user_orders(conversation, orders), personas.get(conversation.persona), min_turns=least
    )


def get_personas(saved: SavedExperiment | None, scenario: Scenario | None) -> dict[str, Persona]:
    """Return the pack's personas by identifier; none if the run's pack is not here."""
    if saved is None:
        return {}
    try:
        scenario = scenario or load_scenario(saved.experiment.scenario)
    except UsageError:
        return {}
    return {persona.id: persona for persona in scenario.personas}
