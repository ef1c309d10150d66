"""The command `hallulab compare`: runs beside a reference."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from hallulab.scenarios.errors import NotComparable, OperationalError
from hallulab.simulator.cli.console import print_lines


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="A B [C…]",
            help="Run folders, or baseline files (`hallulab baseline`). A is the reference.",
        ),
    ],
    json: Annotated[Path | None, typer.Option(help="JSON file to write, with all changed turns.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Markdown file to write, fit for a comment on a pull request.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Page to write.")] = None,
) -> None:
    """Hold runs against a reference: changed verdicts, differences, coverage, costs, and what was changed.

    Exit code 3: a run cannot be compared with the reference at all. 1: no conversation of a run was held, or
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


COMMANDS = {"compare": compare}
