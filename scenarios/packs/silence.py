"""Libraries that talk to the terminal, kept quiet for the time of a call."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def silenced(library: str) -> Iterator[None]:
    """Let a library neither log nor warn; what it raises says enough.

    Args:
        library: the name that its loggers' names begin with.
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
