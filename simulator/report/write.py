"""Make report.json, report.csv, report.html and the metrics' CSV files from a run folder's journals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hallulab.agents.served_model import ClaimChecks
from hallulab.agents.users.flaws import MIN_TURNS, find_conversation_flaws
from hallulab.detectors.base.thresholds import find_fitted_by_version
from hallulab.scenarios.attacks.attack import remove_user_orders
from hallulab.scenarios.datasets.gold import read_annotated_turns
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.atomic import write_together
from hallulab.scenarios.packs.pack import Persona, Scenario
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.text.wording import shorten_line
from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.measure.corrections import UNKNOWN, UNMEASURED
from hallulab.simulator.measure.hallucinations import ByDetector, index_by_detector
from hallulab.simulator.measure.prediction_powered import Annotations
from hallulab.simulator.measure.prevalence import (
    Accuracy,
    DetectorErrors,
    derive_from_calibration,
    derive_from_planted_errors,
    require_measured,
)
from hallulab.simulator.report.build import RunCounts
from hallulab.simulator.report.columns import Column, format_csv
from hallulab.simulator.report.document import RunReport
from hallulab.simulator.report.extensions import load_metrics
from hallulab.simulator.report.metrics.metric import Flaws, RunFacts
from hallulab.simulator.report.page import render_page
from hallulab.simulator.report.reader import MOST, Cases, Reader
from hallulab.simulator.runs.experiment_json import SavedExperiment
from hallulab.simulator.runs.folder import RunFolder
from hallulab.simulator.runs.journals import Journals, VerdictKey


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
    """Return the text of `report.csv`: the rows, and beside them the columns of other metrics."""
    columns: list[Column] = []
    rows: list[dict[str, Any]] = [{} for _ in report.rows]
    for metric in load_metrics():
        table = metric.beside(report)
        if table is not None:
            known = {column.value for column in columns}
            columns += [column for column in table.columns if column.value not in known]
            rows = [{**dict(row), **known_fields} for known_fields, row in zip(rows, table.rows, strict=True)]
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
        self._counts = RunCounts(self._collect_facts(annotations))

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
        }
        for metric in load_metrics():
            table = metric.csv(report)
            if table is not None:
                texts[folder.path / table.file] = format_csv(table.columns, table.rows)
        folder.refuse_links_out(texts)
        write_together(texts)
        return report

    def report(self, also: Callable[[Conversation, ByDetector, Flaws], None]) -> RunReport:
        """Return the report, made in one pass over the journals.

        Args:
            also: is given each conversation as it passes, its verdicts, and the simulated user's flaws.
        """
        flaws_of = build_flaw_finder(self._saved, self._personas)
        for conversation, found in self.journals.judged():
            flaws = flaws_of(conversation)
            verdicts = index_by_detector(found)
            self._counts.add(conversation, verdicts, flaws)
            also(conversation, verdicts, flaws)
        return self._counts.report()

    def _collect_facts(self, annotations: Annotations) -> RunFacts:
        """Return what the metrics are told of the run."""
        saved, known = self._saved, self._accuracies
        facts = RunFacts(
            self._chatbots,
            self._detectors,
            annotations=annotations,
            mistakes=_derive_detector_errors(self.journals.keys) if known is None else _derive_planted(known),
            why_unknown=UNKNOWN if known is None else UNMEASURED,
        )
        if saved is None:
            return facts
        imported, branched_from = saved.imported is not None, saved.branched_from
        return replace(
            facts,
            imported=imported,
            planted=saved.planted,
            personas=None if imported else self._personas,
            claim_checks=saved.claim_checks or ClaimChecks(),
            read_how=saved.read_how or (),
            endpoints=saved.endpoints or (),
            branched_from=branched_from,
            free=None if branched_from is None else self._folder.read_free_running().current(saved),
        )


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
