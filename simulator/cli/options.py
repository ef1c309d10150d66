"""Options that several commands share, as dataclasses that unfold into flags."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from hallulab.scenarios.errors import UsageError


@dataclass(frozen=True)
class ModelOptions:
    """Which models answer, and how hard they are asked."""

    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="Experiment file (YAML); flags win over it.")
    ] = None
    model: Annotated[
        str | None,
        typer.Option(help="Model to serve (catalogue name, folder, hub name), or the endpoint's model."),
    ] = None
    base_url: Annotated[
        list[str] | None,
        typer.Option(
            help="OpenAI-compatible endpoint; without it the model is served here. "
            "Repeat it for several that serve the same model."
        ),
    ] = None
    api_key_env: Annotated[
        str | None,
        typer.Option(help="Environment variable with the endpoint's key; by default OPENAI_API_KEY."),
    ] = None
    concurrency: Annotated[int | None, typer.Option(help="Model requests under way at once.")] = None
    timeout: Annotated[float | None, typer.Option(help="Seconds one try of a model request may take.")] = None


@dataclass(frozen=True)
class ConversationOptions:
    """Which conversations are held."""

    scenario: Annotated[
        str | None, typer.Option(help="Built-in scenario pack, or the path of your own pack folder.")
    ] = None
    chatbots: Annotated[str | None, typer.Option(help="Chatbots under test, separated by commas.")] = None
    personas: Annotated[str | None, typer.Option(help="Personas by identifier, separated by commas.")] = None
    limit: Annotated[int | None, typer.Option(help="At most this many personas.")] = None
    repeats: Annotated[
        int | None, typer.Option(help="Conversations per persona and chatbot, with rising seeds.")
    ] = None
    count: Annotated[
        int | None,
        typer.Option(help="Draw this many users, a persona and a seed each; instead of --repeats."),
    ] = None
    manners: Annotated[
        str | None, typer.Option(help="Manners that users draw from, separated by commas: terse,misspelling.")
    ] = None
    seed: Annotated[int | None, typer.Option(help="Seed of the first repeat, or of the first users.")] = None
    min_turns: Annotated[int | None, typer.Option(help="Replies before the user may stop.")] = None
    max_turns: Annotated[int | None, typer.Option(help="Replies after which a conversation stops.")] = None
    reply_tokens: Annotated[
        int | None, typer.Option(help="Limit of a message, the user's and the five chatbots'.")
    ] = None
    top_k: Annotated[int | None, typer.Option(help="Passages retrieved for a query.")] = None


@dataclass(frozen=True)
class RecordingOptions:
    """Recording, replaying and noise."""

    record: Annotated[
        Path | None, typer.Option(help="Record every model answer and search into this file.")
    ] = None
    replay: Annotated[
        Path | None, typer.Option(help="Answer from this recording: no server, no network.")
    ] = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False


@dataclass(frozen=True)
class FolderOptions:
    """Where a run is written."""

    out: Annotated[Path | None, typer.Option(help="Run folder; by default runs/ and the time.")] = None
    fresh: Annotated[
        bool, typer.Option("--fresh/--resume", help="Start over, or go on where the journals end.")
    ] = False


Workers = Annotated[
    int, typer.Option(help="Processes that hold and judge conversations, each with --concurrency requests.")
]
Detectors = Annotated[str | None, typer.Option(help="Detectors, separated by commas.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
RunArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")]


def expand_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses of options: each field becomes a flag of the command line."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type] = {
        name: hint
        for name, hint in hints.items()
        if isinstance(hint, type) and dataclasses.is_dataclass(hint)
    }
    own = [p for name, p in inspect.signature(command).parameters.items() if name not in groups]
    fields = {name: list(dataclasses.fields(group)) for name, group in groups.items()}

    def unfolded(**values: Any) -> None:
        packed = {
            name: groups[name](**{field.name: values.pop(field.name) for field in members})
            for name, members in fields.items()
        }
        command(**values, **packed)

    parameters = [p.replace(annotation=hints[p.name], kind=p.KEYWORD_ONLY) for p in own]
    for name, members in fields.items():
        types = get_type_hints(groups[name], include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=types[field.name],
            )
            for field in members
        ]
    unfolded.__name__, unfolded.__doc__ = command.__name__, command.__doc__
    unfolded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(unfolded)["__signature__"] = inspect.Signature(parameters)
    return unfolded


def split_names(value: str | None) -> list[str] | None:
    """Split a comma-separated option into a list; None if it was not given."""
    if value is None:
        return None
    return [name.strip() for name in value.split(",") if name.strip()]


def read_whole_numbers(flag: str, text: str, least: int) -> tuple[int, ...]:
    """Return whole numbers that commas separate.

    Raises:
        UsageError: the text holds something else.
    """
    from hallulab.scenarios.errors import UsageError

    found = [part.strip() for part in text.split(",")]
    if any(not part.isdecimal() or not least <= int(part) <= _MOST for part in found):
        raise UsageError(
            f"{flag} {text}: give whole numbers from {least} to {_MOST} with commas between, such as 1,4."
        )
    return tuple(int(part) for part in found)


_MOST = 50
"""Most turns or passages: none of our dialogues is longer."""


class PassingOn(TyperCommand):
    """A command whose `context.args` is what stands after the first `--`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command's own arguments, those before `--`.

        Raises:
            UsageError: there is a word that the command does not take.
        """
        end = args.index("--") if "--" in args else len(args)
        # To the parser, a stray word and one after `--` are the same.
        ctx.allow_extra_args = True
        stray = super().parse_args(ctx, args[:end])
        if stray:
            raise UsageError(
                f"{stray[0]}: `{self.name}` takes no such word. Lists are separated by commas (a,b), and "
                "flags of the model server stand after `--`."
            )
        ctx.args = args[end + 1 :]
        return list(ctx.args)
