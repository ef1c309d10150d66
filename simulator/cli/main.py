"""Entry point of the `hallulab` command: errors become one sentence and an exit code."""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from hallulab.scenarios.errors import HallulabError, ReplayMiss, UsageError
from hallulab.scenarios.files.paths import expanded
from hallulab.scenarios.text.wording import harmless
from hallulab.simulator.cli.app import app
from hallulab.simulator.cli.output import OutputError, guarded_output, let_go
from hallulab.simulator.cli.warnings import warnings_shown

INTERRUPTED = 130
COLLECTED_AFTER = (100_000, 20, 50)
"""When garbage is collected (`gc.set_threshold`). With Python's own numbers, a command that holds the
sentences of a long reply spends most of its time looking through them again and again."""


def main() -> None:
    """Run a command and exit: 0 done, 1 operational error, 2 usage, 130 interrupted."""
    signal.signal(signal.SIGTERM, _interrupt)
    gc.set_threshold(*COLLECTED_AFTER)
    try:
        with warnings_shown(), guarded_output():
            app(_with_home_folders(sys.argv[1:]))
    except (HallulabError, ReplayMiss) as error:
        _complain(str(error).replace("\n", " ") if isinstance(error, UsageError) else str(error))
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except OSError as error:
        # Libraries put other people's text into errors, and names of files may have several lines.
        _complain(" ".join(f"{_about(error)}: {error.strerror or error}.".split()))
        sys.exit(1)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            _say("interrupted: what was written is intact, start again to go on.")
        raise
    finally:
        let_go(sys.stdout)
        let_go(sys.stderr)


def _with_home_folders(arguments: Sequence[str]) -> list[str]:
    """Replace `~` and `~user` in the arguments, also in `--out=~/x`, which a shell leaves alone.

    Arguments after `--` are the model server's.

    Raises:
        UsageError: an argument begins with a user whom nobody knows.
    """
    ours = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    found = []
    for argument in ours:
        flag, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
        found.append(f"{flag}{equals}{expanded(value)}" if value.startswith("~") else argument)
    return found + list(arguments[len(ours) :])


def _complain(text: str) -> None:
    from hallulab.agents.models.redaction import remove_keys

    _say(remove_keys(f"error: {text}"))


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # the exit code still tells
        print(harmless(text), file=sys.stderr)


def _about(error: OSError) -> str:
    """Return the subject of a system error."""
    if isinstance(error, OutputError):
        return "standard output cannot be written"
    return str(error.filename or type(error).__name__)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
