"""What the `hallulab` command runs: errors become one sentence and an exit code."""

from __future__ import annotations

import contextlib
import signal
import sys
from types import FrameType

from scenarios.errors import HallulabError, ReplayMiss, UsageError
from scenarios.text.wording import harmless
from simulator.cli.app import app
from simulator.cli.output import OutputError, guarded_output, let_go
from simulator.cli.warnings import warnings_shown

INTERRUPTED = 130


def main() -> None:
    """Run a command and exit: 0 done, 1 operational error, 2 usage, 130 interrupted."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with warnings_shown(), guarded_output():
            app()
    except (HallulabError, ReplayMiss) as error:
        from agents.models.redaction import without_keys

        text = str(error).replace("\n", " ") if isinstance(error, UsageError) else str(error)
        _say(without_keys(f"error: {text}"))
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except OSError as error:
        _say(f"error: {_about(error)}: {error.strerror or error}.")
        sys.exit(1)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            _say("interrupted: what was written is intact, start again to go on.")
        raise
    finally:
        let_go(sys.stdout)
        let_go(sys.stderr)


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # the exit code still tells
        print(harmless(text), file=sys.stderr)


def _about(error: OSError) -> str:
    """What an error of the system is about."""
    if isinstance(error, OutputError):
        return "standard output cannot be written"
    return str(error.filename or type(error).__name__)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
