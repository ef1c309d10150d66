"""The table of a run for the terminal: the columns of the HalluDetect paper's chatbot table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hallulab.agents.models.replicas import Answered
from hallulab.scenarios.text.wording import counted, in_brief, noun, number, one_line
from hallulab.simulator.measure.agreement import Agreement
from hallulab.simulator.measure.attacks import ALL, AttackRow
from hallulab.simulator.measure.concentration import NONE, Concentration
from hallulab.simulator.measure.fixed_prefix import SideBySide
from hallulab.simulator.measure.metrics import Row
from hallulab.simulator.measure.safeguards import Safeguards
from hallulab.simulator.report.columns import NARROW, Column, terminal_table
from hallulab.simulator.report.correcting import CorrectedRow, correction_lines
from hallulab.simulator.report.document import RunReport
from hallulab.simulator.report.fixed_prefix import fixed_prefix_lines
from hallulab.simulator.report.headlines import headlines, interval_lines, planning_lines
from hallulab.simulator.report.self_judging import mark, self_judging_notes
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


def standard_output() -> Console:
    """Return a console on standard output, `WIDTH` columns wide where that is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def print_report(report: RunReport, console: Console | None = None) -> None:
    """Print the findings, the table, and its limits (failures, abstentions, the simulated user's flaws)."""
    console = console or standard_output()
    narrow = console.width < NARROW
    for sentence in headlines(report):
        console.print(Text(one_line(sentence)))
    console.print()
    console.print(table(report, narrow))
    if report.attacks:
        console.print(Text("\nunder attack:"), attack_table(report.attacks, narrow), sep="\n")
    if report.safeguards:
        console.print()
        console.print(terminal_table(SAFEGUARDS, [report.safeguards], narrow=narrow))
    found = (*planning_lines(report), *interval_lines(report), *fixed_prefix_lines(report))
    if report.fixed_prefix is not None:
        console.print(_grouped(FIXED_PREFIX, report.fixed_prefix.rows, report.detectors, narrow))
    if report.is_corrected:
        together = [row for row in report.corrected_by_depth if row.chatbot is None]
        console.print(Text("Corrected for the detectors' mistakes"))
        console.print(_grouped(CORRECTED, report.corrected, report.detectors, narrow))
        console.print(_grouped(BY_DEPTH, together, report.detectors, narrow))
    for line in (
        *found,
        *correction_lines(report.corrected),
        *agreement_lines(report.agreement),
        *notes(report),
        *model_lines(report),
    ):
        console.print(Text(one_line(line)))
    if report.concentration:
        console.print(
            Text("\nwhere hallucinated replies are:"), concentration_table(report, narrow), sep="\n"
        )


def table(report: RunReport, narrow: bool = False) -> Table:
    """Make a table with a row for each chatbot and detector; `narrow` fits 80 columns."""
    return _grouped(RESULTS, [_marked(row) for row in report.rows], report.detectors, narrow)


def _grouped(
    columns: Sequence[Column],
    rows: Sequence[Row | SideBySide | CorrectedRow | Concentration],
    detectors: Sequence[str],
    narrow: bool,
) -> Table:
    """Make a table of rows in groups by detector."""
    groups = ([row for row in rows if row.detector == detector] for detector in detectors)
    return terminal_table(
        columns,
        [group for group in groups if group],
        narrow=narrow,
        gap="\n" if narrow else " ",
        title=(lambda row: f"by {in_brief(row.detector)}") if narrow else None,
    )


def concentration_table(report: RunReport, narrow: bool = False) -> Table:
    """Make a table of where hallucinated replies are, in groups by detector."""
    return _grouped(CONCENTRATION, report.concentration, report.detectors, narrow)


def attack_table(rows: Sequence[AttackRow], narrow: bool = False) -> Table:
    """Make a table of what each chatbot did with what was planted, all kinds together."""
    every = [row for row in rows if row.kind == ALL]
    return terminal_table(
        ATTACKS,
        [list(group) for _, group in groupby(every, lambda row: row.chatbot)],
        narrow=narrow,
        title=(lambda row: in_brief(row.chatbot)) if narrow else None,
    )


def _marked(row: Row) -> Row:
    """Return the row with the sign of self-judging behind the chatbot's name."""
    return row.model_copy(update={"chatbot": f"{row.chatbot}{mark(row)}"})


