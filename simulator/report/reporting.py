"""From a run folder's journals to its report.json and report.html."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.users.user_flaws import MIN_TURNS, Flaw, audit
from scenarios.errors import OperationalError, UsageError
from scenarios.packs.pack import Persona, Scenario
from scenarios.packs.pack_files import load_scenario
from scenarios.text.wording import in_brief
from scenarios.transcript import Conversation, Verdict
from simulator.report.document import build_report, report_text
from simulator.report.page import render_page
from simulator.runs.folder import RunFolder, write_together
from simulator.runs.journals import Journals, current_verdicts
from simulator.runs.saved_experiment import saved_claim_checks, saved_read_how


@dataclass(frozen=True)
class _Derived:
    """What is derived from a run folder: the report, and what its page shows beside it."""

    report: dict[str, Any]
    verdicts: list[Verdict]
    flaws: dict[str, tuple[Flaw, ...]]
    personas: dict[str, Persona]
    experiment: dict[str, Any] | None


def write_reports(
    folder: RunFolder, journals: Journals | None = None, scenario: Scenario | None = None
) -> dict[str, Any]:
    """Derive both reports from the folder's journals, write them, and return the report.

    Args:
        folder: the run.
        journals: of the folder, where they were read already.
        scenario: the run's pack, where it was read already.

    Raises:
        UsageError: experiment.json or the journals are wrong, or a report is a link to elsewhere.
        OperationalError: a report cannot be written; the old ones are intact.
    """
    folder.require()
    folder.refuse_links_out((folder.report, folder.page))
    journals = journals or folder.read_journals()
    derived = _derive(folder, journals, scenario)
    page = render_page(
        derived.report,
        journals.conversations,
        derived.verdicts,
        flaws=derived.flaws,
        personas=derived.personas,
        experiment=derived.experiment,
    )
    write_together({folder.report: report_text(derived.report), folder.page: page})
    return derived.report


def report_of(folder: RunFolder, journals: Journals) -> dict[str, Any]:
    """The report of a folder with those journals; nothing is written.

    Raises:
        UsageError: experiment.json is wrong, or the journals contradict each other.
    """
    return _derive(folder, journals).report


def require_a_reply(journals: Journals) -> None:
    """Raise OperationalError where every conversation failed before its first reply."""
    failed = [conversation for conversation in journals.conversations if not conversation.turns]
    if failed and len(failed) == len(journals.conversations):
        error = in_brief(failed[0].error or "")
        raise OperationalError(f"no conversation got as far as a reply. The first error: {error}")


def _derive(folder: RunFolder, journals: Journals, scenario: Scenario | None = None) -> _Derived:
    saved = folder.read_experiment()
    conversations = journals.conversations
    verdicts = current_verdicts(journals.verdicts, saved)
    personas = _personas(saved, scenario)
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
    return _Derived(report, verdicts, flaws, personas, saved)


def _chatbots(saved: dict[str, Any] | None, conversations: Sequence[Conversation]) -> list[str]:
    """Names in the experiment's order, then others by name."""
    named = [bot["name"] for bot in saved["experiment"]["chatbots"]] if saved else []
    return list(dict.fromkeys([*named, *sorted({item.chatbot for item in conversations})]))


def _detectors(saved: dict[str, Any] | None, verdicts: Sequence[Verdict]) -> list[str]:
    named = list(saved["detectors"]) if saved else []
    return list(dict.fromkeys([*named, *sorted({item.detector for item in verdicts})]))


def _personas(saved: dict[str, Any] | None, scenario: Scenario | None) -> dict[str, Persona]:
    """The pack's personas by identifier; none when the run was made with a pack that is not here."""
    if saved is None:
        return {}
    try:
        scenario = scenario or load_scenario(saved["experiment"]["scenario"])
    except UsageError:
        return {}
    return {persona.id: persona for persona in scenario.personas}
