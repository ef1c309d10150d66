"""From a run folder's journals to its report.json and report.html."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.users.user_flaws import MIN_TURNS, audit
from scenarios.errors import UsageError
from scenarios.packs.pack import Persona
from scenarios.packs.pack_files import load_scenario
from scenarios.transcript import Conversation, Verdict
from simulator.report.document import build_report, report_text
from simulator.report.page import render_page
from simulator.runs.folder import RunFolder, write_together
from simulator.runs.journals import Journals
from simulator.runs.saved_experiment import saved_claim_checks, saved_read_how


def write_reports(folder: RunFolder, journals: Journals | None = None) -> dict[str, Any]:
    """Derive both reports from the folder's journals, write them, and return the report.

    Args:
        folder: the run.
        journals: of the folder, where they were read already.

    Raises:
        UsageError: experiment.json or the journals are wrong, or a report is a link to elsewhere.
        OperationalError: a report cannot be written; the old ones are intact.
    """
    folder.require()
    folder.refuse_links_out((folder.report, folder.page))
    journals = journals or folder.read_journals()
    saved = folder.read_experiment()
    conversations = journals.conversations
    verdicts = current_verdicts(journals.verdicts, saved)
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
        read_how=saved_read_how(folder, saved or {}),
    )
    page = render_page(report, conversations, verdicts, flaws=flaws, personas=personas, experiment=saved)
    write_together({folder.report: report_text(report), folder.page: page})
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
