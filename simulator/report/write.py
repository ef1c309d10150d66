"""Make report.json, report.csv and report.html from a run folder's journals.

`report.html`: a file that needs no network and trusts no text.
A template that escapes everything renders tables and charts. Conversations are embedded as JSON, and the
page's script puts them into the document as text nodes. A content security policy allows only this script and
this style sheet, by hash. Markup that came through anyway could not run or load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hallulab.agents.users.flaws import MIN_TURNS, find_conversation_flaws
from hallulab.detectors.base.thresholds import find_fitted_by_version
from hallulab.scenarios.attacks.attack import remove_user_orders
from hallulab.scenarios.datasets.gold import read_annotated_turns
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.atomic import write_together
from hallulab.scenarios.packs.pack import Persona, Scenario
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.text.wording import shorten_line
from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator.measure.attacks import AttackRow
from hallulab.simulator.measure.conversations import TurnFlaw
from hallulab.simulator.measure.fixed_prefix import FixedPrefix, compare_side_by_side
from hallulab.simulator.measure.hallucinations import ByDetector, index_by_detector
from hallulab.simulator.measure.prevalence import (
    Accuracy,
    DetectorErrors,
    derive_from_calibration,
    derive_from_planted_errors,
)
from hallulab.simulator.report import html as charts
from hallulab.simulator.report import tables
from hallulab.simulator.report.columns import Column, format_csv, mark
from hallulab.simulator.report.correct import UNKNOWN, UNMEASURED, describe_corrections, require_measured
from hallulab.simulator.report.document import RunCounts, RunReport, build_report
from hallulab.simulator.report.findings import (
    describe_fixed_prefix,
    describe_planning,
    explain_intervals,
    render_headlines,
)
from hallulab.simulator.report.html import build_chart, escape_json, load_asset, render
from hallulab.simulator.report.reader import MOST, Cases, PageFile, Reader
from hallulab.simulator.report.tables import ATTACKS, CONCENTRATION, CORRECTED, FIXED_PREFIX, RESULTS
from hallulab.simulator.report.terminal import describe_models, describe_omissions
from hallulab.simulator.runs.experiment_json import SavedExperiment
from hallulab.simulator.runs.folder import PAGES, RunFolder
from hallulab.simulator.runs.journals import Journals, VerdictKey

_PACKAGE = "hallulab.simulator.report"


def render_page(
    report: RunReport,
    counts: RunCounts,
    cases: Cases | None,
    pages: Sequence[PageFile] = (),
    experiment: str | None = None,
) -> str:
    """Return the page as HTML.

    Args:
        report: the result of `build_report` on the same counts.
        counts: the run, counted.
        cases: the conversations of the run; None: they are in page files.
        pages: these files.
        experiment: the text of experiment.json, shown as it is; None: not shown.
    """
    chatbots, detectors = report.chatbots, report.detectors
    fixed = report.fixed_prefix
    sound = report.simulator_audit.rows_without_affected
    both = [{"all": row, "without": other} for row, other in zip(report.rows, sound, strict=True)]
    drawn = [
        build_chart(report.rows, "hpt_1", "Hallucinations per turn (HPT-1), lower is better", 1, "", None),
        build_chart(report.rows, "tokacc_1", "Token accuracy (TokAcc-1), higher is better", 100, "%", 100),
    ]
    return render(
        _PACKAGE,
        "page.html",
        load_asset(_PACKAGE, "page.css"),
        None if cases is None else load_asset(_PACKAGE, "page.js"),
        report=report,
        tables=tables,
        results=[report.by(detector) for detector in detectors],
        concentration=[[row for row in report.concentration if row.detector == name] for name in detectors],
        corrected=[[row for row in report.corrected if row.detector == name] for name in detectors],
        by_depth=[[row for row in report.corrected_by_depth if row.detector == name] for name in detectors],
        correction_lines=describe_corrections(report.corrected),
        pairs={detector: _join_comparisons(report, detector) for detector in detectors},
        attacks=_group_by_chatbot(report),
        audited=[[pair for pair in both if pair["all"].detector == detector] for detector in detectors],
        chatbots=chatbots,
        detectors=detectors,
        scenarios=sorted(counts.scenarios),
        models=sorted(counts.models),
        personas=len(counts.personas),
        conversations=counts.conversations,
        turns=counts.turns,
        beside=[[row for row in fixed.rows if row.detector == name] for name in detectors] if fixed else [],
        remaining={
            name: [line for line in fixed.comparisons if line.detector == name] if fixed else []
            for name in detectors
        },
        fixed_prefix_lines=describe_fixed_prefix(report),
        headlines=render_headlines(report),
        interval_lines=explain_intervals(report),
        planning_lines=describe_planning(report),
        notes=describe_omissions(report),
        model_lines=describe_models(report),
        mark=mark,
        charts=drawn,
        geometry=charts,
        experiment=experiment,
        branched=fixed is not None,
        data=None if cases is None else escape_json(cases.data()),
        pages=pages,
        pages_folder=PAGES,
    )


def _join_comparisons(report: RunReport, detector: str) -> list[dict[str, Any]]:
    """Join the comparisons of both metrics for every two chatbots under a detector."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for line in report.comparisons:
        if line.detector == detector:
            found.setdefault((line.a, line.b), {"a": line.a, "b": line.b})[line.metric] = line
    return list(found.values())


