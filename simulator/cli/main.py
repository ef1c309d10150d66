"""Entry point of the `hallulab` command: errors become one sentence and an exit code."""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from hallulab.scenarios.errors import HallulabError, ReplayMiss, UsageError
from hallulab.scenarios.files.paths import expand_home
from hallulab.scenarios.text.wording import clean_for_terminal
from hallulab.simulator.cli.app import app
from hallulab.simulator.cli.output import OutputError, forget_unwritten, guard_output
from hallulab.simulator.cli.warnings import show_warnings

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
