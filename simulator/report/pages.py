"""Page files: where a big run's conversations are, beside `report.html`.

A browser lets no page that was opened from a file load another file's content. So each page file is whole:
the reader with a part of the conversations, under the same security policy, with links to its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.measure.conversations import TurnFlaw
from hallulab.simulator.measure.metrics import ByDetector
from hallulab.simulator.report.browser import Case, Cases, get_case
from hallulab.simulator.report.markup import escape_json, load_asset, render

_PACKAGE = "hallulab.simulator.report"

MOST = 500
"""Conversations up to which a run has no page files, and after which a page file ends with its case."""


@dataclass(frozen=True)
class PageFile:
    """A file with a part of the conversations."""

    name: str
    """Its name."""
    title: str
    """The first and the last case in it."""
    conversations: int
    """Number of conversations."""
    findings: int
    """Number of places that detectors flagged."""


class Reader:
    """Collects the conversations for the reader, one after the other in the order of their cases.

    Args:
        make: makes an empty collection.
        folder: where page files are written; None: there are none, and `cases` holds everything.
        branched: whether the conversations branch off from another run.
    """

    def __init__(self, make: Callable[[], Cases], folder: Path | None, branched: bool) -> None:
        self._make, self._folder, self._branched = make, folder, branched
        self._last: Case | None = None
        self.cases = make()
        """What is in no page file yet."""
        self.pages: list[PageFile] = []
        """The page files so far."""

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Sequence[TurnFlaw]) -> None:
        """Add a conversation, and write a page file when it begins a case and the page is full."""
        case = get_case(conversation)
        if self._folder is not None and self.cases.conversations >= MOST and case != self._last:
            self._write(self._folder, more=True)
        self.cases.add(conversation, verdicts, flaws)
        self._last = case

    def end(self) -> None:
        """Write the last page file."""
        if self._folder is not None:
            self._write(self._folder, more=False)

    def _write(self, folder: Path, more: bool) -> None:
        number, listed = len(self.pages) + 1, self.cases.listed
        title = " to ".join(f"{persona}, seed {seed}" for _, persona, seed, _ in (listed[0], listed[-1]))
        page = PageFile(_name(number), title, self.cases.conversations, self.cases.findings)
        text = render(
            _PACKAGE,
            "pages.html",
            load_asset(_PACKAGE, "page.css"),
            load_asset(_PACKAGE, "page.js"),
            page=page,
            before=_name(number - 1) if number > 1 else None,
            after=_name(number + 1) if more else None,
            branched=self._branched,
            data=escape_json(self.cases.data()),
        )
        (folder / page.name).write_text(text, encoding="utf-8")
        self.pages.append(page)
        self.cases = self._make()


def _name(number: int) -> str:
    return f"page-{number:05d}.html"
