"""A comparison of runs as a document: sentences, changed turns and tables of each run, a chart for pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hallulab.scenarios.text.wording import choose_noun, format_count, format_number
from hallulab.simulator.compare.differences import DifferenceLine
from hallulab.simulator.compare.runs import RunCompared, RunsCompared
from hallulab.simulator.compare.sentences import (
    build_signed_format,
    describe_changes,
    describe_run,
    render_changes,
    render_line,
)
from hallulab.simulator.compare.texts import MOST_OF_A_KIND, choose_shown, list_flagged
from hallulab.simulator.compare.turns import KINDS, ChangedTurn, ChangeKind, FoundInTurn, TurnTexts
from hallulab.simulator.metrics.run_sums import RateName
from hallulab.simulator.show.charts import DotPoint, choose_steps_around_zero, draw_dots, list_ends
from hallulab.simulator.show.columns import (
    CHATBOT,
    DETECTOR,
    GROUPED,
    PERCENT,
    TWO_DECIMALS,
    Column,
    build_decimal_format,
    format_p,
    group_rows,
    is_lacking,
)
from hallulab.simulator.show.document import (
    EVERYWHERE,
    FILES,
    GAP,
    PAGE,
    TERMINAL,
    Bullets,
    Figures,
    GroupedTable,
    NotableReplies,
    NotableReply,
    Paragraph,
    Part,
    QuotedText,
    Section,
    ShownDocument,
)

_MEANINGS: dict[ChangeKind, str] = {
    "new": "hallucinated now; clean or not judged before",
    "gone": "hallucinated before, and not now",
    "worse": "hallucinated in both, and worse now",
    "better": "hallucinated in both, and better now",
}
_CHART = "Δ HPT-1, after minus before: left of 0 is better"


@dataclass(frozen=True)
class DifferenceRow:
    """A chatbot under a detector: a row of the table of differences."""

    chatbot: str
    detector: str
    hpt_1: DifferenceLine
    tokacc_1: DifferenceLine
    answered: DifferenceLine

    @property
    def how(self) -> str:
        """How the personas are compared."""
        if not self.hpt_1.paired:
            return "unpaired"
        return "paired" if self.hpt_1.same_seeds else "paired, other seeds"


_FLOOR = (
    "how far two halves of one run differ that have the same personas and other seeds, the mean of the runs; "
    "none where a persona has one seed"
)
_POINTS = build_decimal_format(1, 100)
DIFFERENCES = (
    CHATBOT,
    DETECTOR,
    Column("Personas", "hpt_1.personas", "personas that are compared; intervals are over these",
           short="Perso-\nnas"),
    Column("How", "how", "paired: each persona with itself, all its seeds together; unpaired: both runs have "
           "other personas", kind="text", short="How", wide=True),
    Column("HPT-1 before", "hpt_1.before", "hallucinations per scored turn in the reference, with these "
           "personas", TWO_DECIMALS, short="HPT-1\nbefore"),
    Column("after", "hpt_1.after", "the same in the run", TWO_DECIMALS, short="after"),
    Column("Δ HPT-1", "hpt_1.difference", "after minus before: above 0, the run hallucinates more",
           build_signed_format(2), beside="hpt_1.ci95", short="Δ HPT-1"),
    Column("p (Holm)", "hpt_1.p_holm", "permutation test, adjusted by Holm over all lines", format_p,
           short="p\n(Holm)"),
    Column("Noise floor", "hpt_1.floor", _FLOOR, TWO_DECIMALS, short="Floor", wide=True),
    Column("TokAcc-1 before %", "tokacc_1.before", "share of reply tokens outside every flagged span",
           _POINTS),
    Column("after %", "tokacc_1.after", "the same in the run", _POINTS),
    Column("Δ TokAcc-1, points", "tokacc_1.difference", "after minus before: below 0, the run is worse",
           build_signed_format(1, 100), beside="tokacc_1.ci95", short="Δ TokAcc\npoints"),
    Column("p (Holm)", "tokacc_1.p_holm", "permutation test, adjusted by Holm over all lines", format_p,
           short="p\n(Holm)"),
    Column("Noise floor, points", "tokacc_1.floor", _FLOOR, _POINTS),
    Column("Answered before %", "answered.before", "of the replies that answer or decline, the share that "
           "answers, scored or not", _POINTS),
    Column("after %", "answered.after", "the same in the run", _POINTS),
    Column("Δ Answered, points", "answered.difference", "after minus before: below 0, the run answers less",
           build_signed_format(1, 100), beside="answered.ci95"),
    Column("p (Holm)", "answered.p_holm", "permutation test, adjusted by Holm over runs and chatbots",
           format_p),
)  # fmt: skip

TURNS = (
    CHATBOT,
    DETECTOR,
    Column("Judged in both", "compared", "turns of the same persona, seed and number that are judged in both "
           "runs", short="Judged\nin both"),
    Column("Same reply", "same_reply", "those with the same message, reply, passages and history",
           short="Same\nreply"),
    Column("New", "new", "hallucinated now and not before, or not judged before, or not there",
           short="New"),
    Column("Gone", "gone", "hallucinated before and not now", short="Gone"),
    Column("Worse", "worse", "hallucinated in both, with a higher severity, or else more hallucinations",
           short="Worse"),
    Column("Better", "better", "hallucinated in both, with a lower severity, or else fewer hallucinations",
           short="Better"),
    Column("By noise", "by_noise", "changes of these four kinds among the turns with the same reply: the "
           "detector's noise", short="By\nnoise"),
    Column("Not judged", "unjudged", "hallucinated before, and not judged now or not there",
           short="Not\njudged", warns=bool),
)  # fmt: skip

COVERAGE = (
    CHATBOT,
    DETECTOR,
    Column("Before %", "before.share", "share of the turns that the detector scored and said where, in the "
           "reference", PERCENT, short="Coverage\nbefore %", warns=is_lacking),
    Column("After %", "after.share", "the same in the run", PERCENT, short="after %", warns=is_lacking),
    Column("Scored before", "before.scored", "these turns", short="Scored\nbefore"),
    Column("After", "after.scored", "the same in the run", short="after"),
    Column("Failed before", "before.failed", "turns on which the detector failed", short="Failed\nbefore"),
    Column("After", "after.failed", "the same in the run", short="after"),
    Column("Abstained before", "before.abstained", "turns on which it abstained"),
    Column("After", "after.abstained", "the same in the run"),
    Column("Missing before", "before.missing", "turns without a verdict", short="Missing\nbefore"),
    Column("After", "after.missing", "the same in the run", short="after"),
)  # fmt: skip

_ONE = build_decimal_format(1)
COSTS = (
    Column("What", "role", "chatbot or detector", kind="text", short="What", wide=True),
    Column("Name", "name", "its name", kind="name", short="Name"),
    Column("Calls before", "before.calls", "mean number of model calls a conversation, in the reference",
           _ONE, short="Calls\nbefore"),
    Column("After", "after.calls", "the same in the run", _ONE, short="after"),
    Column("Tokens before", "before.tokens", "mean of tokens read and written a conversation; a dash "
           "where the server did not report those of an answered call", GROUPED, short="Tokens\nbefore"),
    Column("After", "after.tokens", "the same in the run", GROUPED, short="after"),
    Column("Seconds before", "before.seconds", "mean sum of latencies a conversation", _ONE,
           short="Seconds\nbefore"),
    Column("After", "after.seconds", "the same in the run", _ONE, short="after"),
)  # fmt: skip
"""For `RunCompared.costs`: of a conversation, on average."""


def build_difference_rows(run: RunCompared) -> list[DifferenceRow]:
    """Return the rows of the table of differences."""
    lines: dict[tuple[str, str], dict[RateName, DifferenceLine]] = {}
    for line in run.differences:
        lines.setdefault((line.detector, line.chatbot), {})[line.metric] = line
    return [
        DifferenceRow(chatbot, detector, own["hpt_1"], own["tokacc_1"], own["answered"])
        for (detector, chatbot), own in lines.items()
    ]


def has_gaps(run: RunCompared) -> bool:
    """Return whether something was not judged in either run."""
    return any(is_lacking(side.share) for line in run.coverage for side in (line.before, line.after))


def build_document(
    compared: RunsCompared, lead_to: Callable[[RunCompared, ChangedTurn], str] | None = None
) -> ShownDocument:
    """Return what `hallulab compare` shows.

    Args:
        lead_to: returns the address of a page with both conversations of a turn; None: there is none.
    """
    reference, runs = compared.reference, compared.runs
    conversations = choose_noun(reference.conversations, "conversation")
    return ShownDocument(
        "compare",
        f"{', '.join(str(run.run) for run in runs)} beside {reference}",
        facts=[
            (reference.conversations, f"{conversations} in {reference.letter}, the reference"),
            *((run.run.conversations, f"in {run.run.letter}") for run in runs),
        ],
        sections=[
            section
            for number, run in enumerate(runs)
            for section in _build_run(compared, run, lead_to, is_first=number == 0)
        ],
        names=_name_detectors(compared),
    )


def _name_detectors(compared: RunsCompared) -> list[str]:
    return list(dict.fromkeys(line.detector for run in compared.runs for line in run.differences))


def _build_run(
    compared: RunsCompared,
    run: RunCompared,
    lead_to: Callable[[RunCompared, ChangedTurn], str] | None,
    is_first: bool,
) -> Iterator[Section]:
    anchor = f"run-{run.run.letter}"
    title = str(run.run) if len(compared.runs) > 1 else ""
    first: list[Part] = [
        *(() if is_first else (GAP,)),
        Paragraph(f"{run.run} beside {compared.reference}, the reference:", on=TERMINAL),
    ]
    if run.not_comparable:
        # Why it cannot be compared is the command's error, so the terminal has it once.
        first += [
            *(Paragraph(sentence, "note") for sentence in run.warnings),
            Paragraph(compared.explain(run), "note", on=FILES),
            Paragraph("They cannot be compared.", on=TERMINAL),
        ]
        if run.changes:
            first.append(Paragraph(describe_changes(run), on=TERMINAL))
        yield Section(anchor, title, first)
    else:
        sentences = [Paragraph(sentence, "finding") for sentence in describe_run(compared, run)]
        yield Section(anchor, title, [*first, *sentences])
        cases = [one for kind in KINDS for one in _build_cases(kind, run, lead_to)]
        if cases:
            yield Section(f"{anchor}-turns", "Changed turns", cases)
        yield from _build_tables(compared, run, anchor)
    changes = render_changes(run.changes)
    if changes or not run.not_comparable:
        part = Bullets(changes) if changes else Paragraph("Nothing, as far as the runs say.")
        yield Section(f"{anchor}-changes", "Changes", [part], on=PAGE)


def _build_cases(
    kind: ChangeKind, run: RunCompared, lead_to: Callable[[RunCompared, ChangedTurn], str] | None
) -> Iterator[NotableReplies]:
    own = [turn for turn in run.turns.turns if turn.kind == kind]
    if own:
        cases = [
            NotableReply(
                where=f"{turn.chatbot}, {turn.persona}, seed {turn.seed}, turn {turn.turn + 1}, "
                f"by {turn.detector}",
                text=render_change_of_turn(turn),
                note="the reply is the same" + ": the detector's noise" * turn.before.judged
                if turn.noise
                else "",
                name=turn.detector,
                quotations=() if turn.texts is None else list(_quote(turn.texts)),
                link=lead_to and ("Both conversations side by side", lead_to(run, turn)),
            )
            for turn in choose_shown(own, MOST_OF_A_KIND)
        ]
        yield NotableReplies(kind, cases, len(own), _MEANINGS[kind])


def _quote(texts: TurnTexts) -> Iterator[QuotedText]:
    yield QuotedText("user", texts.user, on=PAGE)
    is_same = texts.reply_before == texts.reply_after
    if texts.reply_before is not None and not is_same:
        yield QuotedText("before", texts.reply_before, on=FILES)
    if texts.reply_after is not None:
        yield QuotedText("reply" if is_same else "after", texts.reply_after, on=FILES)
    first, more = list_flagged(texts, 1), list_flagged(texts, 3)
    for label, text in list_flagged(texts):
        on = EVERYWHERE if (label, text) in first else FILES if (label, text) in more else PAGE
        yield QuotedText(label, text, on=on)


def _build_tables(compared: RunsCompared, run: RunCompared, anchor: str) -> Iterator[Section]:
    differences = group_rows(build_difference_rows(run), "detector")
    hint = (
        f"p-values are adjusted by Holm over all {compared.lines} lines of this page, HPT-1 and TokAcc-1; "
        "those of Answered % apart."
    )
    yield Section(
        f"{anchor}-differences",
        "Differences",
        [
            *_draw_differences(run.differences, _name_detectors(compared)),
            GAP,
            GroupedTable(DIFFERENCES, differences, by="detector", dense=True),
            Paragraph(hint, on=PAGE),
        ],
        folded=True,
    )
    if run.turns.conversations:
        words = f"urns of {format_count(run.turns.conversations, 'conversation')} that both runs have"
        counts = group_rows(run.turns.counts, "detector")
        table = GroupedTable(TURNS, counts, f"t{words}", by="detector", dense=True)
        yield Section(f"{anchor}-counts", f"T{words}", [GAP, table], folded=True)
    coverage = group_rows(run.coverage, "detector")
    yield Section(
        f"{anchor}-coverage",
        "Coverage",
        [GAP, GroupedTable(COVERAGE, coverage, "coverage", by="detector", dense=True)],
        folded=True,
        on=EVERYWHERE if has_gaps(run) else PAGE,
    )
    costs = [[one for one in run.costs if one.role == role] for role in ("chatbot", "detector")]
    yield Section(
        f"{anchor}-costs",
        "Cost of a conversation",
        [GAP, GroupedTable(COSTS, costs, "cost of a conversation", dense=True)],
        folded=True,
    )


def _draw_differences(lines: Sequence[DifferenceLine], names: Sequence[str]) -> Iterator[Figures]:
    """Yield a chart of the differences of HPT-1, 0 in the middle; nothing where none is known."""
    points = [
        DotPoint(
            line.chatbot,
            line.detector,
            line.difference,
            line.ci95,
            f"{line.chatbot}, {line.detector}: {render_line(line)}",
        )
        for line in lines
        if line.metric == "hpt_1"
    ]
    ends = list_ends(points)
    if ends:
        steps = choose_steps_around_zero(ends)
        svg = draw_dots(_CHART, points, steps, lambda step: f"{step:+g}" if step else "0", names)
        legend = "dot: difference; line: 95% interval over personas, where there are enough"
        yield Figures([(_CHART, svg)], legend=[legend])


def render_change_of_turn(turn: ChangedTurn) -> str:
    """Say what a detector found before and after: `1 hallucination → 2 hallucinations, severity 4`."""
    return f"{_render_found(turn.before)} → {_render_found(turn.after)}"


def _render_found(found: FoundInTurn) -> str:
    if found.outcome == "missing":
        return "no verdict"
    if not found.judged:
        return str(found.outcome)
    if not found.hallucinated:
        return "clean"
    spans = "flagged" if not found.spans else f"{found.spans} hallucination{'s' if found.spans > 1 else ''}"
    return spans if found.severity is None else f"{spans}, severity {format_number(found.severity, 0)}"
