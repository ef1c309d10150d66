"""Make report.json, report.csv, report.html and the metrics' CSV files from a run folder's journals."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hallulab.scenarios.datasets.annotations import read_annotated_turns
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.atomic import write_together
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.metrics.annotations import Annotations, compare_annotators, count_annotations
from hallulab.simulator.metrics.corrections import UNKNOWN, UNMEASURED
from hallulab.simulator.metrics.hallucinations import ByDetector, index_by_detector
from hallulab.simulator.metrics.known_errors import Accuracy, derive_from_planted_errors, require_measured
from hallulab.simulator.metrics.metric import Flaws, RunFacts
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journal_files import LARGEST
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.records.run_files import SHARDS
from hallulab.simulator.report.build import RunCounts, is_mergeable, load_metrics
from hallulab.simulator.report.document import build_page, render_report_page
from hallulab.simulator.report.facts import (
    build_facts,
    build_flaw_finder,
    derive_detector_errors,
    get_personas,
    index_second_verdicts,
    load_pack,
    order_names,
)
from hallulab.simulator.report.first_screen import Address
from hallulab.simulator.report.page_files import MOST, Reader
from hallulab.simulator.report.reader import Cases, get_case
from hallulab.simulator.report.scores import read_lane_scores
from hallulab.simulator.report.shards import choose_cases, count_shards
from hallulab.simulator.show.columns import Column, format_csv
from hallulab.simulator.show.document import ShownDocument
from hallulab.simulator.statistics.sequence import MARGIN


@dataclass(frozen=True)
class CorrectionData:
    """Data that a run's numbers are corrected by."""

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
    margin: float = MARGIN,
) -> RunReport:
    """Make the reports from the folder's journals, write them, and return the report.

    Journals in shards are counted shard by shard, unless they were read already.

    Args:
        journals: those of the folder, if they were read already.
        scenario: the run's pack, if it was read already.
        margin: difference in HPT-1 that the number of personas needed is planned for.

    Raises:
        UsageError: experiment.json, the journals or annotations are wrong, a report is a link to elsewhere,
            or the accuracies are of other detectors.
        OperationalError: a report cannot be written; the old ones are intact.
    """
    folder.require()
    folder.refuse_links_out((*folder.derived, folder.pages))
    run = _RunReporter(folder, scenario, measured, margin)
    if journals is None and folder.is_in_shards and is_mergeable():
        with folder.new_pages() as pages:
            return run.write_of_shards(pages)
    journals = (journals or folder.read_journals()).current(run.saved)
    if len(journals.heads) > MOST:
        with folder.new_pages() as pages:
            return run.write(journals, pages)
    report = run.write(journals, None)
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
    run = _RunReporter(folder)
    return run.count(journals.current(run.saved), lambda conversation, verdicts, flaws: None).report()


def view_run(folder: RunFolder, address: Address) -> ShownDocument:
    """Return the page of a folder's report without its conversations. Nothing is written.

    Raises:
        UsageError: experiment.json or the journals are wrong.
    """
    run = _RunReporter(folder)
    journals = folder.read_journals().current(run.saved)
    counts = run.count(journals, lambda conversation, verdicts, flaws: None)
    return build_page(counts.report(), counts, run.saved.text() if run.saved else None, address)


def render_run(folder: RunFolder, journals: Journals) -> str:
    """Return the page of a folder with those journals, in one file. Nothing is written.

    Raises:
        UsageError: it has more than `MOST` conversations, which takes page files; experiment.json is wrong,
            or the journals contradict each other.
    """
    run = _RunReporter(folder)
    journals = journals.current(run.saved)
    if len(journals.heads) > MOST:
        raise UsageError(
            f"{folder.path} has more than {MOST} conversations, which do not fit one page. "
            f"Write it with several: hallulab report {shlex.quote(str(folder.path))}"
        )
    return run.render(journals)


