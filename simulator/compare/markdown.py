"""A comparison of runs as Markdown, fit for a comment on a pull request: texts from elsewhere stay texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hallulab.scenarios.text.wording import render_one_line
from hallulab.simulator.compare.runs import RunCompared, RunsCompared
from hallulab.simulator.compare.sentences import describe_run
from hallulab.simulator.compare.tables import (
    COSTS,
    COVERAGE,
    DIFFERENCES,
    TURNS,
    build_difference_rows,
    has_gaps,
    render_change_of_turn,
)
from hallulab.simulator.compare.texts import choose_shown, list_flagged
from hallulab.simulator.compare.turns import KINDS, ChangedTurn
from hallulab.simulator.show.columns import Column

MOST_OF_A_KIND = 10
"""Changed turns of each kind that are listed."""
MOST_SPANS = 3
"""Flagged texts of a turn in one run."""
LONGEST = 60_000
"""Characters that a comment may have; GitHub takes 65,536."""

_SIGNS = re.compile(r"[\\`*_\[\]<>|~&$@#]|:(?=//)|(?<=www)\.|^[-+](?=\s|$)")
"""What Markdown, HTML or GitHub could read as more than text: markup, links, formulas, mentions."""
_MENTIONS = ("@", "#")
"""Signs of which GitHub makes mentions and references even if they are escaped."""
_JOINER = "&#8288;"
"""A character without width: behind it, a word is not read as one that is mentioned."""


def render_markdown(compared: RunsCompared) -> str:
    """Return the comparison as Markdown."""
    parts = [f"### hallulab: {_name_runs(compared)}"]
    for run in compared.runs:
        if len(compared.runs) > 1:
            parts.append(f"#### {escape_markdown(str(run.run))}")
        parts.append("\n".join(f"- {escape_markdown(one)}" for one in describe_run(compared, run)))
        if not run.not_comparable:
            parts += [*_render_turns(run), *_render_tables(run)]
    text = ""
    for part in parts:
        if len(text) + len(part) > LONGEST:
            text += "The rest is left out: a comment has no room for it. `--html` writes all.\n"
            break
        text += f"{part}\n\n"
    return f"{text.rstrip()}\n"


def escape_markdown(text: str) -> str:
    """Return a text in one line that Markdown shows as it is, without links and mentions.

    >>> escape_markdown("**@you**")
    '&#42;&#42;&#64;&#8288;you&#42;&#42;'
    """
    return _SIGNS.sub(_escape_sign, render_one_line(text))


def _escape_sign(sign: re.Match[str]) -> str:
    return f"&#{ord(sign[0])};{_JOINER if sign[0] in _MENTIONS else ''}"


def render_markdown_table(columns: Sequence[Column], rows: Sequence[Any]) -> str:
    """Return a table of the columns that have a label."""
    shown = [column for column in columns if column.label]
    heads = [escape_markdown(column.label) for column in shown]
    lines = [heads, ["---:" if column.kind == "number" else "---" for column in shown]]
    lines += [[_render_cell(column, row) for column in shown] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _render_cell(column: Column, row: Any) -> str:
    return escape_markdown(" ".join(filter(None, (column.text(row), column.aside(row)))))


def _name_runs(compared: RunsCompared) -> str:
    others = ", ".join(str(run.run) for run in compared.runs)
    return escape_markdown(f"{others} beside {compared.reference}")


def _render_turns(run: RunCompared) -> list[str]:
    parts = []
    for kind in KINDS:
        own = [turn for turn in run.turns.turns if turn.kind == kind]
        if own:
            lines = [_render_turn(turn) for turn in choose_shown(own, MOST_OF_A_KIND)]
            if len(own) > MOST_OF_A_KIND:
                lines.append(f"- … and {len(own) - MOST_OF_A_KIND} more")
            parts.append(f"**{kind} ({len(own)})**\n\n" + "\n".join(lines))
    return parts


def _render_turn(turn: ChangedTurn) -> str:
    noise = " (the reply is the same: the detector's noise)" if turn.noise else ""
    place = f"{turn.chatbot}, {turn.persona}, seed {turn.seed}, turn {turn.turn + 1}, by {turn.detector}"
    lines = [f"- {escape_markdown(f'{place}: {render_change_of_turn(turn)}{noise}')}"]
    texts = turn.texts
    if texts is not None:
        if texts.reply_before is not None and texts.reply_before != texts.reply_after:
            lines.append(f"  - before: {escape_markdown(texts.reply_before)}")
        if texts.reply_after is not None:
            lines.append(f"  - after: {escape_markdown(texts.reply_after)}")
        lines += [f"  - {label}: {escape_markdown(text)}" for label, text in list_flagged(texts, MOST_SPANS)]
    return "\n".join(lines)


def _render_tables(run: RunCompared) -> list[str]:
    tables = [
        ("Differences", DIFFERENCES, build_difference_rows(run)),
        ("Changed turns", TURNS, run.turns.counts if run.turns.conversations else ()),
        ("Coverage", COVERAGE, run.coverage if has_gaps(run) else ()),
        ("Cost of a conversation", COSTS, run.costs),
    ]
    return [
        f"<details><summary>{title}</summary>\n\n{render_markdown_table(columns, rows)}\n\n</details>"
        for title, columns, rows in tables
        if rows
    ]
