"""A gate's answer as Markdown, for a comment on a pull request.

Whatever a model wrote stands in code spans: there, neither Markdown, nor HTML, nor a mention of somebody, nor
a link has an effect. Everything else is ours, or a name of the experiment, whose punctuation is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hallulab.scenarios.text.wording import (
    NOTHING,
    format_count,
    format_number,
    format_with_interval,
    render_one_line,
)
from hallulab.simulator.compare.turns import ChangedTurn, FoundInTurn
from hallulab.simulator.gate.result import GateLine, GateResult
from hallulab.simulator.show.markdown import LONGEST, escape_markdown

SHOWN = 10
"""Most turns that are listed of each kind."""
QUOTED = 2
"""Most hallucinations of a turn that are quoted."""
_MARKS = {"passed": "✅", "blocked": "❌", "not comparable": "⚠️"}
_KINDS = {
    "new": "New hallucinations",
    "worse": "More hallucinations",
    "better": "Fewer hallucinations",
    "gone": "Hallucinations gone",
}


def render_markdown(result: GateResult) -> str:
    """Return the comment: the verdict, what blocked, changed verdicts, the numbers, and what was changed."""
    parts = [
        f"### {_MARKS[result.verdict]} hallulab gate: {escape_markdown(result.headline)}",
        *_render_list([f"**{escape_markdown(reason)}**" for reason in result.reasons]),
        *(f"> **Warning:** {escape_markdown(warning)}" for warning in result.warnings),
        *_render_severe([turn for turn in result.severe if not turn.noise]),
        *_render_changes(result.changed),
        *_render_lines(result.lines),
        *_render_setup(result.setup),
    ]
    text = ""
    for part in parts:
        if len(text) + len(part) > LONGEST:
            text += "The rest is left out: a comment has no room for it. `--json` writes all.\n\n"
            break
        text += f"{part}\n\n"
    return f"{text.rstrip()}\n"


def quote_code(text: str, longest: int = 160) -> str:
    """Return a text as a code span, in which nothing has an effect.

    Args:
        text: of anybody.
        longest: most characters that are shown.
    """
    line = render_one_line(text)
    line = line if len(line) <= longest else f"{line[: longest - 1]}…"
    ticks = "`" * (max(map(len, re.findall("`+", line)), default=0) + 1)
    return f"{ticks} {line} {ticks}"


def _render_severe(turns: Sequence[ChangedTurn]) -> Iterator[str]:
    if not turns:
        return
    yield f"#### New severe hallucinations: {format_count(len(turns), 'turn')}"
    lines = [
        f"{_render_place(turn)}, severity {format_severity(turn.before)} → {format_severity(turn.after)}"
        + ("" if turn.conversation_before else " (the baseline has no such conversation)")
        + _render_quotation(turn)
        for turn in turns[:SHOWN]
    ]
    yield from _render_list(lines, len(turns))


def _render_changes(turns: Sequence[ChangedTurn]) -> Iterator[str]:
    for kind, heading in _KINDS.items():
        own = [turn for turn in turns if turn.kind == kind]
        if not own:
            continue
        lines = [
            f"{_render_place(turn)}, {describe_change(turn)}{_render_quotation(turn)}" for turn in own[:SHOWN]
        ]
        listed = "\n\n".join(_render_list(lines, len(own)))
        if kind in ("new", "worse"):
            yield f"#### {heading}: {format_count(len(own), 'turn')}"
            yield listed
        else:
            yield _fold(f"{heading}: {format_count(len(own), 'turn')}", listed)


def describe_change(turn: ChangedTurn) -> str:
    """Say how a turn changed: hallucinations, their severity, and whether only the detector did."""
    found = f"{turn.before.spans} → {turn.after.spans} hallucinations"
    if turn.before.severity is not None or turn.after.severity is not None:
        found += f", severity {format_severity(turn.before)} → {format_severity(turn.after)}"
    return f"{found} (the reply is the same: the detector changed its mind)" if turn.noise else found


def format_severity(found: FoundInTurn) -> str:
    """Format the highest severity of a turn, or a dash."""
    return NOTHING if found.severity is None else f"{found.severity:g}"


def _render_lines(lines: Sequence[GateLine]) -> Iterator[str]:
    if not lines:
        return
    rows = [
        "| Chatbot | Detector | Personas | HPT-1 before | now | Difference | p | Coverage before | now |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for line in lines:
        cells = (
            escape_markdown(line.chatbot),
            escape_markdown(line.detector),
            *format_numbers(line),
            format_percent(line.coverage_before),
            format_percent(line.coverage),
        )
        rows.append(f"| {' | '.join(cells)} |")
    yield "#### Numbers"
    yield "\n".join(rows)


def format_numbers(line: GateLine) -> tuple[str, ...]:
    """Format a line's personas, HPT-1 before and now, their difference and its p-value."""
    return (
        f"{line.personas} of {line.personas_needed}" if line.is_blind else str(line.personas),
        format_number(line.before, 2),
        format_number(line.now, 2),
        format_with_interval(line.difference, line.ci95, 2),
        NOTHING if line.p_worse is None else f"{line.p_worse:.3f}",
    )


def format_percent(share: float | None) -> str:
    """Format a share in percent, or a dash."""
    return NOTHING if share is None else f"{share:.0%}"


def _render_setup(changes: Sequence[str]) -> Iterator[str]:
    if changes:
        listed = "\n".join(f"- {escape_markdown(change)}" for change in changes)
        yield _fold("What was changed", listed)
    else:
        yield "Prompts, models, documents and versions are the same, as far as both runs say."


def _fold(heading: str, text: str) -> str:
    return f"<details><summary>{heading}</summary>\n\n{text}\n\n</details>"


def _render_list(lines: Sequence[str], number: int = 0) -> Iterator[str]:
    """Yield lines as a list, and how many there are beyond these."""
    if lines:
        more = [f"- and {number - len(lines)} more"] if number > len(lines) else []
        yield "\n".join([*(f"- {line}" for line in lines), *more])


def _render_place(turn: ChangedTurn) -> str:
    seed = f", seed {turn.seed}" if turn.seed else ""
    by = escape_markdown(f"{turn.chatbot} by {turn.detector}")
    return f"{by}, {quote_code(turn.persona)}{seed}, turn {turn.turn + 1}"


def _render_quotation(turn: ChangedTurn) -> str:
    flagged = () if turn.texts is None else turn.texts.spans_after
    return "".join(f"  \n  {quote_code(text)}" for text in flagged[:QUOTED])
