"""The commands of `hallulab`, each imported only when it is asked for, and the help that lists them.

Importing all of them and building their flags takes longer than many a command.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from hallulab.simulator.records.run_files import require_run


@dataclass(frozen=True)
class LazyCommand:
    """A command: where its function stands, and a line of help."""

    module: str
    function: str
    """Name of the function there, or of a group of functions."""
    help: str = ""
    """For the help that lists the commands, in place of the function's docstring; at most 64 characters."""
    reads_run: bool = False
    """True if its argument is a run folder."""

    def build(self, name: str) -> Any:
        """Import the function, and return its parser."""
        from hallulab.simulator.cli.options import add_command  # no help and no wrong folder needs it

        found = getattr(import_module(f"{__package__}.{self.module}"), self.function)
        if isinstance(found, typer.Typer):
            command: Any = typer.main.get_group(found)
        else:
            alone = typer.Typer(add_completion=False)
            add_command(alone, name, found)
            command = typer.main.get_command(alone)
        command.name = name
        return command


COMMANDS: Mapping[str, Mapping[str, LazyCommand]] = {
    "Start": {
        "demo": LazyCommand("demo", "demo", "Replay a recorded run and open its page, without a model."),
        "judge": LazyCommand("run", "judge", "Judge your own chats, and write the page: one command."),
        "init": LazyCommand("files", "init", "Write an experiment file, or a scenario pack, to start from."),
        "schema": LazyCommand("files", "schema", "Print the JSON Schema of experiment files, for editors."),
        "list": LazyCommand(
            "prepare", "list_things", "List scenarios, personas, chatbots, detectors or models."
        ),
        "serve": LazyCommand("prepare", "serve", "Serve a model with vLLM on loopback until Ctrl-C."),
    },
    "Run": {
        "run": LazyCommand("run", "run", "Simulate conversations, judge every reply, and report."),
        "detect": LazyCommand("run", "detect", "Judge what a saved run has no verdicts on, and report."),
        "chat": LazyCommand("run", "chat", "Talk to a chatbot yourself; detectors judge each reply."),
        "branch": LazyCommand("run", "branch", "Give all chatbots the same histories, and report."),
        "rag-trust": LazyCommand(
            "detectors", "rag_trust", "Try chatbots with poisoned and distracting documents."
        ),
    },
    "Read": {
        "report": LazyCommand("report", "report", "Recompute the tables and the page of a run.", True),
        "view": LazyCommand("report", "view", "Serve pages over runs on this machine until Ctrl-C."),
        "compare": LazyCommand(
            "report", "compare", "Compare runs: verdicts, rates, costs, and what was changed."
        ),
        "gate": LazyCommand("report", "gate", "Check a run against a baseline, and fail if it is worse."),
        "realism": LazyCommand("report", "realism", "Compare simulated users' messages with people's.", True),
    },
    "Measure detectors": {
        "bench": LazyCommand(
            "detectors", "bench", "Measure detectors on labelled data, beside the lexical floor."
        ),
        "calibrate": LazyCommand("detectors", "calibrate", "Fit the detectors' thresholds for your model."),
    },
    "Data": {
        "import": LazyCommand("data", "import_", "Write your own chats as a run folder."),
        "export": LazyCommand("data", "export", "Write a run in a format of other tools, or for `bench`."),
        "annotate": LazyCommand(
            "data", "annotate", "Draw the turns to label next, or add labels of a sheet.", True
        ),
        "make-data": LazyCommand("data", "make_data", "Make labelled data that `bench` reads."),
    },
}
"""Heading of `--help` → name → command; in the order of `--help`."""

_HIDDEN = {"init-scenario": LazyCommand("prepare", "init_scenario")}
"""The former name of `init pack`."""


class _Loaded(Mapping[str, Any]):
    """Name of a command → its parser, built when it is asked for."""

    def __init__(self) -> None:
        self._places = {
            name: place for group in (*COMMANDS.values(), _HIDDEN) for name, place in group.items()
        }
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = self._places[name].build(name)
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class Commands(TyperGroup):
    """All commands: their parsers on demand, and their list under headings."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**{**attributes, "commands": _Loaded()})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments up to the name of the command.

        A folder right behind it is looked at here: reading the others imports pydantic, which takes longer
        than all else of a command that finds no run.

        Raises:
            UsageError: the folder is no run folder.
        """
        if not args and not ctx.resilient_parsing:
            # Typer shows nothing here: it takes for granted that rich has printed the help when it was made.
            typer.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        if len(args) > 1 and not {"-h", "--help"} & set(args) and not args[1].startswith("-"):
            place = next((group[args[0]] for group in COMMANDS.values() if args[0] in group), None)
            if place is not None and place.reads_run:
                require_run(Path(args[1]))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a value that it refuses is told without pydantic's words."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise

    def list_commands(self, ctx: typer.Context | None) -> list[str]:  # type: ignore[override]
        """Return the names of the commands that the help shows."""
        return [name for group in COMMANDS.values() for name in group]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help as plain text: rich's panels would take three times as long."""
        super(TyperGroup, self).format_help(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under their headings."""
        for heading, group in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, place.help) for name, place in group.items()])
