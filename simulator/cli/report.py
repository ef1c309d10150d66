"""Commands that read a run folder: `hallulab report`, `view`, `realism`, `audit` and `export`."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.opening import read_file
from hallulab.simulator.cli.console import print_json, print_lines, print_warnings
from hallulab.simulator.cli.options import AsJson, RunArgument, split_names
from hallulab.simulator.options.groups import ModelOptions

if TYPE_CHECKING:
    from hallulab.scenarios.packs.pack import Scenario
    from hallulab.simulator.records.folder import RunFolder
    from hallulab.simulator.report.export import ExportCounts
    from hallulab.simulator.report.selection import SelectionCounts
    from hallulab.simulator.report.write import CorrectionData


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
    from hallulab.simulator.metrics.known_errors import read_accuracies
    from hallulab.simulator.records.folder import RunFolder
    from hallulab.simulator.report.write import CorrectionData

    run = RunFolder(folder)
    run.require()
    accuracies = None if planted is None else read_accuracies(planted)
    show_report(run, as_json, measured=CorrectionData(accuracies, annotations))


def view(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN…]", help="Run folders, or folders that hold them. By default runs/."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port; by default 8765, or a free one.")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
    experiment: Annotated[
        Path | None,
        typer.Option(help="Experiment file (YAML) whose chatbots you can talk to, and runs start from."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model of the chatbots that you can talk to.")] = None,
    base_url: Annotated[
        str | None,
        typer.Option(help="Endpoint that serves it; without it the model is served here."),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(help="Environment variable with the endpoint's key; by default OPENAI_API_KEY."),
    ] = None,
    annotator: Annotated[
        str, typer.Option(metavar="NAME", help="Who labels turns, unless the page says another name.")
    ] = "",
    guideline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Guideline of the labels. By default that of the run's labels."),
    ] = None,
) -> None:
    """Serve pages over run folders on this machine, also while they grow, until Ctrl-C."""
    import webbrowser

    from hallulab.simulator.viewer.annotating import Labelling
    from hallulab.simulator.viewer.keys import name_annotator
    from hallulab.simulator.viewer.launching import Launcher
    from hallulab.simulator.viewer.offers import load_start_source
    from hallulab.simulator.viewer.runs import ShownRuns
    from hallulab.simulator.viewer.serve import listen, make_server, serve
    from hallulab.simulator.viewer.talks import load_talk_source

    shown = paths or [Path("runs")]
    options = ModelOptions(config=experiment, model=model, base_url=base_url, api_key_env=api_key_env)
    talked, launcher = load_talk_source(options, shown), Launcher(load_start_source(options, shown))
    runs = ShownRuns(shown)
    labelling = Labelling(name_annotator(annotator), guideline)
    listening = listen(port)

    def tell() -> None:
        print_lines(listening.address)
        if browser:
            webbrowser.open(listening.address)

    whole = True
    try:
        whole = serve(make_server(runs, listening, tell, labelling, talked, launcher), listening)
    finally:
        listening.socket.close()
        for stopped in launcher.close():
            print_lines(f"stopped: {stopped.path}. Its page resumes it, and so does the same `hallulab run`.")
    if not whole:  # Python would wait for a thread that hangs
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        os._exit(0)


def show_report(
    folder: RunFolder,
    as_json: bool,
    scenario: Scenario | None = None,
    measured: CorrectionData | None = None,
) -> None:
    """Write the reports, and print the table or the JSON.

    Raises:
        UsageError: there is nothing to report on.
        OperationalError: no conversation was held, or a detector failed on every reply that it judged.
    """
    from hallulab.simulator.metrics.failures import RunFailures, require_success
    from hallulab.simulator.report.document import build_summary
    from hallulab.simulator.report.write import CorrectionData, write_reports
    from hallulab.simulator.show.terminal import print_document

    journals = None if folder.is_in_shards else folder.read_journals()
    if folder.is_empty or (journals is not None and not journals.heads):
        raise UsageError(f"{folder.conversations} is empty: there is nothing to report on yet.")
    made = write_reports(folder, journals, scenario, measured or CorrectionData())
    found = made.of(RunFailures)
    if as_json:
        print_warnings(found)
        print_json(read_file(folder.report).decode())
    else:
        print_document(build_summary(made))
        print_lines(f"\nreport: {folder.page}")
    require_success(found)


def compact(folder: RunArgument) -> None:
    """Write the turns, verdicts and hallucinations of a run as Parquet tables, for analysis elsewhere.

    The journals stay: hallulab reads only these.
    """
    from hallulab.scenarios.text.wording import format_count
    from hallulab.simulator.records.folder import RunFolder
    from hallulab.simulator.report.compact import write_tables

    for path, rows in write_tables(RunFolder(folder)).items():
        print_lines(f"{path}: {format_count(rows, 'row')}")


def realism(
    folder: RunArgument,
    reference: Annotated[
        Path | None,
        typer.Option(
            help="Messages of people: JSON lines with `user_turns`, or a file that `hallulab import` reads; "
            "by default a file of ours (docs/realism.md)."
        ),
    ] = None,
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option(help="HTML file to write, with the distributions.")] = None,
) -> None:
    """Hold the messages of a run's simulated users against people's, with a noise floor."""
    from hallulab.agents.retrieval.embeddings import SentenceEmbedder
    from hallulab.scenarios.files.atomic import write_atomically
    from hallulab.simulator.records.experiment import Experiment
    from hallulab.simulator.records.folder import RunFolder
    from hallulab.simulator.records.outputs import check_outputs
    from hallulab.simulator.report.realism import build_document, measure_realism
    from hallulab.simulator.show.html import render_page
    from hallulab.simulator.show.terminal import print_document

    run = RunFolder(folder)
    check_outputs({"--out": out}, inputs=[reference, *run.files])
    found = measure_realism(run, reference, SentenceEmbedder(Experiment().embedding_model))
    if out is not None:
        write_atomically(out, render_page(build_document(found)))
    if as_json:
        print_json(found.model_dump_json(indent=2) + "\n")
    else:
        print_document(build_document(found))
        if out is not None:
            print_lines(f"\npage: {out}")
    if found.failed is not None:
        raise OperationalError(found.failed)


def audit(folder: RunArgument, as_json: AsJson = False) -> None:
    """Print what guarded chatbots escalated and why; with --json, a line for each guarded reply."""
    from hallulab.chatbots.guarded.marks import DONE
    from hallulab.scenarios.errors import UsageError
    from hallulab.scenarios.text.wording import render_one_line
    from hallulab.simulator.records.folder import RunFolder
    from hallulab.simulator.records.guard_log import iterate_guard_lines

    run = RunFolder(folder)
    run.require()
    lines = list(iterate_guard_lines(run.read_conversations()))
    if not lines:
        raise UsageError(
            f"{folder}: no reply was guarded. Run a chatbot of the kind `guarded` (docs/safeguards.md)."
        )
    if as_json:
        print_json("".join(f"{line.model_dump_json()}\n" for line in lines))
        return
    escalated = [line for line in lines if line.escalated]
    for line in escalated:
        about = f"{line.chatbot}, conversation {line.conversation}, turn {line.turn}"
        print_lines(render_one_line(f"{about}: {DONE[line.action]}: {line.reason}"))
    replies = "reply" if len(lines) == 1 else "replies"
    print_lines(f"{len(lines)} guarded {replies}, {len(escalated)} escalated")


def export(
    folder: RunArgument,
    out: Annotated[Path, typer.Option(help="File to write; of hf and ragtruth, a new folder.")],
    format: Annotated[
        str,
        typer.Option(
            help="bench (replies, for `hallulab bench`), or conversations: openai, sharegpt, hf, parquet, "
            "csv, ragtruth or jsonl."
        ),
    ] = "bench",
    detector: Annotated[
        str | None, typer.Option(help="Take the flags and spans of this detector as annotation.")
    ] = None,
    without: Annotated[
        str | None, typer.Option(help="Leave out passages, steps or spans, separated by commas.")
    ] = None,
    clean_by: Annotated[
        str | None, typer.Option(help="Only conversations of which this detector flags no turn.")
    ] = None,
    audited: Annotated[
        bool, typer.Option("--audited", help="Only those in which the simulated user has no flaw.")
    ] = False,
    min_turns: Annotated[int | None, typer.Option(min=1, help="Only those with as many turns.")] = None,
    keep_duplicates: Annotated[
        bool,
        typer.Option(
            "--keep-duplicates",
            help="Also those that are nearly the same as another, of openai, sharegpt and hf; the other "
            "formats have all.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the conversations of a run in a format of other tools, or its replies for `bench`.

    For `bench` a detector annotates them. Without `--detector` they have no label, for annotators to add;
    `bench` leaves such lines out.
    """
    from hallulab.simulator.records.folder import RunFolder
    from hallulab.simulator.report.export import ExportCounts, export_run
    from hallulab.simulator.report.selection import ExportSelection

    run = RunFolder(folder)
    run.require()
    wanted = ExportSelection(
        detector=detector,
        without=frozenset(split_names(without) or ()),
        clean_by=clean_by,
        audited=audited,
        min_turns=min_turns or 1,
        keep_duplicates=keep_duplicates,
    )
    exported = export_run(run, format, wanted, out)
    if as_json:
        print_json(json.dumps(dataclasses.asdict(exported), indent=2) + "\n")
    if isinstance(exported, ExportCounts):
        _tell_replies(exported, detector, out, as_json)
    elif not as_json:
        _tell_conversations(exported, out)


