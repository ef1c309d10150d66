"""`hallulab report` and `view`: derive tables and a page from a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.cli.options import AsJson, RunArgument
from hallulab.simulator.cli.saying import print_json, print_lines

if TYPE_CHECKING:
    from hallulab.scenarios.packs.pack import Scenario
    from hallulab.simulator.report.reporting import CorrectionData
    from hallulab.simulator.runs.folder import RunFolder
    from hallulab.simulator.runs.journals import Journals


def report(
    folder: RunArgument,
    as_json: AsJson = False,
    planted: Annotated[
        Path | None,
        typer.Option(
            help="JSON of `hallulab bench` on planted errors: correct the numbers for the detectors' "
            "mistakes by it."
        ),
    ] = None,
    annotations: Annotated[
        Path | None,
        typer.Option(
            help="What people found in some of the turns (JSON lines, docs/corrected.md): correct the "
            "numbers by it. Default: annotations.jsonl of the run folder, if it is there."
        ),
    ] = None,
) -> None:
    """Derive the tables and the page of a run folder anew from its journals."""
    from hallulab.simulator.report.correcting import read_accuracies
    from hallulab.simulator.report.reporting import CorrectionData
    from hallulab.simulator.runs.folder import RunFolder

    run = RunFolder(folder)
    run.require()
    accuracies = None if planted is None else read_accuracies(planted)
    show_report(run, as_json, run.read_journals(), measured=CorrectionData(accuracies, annotations))


def view(folder: RunArgument) -> None:
    """Derive the page of a run folder anew and open it in the browser."""
    import webbrowser

    from hallulab.simulator.report.reporting import write_reports
    from hallulab.simulator.runs.folder import RunFolder

    run = RunFolder(folder)
    # Anybody may have written an existing page, and a browser would run its scripts.
    write_reports(run)
    print_lines(run.page)
    webbrowser.open(run.page.resolve().as_uri())


def show_report(
    folder: RunFolder,
    as_json: bool,
    journals: Journals,
    scenario: Scenario | None = None,
    measured: CorrectionData | None = None,
) -> None:
    """Write the reports, and print the table or the JSON.

    Raises:
        UsageError: there is nothing to report on.
        OperationalError: every conversation failed.
    """
    from hallulab.simulator.report.reporting import CorrectionData, require_a_reply, write_reports
    from hallulab.simulator.report.terminal import print_report

    if not journals.heads:
        raise UsageError(f"{folder.conversations} is empty: there is nothing to report on yet.")
    made = write_reports(folder, journals, scenario, measured or CorrectionData())
    if as_json:
        print_json(folder.report.read_text(encoding="utf-8"))
    else:
        print_report(made)
        print_lines(f"\nreport: {folder.page}")
    require_a_reply(journals)
