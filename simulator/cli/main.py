"""Entry point of the `hallulab` command: errors become one sentence and an exit code."""

from __future__ import annotations

import signal
import sys
from types import FrameType

from scenarios.errors import HallulabError, ReplayMiss, UsageError
from simulator.cli.app import app
from simulator.cli.warnings import warnings_shown
from simulator.report.wording import harmless

INTERRUPTED = 130


def main() -> None:
    """Run a command and exit: 0 done, 1 operational error, 2 usage, 130 interrupted."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with warnings_shown():
            app()
    except (HallulabError, ReplayMiss) as error:
        from agents.redaction import without_keys

        print(harmless(without_keys(f"error: {error}")), file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except OSError as error:
        if error.filename is None:
            raise
        print(harmless(f"error: {error.filename}: {error.strerror}."), file=sys.stderr)
        sys.exit(1)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            print("interrupted: what was written is intact, start again to go on.", file=sys.stderr)
        raise


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
