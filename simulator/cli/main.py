"""Entry point of the `hallulab` command: its commands, and errors as one sentence and an exit code."""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
from collections.abc import Sequence
from types import FrameType

import typer

from hallulab.scenarios.errors import HallulabError, ReplayMiss, UsageError
from hallulab.scenarios.files.data_files import expand_home
from hallulab.scenarios.text.wording import clean_for_terminal
from hallulab.simulator.cli import bench
from hallulab.simulator.cli import data as building
from hallulab.simulator.cli import data as importing
from hallulab.simulator.cli import prepare as listing
from hallulab.simulator.cli import prepare as serving
from hallulab.simulator.cli import prepare as starting_packs
from hallulab.simulator.cli import prepare as summarizing
from hallulab.simulator.cli import report as auditing
from hallulab.simulator.cli import report as exporting
from hallulab.simulator.cli import report as folders
from hallulab.simulator.cli import report as realism
from hallulab.simulator.cli import run as branching
from hallulab.simulator.cli import run as running
from hallulab.simulator.cli import stress as calibrating
from hallulab.simulator.cli import stress as planting
from hallulab.simulator.cli import stress as stressing
from hallulab.simulator.cli.console import OutputError, forget_unwritten, guard_output, show_warnings
from hallulab.simulator.cli.options import PassingOn

app = typer.Typer(
    name="hallulab",
    help="Simulated users talk to RAG chatbots, detectors judge every reply, and the run says which chatbot "
    "hallucinates least and which detector can be trusted to say so.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

app.command("serve", cls=PassingOn)(serving.serve)
app.command("run", cls=PassingOn)(running.run)
app.command("simulate", cls=PassingOn)(running.simulate)
app.command("detect", cls=PassingOn)(running.detect)
app.command("branch", cls=PassingOn)(branching.branch)
app.command("report")(folders.report)
app.command("view")(folders.view)
app.command("import")(importing.import_)
app.command("export")(exporting.export)
app.command("audit")(auditing.audit)
app.command("realism")(realism.realism)
app.command("bench", cls=PassingOn)(bench.bench)
app.command("plant", cls=PassingOn)(planting.plant)
app.command("calibrate", cls=PassingOn)(calibrating.calibrate)
app.command("stress", cls=PassingOn)(stressing.stress)
build = typer.Typer(help="Make labelled data that `bench` reads.", no_args_is_help=True)
build.command("hotpotqa-derived", cls=PassingOn)(building.hotpotqa_derived)
build.command("audit-corpus")(building.audit_corpus)
app.add_typer(build, name="build")
app.command("list")(listing.list_things)
app.command("summarize", cls=PassingOn)(summarizing.summarize)
app.command("init-scenario", cls=PassingOn)(starting_packs.init_scenario)


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
    """Run a command and exit: 0 done, 1 operational error, 2 usage, 130 interrupted."""
    signal.signal(signal.SIGTERM, _raise_interrupt)
    gc.set_threshold(*COLLECTED_AFTER)
    try:
        with show_warnings(), guard_output():
            app(_expand_home_folders(sys.argv[1:]))
    except (HallulabError, ReplayMiss) as error:
        _print_error(str(error).replace("\n", " ") if isinstance(error, UsageError) else str(error))
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except OSError as error:
        # Libraries put other people's text into errors, and names of files may have several lines.
        _print_error(" ".join(f"{_describe_subject(error)}: {error.strerror or error}.".split()))
        sys.exit(1)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            _print_to_stderr("interrupted: what was written is intact, start again to go on.")
        raise
    finally:
        forget_unwritten(sys.stdout)
        forget_unwritten(sys.stderr)


def _expand_home_folders(arguments: Sequence[str]) -> list[str]:
    """Replace `~` and `~user` in the arguments, also in `--out=~/x`, which a shell leaves alone.

    Arguments after `--` are the model server's.

    Raises:
        UsageError: an argument begins with a user whom nobody knows.
    """
    ours = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    found = []
    for argument in ours:
        flag, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
        found.append(f"{flag}{equals}{expand_home(value)}" if value.startswith("~") else argument)
    return found + list(arguments[len(ours) :])


def _print_error(text: str) -> None:
    from hallulab.agents.models.redaction import remove_keys

    _print_to_stderr(remove_keys(f"error: {text}"))


def _print_to_stderr(text: str) -> None:
    with contextlib.suppress(OSError):  # the exit code still tells
        print(clean_for_terminal(text), file=sys.stderr)


def _describe_subject(error: OSError) -> str:
    """Return the subject of a system error."""
    if isinstance(error, OutputError):
        return "standard output cannot be written"
    return str(error.filename or type(error).__name__)


def _raise_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
