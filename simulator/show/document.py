"""The document that a result is shown as: sections of parts, for the terminal, a page and Markdown.

A command makes one `ShownDocument`; `show.terminal.print_document`, `show.html.render_page` and
`show.markdown.render_markdown` show it:

    COLUMNS = (CHATBOT, Column("Greetings", "greetings", "replies that greet", short="Greetings"))

    def build_document(rows: Sequence[Greeting]) -> ShownDocument:
        return ShownDocument(
            "greet",
            "Greetings of a bank",
            facts=[(len(rows), "chatbots")],
            lead=[Paragraph("vanilla greets most.", "finding")],
            sections=[
                Section(
                    "greetings",
                    "Greetings",
                    [
                        Paragraph("Counted are replies.", on=PAGE),
                        GroupedTable(COLUMNS, [rows], heading="greetings of each chatbot"),
                    ],
                )
            ],
        )

    print_document(build_document(rows))
    Path("page.html").write_text(render_page(build_document(rows)))

A part is shown everywhere, unless `on` names fewer media. Every text is shown as it is: the renderers escape
what a terminal, a browser or GitHub would obey, so texts of documents and models may stand in any part but
`Figures` and `Markup`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from hallulab.simulator.show.columns import Column, Format

Medium = Literal["terminal", "page", "markdown"]
EVERYWHERE: tuple[Medium, ...] = ("terminal", "page", "markdown")
TERMINAL: tuple[Medium, ...] = ("terminal",)
PAGE: tuple[Medium, ...] = ("page",)
MARKDOWN: tuple[Medium, ...] = ("markdown",)
FILES: tuple[Medium, ...] = ("page", "markdown")


@dataclass(frozen=True)
class Paragraph:
    """A sentence or more; a line on the terminal, where an empty text is an empty line."""

    text: str
    style: Literal["finding", "note", "hint", ""] = "hint"
    """`finding`: a result; `note`: a warning; `hint`: how to read the numbers; empty: running text."""
    on: Collection[Medium] = EVERYWHERE
    kind: ClassVar[str] = "paragraph"


GAP = Paragraph("", on=TERMINAL)
"""An empty line of the terminal."""


@dataclass(frozen=True)
class Heading:
    """A heading within a section; one of the document's names has its colour before it on a page."""

    text: str
    on: Collection[Medium] = EVERYWHERE
    kind: ClassVar[str] = "heading"


@dataclass(frozen=True)
class GroupedTable:
    """A table with its rows in groups.

    The terminal has the columns with a `short` heading, page and Markdown those with a `label`.
    """

    columns: Sequence[Column]
    groups: Sequence[Sequence[Any]]
    heading: str = ""
    """Line above it on the terminal, where sections have no titles."""
    by: str = ""
    """Field whose value a narrow terminal writes above each group, in place of a wide column."""
    dense: bool = False
    """A page sets it in small type: it has many columns."""
    bound: Format | None = None
    """Format of intervals' bounds on the terminal; None: that of the values."""
    whole: bool = False
    """The terminal cuts no text short, and breaks no name."""
    on: Collection[Medium] = EVERYWHERE
    kind: ClassVar[str] = "table"


@dataclass(frozen=True)
class Bullets:
    """Lines of a list."""

    lines: Sequence[str]
    on: Collection[Medium] = EVERYWHERE
    kind: ClassVar[str] = "bullets"


@dataclass(frozen=True)
class QuotedText:
    """A labelled text of a conversation."""

    label: str
    text: str
    on: Collection[Medium] = EVERYWHERE


@dataclass(frozen=True)
class NotableReply:
    """A single reply that is worth reading."""

    where: str
    """Chatbot, persona and turn."""
    text: str
    """The finding, such as `clean → 1 hallucination`."""
    note: str = ""
    name: str = ""
    """One of the document's names, whose colour a page shows."""
    quotations: Sequence[QuotedText] = ()
    link: tuple[str, str] | None = None
    """Text and address of a link; pages alone have it."""


@dataclass(frozen=True)
class NotableReplies:
    """Replies of one kind. Terminal and Markdown list the first of them, a page has all."""

    title: str
    cases: Sequence[NotableReply]
    number: int
    """All there are, of which `cases` may be the first."""
    meaning: str = ""
    """Explanation of the kind, for a page."""
    on: Collection[Medium] = EVERYWHERE
    kind: ClassVar[str] = "cases"