def notes(report: RunReport) -> list[str]:
    """Write sentences on what the numbers leave out, and on chatbots judged by their own verifier."""
    found = self_judging_notes(report.rows)
    found += evidence_notes(report)
    found += [
        f"{line.chatbot}: {line.failed} of {counted(line.conversations, 'conversation')} failed: "
        f"{in_brief(line.first_error)}"
        for line in report.failures
    ]
    for line in report.cut_replies:
        replies = f"{line.replies} {noun(line.replies, 'reply', 'replies')}"
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
            turns = counted(sum(row.turns for row in rows), "turn")
            listed = ", ".join(f"{total} {words}" for words, total in gaps.items())
            enter = "it enters" if sum(gaps.values()) == 1 else "these enter"
            found.append(f"{detector}: of {turns} {listed}; {enter} no number.")
        unlocated = sum(row.unlocated for row in rows)
        if unlocated:
            total = counted(sum(row.hallucinations for row in rows), "hallucination")
            were, they_count = ("was", "it counts") if unlocated == 1 else ("were", "they count")
            found.append(
                f"{detector}: {unlocated} of {total} {were} not found verbatim in the reply; "
                f"{they_count} in HPT, not in TokAcc."
            )
    found += attack_notes(report.attacks or ())
    found += safeguard_notes(report.safeguards)
    audit = report.simulator_audit
    affected = audit.affected_conversations
    if affected:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(audit.flaws.items()))
        have, them = ("has", "it") if affected == 1 else ("have", "them")
        found.append(
            f"simulated user: {affected} of {counted(audit.conversations, 'conversation')} "
            f"{have} flaws ({kinds}); the report gives the numbers without {them} too."
        )
    unknown = report.unknown_personas
    if unknown:
        found.append(
            f"simulated user: the audit knows nothing of {in_brief(', '.join(unknown))}: the scenario pack "
            "is not found, or lacks them."
        )
    return found


def evidence_notes(report: RunReport) -> list[str]:
    """Say how many replies of imported chats have no evidence."""
    # The count is the same for each detector.
    lacking = [row for row in report.concentration if (row.by, row.value) == ("document", NONE)]
    if not report.imported or not lacking:
        return []
    bare, (whole, *_) = lacking[0].replies, [row for row in report.concentration if row.by == "all"]
    return [
        f"{bare} of {whole.replies} {noun(whole.replies, 'reply', 'replies')} "
        f"{'has' if bare == 1 else 'have'} no evidence: a detector that needs some "
        "abstains, and what has none is not clean."
    ]


def attack_notes(rows: Sequence[AttackRow]) -> list[str]:
    """Say of which chatbots nothing can be said, because nothing planted reached them or no rule decides."""
    every = [row for row in rows if row.kind == ALL and row.followed is not None]
    found = []
    for thing, where in dict.fromkeys((row.thing, row.where) for row in every):
        own = [row for row in every if (row.thing, row.where) == (thing, where)]
        unseen = [row.chatbot for row in own if not row.seen]
        if unseen:
            found.append(
                f"under attack: no {thing} of a {where} came before a reply of "
                f"{in_brief(', '.join(unseen))}, so what these would do is not known."
            )
    undecided = sum(row.undecided for row in every)
    if undecided:
        found.append(
            f"under attack: of {undecided} {noun(undecided, 'reply', 'replies')} no rule can say whether the "
            "chatbot revealed its prompt, which hallulab does not have."
        )
    return found


def safeguard_notes(rows: Sequence[Safeguards]) -> list[str]:
    """Say of each guarded chatbot how many replies are refusals."""
    refused = {row.chatbot: row for row in rows if row.refused}
    return [
        f"{name}: {row.refused} of {row.replies} {noun(row.replies, 'reply', 'replies')} "
        f"{'is a refusal' if row.refused == 1 else 'are refusals'}: no answer, whatever a detector says of "
        "its words. `HPT of answers` leaves refusals out; `hallulab audit` says why they were made."
        for name, row in refused.items()
    ]


def model_lines(report: RunReport) -> list[str]:
    """Say how each model's answers were read, and what each of several endpoints did."""
    read = [
        f"{in_brief(one.model)} was read by: {one.decisions}, "
        f"JSON {one.json_by.removeprefix('JSON ')}, seed {one.seed}"
        f"{'' if one.asked else ' (assumed, the endpoint did not say)'}."
        for one in report.read_how
    ]
    return read + list(map(_endpoint_line, report.endpoints))


def _endpoint_line(did: Answered) -> str:
    failed = f", and failed {counted(did.failed, 'time')}" if did.failed else ""
    return f"{in_brief(did.base_url)} answered {counted(did.answered, 'request')}{failed}."


def agreement_lines(agreement: Agreement) -> list[str]:
    """Say how far the detectors agree on which turns to flag; nothing if only one judged."""
    found = [
        f"agreement of {pair.a} and {pair.b}: {number(pair.agreement, 0, 100)}% of "
        f"{counted(pair.turns, 'turn')}, kappa {number(pair.kappa, 2)}."
        for pair in agreement.pairs
        if pair.turns
    ]
    if len(found) > 1:
        turns = counted(agreement.turns, "turn")
        found.append(
            f"agreement of all detectors: Krippendorff's alpha {number(agreement.alpha, 2)} over {turns}."
        )
    return found
