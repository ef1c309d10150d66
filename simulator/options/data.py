"""The options of the commands that bring chats in, give them out, and make data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from os import PathLike
from typing import Annotated, Literal

from hallulab.simulator.options.groups import (
    HOTPOTQA,
    MAP,
    RUN,
    SCENARIO,
    STRICT,
    Chosen,
    ExportSelection,
    Flag,
    ModelOptions,
    RecordingOptions,
    StrPath,
    WorkerOptions,
)

Wrong = Literal["invented", "misplaced"]
"""Kinds of wrong answers: made up, or out of another passage."""


@dataclass(frozen=True)
class PlantOptions(ModelOptions, RecordingOptions, WorkerOptions):
    """Options of `hallulab make-data planted`."""

    source: Annotated[
        str,
        Flag(
            "Where clean replies come from: a run folder, a labelled JSON-lines file, or a scenario "
            "pack or folder of documents that replies are made of.",
            argument=True,
        ),
    ]
    _: KW_ONLY
    out: Annotated[StrPath, Flag("Folder to write planted.jsonl into.")]
    count: Annotated[int, Flag("Errors to plant; each has a clean twin.", least=1)] = 400
    kinds: Annotated[
        Sequence[str],
        Flag("Kinds of errors, with commas between; default: all but moved-citation.", separated=True),
    ] = ()
    turns: Annotated[
        Sequence[int], Flag("Turns before a reply made of documents, in turn.", separated=True, number_from=0)
    ] = (0, 2, 4)
    contexts: Annotated[
        Sequence[int],
        Flag(
            "Passages in the evidence of a reply made of documents, in turn.", separated=True, number_from=1
        ),
    ] = (1, 4, 8)
    seed: Annotated[int, Flag("Seed of all choices.")] = 0
    fluent: Annotated[bool, Flag("Let the model write the errors; else rules do, and none is asked.")] = False


@dataclass(frozen=True, kw_only=True)
class DialogueOptions(ModelOptions, RecordingOptions):
    """Options of `hallulab make-data dialogues`."""

    number: Annotated[int, Flag("Dialogues to make.", least=1)]
    out: Annotated[StrPath, Flag("Folder of the data set; a data set that was cut off goes on.")]
    scenario: Annotated[str | None, SCENARIO] = None
    chatbots: Annotated[
        Sequence[Chosen] | None,
        Flag("Chatbots that dialogues are dealt to, separated by commas.", separated=True, default="vanilla"),
    ] = None
    topics: Annotated[
        Sequence[str] | Mapping[str, float] | None,
        Flag("Topics with their shares: transport=0.6,finance=0.4; even by default.", separated=True),
    ] = None
    manners: Annotated[
        Sequence[str] | Mapping[str, float] | None,
        Flag("Manners with their shares: terse=0.2,plain=0.8; the experiment's by default.", separated=True),
    ] = None
    goals: Annotated[
        Sequence[str] | Mapping[str, float] | None,
        Flag(
            "Kinds of goals with their shares: answer=0.7,decline=0.2,ask-back=0.1; the pack's by default.",
            separated=True,
        ),
    ] = None
    hallucinated: Annotated[
        float | None,
        Flag("Share of dialogues that end with a planted error, which has a clean twin.", default="0.3"),
    ] = None
    kinds: Annotated[Sequence[str], Flag("Kinds of errors, with commas between.", separated=True)] = ()
    test: Annotated[float, Flag("Share of dialogues on the test side; 0: none.")] = 0.2
    seed: Annotated[int, Flag("Seed of all choices, and the first seed of users.")] = 0
    keep_duplicates: Annotated[bool, Flag("Keep dialogues that are nearly the same as another.")] = False


@dataclass(frozen=True)
class ImportOptions:
    """Options of `hallulab import`."""

    file: Annotated[StrPath, Flag("Your chats (docs/own-chats.md).", argument=True, metavar="FILE")]
    _: KW_ONLY
    out: Annotated[StrPath | None, Flag("Run folder; by default runs/ and the time.")] = None
    format: Annotated[
        str | None,
        Flag(
            "openai, sharegpt, otel, openinference, langfuse, mlflow, csv, excel, json-rows, jsonl, parquet, "
            "hf or ragtruth; by default found out by the content."
        ),
    ] = None
    documents: Annotated[
        StrPath | None, Flag("Folder of documents: evidence of replies that have none in the file.")
    ] = None
    strict: Annotated[bool, STRICT] = False
    scenario: Annotated[
        str | None, Flag("The pack that the chats belong to, whose documents are searched so.")
    ] = None
    map: Annotated[str | None, MAP] = None
    skip_bad: Annotated[int, Flag("Leave out up to so many wrong records, and name them.", metavar="N")] = 0


@dataclass(frozen=True)
class ExportOptions(ExportSelection):
    """Options of `hallulab export`."""

    run: Annotated[StrPath | PathLike[str], RUN]
    format: Annotated[
        str,
        Flag(
            "bench (replies, for `hallulab bench`), or conversations: openai, sharegpt, hf, parquet, csv, "
            "ragtruth or jsonl; or tables: turns, verdicts and hallucinations as Parquet files in the run "
            "folder."
        ),
    ] = "bench"
    out: Annotated[
        StrPath | None, Flag("File to write; of hf and ragtruth, a new folder; not for tables.")
    ] = None

    @property
    def selection(self) -> ExportSelection:
        """These options without run, format and file."""
        names = [field.name for field in dataclasses.fields(ExportSelection)]
        return ExportSelection(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True, kw_only=True)
class DerivedOptions(ModelOptions, RecordingOptions):
    """Options of `hallulab make-data hotpotqa-derived`."""

    data: Annotated[StrPath, HOTPOTQA]
    out: Annotated[StrPath, Flag("JSON-lines file to write.")]
    limit: Annotated[int | None, Flag("At most this many questions.", least=1)] = None
    seed: Annotated[
        int, Flag("Seed of the choice that --limit makes, of the answers drawn, and sampled.")
    ] = 0
    wrong: Annotated[
        Wrong, Flag("Wrong answers: made up, or out of a passage that does not answer the question.")
    ] = "invented"
    both: Annotated[bool, Flag("Both answers of each question; by default one at random.")] = False
