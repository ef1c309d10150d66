"""Show warnings of our own modules on standard error, as text that a terminal cannot obey."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hallulab.scenarios.text.wording import clean_for_terminal

_OURS = "hallulab"


@contextmanager
def show_warnings() -> Iterator[None]:
    """Print each warning, in one line and once, until the end of the block.

    Tracebacks are left out: the run folder has what failed, with its reason.
    """
    handler = _Lines()
    logger = logging.getLogger(_OURS)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        line = clean_for_terminal(f"warning: {' '.join(record.getMessage().split())}")
        if line not in self._said:
            self._said.add(line)
            print(line, file=sys.stderr)