def _tell_conversations(exported: SelectionCounts, out: Path) -> None:
    from hallulab.scenarios.text.wording import choose_noun, format_count

    print_lines(f"{format_count(exported.written, 'conversation')} written to {out}")
    for count, why in (
        (exported.too_short, "too few turns"),
        (exported.not_clean, "flagged, or not scored in every turn"),
        (exported.flawed, "the simulated user has a flaw"),
        (exported.near_duplicates, "nearly the same as an earlier one (--keep-duplicates keeps them)"),
    ):
        if count:
            print_lines(f"{count} left out: {why}")
    if exported.not_judged:
        replies = f"{exported.not_judged} {choose_noun(exported.not_judged, 'reply', 'replies')}"
        print_lines(f"{replies} without spans: not every detector scored them and said where")


def _tell_replies(exported: ExportCounts, detector: str | None, out: Path, as_json: bool) -> None:
    from hallulab.scenarios.text.wording import choose_noun

    if not as_json:
        print_lines(
            f"{exported.written} {choose_noun(exported.written, 'reply', 'replies')} written to {out}"
        )
        if exported.without_evidence:
            print_lines(f"{exported.without_evidence} left out: no evidence, or an empty reply")
        if exported.not_scored:
            print_lines(
                f"{exported.not_scored} left out: {detector} failed, abstained, or did not judge them"
            )
    if detector is None:
        print_lines(
            "no line has a label: fill in `label` or `spans` before `hallulab bench` reads them, or give "
            "--detector",
            err=True,
        )


COMMANDS = {
    "report": report,
    "view": view,
    "realism": realism,
    "audit": audit,
    "export": export,
    "compact": compact,
}
