"""Flags of the command line, made of the options of `hallulab.simulator.options.commands`."""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.options.groups import Flag, read_whole_numbers

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
RunArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")]


def expand_options(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take a dataclass of options: each field with a `Flag` becomes a flag of the command line.

    The fields of the class itself stand in its place, those of its bases after all others, as `--help` shows
    them. What stands after `--` becomes the field `server_flags`, if there is one.
    """
    hints = get_type_hints(command, include_extras=True)
    (name, model), *_ = [(name, hint) for name, hint in hints.items() if dataclasses.is_dataclass(hint)]
    assert isinstance(model, type)
    flags = _list_flags(model)
    takes_server_flags = any(field.name == "server_flags" for field in dataclasses.fields(model))

    def run_with_flags(**values: Any) -> None:
        given = {flag.name: flag.convert(values.pop(flag.name)) for flag in flags}
        if takes_server_flags:
            given["server_flags"] = tuple(values.pop("context").args)
        command(**values, **{name: model(**given)})

    kind = inspect.Parameter.KEYWORD_ONLY
    parameters: list[inspect.Parameter] = []
    if takes_server_flags:
        parameters.append(inspect.Parameter("context", kind, annotation=typer.Context))
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name == name:
            parameters += [flag.parameter for flag in flags if flag.own]
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name], kind=kind))
    parameters += [flag.parameter for flag in flags if not flag.own]
    run_with_flags.__name__, run_with_flags.__doc__ = command.__name__, command.__doc__
    run_with_flags.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run_with_flags)["__signature__"] = inspect.Signature(parameters)
    return run_with_flags


@dataclass(frozen=True)
class _CommandFlag:
    """A field of options on the command line."""

    name: str
    flag: Flag
    types: tuple[Any, ...]
    """The alternatives of its type, without None."""
    optional: bool
    """Whether None is one of them."""
    default: Any
    own: bool
    """Whether it is a field of the options' class itself, and not of a base."""

    @property
    def listed(self) -> bool:
        """Whether its value is a list."""
        return any(get_origin(alternative) is Sequence for alternative in self.types)

    @property
    def parameter(self) -> inspect.Parameter:
        """It as a parameter that Typer reads."""
        flag, default, optional = self.flag, self.default, self.optional
        if self.listed:
            kind: Any = str if flag.separated else list[str]
            optional = optional or not default
            default = ",".join(map(str, default)) if default else None
        else:
            kind = Path if Path in self.types else self.types[0]
        # Without a spelling, Typer would add a --no-… to what is true or false.
        names = flag.names or ((f"--{self.name.replace('_', '-')}",) if kind is bool else ())
        decorated = (
            typer.Argument(metavar=flag.metavar, help=flag.help)
            if flag.argument
            else typer.Option(*names, metavar=flag.metavar, help=flag.help, min=flag.least)
        )
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is dataclasses.MISSING else default,
            annotation=Annotated[kind | None if optional else kind, decorated],
        )

    def convert(self, value: Any) -> Any:
        """Return the field's value for what Typer read.

        Raises:
            UsageError: a list of whole numbers holds something else.
        """
        if not self.listed:
            return value
        if value is None:
            return self.default
        if self.flag.number_from is not None:
            return read_whole_numbers(f"--{self.name}", value, self.flag.number_from)
        return split_names(value) if self.flag.separated else value


def _list_flags(model: type[Any]) -> list[_CommandFlag]:
    """Return the fields that have a flag: the class's own first, then those of its bases in their order."""
    fields = {field.name: field for field in dataclasses.fields(model)}
    hints = get_type_hints(model, include_extras=True)
    flags = []
    for owner in model.__mro__:
        for name in vars(owner).get("__annotations__", {}):
            if name not in fields or get_origin(hints[name]) is not Annotated:
                continue
            kind, flag = get_args(hints[name])
            union = get_origin(kind) in (Union, types.UnionType)
            alternatives = get_args(kind) if union else (kind,)
            flags.append(
                _CommandFlag(
                    name=name,
                    flag=flag,
                    types=tuple(one for one in alternatives if one is not types.NoneType),
                    optional=types.NoneType in alternatives,
                    default=fields.pop(name).default,
                    own=owner is model,
                )
            )
    return flags


def split_names(value: str | None) -> list[str] | None:
    """Split a comma-separated option into a list; None if it was not given."""
    if value is None:
        return None
    return [name.strip() for name in value.split(",") if name.strip()]


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
