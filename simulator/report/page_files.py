"""Page files: where a big run's conversations are, beside `report.html`.

A browser lets no page that was opened from a file load another file's content. So each page file is whole:
the reader with a part of the conversations, under the same security policy, with links to its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import TurnFlaw
from hallulab.simulator.report.reader import Case, Cases, get_case
from hallulab.simulator.show.document import Markup, Part, Section, ShownDocument
from hallulab.simulator.show.html import render_page, render_part

MOST = 500
"""Conversations up to which a run has no page files, and after which a page file ends with its case."""


def name_turn(conversation: str, turn: int) -> str:
    """Return the fragment of an address that leads to a turn in the page's reader."""
    return f"chat-{quote(conversation, safe='')}-{turn}"


def build_reader(branched: bool) -> list[Part]:
    """Return what the page's script shows conversations in, which may branch off from another run."""
    return [Markup(render_part("hallulab.simulator.show", "reader.html", branched=branched))]


@dataclass(frozen=True)
class PageFile:
    """A file with a part of the conversations."""

    name: str
    title: str
    """The first and the last case in it."""
    conversations: int
    findings: int
    """Number of places that detectors flagged."""
    ids: Collection[str]


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
        """Conversations that are in no page file yet."""
        self.pages: list[PageFile] = []

    @property
    def has_no_files(self) -> bool:
        """True if `cases` holds everything."""
        return self._folder is None

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
        held = self.cases
        page = PageFile(_name(number), title, held.conversations, held.findings, held.ids)
        links = [("Report", "../report.html")]
        if number > 1:
            links.append(("← Earlier conversations", _name(number - 1)))
        if more:
            links.append(("Later conversations →", _name(number + 1)))
        section = Section("reader", "Conversations", build_reader(self._branched))
        document = ShownDocument("report", title, sections=[section], links=links)
        text = render_page(document, self.cases.data())
        (folder / page.name).write_text(text, encoding="utf-8")
        self.pages.append(page)
        self.cases = self._make()


def _name(number: int) -> str:
    return f"page-{number:05d}.html"
