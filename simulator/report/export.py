"""Export a run's conversations in other tools' formats with a data card.

The card (README.md) of a data set folder: how it was made, by which models, under what licence.
Its head is YAML as the Hugging Face hub documents it (Dataset Cards, October 2026): `license` and `configs`,
by which `datasets.load_dataset` finds the files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from filecmp import cmp
from pathlib import Path
from shlex import quote
from typing import Any

from hallulab.scenarios.chats.formats import find_format, list_written_formats
from hallulab.scenarios.chats.parquet import FILE
from hallulab.scenarios.chats.record import PARTS, SCENARIO
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.atomic import write_whole_file, write_whole_folder
from hallulab.scenarios.files.json_text import replace_surrogates
from hallulab.scenarios.near_names import suggest_name
from hallulab.scenarios.packs.pack_files import load_without_documents
from hallulab.scenarios.text.wording import format_count
from hallulab.scenarios.transcript import Conversation, Turn, Verdict
from hallulab.simulator.metrics.failures import FailureCounts, require_success
from hallulab.simulator.metrics.hallucinations import index_by_detector
from hallulab.simulator.options.data import ExportOptions
from hallulab.simulator.options.groups import ExportSelection
from hallulab.simulator.records.experiment_json import SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.outputs import check_outputs
from hallulab.simulator.report.card import (
    choose_hub_licence,
    escape_text,
    find_model_licence,
    format_code,
    render_data_card,
)
from hallulab.simulator.report.frames import write_tables
from hallulab.simulator.report.late_evidence import find_late_evidence
from hallulab.simulator.report.selection import ALIKE, SelectionCounts, require_wanted, select_conversations

BENCH = "bench"
"""The format that `hallulab bench` reads: replies, and no conversations."""
TABLES = "tables"
"""The format of turns, verdicts and hallucinations as Parquet files in the run folder."""


def render_card(
    name: str,
    saved: SavedExperiment | None,
    conversations: Iterable[Conversation],
    wanted: ExportSelection,
    counts: SelectionCounts,
) -> str:
    """Return the text of the card.

    Args:
        name: of the run folder.
        saved: its experiment.json; None: it has none.
        counts: what became of the conversations.
    """
    made = {(one.scenario, one.chatbot, one.model) for one in conversations}
    users = set()
    if saved is not None and not saved.lacks_simulated_user:
        users = {saved.experiment.served_name(name) for name in saved.experiment.user_models}
    models = sorted({model for _, _, model in made} | users)
    licences = {model: find_model_licence(model) for model in models}
    pack = _find_pack_licence(saved)
    head = {
        "license": choose_hub_licence({pack, *licences.values()}),
        "task_categories": ["text-generation"],
        "tags": ["hallulab", "conversational", *(["synthetic"] if users else [])],
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": FILE}]}],
    }
    return render_data_card(
        head,
        __package__,
        "run_card.md",
        name=name,
        written=format_count(counts.written, "conversation"),
        making=list(_describe_making(saved, made, users, wanted, counts)),
        pack=pack,
        licences=licences,
    )


def _describe_making(
    saved: SavedExperiment | None,
    made: set[tuple[str, str, str]],
    users: set[str],
    wanted: ExportSelection,
    counts: SelectionCounts,
) -> Iterable[str]:
    if saved is None:
        yield "by a run of hallulab without experiment.json"
    elif saved.imported is not None:
        yield f"imported from {format_code(saved.imported.file)} ({saved.imported.format})"
    elif saved.live is not None:
        yield f"typed by a person in {format_code(saved.live.at)} of hallulab {escape_text(saved.hallulab)}"
    else:
        seeds = ", ".join(map(str, saved.seeds))
        yield f"simulated by hallulab {escape_text(saved.hallulab)}; seeds {seeds}"
        yield f"users: {', '.join(map(format_code, sorted(users)))}"
    for scenario, chatbot, model in sorted(made):
        on = f"model {format_code(model)}, scenario {format_code(scenario)}"
        yield f"chatbot {format_code(chatbot)} on {on}"
    for detector, version in sorted((saved.detectors if saved is not None else {}).items()):
        yield f"judged by {format_code(detector)}, version {format_code(version)}"
    if wanted.clean_by is not None:
        detector = format_code(wanted.clean_by)
        yield f"only those of which {detector} flags no turn: {counts.not_clean} left out"
    if wanted.audited:
        yield f"only those in which the audit finds no flaw of the simulated user: {counts.flawed} left out"
    if counts.too_short:
        yield f"with fewer turns than {wanted.min_turns}: {counts.too_short} left out"
    if not wanted.keep_duplicates:
        yield f"near duplicates (MinHash, Jaccard {ALIKE}): {counts.near_duplicates} left out"
    for part in sorted(wanted.without):
        yield f"without {part}"


def _find_pack_licence(saved: SavedExperiment | None) -> str:
    if saved is None or saved.experiment.scenario == SCENARIO:
        return "not stated"
    try:
        return load_without_documents(saved.experiment.scenario).licence or "not stated"
    except UsageError:
        return "not stated"


def export_from_options(options: ExportOptions) -> SelectionCounts | ExportCounts | dict[Path, int]:
    """Write what the options ask for; return what became of the conversations, or the rows of each table.

    Raises:
        UsageError: there is no such run, or as `export_run`.
        OperationalError: the output cannot be written.
    """
    folder, wanted = RunFolder(Path(options.run)), options.selection
    folder.require()
    if options.format == TABLES:
        if options.out is not None or wanted != ExportSelection():
            raise UsageError("--format tables writes all into the run folder. Leave out the other options.")
        return write_tables(folder)
    if options.out is None:
        raise UsageError("export: give the file to write with --out FILE.")
    return export_run(folder, options.format, wanted, Path(options.out))


def export_run(
    folder: RunFolder, format: str, wanted: ExportSelection, out: Path
) -> SelectionCounts | ExportCounts:
    """Write a run's conversations in a format of other tools, or its replies for `bench`.

    Args:
        format: `BENCH`, or one that can be written.
        out: file to write; of some formats, a new folder.

    Raises:
        UsageError: format or selection are wrong, nothing is left to write, or the output exists.
        OperationalError: the output cannot be written.
    """
    if "passages" not in wanted.without:
        find_late_evidence(folder)
    if set(wanted.without) - set(PARTS):
        unknown = min(set(wanted.without) - set(PARTS))
        near = suggest_name(unknown, PARTS)
        raise UsageError(
            f"--without {unknown}: unknown{near}. Give some of {', '.join(PARTS)}, with commas between."
        )
    if format in list_written_formats():
        return export_chats(folder, format, wanted, out)
    if format != BENCH:
        known = (BENCH, *list_written_formats(), TABLES)
        near = suggest_name(format, known)
        raise UsageError(f"--format {format}: unknown{near}. Give one of: {', '.join(known)}.")
    if wanted != ExportSelection(detector=wanted.detector):
        raise UsageError(
            "--without, --clean-by, --audited, --min-turns and --keep-duplicates choose conversations: name "
            "their --format, such as openai."
        )
    return export_annotated(folder, wanted.detector, out)


def export_chats(folder: RunFolder, format: str, wanted: ExportSelection, out: Path) -> SelectionCounts:
    """Write the wanted conversations of a run, one after the other, whole or not at all.

    Raises:
        UsageError: the format is not written, the run lacks what is wanted, nothing is left of it, or `out`
            is one of its files.
        OperationalError: it cannot be written.
    """
    chat_format = find_format(format)
    if chat_format.write is None:
        raise UsageError(f"--format {format}: is read, not written. Give another one.")
    if not chat_format.for_training:
        wanted = replace(wanted, keep_duplicates=True)
    if chat_format.endings:
        _check_out(format, chat_format.endings, folder, out)
    saved = folder.read_experiment()
    journals = folder.read_journals().current(saved)
    require_wanted(wanted, saved, journals, folder)
    counts = SelectionCounts()
    found = select_conversations(journals, saved, wanted, counts)
    if chat_format.endings:
        with _write_new(out) as beside:
            chat_format.write(beside, found, frozenset(wanted.without))
            _require_some(counts, folder)
    else:
        with write_whole_folder(out) as beside:
            chat_format.write(beside, found, frozenset(wanted.without))
            if chat_format.has_card:
                text = render_card(
                    replace_surrogates(folder.path.name), saved, journals.conversations, wanted, counts
                )
                (beside / "README.md").write_text(text, encoding="utf-8")
            _require_some(counts, folder)
    return counts


def _check_out(format: str, endings: Sequence[str], folder: RunFolder, out: Path) -> None:
    """Raise UsageError if a file cannot be written there, or its name ends as that of another format."""
    check_outputs({"--out": out}, (*folder.files, folder.annotations))
    others = {ending for name in list_written_formats() for ending in find_format(name).endings}
    if out.suffix.lower() in {*others, ".gz"}.difference(endings):
        raise UsageError(f"--out {out}: {format} is written as {endings[0]}. Correct --out, or --format.")


@contextmanager
def _write_new(out: Path) -> Iterator[Path]:
    """Yield the path of a file that becomes `out`; with another content there, people may have edited it.

    Raises:
        UsageError: a file with another content is there.
    """
    with write_whole_file(out) as beside:
        yield beside
        if out.is_file() and out.stat().st_size and not cmp(beside, out, shallow=False):
            raise UsageError(f"{out} is there already, with other content. Give another --out, or delete it.")


def _require_some(counts: SelectionCounts, folder: RunFolder) -> None:
    if counts.written:
        return
    left_out = {name: count for name, count in vars(counts).items() if count and name != "not_judged"}
    why = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in left_out.items())
    raise UsageError(f"{folder.path} has no such conversation ({why or 'it has none yet'}). Ask for less.")


@dataclass(frozen=True)
class ExportCounts:
    """Counts of an export."""

    written: int
    without_evidence: int
    """Replies left out because they or their passages are empty: nobody can judge those."""
    not_scored: int = 0
    """Replies left out because the detector failed on them, abstained, or did not judge them."""


def export_annotated(folder: RunFolder, detector: str | None, out: Path) -> ExportCounts:
    """Write one line for each reply that the detector scored, with its located spans.

    A reply is labelled hallucinated if the detector flagged it or anything in it. Without a detector, every
    reply is written, unlabelled.

    Raises:
        UsageError: there are no verdicts of that detector or no replies, or `out` is one of the run's files,
            or has labels that somebody filled in.
        OperationalError: the detector failed on every reply that it judged.
    """
    _check_out(BENCH, (".jsonl", ".json"), folder, out)
    journals = folder.read_journals().current(folder.read_experiment())
    counts = Counter[str]()

    def lines() -> Iterator[str]:
        failures = FailureCounts()
        for conversation, found in journals.judged(by_case=False):
            failures.add(conversation, index_by_detector(found))
            verdicts = {
                one.turn: one for one in found if one.detector == detector and one.outcome == "scored"
            }
            for turn in conversation.turns:
                if detector is not None and turn.index not in verdicts:
                    counts[_NOT_SCORED] += 1
                    continue
                judgeable = bool(turn.reply) and any(passage.text for passage in turn.passages)
                counts[_WRITTEN if judgeable else _LEFT_OUT] += 1
                if judgeable:
                    line = _build_line(conversation, turn, verdicts.get(turn.index))
                    yield json.dumps(line, ensure_ascii=False)
        if not counts[_WRITTEN]:
            require_success(failures.find([], [] if detector is None else [detector]))
            raise _explain_nothing(folder, detector, counts[_LEFT_OUT])

    with _write_new(out) as beside, beside.open("wb") as file:
        file.writelines(f"{replace_surrogates(line)}\n".encode() for line in lines())
    return ExportCounts(counts[_WRITTEN], counts[_LEFT_OUT], counts[_NOT_SCORED])


_WRITTEN, _LEFT_OUT, _NOT_SCORED = "written", "left out", "not scored"


def _explain_nothing(folder: RunFolder, detector: str | None, left_out: int) -> UsageError:
    """Say why a run has nothing to export."""
    if detector is not None and not left_out:
        return UsageError(
            f"{folder.path} has no scored verdicts of a detector {detector!r}. Make them with "
            f"`hallulab detect {quote(str(folder.path))} --detectors NAME`, or correct --detector."
        )
    why = f"{left_out} have no evidence, or are empty" if left_out else "it has none yet"
    return UsageError(f"{folder.path} has no reply to export: {why}.")


def _build_line(conversation: Conversation, turn: Turn, verdict: Verdict | None) -> dict[str, Any]:
    spans = (verdict.spans or ()) if verdict is not None else ()
    located = [
        {"start": span.start, "end": span.end, "label": "hallucination"}
        for span in spans
        if span.start is not None
    ]
    # An empty list means no hallucination, so one without a place must not give it.
    localised = located or (verdict is not None and verdict.spans == () and not verdict.flagged)
    return {
        "id": f"{conversation.id}-{turn.index}",
        "task": "dialogue",
        "question": turn.user,
        "history": [message.model_dump() for message in conversation.history(turn.index)],
        "passages": [
            passage.model_dump(include={"id", "document", "text", "topic"}, exclude_none=True)
            for passage in turn.passages
            if passage.text
        ],
        "reply": turn.reply,
        "label": bool(verdict.flagged or spans) if verdict is not None else None,
        "spans": located if localised else None,
        "group": conversation.persona,
        "meta": {
            "conversation": conversation.id,
            "chatbot": conversation.chatbot,
            "model": conversation.model,
            "scenario": conversation.scenario,
            "seed": conversation.seed,
            "turn": conversation.depth(turn.index),
            "detector": verdict.detector if verdict is not None else None,
            "detector_version": verdict.version if verdict is not None else None,
        },
    }
