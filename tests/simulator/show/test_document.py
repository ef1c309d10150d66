"""One document on the terminal, on a page and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from rich.console import Console

from hallulab.simulator.show.columns import CHATBOT, DETECTOR, Column
from hallulab.simulator.show.document import (
    GAP,
    PAGE,
    TERMINAL,
    Bullets,
    Details,
    Figures,
    GroupedTable,
    Heading,
    Markup,
    NotableReplies,
    NotableReply,
    Paragraph,
    Part,
    QuotedText,
    Section,
    ShownDocument,
)
from hallulab.simulator.show.html import render_page
from hallulab.simulator.show.markdown import LONGEST, render_markdown
from hallulab.simulator.show.terminal import print_document

FIGURES = Figures([("a", "<svg/>")], ["dot"])
HOSTILE = "<img src=x> \x1b[2J @you | a\n\n# b"
FEW = ("†", "few")
ROWS = [{"chatbot": "bot", "detector": "d", "found": 2}, {"chatbot": "bat", "detector": "d", "found": 0}]
COLUMNS = (
    CHATBOT,
    DETECTOR,
    Column(
        "Found",
        "found",
        "how many",
        short="Found",
        sign=lambda row: ("†", "few") if not row["found"] else ("", ""),
    ),
)
QUOTATIONS = [QuotedText("reply", "Hi"), QuotedText("q", "x", PAGE)]
DOCUMENT = ShownDocument(
    "greet",
    "Greetings",
    facts=[(2, "chatbots"), ("", "model")],
    lead=[
        Paragraph("bot greets most.", "finding"),
        Paragraph("Few.", "finding"),
        Paragraph("Beware.", "note"),
    ],
    sections=[
        Section(
            "table",
            "Numbers",
            [
                GAP,
                GroupedTable(COLUMNS, [ROWS], "greetings:", by="detector"),
                Paragraph("on a page", on=PAGE),
            ],
            folded=True,
        ),
        Section(
            "cases",
            "NotableReplies",
            [
                Heading("d"),
                NotableReplies(
                    "new",
                    [
                        NotableReply(
                            "bot, asha",
                            "0 → 1",
                            "noise",
                            "d",
                            [QuotedText("reply", "Hi"), QuotedText("q", "x", PAGE)],
                        )
                    ],
                    1,
                    "first seen",
                ),
            ],
        ),
        Section("rest", "", [Bullets(["one", "two"])]),
        Section("hidden", "Terminal", [Paragraph("for the terminal")], on=TERMINAL),
    ],
    names=["d"],
)


def printed(document: ShownDocument, width: int = 120) -> list[str]:
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        print_document(document, console)
    return [line.rstrip() for line in capture.get().splitlines()]


def with_parts(*parts: Part) -> ShownDocument:
    return ShownDocument("c", "t", sections=[Section("s", "S", parts)])


def test_the_terminal_has_every_part_but_no_titles() -> None:
    assert printed(DOCUMENT) == [
        "bot greets most.",
        "Few.",
        "Beware.",
        "",
        "greetings:",
        "Chatbot Detector Found",
        "──────────────────────",
        "bot     d            2",
        "bat     d           0†",
        "",
        "d",
        "",
        "new (1):",
        "- bot, asha: 0 → 1; noise",
        "    reply: Hi",
        "- one",
        "- two",
        "for the terminal",
    ]


def test_a_narrow_terminal_has_the_name_of_a_group_above_it() -> None:
    lines = printed(DOCUMENT, 40)
    start = lines.index("Chatbot Found")
    assert lines[start + 2 : start + 5] == ["by d", "bot         2", "bat        0†"]


def test_numbers_that_do_not_fit_stand_below_the_others_with_the_names_again() -> None:
    columns = [
        Column("", "name", short="Bot", kind="name"),
        *(Column("", field, short=short) for field, short in (("a", "Aaaa"), ("b", "Bbbb"), ("c", "Cccc"))),
    ]
    rows = [{"name": "careful-assistant", "a": 1, "b": 2, "c": 3}]
    assert printed(with_parts(GroupedTable(columns, [rows])), 27) == [
        "Bot               Aaaa Bbbb",
        "───────────────────────────",
        "careful-assistant    1    2",
        "Bot               Cccc",
        "──────────────────────",
        "careful-assistant    3",
    ]


def test_markdown_has_results_as_a_list_and_folds_sections() -> None:
    assert render_markdown(DOCUMENT).splitlines() == [
        "### hallulab greet: Greetings",
        "",
        "- bot greets most.",
        "- Few.",
        "",
        "> **Warning:** Beware.",
        "",
        "<details><summary>Numbers</summary>",
        "",
        "| Chatbot | Detector | Found |",
        "| --- | --- | ---: |",
        "| bot | d | 2 |",
        "| bat | d | 0 † |",
        "",
        "</details>",
        "",
        "#### NotableReplies",
        "",
        "**d**",
        "",
        "**new (1)**",
        "",
        "- bot, asha: 0 → 1 (noise)",
        "  - reply: Hi",
        "",
        "- one",
        "- two",
    ]


def test_the_page_has_facts_links_and_sections() -> None:
    page = render_page(DOCUMENT)
    assert "<title>hallulab greet: Greetings</title>" in page
    assert "<li><b>2</b> chatbots</li>\n<li><b>–</b> model</li>" in page
    assert '<a href="#table">Numbers</a> <a href="#cases">NotableReplies</a> </nav>' in page
    assert re.findall('<section id="(.*)">', page) == ["table", "cases", "rest"]
    assert '<abbr title="few">†</abbr>' in page
    assert '<h3>new <span class="ci">1: first seen</span></h3>' in page
    assert re.findall("<dt>(.*)</dt><dd>(.*)</dd>", page) == [("reply", "Hi"), ("q", "x")]
    assert page.count('<span class="swatch d0" aria-hidden="true"></span>') == 4


@pytest.mark.parametrize(
    "part",
    [
        Paragraph(HOSTILE),
        Heading(HOSTILE),
        Bullets([HOSTILE]),
        Details(HOSTILE, HOSTILE),
        GroupedTable((Column(HOSTILE, "found", HOSTILE, short="F", kind="text"),), [[{"found": HOSTILE}]]),
        NotableReplies(
            HOSTILE,
            [NotableReply(HOSTILE, HOSTILE, HOSTILE, HOSTILE, [QuotedText(HOSTILE, HOSTILE)])],
            1,
            HOSTILE,
        ),
    ],
)
def test_a_text_from_elsewhere_has_no_effect_anywhere(part: Part) -> None:
    document = with_parts(part)
    assert "<img" not in render_page(document)
    markdown = render_markdown(document)
    assert not any(sign in markdown for sign in ("<img", "@you", "\n# b", "\x1b"))
    assert "\x1b" not in "".join(printed(document))


@pytest.mark.parametrize(
    "part", [Figures([("title", "<svg/>")], ["dot"]), Markup("<b>m</b>"), Details("s", "text")]
)
def test_charts_and_markup_are_for_pages(part: Part) -> None:
    document = with_parts(part)
    assert (printed(document), render_markdown(document)) == ([], "### hallulab c: t\n")


def test_a_figure_stands_as_it_is_over_the_names() -> None:
    document = ShownDocument(
        "c", "t", sections=[Section("s", "S", [Figures([("a", "<svg/>")], ["dot"])])], names=["d"]
    )
    page = render_page(document)
    assert "<figcaption>a</figcaption>\n<svg/>\n</figure>" in page
    assert "</span> d</span><span>dot</span></p>" in page


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "ended by `max_turns` or `<loop>`.",
            "ended by <code>max_turns</code> or <code>&lt;loop&gt;</code>.",
        ),
        ("one ` alone", "one ` alone"),
    ],
)
def test_a_page_shows_names_between_backticks_as_code(text: str, shown: str) -> None:
    assert f">{shown}</p>" in render_page(with_parts(Paragraph(text)))


def cases(number: int) -> Sequence[NotableReply]:
    return [NotableReply(f"place {one}", "0 → 1") for one in range(number)]


def test_only_the_first_cases_are_listed() -> None:
    document = with_parts(NotableReplies("new", cases(12), 30))
    assert printed(document)[-1] == "… and 25 more; --json and --html have them."
    assert render_markdown(document).splitlines()[-1] == "- … and 20 more"
    page = render_page(document)
    assert (page.count("<article"), "18 more are in the JSON." in page) == (12, True)


def test_a_long_comment_is_cut_between_its_blocks() -> None:
    text = render_markdown(with_parts(*[Paragraph("x" * 999)] * 70))
    assert len(text) < LONGEST + 200
    assert text.endswith("The rest is left out: a comment has no room for it. `--json` writes all.\n")
