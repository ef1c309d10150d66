"""Flags of the command line, made of the options of `hallulab.simulator.options.commands`."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.options.groups import Flag, OptionField, Panel, list_fields, read_whole_numbers

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
RunArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")]


def expand_options(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take a dataclass of options: each field with a `Flag` becomes a flag of the command line.

    In `--help`, flags that several commands share stand before a command's own ones, and those under a
    heading (`Flag.panel`) after all others. Arguments after `--` become the field `server_flags`, if there is
    one.
    """
    hints = get_type_hints(command, include_extras=True)
    (name, model), *_ = [(name, hint) for name, hint in hints.items() if dataclasses.is_dataclass(hint)]
    assert isinstance(model, type)
    fields = [(field, field.flag) for field in list_fields(model) if field.flag is not None]
    takes_server_flags = any(field.name == "server_flags" for field in dataclasses.fields(model))

    def run_with_flags(**values: Any) -> None:
        given = {field.name: _convert(field, flag, values.pop(field.name)) for field, flag in fields}
        if takes_server_flags:
            given["server_flags"] = tuple(values.pop("context").args)
        command(**values, **{name: model(**given)})

    kind = inspect.Parameter.KEYWORD_ONLY
    parameters: list[inspect.Parameter] = []
    if takes_server_flags:
        parameters.append(inspect.Parameter("context", kind, annotation=typer.Context))
    headings = [None, *get_args(Panel)]
    shown = sorted(fields, key=lambda one: (headings.index(one[1].panel), one[0].own))
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name == name:
            parameters += [_make_parameter(field, flag) for field, flag in shown]
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name], kind=kind))
    run_with_flags.__name__, run_with_flags.__doc__ = command.__name__, command.__doc__
    run_with_flags.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run_with_flags)["__signature__"] = inspect.Signature(parameters)
    return run_with_flags


def _make_parameter(field: OptionField, flag: Flag) -> inspect.Parameter:
    """Return a field as a parameter that Typer reads."""
    default, optional = field.default, NoneType in field.types
    if field.is_list:
        kind: Any = str if flag.separated else list[str]
        optional = optional or not default
        default = ",".join(map(str, default)) if default else None
    else:
        kind = Path if Path in field.types else field.types[0]
    # Without a spelling, Typer would add a --no-… to what is true or false.
    names = flag.names or ((f"--{field.name.replace('_', '-')}",) if kind is bool else ())
    decorated = (
        typer.Argument(metavar=flag.metavar, help=flag.help)
        if flag.argument
        else typer.Option(
            *names,
            metavar=flag.metavar,
            help=flag.help,
            min=flag.least,
            show_default=flag.default or True,
            rich_help_panel=flag.panel,
        )
    )
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is dataclasses.MISSING else default,
        annotation=Annotated[kind | None if optional else kind, decorated],
    )


def _convert(field: OptionField, flag: Flag, value: Any) -> Any:
    """Return a field's value for what Typer read.

    Raises:
        UsageError: a list of whole numbers has something else in it.
    """
    if not field.is_list:
        return value
    if value is None:
        return field.default
    if flag.number_from is not None:
        return read_whole_numbers(f"--{field.name}", value, flag.number_from)
    return split_names(value) if flag.separated else value


def split_names(value: str | None) -> list[str] | None:
    """Split a comma-separated option into a list; None if it was not given."""
    if value is None:
        return None
    return [name.strip() for name in value.split(",") if name.strip()]


def add_command(group: typer.Typer, name: str, command: Callable[..., None]) -> None:
    """Add a function to a group of commands; its docstring is the help.

    Args:
        group: the commands of `hallulab`, or of one of its groups.
        command: the function; with a parameter `context`, it gets what stands after `--`.
    """
    passes_on = "context" in inspect.signature(command).parameters
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    # Typer keeps the ends of lines in all paragraphs but the first, so that they break at two widths.
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    kind = PassingOn if passes_on else None
    group.command(name, cls=kind, help=text)(command)


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
            if stray[0].endswith((".yaml", ".yml")) and any(one.name == "config" for one in self.params):
                raise UsageError(f"{stray[0]}: write `--config` before an experiment file.")
            raise UsageError(
                f"{stray[0]}: `{self.name}` takes no such word. Lists are separated by commas (a,b), and "
                "flags of the model server stand after `--`."
            )
        ctx.args = args[end + 1 :]
        return list(ctx.args)
