"""Make report.json, report.csv and report.html from a run folder's journals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.users.user_flaws import MIN_TURNS, Flaw, conversation_flaws
from detectors.base.fitted import fitted_version
from scenarios.attacks.attacked import Planted
from scenarios.attacks.orders import without_user_orders
from scenarios.datasets.gold import annotated_turns
from scenarios.errors import OperationalError, UsageError
from scenarios.packs.pack import Persona, Scenario
from scenarios.packs.pack_files import load_scenario
from scenarios.text.wording import in_brief
from scenarios.transcript import Conversation, Frozen, Verdict
from simulator.measure.prevalence import Accuracy, Known, by_calibration, by_planted_errors
from simulator.report.columns import Column, csv_text
from simulator.report.correcting import UNKNOWN, UNMEASURED, require_measured
from simulator.report.document import RunReport, build_report
from simulator.report.page import render_page
from simulator.report.tables import ATTACKS, CORRECTED, FIXED_PREFIX, RESULTS
from simulator.runs.experiment_json import SavedExperiment
from simulator.runs.folder import RunFolder, write_together
from simulator.runs.journals import Journals, current_verdicts


@dataclass(frozen=True)
class _Derived:
    """The report of a run folder, and what its page shows besides."""

    report: RunReport
    verdicts: list[Verdict]
    flaws: dict[str, tuple[Flaw, ...]]
    personas: dict[str, Persona]
    experiment: str | None
    planted: Planted | None


@dataclass(frozen=True)
class Measured:
    """What a run's numbers are corrected by."""

    accuracies: Mapping[str, Accuracy] | None = None
    """The detectors on planted errors, by name; None: they were not given."""
    annotations: Path | None = None
    """File of people's annotations; None: that of the folder, if it has one."""


NOTHING_MEASURED = Measured()


def write_reports(
    folder: RunFolder,
    journals: Journals | None = None,
    scenario: Scenario | None = None,
    measured: Measured = NOTHING_MEASURED,
) -> RunReport:
    """Make the reports from the folder's journals, write them, and return the report.

    Args:
        folder: the run.
        journals: those of the folder, if they were read already.
        scenario: the run's pack, if it was read already.
        measured: what the numbers are corrected by.

    Raises:
        UsageError: experiment.json, the journals or annotations are wrong, a report is a link to elsewhere,
            or the accuracies are of other detectors.
        OperationalError: a report cannot be written; the old ones are intact.
    """
    folder.require()
    folder.refuse_links_out(folder.derived)
    journals = journals or folder.read_journals()
    derived = _derive(folder, journals, scenario, measured)
    page = render_page(
        derived.report,
        journals.conversations,
        derived.verdicts,
        flaws=derived.flaws,
        personas=derived.personas,
        experiment=derived.experiment,
        planted=derived.planted,
    )
    report = derived.report
    texts = {
        folder.report: report.text(),
        folder.table: csv_of(report),
        folder.page: page,
    }
    if report.attacks is not None:
        texts[folder.attacks] = csv_text(ATTACKS, report.attacks)
    write_together(texts)
    return report


def csv_of(report: RunReport) -> str:
    """Return the text of `report.csv`; free-running and corrected numbers stand beside those of the rows."""
    columns, rows = list(RESULTS), [dict(row) for row in report.rows]
    corrected = {(row.chatbot, row.detector): row for row in report.corrected}
    free = report.fixed_prefix.rows if report.fixed_prefix is not None else ()
    more: tuple[tuple[Sequence[Column], Sequence[Frozen]], ...] = (
        (FIXED_PREFIX, free),
        (
            CORRECTED,
            [corrected[row.chatbot, row.detector] for row in report.rows] if report.is_corrected else (),
        ),
    )
    for table, beside in more:
        if beside:
            columns += [column for column in table if column.value not in {known.value for known in columns}]
            rows = [{**dict(other), **row} for row, other in zip(rows, beside, strict=True)]
    return csv_text(columns, rows)


def report_of(folder: RunFolder, journals: Journals) -> RunReport:
    """Return the report of a folder with those journals. Nothing is written.

    Raises:
        UsageError: experiment.json is wrong, or the journals contradict each other.
    """
    return _derive(folder, journals).report