class _RunReporter:
    """Makes reports of a run folder.

    Args:
        scenario: the run's pack, if it was read already.
        measured: what the numbers are corrected by.
        margin: difference in HPT-1 that personas are planned for.

    Raises:
        UsageError: experiment.json is wrong.
    """

    def __init__(
        self,
        folder: RunFolder,
        scenario: Scenario | None = None,
        measured: CorrectionData = NOTHING_MEASURED,
        margin: float = MARGIN,
    ) -> None:
        self._folder, self._measured, self._margin = folder, measured, margin
        self.saved = folder.read_experiment()
        """Its experiment.json; None: it has none."""
        self._experiment = self.saved.text() if self.saved else None
        self._is_branched = self.saved is not None and self.saved.branched_from is not None
        self._pack = load_pack(self.saved, scenario)
        self._personas = get_personas(self.saved, self._pack)

    def write(self, journals: Journals, pages: Path | None) -> RunReport:
        """Write the reports in one pass over the journals; without `pages`, the page has all."""
        shown = None if len(journals.heads) <= LARGEST else choose_cases(journals.heads)
        chatbots, detectors = self._name(journals)
        reader = self._open_reader(chatbots, detectors, pages)

        def show(conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
            if shown is None or get_case(conversation)[:3] in shown:
                reader.add(conversation, verdicts, flaws)

        counts = self.count(journals, show)
        return self._write(counts, reader)

    def render(self, journals: Journals) -> str:
        """Return the page with all conversations."""
        reader = self._open_reader(*self._name(journals), None)
        counts = self.count(journals, reader.add)
        return render_report_page(counts.report(), counts, reader.cases, experiment=self._experiment)

    def write_of_shards(self, pages: Path) -> RunReport:
        """Write the reports, made shard by shard, and page files into a folder."""
        annotations = self._count_annotations(self._iterate_conversations)
        run = count_shards(self._folder.path, *self._list_named(), annotations, self._pack)
        counts = RunCounts(self._build_facts(run.chatbots, run.detectors, run.judged, annotations))
        counts.merge(run.counts)
        reader = self._open_reader(run.chatbots, run.detectors, pages)
        flaws_of = build_flaw_finder(self.saved, self._personas)
        for conversation, found in run.shown.judged():
            reader.add(conversation, index_by_detector(found), flaws_of(conversation))
        return self._write(counts, reader)

    def count(self, journals: Journals, also: Callable[[Conversation, ByDetector, Flaws], None]) -> RunCounts:
        """Count the run in one pass over its journals; `also` is given each conversation as it passes."""
        chatbots, detectors = self._name(journals)
        judged = {(key.detector, key.version) for key in journals.keys}
        annotations = self._count_annotations(lambda: journals.conversations)
        facts = self._build_facts(chatbots, detectors, judged, annotations)
        counts = RunCounts(replace(facts, again=index_second_verdicts(self._folder, journals)))
        flaws_of = build_flaw_finder(self.saved, self._personas)
        for conversation, found in journals.judged():
            flaws = flaws_of(conversation)
            verdicts = index_by_detector(found)
            counts.add(conversation, verdicts, flaws)
            also(conversation, verdicts, flaws)
        return counts

    def _list_named(self) -> tuple[Sequence[str], Sequence[str]]:
        """Return the names of the chatbots and detectors in experiment.json."""
        saved = self.saved
        return ([bot.name for bot in saved.experiment.chatbots], [*saved.detectors]) if saved else ([], [])

    def _name(self, journals: Journals) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of the chatbots and detectors."""
        named, judges = self._list_named()
        return (
            order_names(named, (head.chatbot for head in journals.heads)),
            order_names(judges, (key.detector for key in journals.keys)),
        )

    def _build_facts(
        self,
        chatbots: Sequence[str],
        detectors: Sequence[str],
        judged: Collection[tuple[str, str]],
        annotations: Annotations,
    ) -> RunFacts:
        """Return the facts that the metrics need, of detectors that judged in these versions."""
        saved, known = self.saved, self._measured.accuracies
        if known is not None:
            require_measured(known, judged)
        return replace(
            build_facts(saved, chatbots, detectors, annotations, self._personas, self._pack),
            mistakes=derive_detector_errors(judged)
            if known is None
            else {name: derive_from_planted_errors(one) for name, one in known.items()},
            why_unknown=UNKNOWN if known is None else UNMEASURED,
            free=self._folder.read_free_running().current(saved) if self._is_branched else None,
            margin=self._margin,
        )

    def _count_annotations(self, conversations: Callable[[], Iterable[Conversation]]) -> Annotations:
        """Count what annotators found in the turns that they looked at; nothing without a file."""
        given = self._measured.annotations
        path = given or self._folder.annotations
        if given is None and not path.exists():
            return Annotations()
        found = read_annotated_turns(path, conversations(), self._folder.find_held)
        pairs = tuple(compare_annotators(found.turns))
        return replace(count_annotations(found.turns), pairs=pairs, left_out=found.left_out)

    def _iterate_conversations(self) -> Iterator[Conversation]:
        """Yield the conversations of all shards, one shard after the other."""
        for number in range(SHARDS):
            yield from self._folder.read_shard(number).conversations

    def _open_reader(self, chatbots: Sequence[str], detectors: Sequence[str], pages: Path | None) -> Reader:
        saved = self.saved
        planted = saved.planted if saved else None
        scores = read_lane_scores([saved] if saved else [], detectors)

        def cases() -> Cases:
            return Cases(chatbots, detectors, self._personas, planted, scores)

        return Reader(cases, pages, branched=self._is_branched)

    def _write(self, counts: RunCounts, reader: Reader) -> RunReport:
        folder, report = self._folder, counts.report()
        reader.end()
        shown = reader.cases if reader.has_no_files else None
        texts = {
            folder.report: report.text(),
            folder.table: render_report_csv(report),
            folder.page: render_report_page(report, counts, shown, reader.pages, self._experiment),
        }
        for metric in load_metrics():
            table = metric.csv(report)
            if table is not None:
                texts[folder.path / table.file] = format_csv(table.columns, table.rows)
        folder.refuse_links_out(texts)
        write_together(texts)
        return report
