"""Documents as Markdown, fit for a comment on a pull request: texts from elsewhere stay texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from hallulab.scenarios.text.wording import render_one_line
from hallulab.simulator.show.columns import Column
from hallulab.simulator.show.document import (
    Bullets,
    GroupedTable,
    Heading,
    NotableReplies,
    Paragraph,
    Part,
    Section,
    ShownDocument,
)

LONGEST = 60_000
"""Characters that a comment may have; GitHub takes 65,536."""
MOST_CASES = 10
"""Replies of a kind that are listed."""

_SIGNS = re.compile(r"[\\`*_\[\]<>|~&$@#]|:(?=//)|(?<=www)\.|^[-+](?=\s|$)")
"""Signs that Markdown, HTML or GitHub could read as more than text: markup, links, formulas, mentions."""
_MENTIONS = ("@", "#")
"""Signs of which GitHub makes mentions and references even if they are escaped."""
_JOINER = "&#8288;"
"""A character without width: behind it, a word is not read as one that is mentioned."""


def render_markdown(document: ShownDocument) -> str:
    """Return a document as Markdown; what is beyond `LONGEST` characters is left out, which it says."""
    shown = document.of("markdown")
    blocks = [f"### hallulab {shown.command}: {escape_markdown(shown.title)}", *_render_parts(shown.lead)]
    for section in shown.sections:
        blocks += _render_section(section)
    text = ""
    for block in blocks:
        if len(text) + len(block) > LONGEST:
            text += "The rest is left out: a comment has no room for it. `--json` writes all.\n"
            break
        text += f"{block}\n\n"
    return f"{text.rstrip()}\n"


def escape_markdown(text: str) -> str:
    """Return a text in one line that Markdown shows as it is, without links and mentions.

    >>> escape_markdown("**@you**")
    '&#42;&#42;&#64;&#8288;you&#42;&#42;'
    """
    return _SIGNS.sub(
        lambda sign: f"&#{ord(sign[0])};{_JOINER if sign[0] in _MENTIONS else ''}", render_one_line(text)
    )


def render_markdown_table(columns: Sequence[Column], rows: Sequence[Any]) -> str:
    """Return a table of the columns that have a label."""
    shown = [column for column in columns if column.label]
    heads = [escape_markdown(column.label) for column in shown]
    lines = [heads, ["---:" if column.kind == "number" else "---" for column in shown]]
    for row in rows:
        cells = (filter(None, (column.text(row), column.sign(row)[0], column.aside(row))) for column in shown)
        lines.append([escape_markdown(" ".join(cell)) for cell in cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _render_section(section: Section) -> list[str]:
    blocks = list(_render_parts(section.parts))
    if not section.title or not blocks:
        return blocks
    title = escape_markdown(section.title)
    if section.folded:
        body = "\n\n".join(blocks)
        return [f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"]
    return [f"#### {title}", *blocks]


def _render_parts(parts: Sequence[Part]) -> Iterator[str]:
    """Yield blocks of Markdown; results that follow each other are one list."""
    findings: list[str] = []
    for part in parts:
        if isinstance(part, Paragraph) and part.style == "finding":
            findings.append(f"- {escape_markdown(part.text)}")
            continue
        if findings:
            yield "\n".join(findings)
            findings = []
        yield from _render_part(part)
    if findings:
        yield "\n".join(findings)


def _render_part(part: Part) -> Iterator[str]:
    match part:
        case Paragraph():
            text = escape_markdown(part.text)
            yield f"> **Warning:** {text}" if part.style == "note" else text
        case Heading():
            yield f"**{escape_markdown(part.text)}**"
        case Bullets():
            yield "\n".join(f"- {escape_markdown(line)}" for line in part.lines)
        case GroupedTable():
            yield render_markdown_table(part.columns, [row for group in part.groups for row in group])
        case NotableReplies():
            lines = []
            for case in part.cases[:MOST_CASES]:
                note = f" ({case.note})" if case.note else ""
                lines.append(f"- {escape_markdown(f'{case.where}: {case.text}{note}')}")
                lines += [f"  - {escape_markdown(f'{one.label}: {one.text}')}" for one in case.quotations]
            if part.number > MOST_CASES:
                lines.append(f"- … and {part.number - MOST_CASES} more")
            yield f"**{escape_markdown(part.title)} ({part.number})**\n\n" + "\n".join(lines)
        case _:  # charts, details and markup are for pages
            pass
