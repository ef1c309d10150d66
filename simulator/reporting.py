"""From a run folder's journals to its report.json and report.html."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.audit import MIN_TURNS, audit
from scenarios.errors import UsageError
from scenarios.pack import Persona
from scenarios.pack_files import load_scenario
from scenarios.transcript import Conversation, Verdict
from simulator.report.document import build_report, write_report
from simulator.report.page import render_page, write_page
from simulator.run_folder import RunFolder
from simulator.saved_experiment import saved_claim_checks


def write_reports(folder: RunFolder) -> dict[str, Any]:
    """Derive both reports from the journals, write them, and return the report."""
    folder.require()
    saved = folder.read_experiment()
    conversations = folder.read_conversations()
    verdicts = current_verdicts(folder.read_verdicts(), saved)
    personas = _personas(saved)
    min_turns = saved["experiment"].get("min_turns", MIN_TURNS) if saved else MIN_TURNS
    flaws = {
        conversation.id: audit(conversation, personas.get(conversation.persona), min_turns=min_turns)
        for conversation in conversations
    }
    report = build_report(
        conversations,
        verdicts,
        chatbots=_chatbots(saved, conversations),
        detectors=_detectors(saved, verdicts),
        flaws=flaws,
        personas=personas if saved else None,
        claim_checks=saved_claim_checks(folder, saved or {}),
    )
    write_report(report, folder.report)
    page = render_page(report, conversations, verdicts, flaws=flaws, personas=personas, experiment=saved)
    write_page(page, folder.page)
    return report


def current_verdicts(verdicts: Sequence[Verdict], saved: dict[str, Any] | None) -> list[Verdict]:
    """Without verdicts of an older configuration of a detector; all of them where no experiment is saved."""
    if saved is None:
        return list(verdicts)
    versions: dict[str, str] = saved["detectors"]
    return [verdict for verdict in verdicts if versions.get(verdict.detector) == verdict.version]


def _chatbots(saved: dict[str, Any] | None, conversations: Sequence[Conversation]) -> list[str]:
    """Names in the experiment's order, then others by name."""
    named = [bot["name"] for bot in saved["experiment"]["chatbots"]] if saved else []
    return list(dict.fromkeys([*named, *sorted({item.chatbot for item in conversations})]))


def _detectors(saved: dict[str, Any] | None, verdicts: Sequence[Verdict]) -> list[str]:
    named = list(saved["detectors"]) if saved else []
    return list(dict.fromkeys([*named, *sorted({item.detector for item in verdicts})]))


def _personas(saved: dict[str, Any] | None) -> dict[str, Persona]:
    """The pack's personas by identifier; none when the run was made with a pack that is not here."""
    if saved is None:
        return {}
    try:
        return {persona.id: persona for persona in load_scenario(saved["experiment"]["scenario"]).personas}
    except UsageError:
        return {}
