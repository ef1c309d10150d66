"""Entry point of the `hallulab` command: its commands, and errors as one sentence and an exit code."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import re
import signal
import sys
from collections.abc import Sequence
from itertools import pairwise

import typer

from hallulab.scenarios.errors import HallulabError, ReplayMiss, UsageError
from hallulab.scenarios.text.wording import clean_for_terminal
from hallulab.simulator.cli.commands import Commands
from hallulab.simulator.cli.console import (
    OutputError,
    ask_at_terminal,
    forget_unwritten,
    guard_output,
    open_closed_streams,
    show_warnings,
)
from hallulab.simulator.records.agreement import asking_by

app = typer.Typer(
    name="hallulab",
    cls=Commands,
    help="Simulated users talk to RAG chatbots, detectors judge every reply, and the run says which chatbot "
    "hallucinates least and which detector can be trusted to say so.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


RENAMED = {
    "simulate": ("run", "--no-judge"),
    "compact": ("export", "--format", "tables"),
    "baseline": ("compare", "--save"),
    "audit": ("report", "--guards"),
    "summarize": ("init-scenario", "--summarize"),
    "build": ("make-data",),
    "plant": ("make-data", "planted"),
    "stress": ("rag-trust",),
}
"""Former name of a command → what it is now. Version 0.2 no longer knows the former names."""


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version as installed

        typer.echo(f"hallulab {installed('hallulab')}")
        raise typer.Exit


@app.callback()
def _main(
    version: bool = typer.Option(
        False, "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
    ),
) -> None:
    pass


INTERRUPTED = 130
COLLECTED_AFTER = (100_000, 20, 50)
"""When garbage is collected (`gc.set_threshold`). With Python's own numbers, a command that holds the
sentences of a long reply spends most of its time looking through them again and again."""


def main() -> None:
    """Run a command and exit: 0 done, 1 operational error, 2 usage, 3 not comparable, 130 interrupted."""
    open_closed_streams()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    gc.set_threshold(*COLLECTED_AFTER)
    try:
        with show_warnings(), guard_output(), asking_by(ask_at_terminal):
            app(_rename_command(_expand_home_folders(sys.argv[1:])), prog_name="hallulab")
    except (HallulabError, ReplayMiss) as error:
        said = str(error).replace("\n", " ") if isinstance(error, UsageError) else str(error)
        _print_error(f"{said} {DELETED}" if _is_folder_deleted() else said)
        sys.exit(error.EXIT_CODE if isinstance(error, HallulabError) else 1)
    except OSError as error:
        # Libraries put other people's text into errors, and names of files may have several lines.
        subject = str(error.filename or type(error).__name__)
        if isinstance(error, OutputError):
            if error.errno == errno.EPIPE:  # as of `| head`, which wants no more
                sys.exit(1)
            subject = "standard output cannot be written"
        said = " ".join(f"{subject}: {error.strerror or error}.".split())
        if error.errno in (errno.EMFILE, errno.ENFILE):
            said += " Raise the limit (`ulimit -n`)."
        if _is_folder_deleted():
            about_it = isinstance(error, FileNotFoundError) and error.filename is None
            said = DELETED if about_it else f"{said} {DELETED}"
        _print_error(said)
        sys.exit(1)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            _print_to_stderr("interrupted: what was written is intact, start again to go on.")
        raise
    finally:
        forget_unwritten(sys.stdout)
        forget_unwritten(sys.stderr)


def _rename_command(arguments: list[str]) -> list[str]:
    """Replace the former name of a command by what it is now, and say so on standard error."""
    if not arguments or arguments[0] not in RENAMED:
        return arguments
    old, *rest = arguments
    new = RENAMED[old]
    _print_to_stderr(f"`hallulab {old}` is now `hallulab {' '.join(new)}`; version 0.2 drops the old name.")
    if old == "baseline":  # it printed to standard output unless --out named a file
        saved = [re.sub("^--out(?==|$)", "--save", word) for word in rest]
        return ["compare", *saved] if saved != rest else [*new, "-", *rest]
    if old == "summarize":  # the chat, a word of its own anywhere among the flags, is the value of a flag now
        for place, (before, word) in enumerate(pairwise(["--quiet", *rest])):
            takes_value = before.startswith("-") and "=" not in before and before not in ("-q", "--quiet")
            if not word.startswith("-") and not takes_value:
                return ["init-scenario", *rest[:place], "--summarize", *rest[place:]]
        return ["init-scenario", *rest]
    return [*new, *rest]


def _expand_home_folders(arguments: Sequence[str]) -> list[str]:
    """Replace `~` and `~user` in the arguments, also in `--out=~/x`, which a shell leaves alone.

    Arguments after `--` are the model server's.

    Raises:
        UsageError: an argument begins with a user whom nobody knows.
    """
    expanded = list(arguments)
    for place, argument in enumerate(arguments):
        if argument == "--":
            break
        flag, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
        if value == "-" and "--save" not in (flag, *arguments[max(0, place - 1) : place]):
            raise UsageError(f"{argument}: give the name of a file; none is read from a pipe or printed.")
        if value.startswith("~"):
            from hallulab.scenarios.files.data_files import expand_home  # pydantic comes with it

            expanded[place] = f"{flag}{equals}{expand_home(value)}"
    return expanded


def _print_error(text: str) -> None:
    from hallulab.agents.models.redaction import remove_keys

    _print_to_stderr(remove_keys(f"error: {text}"))


def _print_to_stderr(text: str) -> None:
    with contextlib.suppress(OSError):  # the exit code still tells
        print(clean_for_terminal(text), file=sys.stderr)


DELETED = "The working directory was deleted: change to one that is there."
"""All errors say this then: no relative path is found."""


def _is_folder_deleted() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False
