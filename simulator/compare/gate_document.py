"""The answer of a gate as a document, for terminal and pull request, and as JUnit XML for CI services."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from hallulab.scenarios.text.wording import NOTHING, shorten_line
from hallulab.simulator.compare.document import render_change_of_turn
from hallulab.simulator.compare.gate_result import GateResult
from hallulab.simulator.compare.turns import KINDS, ChangedTurn, ChangeKind, FoundInTurn
from hallulab.simulator.show.columns import CHATBOT, TWO_DECIMALS, Column
from hallulab.simulator.show.document import (
    GAP,
    MARKDOWN,
    TERMINAL,
    Bullets,
    GroupedTable,
    NotableReplies,
    NotableReply,
    Paragraph,
    Part,
    QuotedText,
    Section,
    ShownDocument,
)

SHOWN = 10
"""Most turns that are listed of each kind."""
QUOTED = 2
"""Most hallucinations of a turn that are quoted."""
_MARKS = {"passed": "✅", "blocked": "❌", "not comparable": "⚠️"}
_KINDS: dict[ChangeKind, str] = {
    "new": "New hallucinations",
    "worse": "More hallucinations",
    "better": "Fewer hallucinations",
    "gone": "Hallucinations gone",
}


def _format_percent(share: float | None) -> str:
    return NOTHING if share is None else f"{share:.0%}"


def _format_p(p: float | None) -> str:
    return NOTHING if p is None else f"{p:.3f}"


COLUMNS = (
    CHATBOT,
    Column("Detector", "detector", "name of the detector", kind="text", short="Detector"),
    Column("Personas", "pairs", "personas that both runs have, of those needed", short="Personas"),
    Column("HPT-1 before", "before", "HPT-1 of the baseline", TWO_DECIMALS, short="HPT-1\nbefore"),
    Column("now", "now", "HPT-1 of the run", TWO_DECIMALS, short="now"),
    Column("Difference", "difference", "now minus before", TWO_DECIMALS, beside="ci95", short="Difference"),
    Column("p", "p_worse", "one-sided permutation test, adjusted by Holm", _format_p, short="p"),
    Column("Coverage before", "coverage_before", "scored turns over all turns of the baseline",
           _format_percent),
    Column("now", "coverage", "the same of the run", _format_percent, short="Coverage"),
    Column("Answered before", "answered_before", "share of answered replies of the baseline",
           _format_percent),
    Column("now", "answered", "the same of the run", _format_percent, short="Answered"),
    Column("p", "p_answered", "one-sided permutation test of this share, adjusted by Holm", _format_p),
)  # fmt: skip


def build_document(result: GateResult) -> ShownDocument:
    """Return the verdict, why, the numbers, the turns whose verdicts changed, and what was changed."""
    severe = [turn for turn in result.severe if not turn.noise]
    own = {kind: [turn for turn in result.changed if turn.kind == kind] for kind in KINDS}
    changes = result.setup
    return ShownDocument(
        "gate",
        f"{_MARKS[result.verdict]} {result.headline}",
        lead=[
            Paragraph(result.headline, on=TERMINAL),
            *(Paragraph(reason, "finding") for reason in result.reasons),
            *(Paragraph(f"warning: {warning}", on=TERMINAL) for warning in result.warnings),
            *(Paragraph(warning, "note", on=MARKDOWN) for warning in result.warnings),
        ],
        sections=[
            Section("turns", "", [*_list_cases("New severe hallucinations", severe)], on=MARKDOWN),
            *(
                Section(
                    kind,
                    _KINDS[kind] if kind in ("better", "gone") else "",
                    [*_list_cases(_KINDS[kind], own[kind])],
                    folded=True,
                    on=MARKDOWN,
                )
                for kind in _KINDS
            ),
            Section(
                "numbers", "Numbers", [GAP, GroupedTable(COLUMNS, [result.lines])] if result.lines else []
            ),
            Section("changed", "", [*_list_lines(severe, own)], on=TERMINAL),
            Section(
                "setup",
                "Changes" if changes else "",
                [
                    *(() if not changes else (Paragraph("changed since the baseline:", on=TERMINAL),)),
                    *(Paragraph(change, on=TERMINAL) for change in changes),
                    Bullets(changes, on=MARKDOWN)
                    if changes
                    else Paragraph(
                        "Prompts, models, documents and versions are the same, as far as both runs say.",
                        on=MARKDOWN,
                    ),
                ],
                folded=bool(changes),
            ),
        ],
    )


def _list_lines(severe: Sequence[ChangedTurn], own: dict[ChangeKind, list[ChangedTurn]]) -> Iterator[Part]:
    """Yield the turns to look at, a line each, for the terminal."""
    for turn in severe[:SHOWN]:
        yield Paragraph(f"severe: {describe_turn(turn)}")
    counts = ", ".join(f"{len(turns)} {kind}" for kind, turns in own.items() if turns)
    if counts:
        yield Paragraph(f"hallucinated turns that changed: {counts}")
    for kind in ("new", "worse"):
        for turn in own[kind][:SHOWN]:
            yield Paragraph(f"{kind}: {describe_turn(turn)}")


def _list_cases(title: str, turns: Sequence[ChangedTurn]) -> Iterator[NotableReplies]:
    if turns:
        cases = [
            NotableReply(
                where=_describe_place(turn),
                text=_describe_change(turn),
                quotations=[QuotedText("flagged", text) for text in _list_flagged(turn)[:QUOTED]],
            )
            for turn in turns[:SHOWN]
        ]
        yield NotableReplies(title, cases, len(turns))


def describe_turn(turn: ChangedTurn) -> str:
    """Describe a turn that changed in a line, with a quotation where there is one."""
    quoted = "".join(f": {shorten_line(text)}" for text in _list_flagged(turn)[:1])
    return f"{_describe_place(turn)}, {_describe_change(turn)}{quoted}"


def _describe_place(turn: ChangedTurn) -> str:
    seed = f", seed {turn.seed}" if turn.seed else ""
    return f"{turn.chatbot} by {turn.detector}, {turn.persona}{seed}, turn {turn.turn + 1}"


def _describe_change(turn: ChangedTurn) -> str:
    """Say how a turn changed: hallucinations, their severity, and whether only the detector did."""
    found = render_change_of_turn(turn)
    if turn.before.outcome == turn.after.outcome == "scored":
        found = f"{turn.before.spans} → {turn.after.spans} hallucinations"
        if turn.before.severity is not None or turn.after.severity is not None:
            found += f", severity {_format_severity(turn.before)} → {_format_severity(turn.after)}"
    if not turn.conversation_before:
        found += " (the baseline has no such conversation)"
    if not turn.noise:
        return found
    return f"{found} (the reply is the same{': the detector changed its mind' if turn.before.judged else ''})"


def _format_severity(found: FoundInTurn) -> str:
    return NOTHING if found.severity is None else f"{found.severity:g}"


def _list_flagged(turn: ChangedTurn) -> Sequence[str]:
    return () if turn.texts is None else turn.texts.spans_after


_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write."""
_ELEMENTS = {"failed": "failure", "not comparable": "error", "not tested": "skipped"}
"""Outcome → the element that says so; a testcase that passed has none."""


def render_junit(result: GateResult) -> str:
    """Return the text of a JUnit file: a testcase for each check, with the warnings beside them."""
    counts = {kind: sum(one.outcome == kind for one in result.checks) for kind in _ELEMENTS}
    suite = ElementTree.Element(
        "testsuite",
        name="hallulab gate",
        tests=str(len(result.checks)),
        failures=str(counts["failed"]),
        errors=str(counts["not comparable"]),
        skipped=str(counts["not tested"]),
        time="0",
    )
    for check in result.checks:
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"hallulab.gate.{check.rule}", name=_clean(check.subject), time="0"
        )
        if check.outcome in _ELEMENTS:
            said = ElementTree.SubElement(case, _ELEMENTS[check.outcome], message=_clean(check.message))
            if check.outcome != "not tested":
                said.set("type", check.rule)
    output = ElementTree.SubElement(suite, "system-out")
    output.text = _clean("\n".join([result.headline, *result.setup, *result.warnings]))
    suites = ElementTree.Element("testsuites", name="hallulab gate")
    suites.append(suite)
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
