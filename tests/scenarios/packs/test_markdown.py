"""Comments, headings and code of Markdown."""

from __future__ import annotations

import pytest

from hallulab.scenarios.packs.markdown import clean_markdown, convert_tables, find_heading


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Tool shed\n=========\n\nA saw.", "# Tool shed\n\nA saw."),
        ("Loans\n-----\n\nSeven days.", "## Loans\n\nSeven days."),
        ("| a |\n---\n", "| a |\n---\n"),
        ("Two\nlines\n---", "Two\nlines\n---"),
        ("A saw.\n\n---\n\nA drill.", "A saw.\n\n---\n\nA drill."),
        ("A saw.<!-- TODO\nlater --> A drill.", "A saw. A drill."),
        ("A saw. <!-- no end", "A saw. <!-- no end"),
        ("A saw.<script>var x = 1</script><style>\np {}\n</style>", "A saw."),
        ("<div class='x hidden y' hidden>\nB\n</div>A saw.<p style='display:none'>B</p>", "A saw."),
        (
            "`<script>x</script>` <div class='hidden-xs'>A</div>",
            "`<script>x</script>` <div class='hidden-xs'>A</div>",
        ),
        ("```\n<!-- code -->\n```", "```\n<!-- code -->\n```"),
        ("Write `<!-- x -->`.", "Write `<!-- x -->`."),
        ("[//]: # (to do)\n[fees]: f.md 'Fees'\n[^1]: A note.", "\n\n[^1]: A note."),
        ("[Note]: bring it", "[Note]: bring it"),
        ("A saw. %%ask Anna%% A drill.", "A saw.  A drill."),
        ("A saw.\n%%\nto do\n%%\nA drill.", "A saw.\n\nA drill."),
        ("A saw.\n%% no end", "A saw.\n%% no end"),
        ("20%% off, `%%d %%`, 5 %%d and %%s", "20%% off, `%%d %%`, 5 %%d and %%s"),
        ("```\n%%\nkept\n%%\n```", "```\n%%\nkept\n%%\n```"),
        ("```\nA\n=\n```", "```\nA\n=\n```"),
        ("# Fees {#fees .new}\n\nA {b}", "# Fees\n\nA {b}"),
        ("5 &euro; &amp; `&euro;`<br>next", "5 € &amp; `&euro;` next"),
        ("10<sup>3</sup>, H<sub>2</sub>O, 1<sup>st</sup>, 50<sup>[1]</sup>", "10^3, H2O, 1st, 50 [1]"),
        ("```\n5 &euro;\n```", "```\n5 &euro;\n```"),
    ],
)
def test_comments_go_and_headings_are_written_in_one_form(text: str, cleaned: str) -> None:
    assert clean_markdown(text) == cleaned


@pytest.mark.parametrize(
    ("text", "converted"),
    [
        ("A\n<table border=1>\n<tr>x</tr>\n</TABLE>\nB", "A\n\nT\n\nB"),
        ("```\n<table></table>\n```\n`<table></table>`", "```\n<table></table>\n```\n`<table></table>`"),
        ("<table><table></table></table>", "<table><table></table></table>"),
        ("<table> no end", "<table> no end"),
    ],
)
def test_tables_in_html_are_converted_but_those_of_code(text: str, converted: str) -> None:
    assert convert_tables(text, lambda table: "T") == converted


def test_what_only_mdx_knows_is_left_out() -> None:
    text = "import Tabs from '@theme/Tabs';\n\n{/* later */}\n<Tabs>\nA saw.\n</Tabs>\n\nexport const a = 1\n"
    assert clean_markdown(text, mdx=True).split() == ["A", "saw."]


def test_what_reads_like_an_import_is_text_in_markdown() -> None:
    assert clean_markdown("import 'x'\n") == "import 'x'\n"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Intro.\n\n```bash\n# install\n```\n\n# Fees\n", "Fees"),
        ("~~~\n# a\n```\n# b\n~~~\n## Loans ##", "Loans"),
        ("```\n# never closed", None),
    ],
)
def test_a_comment_of_code_is_no_heading(text: str, title: str | None) -> None:
    found = find_heading(text)
    assert (found and found[2]) == title
