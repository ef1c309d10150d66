"""Table of a run for the terminal: the columns of the HalluDetect paper's chatbot table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hallulab.agents.models.endpoints import Answered
from hallulab.scenarios.text.wording import (
    choose_noun,
    format_count,
    format_number,
    render_one_line,
    shorten_line,
)
from hallulab.simulator.measure.agreement import Agreement
from hallulab.simulator.measure.attacks import ALL, AttackRow
from hallulab.simulator.measure.conversations import NONE, Concentration
from hallulab.simulator.measure.costs import Safeguards
from hallulab.simulator.measure.fixed_prefix import SideBySide
from hallulab.simulator.measure.hallucinations import Row
from hallulab.simulator.report.columns import NARROW, Column, build_terminal_table, explain_self_judging, mark
from hallulab.simulator.report.correct import CorrectedRow, describe_corrections
from hallulab.simulator.report.document import RunReport
from hallulab.simulator.report.findings import (
    describe_fixed_prefix,
    describe_planning,
    explain_intervals,
    render_headlines,
)
from hallulab.simulator.report.tables import (
    ATTACKS,
    BY_DEPTH,
    CONCENTRATION,
    CORRECTED,
    FIXED_PREFIX,
    RESULTS,
    SAFEGUARDS,
)

WIDTH = 112
"""Number of columns where standard output is no terminal."""


def build_console() -> Console:
    """Return a console on standard output, `WIDTH` columns wide where that is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def print_report(report: RunReport, console: Console | None = None) -> None:
    """Print the findings, the table, and its limits (failures, abstentions, the simulated user's flaws)."""
    console = console or build_console()
    narrow = console.width < NARROW
    for sentence in render_headlines(report):
        console.print(Text(render_one_line(sentence)))
    console.print()
    console.print(build_table(report, narrow))
    if report.attacks:
        console.print(Text("\nunder attack:"), build_attack_table(report.attacks, narrow), sep="\n")
    if report.safeguards:
        console.print()
        console.print(build_terminal_table(SAFEGUARDS, [report.safeguards], narrow=narrow))
    found = (*describe_planning(report), *explain_intervals(report), *describe_fixed_prefix(report))
    if report.fixed_prefix is not None:
        console.print(_build_grouped_table(FIXED_PREFIX, report.fixed_prefix.rows, report.detectors, narrow))
    if report.is_corrected:
        together = [row for row in report.corrected_by_depth if row.chatbot is None]
        console.print(Text("Corrected for the detectors' mistakes"))
        console.print(_build_grouped_table(CORRECTED, report.corrected, report.detectors, narrow))
        console.print(_build_grouped_table(BY_DEPTH, together, report.detectors, narrow))
    for line in (
        *found,
        *describe_corrections(report.corrected),
        *describe_agreement(report.agreement),
        *describe_omissions(report),
        *describe_models(report),
    ):
        console.print(Text(render_one_line(line)))
    if report.concentration:
        console.print(
            Text("\nwhere hallucinated replies are:"), build_concentration_table(report, narrow), sep="\n"
        )


def build_table(report: RunReport, narrow: bool = False) -> Table:
    """Make a table with a row for each chatbot and detector; `narrow` fits 80 columns."""
    return _build_grouped_table(RESULTS, [_mark_row(row) for row in report.rows], report.detectors, narrow)


def _build_grouped_table(
    columns: Sequence[Column],
    rows: Sequence[Row | SideBySide | CorrectedRow | Concentration],
    detectors: Sequence[str],
    narrow: bool,
) -> Table:
    """Make a table of rows in groups by detector."""
    groups = ([row for row in rows if row.detector == detector] for detector in detectors)
    return build_terminal_table(
        columns,
        [group for group in groups if group],
        narrow=narrow,
        gap="\n" if narrow else " ",
        title=(lambda row: f"by {shorten_line(row.detector)}") if narrow else None,
    )


def build_concentration_table(report: RunReport, narrow: bool = False) -> Table:
    """Make a table of where hallucinated replies are, in groups by detector."""
    return _build_grouped_table(CONCENTRATION, report.concentration, report.detectors, narrow)


def build_attack_table(rows: Sequence[AttackRow], narrow: bool = False) -> Table:
    """Make a table of what each chatbot did with what was planted, all kinds together."""
    every = [row for row in rows if row.kind == ALL]
    return build_terminal_table(
        ATTACKS,
        [list(group) for _, group in groupby(every, lambda row: row.chatbot)],
        narrow=narrow,
        title=(lambda row: shorten_line(row.chatbot)) if narrow else None,
    )


def _mark_row(row: Row) -> Row:
    """Return the row with the sign of self-judging behind the chatbot's name."""
    return row.model_copy(update={"chatbot": f"{row.chatbot}{mark(row)}"})


