"""How long a document takes."""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.conversion import Conversion


def measure_reading(name: str, content: bytes) -> float:
    """Return the seconds of processor time that a document takes to be read or refused."""

    def get_seconds() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = get_seconds()
    with Conversion() as process, suppress(UsageError):
        process.read(Path(name), content)
    return get_seconds() - before
