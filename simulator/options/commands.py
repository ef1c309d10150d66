"""The options of each command and of the Python function that does the same: one dataclass each.

`hallulab.simulator.cli.options` makes flags of the fields, `hallulab.api` keyword arguments. A field without
a `Flag` is for Python only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from hallulab.simulator.options.groups import (
    BATCH,
    DETECTORS,
    DETECTORS_OF_RUN,
    HOTPOTQA,
    MAP,
    RUN,
    SCENARIO,
    BatchService,
    Chosen,
    ConversationOptions,
    Flag,
    FolderOptions,
    ModelOptions,
    RecordingOptions,
    StrPath,
    WorkerOptions,
)

if TYPE_CHECKING:
    from hallulab.scenarios.turn_views import TurnView

Gold = Literal["annotations"]
"""Where the labels of a run folder come from: what annotators found."""


@dataclass(frozen=True)
class RunOptions(ModelOptions, ConversationOptions, FolderOptions, RecordingOptions, WorkerOptions):
    """Options of `hallulab run`."""

    detectors: Annotated[Sequence[Chosen] | None, DETECTORS] = None
    _: KW_ONLY
    batch: Annotated[BatchService | None, BATCH] = None
    until_decided: Annotated[
        bool,
        Flag(
            "Draw personas in batches until it is clear which chatbots are better or alike.",
            panel="Until it is decided",
        ),
    ] = False
    margin: Annotated[
        float | None,
        Flag(
            "Hallucinations a turn below which --until-decided calls chatbots alike.",
            panel="Until it is decided",
            default="0.2",
        ),
    ] = None
    budget: Annotated[
        str | None,
        Flag(
            "Limit for --until-decided: 40personas, 200000tokens or 30minutes.",
            metavar="AMOUNT",
            panel="Until it is decided",
        ),
    ] = None
    keep_all: Annotated[
        bool,
        Flag("Let chatbots that are clearly worse go on in --until-decided.", panel="Until it is decided"),
    ] = False
    estimate: Annotated[bool, Flag("Play two personas, and estimate by them what all would cost.")] = False
    no_judge: Annotated[bool, Flag("Only simulate the conversations; `detect` judges them later.")] = False

    def collect_deciding_fields(self) -> dict[str, Any]:
        """Return those of `until_decided` of an experiment that were given."""
        given = {"margin": self.margin, "budget": self.budget, "keep_all": self.keep_all or None}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class ChatOptions(ModelOptions, RecordingOptions):
    """Options of `hallulab chat`."""

    scenario: Annotated[str | None, SCENARIO] = None
    chatbots: Annotated[
        Sequence[Chosen] | None,
        Flag("The chatbot to talk to; by default the experiment's first.", separated=True, metavar="NAME"),
    ] = None
    detectors: Annotated[Sequence[Chosen] | None, DETECTORS] = None
    out: Annotated[
        StrPath | None,
        Flag("Run folder, new or with earlier conversations of yours; by default runs/ and the time."),
    ] = None


@dataclass(frozen=True)
class DetectOptions(ModelOptions, RecordingOptions, WorkerOptions):
    """Options of `hallulab detect`."""

    folder: Annotated[StrPath, RUN]
    detectors: Annotated[Sequence[Chosen] | None, DETECTORS_OF_RUN] = None
    _: KW_ONLY
    again: Annotated[
        int | None,
        Flag(
            "Ask each detector again about so many replies that it scored, by another seed and with passages "
            "in another order: the report says how many verdicts flip.",
            least=1,
        ),
    ] = None
    batch: Annotated[BatchService | None, BATCH] = None


@dataclass(frozen=True)
class BranchOptions(ModelOptions, FolderOptions, RecordingOptions):
    """Options of `hallulab branch`."""

    run: Annotated[StrPath, RUN]
    _: KW_ONLY
    turns: Annotated[str, Flag("Turns that are repeated, from 0, separated by commas; or all.")] = "all"
    source: Annotated[
        str | None,
        Flag("Chatbot whose conversations they are; by default the first of the run.", names=("--from",)),
    ] = None
    chatbots: Annotated[
        Sequence[str] | None,
        Flag("Chatbots that answer, separated by commas; by default those of the run.", separated=True),
    ] = None
    detectors: Annotated[Sequence[Chosen] | None, DETECTORS_OF_RUN] = None
    batch: Annotated[BatchService | None, BATCH] = None


@dataclass(frozen=True)
class JudgeOptions(ModelOptions, RecordingOptions):
    """Options of `hallulab judge`."""

    chats: Annotated[
        StrPath | Iterable[Mapping[str, Any]],
        Flag(
            "Your chats, as `hallulab import` reads them (docs/own-chats.md).", argument=True, metavar="FILE"
        ),
    ]
    """In Python also rows: mappings, or a pandas frame."""
    detectors: Annotated[
        Sequence[Chosen | object] | None,
        Flag(
            "Detectors, separated by commas; by default those of the model that is named, else combined.",
            separated=True,
        ),
    ] = None
    """In Python also detectors and their classes."""
    _: KW_ONLY
    documents: Annotated[
        StrPath | None, Flag("Folder of documents: evidence of replies that have none in the file.")
    ] = None
    map: Annotated[str | None, MAP] = None
    out: Annotated[StrPath | None, Flag("Run folder; by default runs/, the file's name and the time.")] = None


@dataclass(frozen=True)
class JudgeRepliesOptions(ModelOptions, RecordingOptions):
    """Options of `hallulab.judge_replies`."""

    views: Iterable[TurnView | Mapping[str, Any]]
    """The replies, each with the dialogue before it and its evidence."""
    detector: Chosen
    """The judge: its name, or a mapping with `name`, `kind` and `options`."""
    _: KW_ONLY
    seed: int | None = None
    """Seed of what the detector samples; None: the experiment file's, else 0."""