def describe_omissions(report: RunReport) -> list[str]:
    """Write sentences on what the numbers leave out, and on chatbots judged by their own verifier."""
    found = explain_self_judging(report.rows)
    found += describe_evidence(report)
    found += [
        f"{line.chatbot}: {line.failed} of {format_count(line.conversations, 'conversation')} failed: "
        f"{shorten_line(line.first_error)}"
        for line in report.failures
    ]
    for line in report.cut_replies:
        replies = f"{line.replies} {choose_noun(line.replies, 'reply', 'replies')}"
        found.append(
            f"{line.chatbot}: {line.cut} of {replies} reached the limit of tokens and may be cut off "
            "(`reply_tokens`, or the chatbot's `max_tokens`)."
        )
    for detector in report.detectors:
        rows = report.by(detector)
        gaps = {
            words: total
            for field, words in (
                ("failed", "failed"),
                ("abstained", "abstained"),
                ("not_localised", "scored without places"),
                ("missing", "not judged"),
            )
            if (total := sum(getattr(row, field) for row in rows))
        }
        if gaps:
            turns = format_count(sum(row.turns for row in rows), "turn")
            listed = ", ".join(f"{total} {words}" for words, total in gaps.items())
            enter = "it enters" if sum(gaps.values()) == 1 else "these enter"
            found.append(f"{detector}: of {turns} {listed}; {enter} no number.")
        unlocated = sum(row.unlocated for row in rows)
        if unlocated:
            total = format_count(sum(row.hallucinations for row in rows), "hallucination")
            were, they_count = ("was", "it counts") if unlocated == 1 else ("were", "they count")
            found.append(
                f"{detector}: {unlocated} of {total} {were} not found verbatim in the reply; "
                f"{they_count} in HPT, not in TokAcc."
            )
    found += describe_attacks(report.attacks or ())
    found += describe_safeguards(report.safeguards)
    audit = report.simulator_audit
    affected = audit.affected_conversations
    if affected:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(audit.flaws.items()))
        have, them = ("has", "it") if affected == 1 else ("have", "them")
        found.append(
            f"simulated user: {affected} of {format_count(audit.conversations, 'conversation')} "
            f"{have} flaws ({kinds}); the report gives the numbers without {them} too."
        )
    unknown = report.unknown_personas
    if unknown:
        found.append(
            f"simulated user: the audit knows nothing of {shorten_line(', '.join(unknown))}: the scenario "
            "pack "
            "is not found, or lacks them."
        )
    return found


def describe_evidence(report: RunReport) -> list[str]:
    """Say how many replies of imported chats have no evidence."""
    # The count is the same for each detector.
    lacking = [row for row in report.concentration if (row.by, row.value) == ("document", NONE)]
    if not report.imported or not lacking:
        return []
    bare, (whole, *_) = lacking[0].replies, [row for row in report.concentration if row.by == "all"]
    return [
        f"{bare} of {whole.replies} {choose_noun(whole.replies, 'reply', 'replies')} "
        f"{'has' if bare == 1 else 'have'} no evidence: a detector that needs some "
        "abstains, and what has none is not clean."
    ]


def describe_attacks(rows: Sequence[AttackRow]) -> list[str]:
    """Say of which chatbots nothing can be said, because nothing planted reached them or no rule decides."""
    every = [row for row in rows if row.kind == ALL and row.followed is not None]
    found = []
    for thing, where in dict.fromkeys((row.thing, row.where) for row in every):
        own = [row for row in every if (row.thing, row.where) == (thing, where)]
        unseen = [row.chatbot for row in own if not row.seen]
        if unseen:
            found.append(
                f"under attack: no {thing} of a {where} came before a reply of "
                f"{shorten_line(', '.join(unseen))}, so what these would do is not known."
            )
    undecided = sum(row.undecided for row in every)
    if undecided:
        found.append(
            f"under attack: of {undecided} {choose_noun(undecided, 'reply', 'replies')} no rule can say "
            "whether the "
            "chatbot revealed its prompt, which hallulab does not have."
        )
    return found


def describe_safeguards(rows: Sequence[Safeguards]) -> list[str]:
    """Say of each guarded chatbot how many replies are refusals."""
    refused = {row.chatbot: row for row in rows if row.refused}
    return [
        f"{name}: {row.refused} of {row.replies} {choose_noun(row.replies, 'reply', 'replies')} "
        f"{'is a refusal' if row.refused == 1 else 'are refusals'}: no answer, whatever a detector says of "
        "its words. `HPT of answers` leaves refusals out; `hallulab audit` says why they were made."
        for name, row in refused.items()
    ]


def describe_models(report: RunReport) -> list[str]:
    """Say how each model's answers were read, and what each of several endpoints did."""
    read = [
        f"{shorten_line(one.model)} was read by: {one.decisions}, "
        f"JSON {one.json_by.removeprefix('JSON ')}, seed {one.seed}"
        f"{'' if one.asked else ' (assumed, the endpoint did not say)'}."
        for one in report.read_how
    ]
    return read + list(map(_describe_endpoint, report.endpoints))


def _describe_endpoint(did: Answered) -> str:
    failed = f", and failed {format_count(did.failed, 'time')}" if did.failed else ""
    return f"{shorten_line(did.base_url)} answered {format_count(did.answered, 'request')}{failed}."


def describe_agreement(agreement: Agreement) -> list[str]:
    """Say how far the detectors agree on which turns to flag; nothing if only one judged."""
    found = [
        f"agreement of {pair.a} and {pair.b}: {format_number(pair.agreement, 0, 100)}% of "
        f"{format_count(pair.turns, 'turn')}, kappa {format_number(pair.kappa, 2)}."
        for pair in agreement.pairs
        if pair.turns
    ]
    if len(found) > 1:
        turns = format_count(agreement.turns, "turn")
        found.append(
            f"agreement of all detectors: Krippendorff's alpha {format_number(agreement.alpha, 2)} over "
            f"{turns}."
        )
    return found
