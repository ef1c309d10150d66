"""`hallulab export`: the conversations or replies of a run as data for other tools, or for `bench`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.cli.options import AsJson, RunArgument, split_names
from hallulab.simulator.cli.saying import print_json, print_lines

if TYPE_CHECKING:
    from hallulab.simulator.report.chosen_chats import ExportSelection, SelectionCounts
    from hallulab.simulator.runs.folder import RunFolder

BENCH = "bench"


def export(
    folder: RunArgument,
    out: Annotated[Path, typer.Option(help="File to write; of hf and ragtruth, a new folder.")],
    format: Annotated[
        str,
        typer.Option(
            help="bench (replies, for `hallulab bench`), or conversations: openai, sharegpt, hf, parquet, "
            "csv, ragtruth or jsonl."
        ),
    ] = BENCH,
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
        bool, typer.Option("--keep-duplicates", help="Also those that are nearly the same as another.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the conversations of a run in a format of other tools, or its replies for `bench`.

    For `bench` a detector annotates them. Without `--detector` they have no label, for annotators to add;
    `bench` leaves such lines out.
    """
    from hallulab.simulator.report.chosen_chats import ExportSelection
    from hallulab.simulator.report.exporting_chats import FORMATS, export_chats
    from hallulab.simulator.runs.folder import RunFolder

    run = RunFolder(folder)
    run.require()
    wanted = ExportSelection(
        detector=detector,
        without=_read_parts(without),
        clean_by=clean_by,
        audited=audited,
        min_turns=min_turns or 1,
        keep_duplicates=keep_duplicates,
    )
    chosen = next((name for name in FORMATS if name == format), None)
    if chosen is not None:
        _tell(export_chats(run, chosen, wanted, out), out, as_json)
    elif format == BENCH:
        _export_replies(run, wanted, out, as_json)
    else:
        raise UsageError(f"--format {format}: unknown. Give one of: {', '.join((BENCH, *FORMATS))}.")


def _read_parts(value: str | None) -> frozenset[str]:
    from hallulab.scenarios.chats.record import PARTS

    given = frozenset(split_names(value) or ())
    if given - set(PARTS):
        raise UsageError(f"--without {value}: give some of {', '.join(PARTS)}, with commas between.")
    return given


def _tell(exported: SelectionCounts, out: Path, as_json: bool) -> None:
    from hallulab.scenarios.text.wording import format_count

    if as_json:
        print_json(json.dumps(dataclasses.asdict(exported), indent=2) + "\n")
        return
    print_lines(f"{format_count(exported.written, 'conversation')} written to {out}")
    for count, why in (
        (exported.too_short, "too few turns"),
        (exported.not_clean, "flagged, or not scored in every turn"),
        (exported.flawed, "the simulated user has a flaw"),
        (exported.near_duplicates, "nearly the same as an earlier one (--keep-duplicates keeps them)"),
    ):
        if count:
            print_lines(f"{count} left out: {why}", err=True)


def _export_replies(run: RunFolder, wanted: ExportSelection, out: Path, as_json: bool) -> None:
    from hallulab.scenarios.text.wording import choose_noun
    from hallulab.simulator.report.chosen_chats import ExportSelection
    from hallulab.simulator.report.exporting import export_annotated

    if wanted != ExportSelection(detector=wanted.detector):
        raise UsageError(
            "--without, --clean-by, --audited, --min-turns and --keep-duplicates choose conversations: name "
            "their --format, such as openai."
        )
    exported = export_annotated(run, wanted.detector, out)
    if as_json:
        print_json(json.dumps(dataclasses.asdict(exported), indent=2) + "\n")
    else:
        print_lines(
            f"{exported.written} {choose_noun(exported.written, 'reply', 'replies')} written to {out}"
        )
    if wanted.detector is None:
        print_lines(
            "no line has a label: fill in `label` or `spans` before `hallulab bench` reads them, or give "
            "--detector",
            err=True,
        )
    if exported.without_evidence:
        print_lines(f"{exported.without_evidence} left out: no evidence, or an empty reply", err=True)
