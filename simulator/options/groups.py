"""Groups of options that several commands share, and how an option stands on the command line."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.text.words import parse_whole_number

StrPath = str | Path
"""A path as people write it in Python."""

Panel = Literal[
    "Conversations",
    "Until it is decided",
    "Training",
    "Models",
    "Recording and resuming",
    "Output",
    "Processes",
]
"""Headings of `--help`, in their order. The flags that most people need stand before them, under none."""

BatchService = Literal["vllm", "api"]
"""Who answers requests in waves: `vllm run-batch`, or the batch API of the endpoint."""

Chosen = str | Mapping[str, Any]
"""A chatbot or a detector: its name, or a mapping with `name`, `kind` and `options`."""


@dataclass(frozen=True)
class Flag:
    """How an option stands on the command line."""

    help: str
    names: tuple[str, ...] = ()
    """Its spellings; none: the field's name."""
    least: int | None = None
    """Smallest value of a number. For lists of numbers see `number_from`."""
    separated: bool = False
    """True for a list in one word, with commas between, in place of several flags."""
    number_from: int | None = None
    """Smallest number of a list of whole numbers; None: it is a list of names."""
    argument: bool = False
    metavar: str | None = None
    panel: Panel | None = None
    default: str | None = None
    """Shown in `--help` for an option whose own default is None: the default of the experiment."""


@dataclass(frozen=True)
class OptionField:
    """A field of a class of options."""

    name: str
    hint: Any
    """Its type, without its flag."""
    flag: Flag | None
    """None: it is for Python only."""
    default: Any
    """`dataclasses.MISSING`: it must be given."""
    own: bool
    """True for a field of the class itself, not of a base."""

    @property
    def types(self) -> tuple[Any, ...]:
        """The alternatives of its type, None among them if it may be left out."""
        return get_args(self.hint) if get_origin(self.hint) in (Union, UnionType) else (self.hint,)

    @property
    def is_list(self) -> bool:
        """True where the value is a list."""
        return any(get_origin(one) is Sequence for one in self.types)


def list_fields(options: type[Any], **names: Any) -> list[OptionField]:
    """Return the fields of a class of options: its own first, then those of its bases in their order.

    Args:
        names: types that its module imports for type checkers only.
    """
    fields = {field.name: field for field in dataclasses.fields(options)}
    hints = get_type_hints(options, localns=names, include_extras=True)
    found = []
    for owner in options.__mro__:
        for name in [name for name in vars(owner).get("__annotations__", {}) if name in fields]:
            hint, flag = hints[name], None
            if get_origin(hint) is Annotated:
                hint, flag = get_args(hint)
            found.append(OptionField(name, hint, flag, fields.pop(name).default, owner is options))
    return found


SCENARIO = Flag(
    "Built-in scenario pack, or the path of your own pack folder.", default="consumer-grievance-india"
)
RUN = Flag("A run folder.", argument=True, metavar="DIR")
DETECTORS = Flag("Detectors, separated by commas.", separated=True, default="halludetect,metarag")
DETECTORS_OF_RUN = replace(DETECTORS, default="those of the run")
STRICT = Flag("Refuse the documents if one cannot be read; else it is left out.")
MAP = Flag(
    "Names to read by, where the file's names leave it open: user=question,reply=response.",
    names=("--map",),
    metavar="WHAT=NAME,…",
)
HOTPOTQA = Flag("Folder that holds HotpotQA's distractor setting.")
BATCH = Flag(
    "Ask models in waves, as files in OpenAI's batch format: vllm runs `vllm run-batch` here, api uses the "
    "batch API of --base-url.",
    panel="Models",
)


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which models answer, and how hard they are asked."""

    config: Annotated[
        StrPath | None, Flag("Experiment file (YAML); flags win over it.", names=("--config", "-c"))
    ] = None
    model: Annotated[
        str | None,
        Flag(
            "Model to serve (catalogue name, folder, hub name), or the endpoint's model.",
            default="the file's or the run's, else qwen2.5-coder-1.5b",
        ),
    ] = None
    base_url: Annotated[
        str | Sequence[str] | None,
        Flag(
            "OpenAI-compatible endpoint; without it the model is served here. "
            "Repeat it for several that serve the same model."
        ),
    ] = None
    api_key_env: Annotated[
        str | None,
        Flag("Environment variable with the endpoint's key.", panel="Models", default="OPENAI_API_KEY"),
    ] = None
    concurrency: Annotated[
        str | int | None,
        Flag(
            "Model requests under way at once; auto finds it out (default at remote endpoints).",
            metavar="N|auto",
            panel="Models",
            default="16",
        ),
    ] = None
    timeout: Annotated[
        float | None,
        Flag("Seconds that all tries of a model request may take.", panel="Models", default="300"),
    ] = None

    @property
    def config_path(self) -> Path | None:
        """The experiment file, if one was given."""
        return to_path(self.config)

    def collect_model_fields(self) -> dict[str, Any]:
        """Return these options as fields of an experiment; None for those that were not given."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(ModelOptions)}
        del values["config"]
        if not isinstance(self.base_url, str | None):
            several = list(values.pop("base_url"))
            values |= {"base_url": several[0]} if len(several) == 1 else {"base_urls": several}
        return values


