"""Keep a library from printing to the terminal during a call."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hide_log_and_warnings(library: str) -> Iterator[None]:
    """Silence a library's log and warnings while the block runs. Its exceptions say enough.

    Args:
        library: beginning of its loggers' names.
    """
    logger = logging.getLogger(library)
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