@dataclass(frozen=True)
class Figures:
    """Charts beside each other; only pages have charts."""

    figures: Sequence[tuple[str, str]]
    """Titles, and SVG elements as they shall stand on the page: texts in them are escaped already."""
    legend: Sequence[str] | None = None
    """Words behind the document's names, each with its colour, below the charts; None: no such line."""
    on: Collection[Medium] = PAGE
    kind: ClassVar[str] = "figures"


@dataclass(frozen=True)
class MarkedReply:
    """A flagged reply beside the evidence that bears on it."""

    where: str
    """Chatbot, persona and turn."""
    pieces: Sequence[tuple[str, bool, str]]
    """Its text in pieces: whether a piece is marked, and its style (`show.reply_text.Style`)."""
    by: str
    """Name of the detector that marks it."""
    verdicts: Sequence[tuple[str, str]]
    """Names of the detectors, and their verdicts in words."""
    reason: str
    """Reason of the detector that marks it, or empty."""
    evidence: str
    """The sentence that is nearest to the marked words, or empty."""
    source: str
    """Document of this sentence, or why there is none."""
    link: tuple[str, str] | None = None


@dataclass(frozen=True)
class MarkedReplies:
    """Replies to be read first."""

    title: str
    meaning: str
    """By which rule they were chosen."""
    replies: Sequence[MarkedReply]
    on: Collection[Medium] = PAGE
    kind: ClassVar[str] = "marked"


@dataclass(frozen=True)
class Details:
    """A text that is folded away, with its line breaks."""

    summary: str
    text: str
    on: Collection[Medium] = PAGE
    kind: ClassVar[str] = "details"


@dataclass(frozen=True)
class Markup:
    """HTML of one of our templates, such as the reader of conversations."""

    html: str
    on: Collection[Medium] = PAGE
    kind: ClassVar[str] = "markup"


@dataclass(frozen=True)
class Folded:
    """Parts that are folded away, such as a table with all its columns; no script opens them."""

    summary: str
    parts: Sequence[Part]
    on: Collection[Medium] = PAGE
    kind: ClassVar[str] = "folded"


Part = (
    Paragraph
    | Heading
    | GroupedTable
    | Bullets
    | NotableReplies
    | MarkedReplies
    | Figures
    | Details
    | Markup
    | Folded
)


@dataclass(frozen=True)
class Section:
    """Parts under a title. The terminal has no titles: its tables have a `heading`."""

    anchor: str
    """Its address on the page."""
    title: str
    """Empty: the section has none."""
    parts: Sequence[Part]
    link: str = ""
    """Its name in the page's list of sections; empty: the title."""
    folded: bool = False
    """Markdown folds it away."""
    on: Collection[Medium] = EVERYWHERE


@dataclass(frozen=True)
class ShownDocument:
    """A result, ready to be shown."""

    command: str
    """Command that made it, such as `bench`."""
    title: str
    facts: Sequence[tuple[int | str, str]] = ()
    """Numbers at the top of a page, and what each counts."""
    lead: Sequence[Part] = ()
    """Parts above all sections: what is most important."""
    sections: Sequence[Section] = ()
    names: Sequence[str] = ()
    """Names with a colour, such as the detectors: the place of a name chooses it."""
    coloured: Collection[str] = ("detector",)
    """Fields of tables whose values are such names."""
    links: Sequence[tuple[str, str]] = ()
    """Texts and addresses of other pages."""

    def of(self, medium: Medium) -> ShownDocument:
        """Return the document with those sections and parts that a medium shows."""
        sections = [
            replace(section, parts=_keep(section.parts, medium))
            for section in self.sections
            if medium in section.on
        ]
        return replace(self, lead=_keep(self.lead, medium), sections=sections)


def _keep(parts: Iterable[Part], medium: Medium) -> list[Part]:
    """Return the parts that a medium shows, cases with those of their quotations that it shows."""
    kept: list[Part] = []
    for part in parts:
        if medium not in part.on:
            continue
        if isinstance(part, NotableReplies):
            cases = [
                replace(case, quotations=[one for one in case.quotations if medium in one.on])
                for case in part.cases
            ]
            part = replace(part, cases=cases)
        if isinstance(part, Folded):
            part = replace(part, parts=_keep(part.parts, medium))
        kept.append(part)
    return kept