@dataclass(frozen=True, kw_only=True)
class ConversationOptions:
    """Which conversations are simulated."""

    scenario: Annotated[str | None, SCENARIO] = None
    chatbots: Annotated[
        Sequence[Chosen] | None,
        Flag("Chatbots under test, separated by commas.", separated=True, default="the five of the paper"),
    ] = None
    personas: Annotated[
        Sequence[str] | None,
        Flag("Personas by identifier, separated by commas.", separated=True, panel="Conversations"),
    ] = None
    limit: Annotated[int | None, Flag("At most this many personas.", default="all")] = None
    repeats: Annotated[
        int | None,
        Flag("Conversations per persona and chatbot, with rising seeds.", panel="Conversations", default="1"),
    ] = None
    count: Annotated[
        int | None,
        Flag("Draw this many users, a persona and a seed each; instead of --repeats.", panel="Conversations"),
    ] = None
    manners: Annotated[
        Sequence[str] | None,
        Flag(
            "Manners that users draw from, separated by commas: terse,misspelling.",
            separated=True,
            panel="Conversations",
        ),
    ] = None
    pressure: Annotated[
        Sequence[str] | None,
        Flag(
            "Kinds of pressure that users draw from, separated by commas: insists,crescendo.",
            separated=True,
            panel="Conversations",
        ),
    ] = None
    seed: Annotated[
        int | None,
        Flag("Seed of the first repeat, or of the first users.", panel="Conversations", default="0"),
    ] = None
    min_turns: Annotated[
        int | None, Flag("Replies before the user may stop.", panel="Conversations", default="2")
    ] = None
    max_turns: Annotated[
        int | None, Flag("Replies after which a conversation stops.", panel="Conversations", default="8")
    ] = None
    reply_tokens: Annotated[
        int | None,
        Flag(
            "Limit of a message, the user's and the five chatbots'.",
            panel="Conversations",
            default="96 and 220",
        ),
    ] = None
    top_k: Annotated[
        int | None, Flag("Passages retrieved for a query.", panel="Conversations", default="4")
    ] = None

    def collect_conversation_fields(self) -> dict[str, Any]:
        """Return these options as fields of an experiment; None for those that were not given."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(ConversationOptions)}


@dataclass(frozen=True, kw_only=True)
class FolderOptions:
    """Where a run is written."""

    out: Annotated[StrPath | None, Flag("Run folder; by default runs/ and the time.")] = None
    fresh: Annotated[
        bool,
        Flag(
            "Start over, or go on where the journals end.",
            names=("--fresh/--resume",),
            panel="Recording and resuming",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class RecordingOptions:
    """Recording, replaying and noise."""

    record: Annotated[
        StrPath | None,
        Flag("Record every model answer and search into this file.", panel="Recording and resuming"),
    ] = None
    replay: Annotated[
        StrPath | None,
        Flag("Answer from this recording: no server, no network.", panel="Recording and resuming"),
    ] = None
    quiet: Annotated[bool, Flag("No progress.", names=("--quiet", "-q"), panel="Output")] = False
    server_flags: Sequence[str] = ()
    """Passed on to the model server. On the command line, they stand after `--`."""


def to_path(value: StrPath | None) -> Path | None:
    """Return a path that was given as text or as a path; None where none was given."""
    return None if value is None else Path(value)


def read_whole_numbers(flag: str, text: str, least: int) -> tuple[int, ...]:
    """Return whole numbers that commas separate.

    Raises:
        UsageError: the text holds something else.
    """
    found = [parse_whole_number(part.strip()) for part in text.split(",")]
    numbers = tuple(number for number in found if number is not None and least <= number <= _MOST)
    if len(numbers) < len(found):
        raise UsageError(
            f"{flag} {text}: give whole numbers from {least} to {_MOST} with commas between, such as 1,4."
        )
    return numbers


_MOST = 50
"""Most turns or passages: none of our dialogues is longer."""


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Which processes do the work."""

    workers: Annotated[
        int, Flag("Processes that do the work, each with --concurrency requests.", panel="Processes")
    ] = 1
    ray: Annotated[
        str | None,
        Flag(
            "Have --workers actors of a Ray cluster do so: at this address, or one that `local` starts.",
            metavar="ADDRESS",
            panel="Processes",
        ),
    ] = None
    ray_resources: Annotated[
        Sequence[str],
        Flag(
            "Resources that each actor takes, such as CPU=1,GPU=0.25; by default a core.",
            separated=True,
            panel="Processes",
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class ExportSelection:
    """Which conversations of a run are exported, and what of them."""

    detector: Annotated[str | None, Flag("Take the flags and spans of this detector as annotation.")] = None
    without: Annotated[
        Sequence[str], Flag("Leave out passages, steps or spans, separated by commas.", separated=True)
    ] = ()
    clean_by: Annotated[str | None, Flag("Only conversations of which this detector flags no turn.")] = None
    audited: Annotated[bool, Flag("Only those in which the simulated user has no flaw.")] = False
    min_turns: Annotated[int, Flag("Only those with as many turns.", least=1)] = 1
    keep_duplicates: Annotated[
        bool,
        Flag(
            "Also those that are nearly the same as another, of openai, sharegpt and hf; the other formats "
            "have all."
        ),
    ] = False