def require_a_reply(journals: Journals) -> None:
    """Raise OperationalError if every conversation failed before its first reply."""
    failed = [conversation for conversation in journals.conversations if not conversation.turns]
    if failed and len(failed) == len(journals.conversations):
        error = in_brief(failed[0].error or "")
        raise OperationalError(f"no conversation got as far as a reply. The first error: {error}")


def _derive(
    folder: RunFolder,
    journals: Journals,
    scenario: Scenario | None = None,
    measured: Measured = NOTHING_MEASURED,
) -> _Derived:
    saved = folder.read_experiment()
    conversations = journals.conversations
    verdicts = current_verdicts(journals.verdicts, saved)
    accuracies = measured.accuracies
    if accuracies is not None:
        require_measured(accuracies, verdicts)
    personas = _personas(saved, scenario)
    min_turns = saved.experiment.min_turns if saved else MIN_TURNS
    planted = saved.planted if saved else None
    orders = planted.orders if planted else ()
    flaws = {
        conversation.id: conversation_flaws(
            without_user_orders(conversation, orders),
            personas.get(conversation.persona),
            min_turns=min_turns,
        )
        for conversation in conversations
    }
    report = build_report(
        conversations,
        verdicts,
        chatbots=_chatbots(saved, conversations),
        detectors=_detectors(saved, verdicts),
        flaws=flaws,
        personas=personas if saved else None,
        claim_checks=saved.claim_checks if saved else None,
        read_how=saved.read_how if saved else (),
        planted=planted,
        branched_from=saved.branched_from if saved else None,
        free=_free_running(folder, saved),
        mistakes=_mistakes(verdicts) if accuracies is None else _planted(accuracies),
        annotations=_annotations(folder, conversations, measured.annotations),
        why_unknown=UNKNOWN if accuracies is None else UNMEASURED,
    )
    return _Derived(report, verdicts, flaws, personas, saved.text() if saved else None, planted)


def _planted(accuracies: Mapping[str, Accuracy]) -> dict[str, Known]:
    return {name: by_planted_errors(one) for name, one in accuracies.items()}


def _mistakes(verdicts: Sequence[Verdict]) -> dict[str, Known]:
    """Return what calibrations tell of the detectors that judged, each in a single version."""
    versions: dict[str, set[str]] = {}
    for verdict in verdicts:
        versions.setdefault(verdict.detector, set()).add(verdict.version)
    found = {
        detector: fitted_version(detector, *judged)
        for detector, judged in versions.items()
        if len(judged) == 1
    }
    return {detector: by_calibration(fitted) for detector, fitted in found.items() if fitted is not None}


def _annotations(
    folder: RunFolder, conversations: Sequence[Conversation], given: Path | None
) -> dict[tuple[str, int], int]:
    """Count what people found in the turns that they looked at; empty without a file."""
    path = given or folder.annotations
    if given is None and not path.is_file():
        return {}
    return {place: len(spans) for place, spans in annotated_turns(path, conversations).items()}


def _free_running(folder: RunFolder, saved: SavedExperiment | None) -> Journals | None:
    """Return the run that conversations branch off from, without verdicts of other versions of detectors."""
    if saved is None or saved.branched_from is None:
        return None
    journals = folder.read_free_running()
    return Journals(journals.conversations, current_verdicts(journals.verdicts, saved))


def _chatbots(saved: SavedExperiment | None, conversations: Sequence[Conversation]) -> list[str]:
    """Return names in the experiment's order, then others by name."""
    named = [bot.name for bot in saved.experiment.chatbots] if saved else []
    return list(dict.fromkeys([*named, *sorted({item.chatbot for item in conversations})]))


def _detectors(saved: SavedExperiment | None, verdicts: Sequence[Verdict]) -> list[str]:
    named = list(saved.detectors) if saved else []
    return list(dict.fromkeys([*named, *sorted({item.detector for item in verdicts})]))


def _personas(saved: SavedExperiment | None, scenario: Scenario | None) -> dict[str, Persona]:
    """Return the pack's personas by identifier; none if the run's pack is not here."""
    if saved is None:
        return {}
    try:
        scenario = scenario or load_scenario(saved.experiment.scenario)
    except UsageError:
        return {}
    return {persona.id: persona for persona in scenario.personas}
