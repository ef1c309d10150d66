"""Bring the index of a run up to date: some lines at once, the others in the background."""

from __future__ import annotations

import contextlib
import threading
import time

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.simulator.viewer.index import Counts, RunIndex

PAUSE_S = 0.005
"""Seconds between two steps in the background, in which requests are answered."""


COUNT_S = 2.0
"""Seconds after which what was read so far is counted again."""


_ONE_AT_A_TIME = threading.Lock()
"""Locked during a step in the background, so that many new runs do not crowd out requests."""


class IndexUpdater:
    """Brings an index up to date."""

    def __init__(self, index: RunIndex) -> None:
        self._index = index
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def is_working(self) -> bool:
        """True while lines are being read in the background."""
        return self._thread is not None and self._thread.is_alive()

    def update(self, at_once: bool = True) -> None:
        """Read some lines that were added; if there are more, go on in the background.

        Args:
            at_once: whether the first ones are read before this returns.

        Raises:
            UsageError: experiment.json is damaged.
            OperationalError: the index or a journal cannot be read or written.
        """
        with self._starting:
            if not self.is_working and (not at_once or self._index.grow()):
                self._thread = threading.Thread(target=self._work, name="viewer index", daemon=True)
                self._thread.start()

    def count(self) -> Counts:
        """Count what was read so far; while lines are being read, a short time ago."""
        return self._index.count(lately=self.is_working)

    def wait(self) -> None:
        """Wait until nothing is read in the background."""
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        with contextlib.suppress(UsageError, OperationalError):  # the next request meets and reports it
            more, counted = True, 0.0
            while more:
                with _ONE_AT_A_TIME:
                    more = self._index.grow()
                if not more or time.monotonic() > counted + COUNT_S:
                    self._index.count()
                    counted = time.monotonic()
                time.sleep(PAUSE_S)
            self._index.rate()