@dataclass(frozen=True)
class BenchOptions(ModelOptions, RecordingOptions, WorkerOptions):
    """Options of `hallulab bench`."""

    dataset: Annotated[
        str,
        Flag(
            "A labelled data set (docs/labelled-data.md), a JSONL file of yours; with --gold, a run folder.",
            argument=True,
        ),
    ]
    detectors: Annotated[Sequence[Chosen] | None, DETECTORS] = None
    _: KW_ONLY
    data: Annotated[StrPath | None, Flag("Folder that holds the data set's files.")] = None
    source: Annotated[str | None, Flag("Part of the data set, such as begin's wow, cmu and tc.")] = None
    gold: Annotated[
        Gold | None, Flag("Measure on what annotators found in a run folder, which stands for the data set.")
    ] = None
    option: Annotated[
        Sequence[str] | Mapping[str, Any], Flag("NAME=VALUE: an option of the data set; may be repeated.")
    ] = ()
    by: Annotated[
        Sequence[str], Flag("Break the numbers down by this field of the replies' `meta`; may be repeated.")
    ] = ()
    limit: Annotated[int | None, Flag("At most this many replies.", least=1)] = None
    seed: Annotated[
        int | None,
        Flag(
            "Seed of training, of folds, of the choice that --limit makes, and of what detectors "
            "sample; by default the experiment file's, else 0."
        ),
    ] = None
    train: Annotated[
        StrPath | None,
        Flag(
            "Folder (of a JSONL data set: file) that detectors learn from; else they learn from one "
            "half of the groups, and all are measured on the other.",
            panel="Training",
        ),
    ] = None
    folds: Annotated[
        int | None,
        Flag(
            "Detectors that learn are trained this many times: each time on the groups outside a fold, "
            "which they then judge.",
            least=2,
            panel="Training",
        ),
    ] = None
    sweep: Annotated[StrPath | None, Flag("Sweep file (YAML): one detector in many configurations.")] = None
    json_file: Annotated[
        StrPath | None, Flag("Write the numbers into this file.", names=("--json",), panel="Output")
    ] = None
    csv: Annotated[StrPath | None, Flag("Write the rows of all levels into this file.", panel="Output")] = (
        None
    )
    html: Annotated[StrPath | None, Flag("Write a page with curves into this file.", panel="Output")] = None


@dataclass(frozen=True)
class CalibrateOptions(ModelOptions, RecordingOptions):
    """Options of `hallulab calibrate`."""

    source: Annotated[
        str | None,
        Flag(
            "Texts into which errors are planted: a scenario pack, a folder of documents, a run folder, or a "
            "labelled JSON-lines file. Default: the experiment's scenario.",
            argument=True,
        ),
    ] = None
    detectors: Annotated[Sequence[Chosen] | None, DETECTORS] = None
    _: KW_ONLY
    data: Annotated[Sequence[str], Flag("A file of labelled replies to fit to, too; may be repeated.")] = ()
    count: Annotated[int, Flag("Errors to plant; each has a clean twin.", least=20)] = 200
    seed: Annotated[int | None, Flag("Seed of all choices, and of the detectors.")] = None
    policy: Annotated[
        str | None, Flag("Fit the thresholds of this policy's topics instead, for a guarded chatbot.")
    ] = None
    out: Annotated[StrPath | None, Flag("File to write that policy into.")] = None


@dataclass(frozen=True)
class GateOptions:
    """Options of `hallulab gate`."""

    run: Annotated[StrPath, Flag("A run folder.", argument=True, metavar="RUN")]
    _: KW_ONLY
    against: Annotated[
        StrPath, Flag("The baseline: a file of `compare --save`, or a run folder.", metavar="BASELINE")
    ]
    severity_guard: Annotated[
        str,
        Flag("Block on any new hallucination of at least this severity, 1 to 5; or off.", metavar="N|off"),
    ] = "5"
    max_hpt: Annotated[
        float | None, Flag("Block where a chatbot has more hallucinations a turn (HPT-1).")
    ] = None
    min_coverage: Annotated[
        float | None, Flag("Block where a smaller share of a chatbot's turns is scored, such as 0.9.")
    ] = None
    min_answered: Annotated[
        float | None,
        Flag(
            "Block where a chatbot answers a smaller share of replies, such as 0.9. A fall against the "
            "baseline, beyond the noise, always blocks."
        ),
    ] = None
    require_calibrated: Annotated[
        bool,
        Flag("Refuse detectors whose sensitivity and specificity on this model are unknown (exit code 3)."),
    ] = False
    planted: Annotated[
        StrPath | None, Flag("JSON of `hallulab bench` on planted errors, from which they are known.")
    ] = None
    markdown: Annotated[StrPath | None, Flag("Write the answer here, for a comment.", panel="Output")] = None
    junit: Annotated[StrPath | None, Flag("Write it here as JUnit XML.", panel="Output")] = None
    json_file: Annotated[
        StrPath | None, Flag("Write it here as JSON.", names=("--json",), panel="Output")
    ] = None


@dataclass(frozen=True, kw_only=True)
class RagTrustOptions(ModelOptions, FolderOptions, RecordingOptions):
    """Options of `hallulab rag-trust`."""

    data: Annotated[StrPath | None, HOTPOTQA] = None
    questions: Annotated[int | None, Flag("At most this many questions.")] = None
    seed: Annotated[int | None, Flag("Seed of all choices.")] = None
