"""From a run folder's journals to its report.json and report.html."""

from __future__ import annotations

from typing import Any

from agents.audit import audit
from scenarios.errors import UsageError
from scenarios.pack import Persona
from scenarios.pack_files import load_scenario
from scenarios.transcript import Verdict
from simulator.report.build import build_report
from simulator.report.page import render_page
from simulator.report.render import report_json
from simulator.run_folder import RunFolder, write_atomically


def write_reports(folder: RunFolder) -> dict[str, Any]:
    """Derive both reports from the journals, write them, and return the report."""
    folder.require()
    experiment = folder.read_experiment() or {}
    conversations = folder.read_conversations()
    verdicts = current_verdicts(folder.read_verdicts(), experiment.get("detectors"))
    personas = _personas(experiment)
    flaws = {
        conversation.id: audit(conversation, personas.get(conversation.persona))
        for conversation in conversations
    }
    report = build_report(conversations, verdicts, experiment, flaws)
    write_atomically(folder.report, report_json(report))
    write_atomically(folder.page, render_page(report, conversations, verdicts, experiment, flaws))
    return report


def current_verdicts(verdicts: list[Verdict], versions: dict[str, str] | None) -> list[Verdict]:
    """Without verdicts of an older configuration of a detector; all of them where no versions are known."""
    if versions is None:
        return verdicts
    return [verdict for verdict in verdicts if versions.get(verdict.detector) == verdict.version]


def _personas(experiment: dict[str, Any]) -> dict[str, Persona]:
    """The pack's personas by identifier; none when the run was made with a pack that is not here."""
    name = experiment.get("experiment", {}).get("scenario")
    if name is None:
        return {}
    try:
        return {persona.id: persona for persona in load_scenario(name).personas}
    except UsageError:
        return {}
