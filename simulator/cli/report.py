"""Commands that read run folders: report, compare, gate, view, realism."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from hallulab.scenarios.errors import NotComparable, OperationalError, UsageError
from hallulab.scenarios.files.opening import read_file
from hallulab.simulator.cli.console import print_json, print_lines, print_warnings
from hallulab.simulator.cli.options import AsJson, RunArgument, expand_options
from hallulab.simulator.options.commands import GateOptions
from hallulab.simulator.options.groups import ModelOptions
from hallulab.simulator.records.run_files import require_run

if TYPE_CHECKING:
    from hallulab.scenarios.packs.pack import Scenario
    from hallulab.simulator.records.folder import RunFolder
    from hallulab.simulator.report.write import CorrectionData


LEAST_MARGIN, LARGEST_MARGIN = 0.001, 10.0
"""Differences in HPT that personas can be planned for: below, they are more than anybody counts."""


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
            help="Labels that people gave to some of the turns (JSON lines, docs/corrected.md): correct the "
            "numbers by it. Default: annotations.jsonl of the run folder, if it is there."
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            help="Difference in HPT for which the number of personas needed is planned; by default 0.2."
        ),
    ] = None,
    guards: Annotated[
        bool,
        typer.Option("--guards", help="Only print which replies guarded chatbots did not answer, and why."),
    ] = False,
) -> None:
    """Recompute the tables and the page of a run folder from its journals."""
    require_run(folder)  # before what reads one is imported, which takes a second
    from hallulab.simulator.metrics.known_errors import read_accuracies
    from hallulab.simulator.records.folder import RunFolder
    from hallulab.simulator.report.write import CorrectionData

    run = RunFolder(folder)
    if guards:
        if (planted, annotations, margin) != (None, None, None):
            raise UsageError("--guards prints no numbers. Leave out --planted, --annotations and --margin.")
        _print_guards(run, as_json)
        return
    if margin is not None and not LEAST_MARGIN <= margin <= LARGEST_MARGIN:
        raise UsageError(
            f"--margin {margin:g}: give a difference in HPT from {LEAST_MARGIN:g} to {LARGEST_MARGIN:g}."
        )
    accuracies = None if planted is None else read_accuracies(planted)
    show_report(run, as_json, measured=CorrectionData(accuracies, annotations), margin=margin)


def show_report(
    folder: RunFolder,
    as_json: bool,
    scenario: Scenario | None = None,
    measured: CorrectionData | None = None,
    margin: float | None = None,
    quiet: bool = False,
) -> None:
    """Write the reports, and print the table or the JSON.

    Raises:
        UsageError: there is nothing to report on.
        OperationalError: no conversation succeeded, or a detector failed on every reply that it judged.
    """
    from hallulab.agents.progress import showing
    from hallulab.simulator.metrics.failures import RunFailures, require_success
    from hallulab.simulator.report.document import build_summary
    from hallulab.simulator.report.write import CorrectionData, write_reports
    from hallulab.simulator.show.terminal import print_document
    from hallulab.simulator.statistics.sequence import MARGIN

    with showing("writing the report", quiet):
        journals = None if folder.is_in_shards else folder.read_journals()
        if folder.is_empty or (journals is not None and not journals.heads):
            raise UsageError(f"{folder.conversations} is empty: there is nothing to report on yet.")
        made = write_reports(folder, journals, scenario, measured or CorrectionData(), margin or MARGIN)
    found = made.of(RunFailures)
    if as_json:
        print_warnings(found)
        print_json(read_file(folder.report).decode())
    else:
        print_document(build_summary(made))
        print_lines(f"\nreport: {folder.page}")
    require_success(found)


def _print_guards(run: RunFolder, as_json: bool) -> None:
    from hallulab.chatbots.guarded.marks import DONE
    from hallulab.scenarios.text.wording import choose_noun, render_one_line
    from hallulab.simulator.records.guard_log import iterate_guard_lines

    lines = list(iterate_guard_lines(run.read_conversations()))
    if not lines:
        raise UsageError(
            f"{run.path}: no reply was guarded. Run a chatbot of the kind `guarded` (docs/safeguards.md)."
        )
    if as_json:
        print_json("".join(f"{line.model_dump_json()}\n" for line in lines))
        return
    escalated = [line for line in lines if line.escalated]
    for line in escalated:
        where = f"{line.chatbot}, conversation {line.conversation}, turn {line.turn}"
        print_lines(render_one_line(f"{where}: {DONE[line.action]}: {line.reason}"))
    guarded = f"{len(lines)} guarded {choose_noun(len(lines), 'reply', 'replies')}"
    print_lines(f"{guarded}, {len(escalated)} escalated")


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="A [B…]", help="Run folders, or baseline files (`--save`). A is the reference."
        ),
    ],
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Compare nothing, and save what the run A is compared by: a small file to commit, of "
            "numbers and hashes without texts; - prints it.",
        ),
    ] = None,
    json: Annotated[Path | None, typer.Option(help="JSON file to write, with all changed turns.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Markdown file to write, fit for a comment on a pull request.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Page to write.")] = None,
) -> None:
    """Compare runs with a reference: changed verdicts, differences, coverage, costs, and what was changed.

    Exit code 3: a run cannot be compared with the reference at all. 1: no conversation of a run succeeded, or
    a detector failed on every reply that it judged.
    """
    from hallulab.scenarios.files.atomic import write_together
    from hallulab.scenarios.files.data_files import is_folder
    from hallulab.simulator.compare.document import build_document
    from hallulab.simulator.compare.runs import compare_runs
    from hallulab.simulator.compare.summary import read_summary
    from hallulab.simulator.compare.texts import add_texts
    from hallulab.simulator.records.folder import RunFolder
    from hallulab.simulator.records.outputs import check_outputs
    from hallulab.simulator.show.html import render_page
    from hallulab.simulator.show.markdown import render_markdown
    from hallulab.simulator.show.terminal import print_document

    if save is not None:
        if len(runs) > 1 or (json, markdown, html) != (None, None, None):
            raise UsageError("--save takes one run folder and no other option.")
        _save_baseline(RunFolder(runs[0]), save)
        return
    folders = [RunFolder(path) if is_folder(path) else None for path in runs]
    read = [
        file
        for path, folder in zip(runs, folders, strict=True)
        for file in (folder.files if folder else [path])
    ]
    check_outputs({"--json": json, "--markdown": markdown, "--html": html}, inputs=read)
    compared = add_texts(compare_runs([read_summary(path) for path in runs]), folders)
    document = build_document(compared)
    made: list[tuple[Path | None, Callable[[], str]]] = [
        (json, compared.text),
        (markdown, partial(render_markdown, document)),
        (html, partial(render_page, document)),
    ]
    texts = {path: render() for path, render in made if path is not None}
    if texts:
        write_together(texts)
    print_document(document)
    if texts:
        print_lines(f"\nwritten: {', '.join(map(str, texts))}")
    if compared.not_comparable:
        raise NotComparable(" ".join(compared.not_comparable))
    if compared.failed:
        raise OperationalError(" ".join(compared.failed))


def _save_baseline(run: RunFolder, file: Path) -> None:
    from hallulab.scenarios.files.atomic import write_atomically
    from hallulab.simulator.compare.summary import summarize_run
    from hallulab.simulator.metrics.failures import require_success
    from hallulab.simulator.records.outputs import check_outputs

    printed = str(file) == "-"
    check_outputs({"--save": None if printed else file}, inputs=run.files)
    made = summarize_run(run)
    print_warnings(made.failures)
    if printed:
        print_json(made.text())
    else:
        write_atomically(file, made.text())
        print_lines(f"{file}: check a later run by `hallulab gate RUN --against {quote(str(file))}`")
    require_success(made.failures)


@expand_options
def gate(options: GateOptions) -> None:
    """Check a run against a baseline, and fail if it is worse.

    Exit code 0: it may pass. 1: a chatbot is worse beyond the noise, has a new severe hallucination, or
    misses a limit. 3: it cannot be compared.
    """
    from hallulab.simulator.compare.gate_command import gate_from_options
    from hallulab.simulator.compare.gate_document import build_document
    from hallulab.simulator.show.terminal import print_document

    result = gate_from_options(options)
    print_document(build_document(result))
    raise typer.Exit(result.exit_code)


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
        str | None, typer.Option(help="Endpoint that serves it; without it the model is served here.")
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

    from hallulab.simulator.records.outputs import RUNS
    from hallulab.simulator.viewer.app import listen, make_server, serve
    from hallulab.simulator.viewer.labels import Labelling, name_annotator
    from hallulab.simulator.viewer.launcher import Launcher
    from hallulab.simulator.viewer.offer import load_offer
    from hallulab.simulator.viewer.runs import ShownRuns

    shown = paths or [RUNS]
    options = ModelOptions(config=experiment, model=model, base_url=base_url, api_key_env=api_key_env)
    launcher = Launcher(load_offer(options, shown))
    runs = ShownRuns(shown)
    labelling = Labelling(name_annotator(annotator), guideline)
    listening = listen(port)

    def tell() -> None:
        print_lines(listening.address)
        if browser:
            webbrowser.open(listening.address)

    whole = True
    try:
        whole = serve(make_server(runs, listening, tell, labelling, launcher), listening)
    finally:
        listening.socket.close()
        for stopped in launcher.close():
            print_lines(f"stopped: {stopped.path}. Its page resumes it, and so does the same `hallulab run`.")
    if not whole:  # Python would wait for a thread that hangs
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        os._exit(0)


def realism(
    folder: RunArgument,
    reference: Annotated[
        list[Path] | None,
        typer.Option(
            help="Messages of people: JSON lines with `user_turns`, or a file that `hallulab import` reads; "
            "may be given several times. By default, those of MTRAG-UN and realsim (docs/realism.md)."
        ),
    ] = None,
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option(help="HTML file to write, with the distributions.")] = None,
) -> None:
    """Compare the messages of a run's simulated users with people's, with a noise floor."""
    require_run(folder)
    from hallulab.agents.retrieval.embeddings import SentenceEmbedder
    from hallulab.scenarios.files.atomic import write_atomically
    from hallulab.simulator.records.experiment import Experiment
    from hallulab.simulator.records.folder import RunFolder
    from hallulab.simulator.records.outputs import check_outputs
    from hallulab.simulator.report.realism import build_document, measure_realism
    from hallulab.simulator.show.html import render_page
    from hallulab.simulator.show.terminal import print_document

    run = RunFolder(folder)
    check_outputs({"--out": out}, inputs=[*(reference or ()), *run.files])
    found = measure_realism(run, reference or (), SentenceEmbedder(Experiment().embedding_model))
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