def _group_by_chatbot(report: RunReport) -> list[list[AttackRow]]:
    """Return the rows of the attack in groups, one a chatbot."""
    rows = report.attacks or ()
    return [[row for row in rows if row.chatbot == name] for name in report.chatbots] if rows else []


@dataclass(frozen=True)
class CorrectionData:
    """What a run's numbers are corrected by."""

    accuracies: Mapping[str, Accuracy] | None = None
    """The detectors on planted errors, by name; None: they were not given."""
    annotations: Path | None = None
    """File of people's annotations; None: that of the folder, if it has one."""


NOTHING_MEASURED = CorrectionData()


def write_reports(
    folder: RunFolder,
    journals: Journals | None = None,
    scenario: Scenario | None = None,
    measured: CorrectionData = NOTHING_MEASURED,
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
    folder.refuse_links_out((*folder.derived, folder.pages))
    run = _ReportBuilder(folder, journals or folder.read_journals(), scenario, measured)
    if len(run.journals.heads) > MOST:
        with folder.new_pages() as pages:
            return run.write(pages)
    report = run.write(None)
    folder.clear_pages()
    return report


def render_report_csv(report: RunReport) -> str:
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
    return format_csv(columns, rows)


def report_of(folder: RunFolder, journals: Journals) -> RunReport:
    """Return the report of a folder with those journals. Nothing is written.

    Raises:
        UsageError: experiment.json is wrong, or the journals contradict each other.
    """
    return _ReportBuilder(folder, journals).report(lambda conversation, verdicts, flaws: None)


def require_a_reply(journals: Journals) -> None:
    """Raise OperationalError if every conversation failed before its first reply."""
    if journals.heads and not any(head.turns for head in journals.heads):
        error = shorten_line(journals.conversations[0].error or "")
        raise OperationalError(f"no conversation got as far as a reply. The first error: {error}")


class _ReportBuilder:
    """A run folder, to derive reports from.

    Args:
        folder: the run.
        journals: those of the folder.
        scenario: the run's pack, if it was read already.
        measured: what the numbers are corrected by.

    Raises:
        UsageError: experiment.json or annotations are wrong, or the accuracies are of other detectors.
    """

    def __init__(
        self,
        folder: RunFolder,
        journals: Journals,
        scenario: Scenario | None = None,
        measured: CorrectionData = NOTHING_MEASURED,
    ) -> None:
        self._folder = folder
        self._accuracies = measured.accuracies
        self._saved = saved = folder.read_experiment()
        self.journals = journals.current(saved)
        self._personas = get_personas(saved, scenario)
        self._planted = saved.planted if saved else None
        named = [bot.name for bot in saved.experiment.chatbots] if saved else []
        self._chatbots = _order_names(named, (head.chatbot for head in self.journals.heads))
        judges = list(saved.detectors) if saved else []
        self._detectors = _order_names(judges, (key.detector for key in self.journals.keys))
        if measured.accuracies is not None:
            require_measured(measured.accuracies, self.journals.keys)
        annotations = _count_annotations(folder, self.journals.conversations, measured.annotations)
        self._counts = RunCounts(self._chatbots, self._detectors, self._planted, annotations)

    def write(self, pages: Path | None) -> RunReport:
        """Write the reports.

        Args:
            pages: folder for page files; None: all conversations are in the page.
        """
        saved, folder = self._saved, self._folder

        def cases() -> Cases:
            return Cases(self._chatbots, self._detectors, self._personas, self._planted)

        reader = Reader(cases, pages, branched=saved is not None and saved.branched_from is not None)
        report = self.report(reader.add)
        reader.end()
        experiment = saved.text() if saved else None
        shown = reader.cases if pages is None else None
        texts = {
            folder.report: report.text(),
            folder.table: render_report_csv(report),
            folder.page: render_page(report, self._counts, shown, reader.pages, experiment),
            folder.concentration: format_csv(CONCENTRATION, report.concentration),
        }
        if report.attacks is not None:
            texts[folder.attacks] = format_csv(ATTACKS, report.attacks)
        write_together(texts)
        return report

    def report(self, also: Callable[[Conversation, ByDetector, Sequence[TurnFlaw]], None]) -> RunReport:
        """Return the report, made in one pass over the journals.

        Args:
            also: is given each conversation as it passes, its verdicts, and the simulated user's flaws.
        """
        saved, known = self._saved, self._accuracies
        imported = saved is not None and saved.imported is not None
        flaws_of = build_flaw_finder(saved, self._personas)
        for conversation, found in self.journals.judged():
            flaws = flaws_of(conversation)
            verdicts = index_by_detector(found)
            self._counts.add(conversation, verdicts, flaws)
            also(conversation, verdicts, flaws)
        return build_report(
            self._counts,
            personas=self._personas if saved and not imported else None,
            claim_checks=saved.claim_checks if saved else None,
            read_how=saved.read_how if saved else (),
            endpoints=saved.endpoints if saved else (),
            fixed_prefix=self._fixed_prefix(),
            mistakes=_derive_detector_errors(self.journals.keys) if known is None else _derive_planted(known),
            why_unknown=UNKNOWN if known is None else UNMEASURED,
            imported=imported,
        )

    def _fixed_prefix(self) -> FixedPrefix | None:
        saved = self._saved
        if saved is None or saved.branched_from is None:
            return None
        free = self._folder.read_free_running().current(saved)
        return compare_side_by_side(saved.branched_from, free, self.journals, self._chatbots, self._detectors)


def _derive_planted(accuracies: Mapping[str, Accuracy]) -> dict[str, DetectorErrors]:
    return {name: derive_from_planted_errors(one) for name, one in accuracies.items()}


def _derive_detector_errors(verdicts: Iterable[VerdictKey]) -> dict[str, DetectorErrors]:
    """Return what calibrations tell of the detectors that judged, each in a single version."""
    versions: dict[str, set[str]] = {}
    for verdict in verdicts:
        versions.setdefault(verdict.detector, set()).add(verdict.version)
    found = {
        detector: find_fitted_by_version(detector, *judged)
        for detector, judged in versions.items()
        if len(judged) == 1
    }
    return {
        detector: derive_from_calibration(fitted) for detector, fitted in found.items() if fitted is not None
    }


def _count_annotations(
    folder: RunFolder, conversations: Sequence[Conversation], given: Path | None
) -> dict[tuple[str, int], int]:
    """Count what people found in the turns that they looked at; empty without a file."""
    path = given or folder.annotations
    if given is None and not path.is_file():
        return {}
    return {place: len(spans) for place, spans in read_annotated_turns(path, conversations).items()}


def _order_names(named: Sequence[str], found: Iterable[str]) -> list[str]:
    """Return names in the experiment's order, then others by name."""
    return list(dict.fromkeys([*named, *sorted(set(found))]))


def build_flaw_finder(
    saved: SavedExperiment | None, personas: Mapping[str, Persona]
) -> Callable[[Conversation], Sequence[TurnFlaw]]:
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
