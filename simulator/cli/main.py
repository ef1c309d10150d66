"""Entry point of the `hallulab` command: errors become one sentence and an exit code."""

from __future__ import annotations

import signal
import sys
from types import FrameType

from simulator.cli.app import app


def main() -> None:
    """Entry point: runs a command and turns our errors into one sentence and an exit code.

    0 done, 1 operational error, 2 usage, 130 interrupted.
    """
    import click

    from scenarios.errors import HallulabError, UsageError

    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = app(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        print("interrupted; what was written is intact, start again to go on.", file=sys.stderr)
        code = 130
    except HallulabError as error:
        print(f"error: {error}", file=sys.stderr)
        code = 2 if isinstance(error, UsageError) else 1
    except BrokenPipeError:
        sys.stderr.close()
        code = 0
    sys.exit(code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
