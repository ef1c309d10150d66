"""The rows corrected for the detectors' mistakes, by annotations or by what is known of detectors."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from hallulab.scenarios.text.wording import NOTHING
from hallulab.scenarios.transcript import Conversation, Count, Frozen
from hallulab.simulator.metrics.annotations import LabelSource, describe_left_out
from hallulab.simulator.metrics.corrected_pairs import CorrectedPair, find_best
from hallulab.simulator.metrics.corrections import (
    UNKNOWN,
    Correction,
    OtherWinner,
    compare_chatbots,
    compare_labels,
    compute_corrections,
    describe_labels,
)
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.judged_turns import JudgedTurns, TurnSums
from hallulab.simulator.metrics.metric import CsvTable, Flaws, Metric, RunFacts, Tallied
from hallulab.simulator.metrics.results import HPT
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.show.columns import DETECTOR, PERCENT, TWO_DECIMALS, Column, format_p, group_rows
from hallulab.simulator.show.document import GroupedTable, Paragraph, Part, Section
from hallulab.simulator.statistics.intervals import LEAST_FOR_INTERVAL
from hallulab.simulator.statistics.prevalence import DetectorErrors

ALL = "all chatbots"
"""Name of the row of all chatbots together."""
ASSUMED = (
    "Numbers corrected by planted errors or a calibration assume that a detector finds a chatbot's own "
    "errors as often as those, and flags its clean replies as often as clean ones there (docs/corrected.md)."
)
SENTENCES = (
    "Corrected by a calibration, HPT-1 is the number of hallucinated sentences a turn, which differs from "
    "that of hallucinations: a sentence may have several."
)
LOOKED = (
    "Numbers corrected by annotations assume that the annotated turns are as good as drawn at random "
    "(docs/corrected.md)."
)
DRAWN = (
    "hallulab drew turns to be annotated, some more likely than others; numbers corrected by annotations "
    "weigh them by that (docs/annotate.md)."
)


class CorrectedRow(Correction):
    """One chatbot, or all of them, under one detector: a row of `corrected` in `report.json`."""

    detector: str


_CHATBOT = Column("Chatbot", "chatbot", "name of the chatbot; empty in JSON: all together",
                  lambda name: name or ALL, kind="name", short="Chatbot")  # fmt: skip
_SOURCE = Column("By", "source", "source of the correction: annotations of the run's turns, else known error "
                 "rates of the detector", lambda source: source or NOTHING, kind="text",
                 short="By")  # fmt: skip
_CORRECTED_NUMBERS = (
    Column("Annotated turns", "annotated", "scored turns with an annotation", short="Anno-\ntated",
           wide=True),
    Column("Turns flagged %", "flagged_turns", "share of the scored turns that the detector flags", PERCENT,
           short="Turns\nflagged %", wide=True),
    Column("Hallucinated turns %, corrected", "hallucinated_turns", "that share, corrected", PERCENT,
           beside="hallucinated_turns_ci95", short="corrected %"),
    Column("HPT-1", "hpt_1", HPT, TWO_DECIMALS, short="HPT-1"),
    Column("HPT-1, corrected", "corrected_hpt_1",
           "the same, corrected; by a calibration: hallucinated sentences a turn", TWO_DECIMALS,
           beside="corrected_hpt_1_ci95", short="corrected"),
)  # fmt: skip
CORRECTED = (
    _CHATBOT,
    DETECTOR,
    _SOURCE,
    Column("λ", "weight", "weight of the detector beside annotations: 0 none, 1 full (PPI++)", TWO_DECIMALS),
    Column("Wrong replies measured", "measured", "wrong replies that sensitivity was measured on",
           lambda count: NOTHING if count is None else str(count)),
    Column("Sensitivity %", "sensitivity", "share of the wrong replies flagged, measured elsewhere", PERCENT,
           short="Sens.\n%", wide=True),
    Column("Specificity %", "specificity", "share of the clean replies not flagged, likewise", PERCENT,
           short="Spec.\n%", wide=True),
    *_CORRECTED_NUMBERS,
)  # fmt: skip
BY_DEPTH = (
    _CHATBOT,
    DETECTOR,
    Column("Exchanges before", "depth", "exchanges before these turns", short="Exchanges\nbefore"),
    Column("Turns", "turns", "scored turns, the basis of all numbers", short="Turns"),
    _SOURCE,
    *_CORRECTED_NUMBERS,
)  # fmt: skip
PAIRS = (
    Column("a", "a", "a chatbot", kind="name"),
    Column("b", "b", "another one", kind="name"),
    Column("Personas", "personas",
           "smaller number of personas of the two; by annotations, those with an annotated turn"),
    Column("Δ HPT-1, corrected", "difference", "corrected HPT-1 of a minus that of b", TWO_DECIMALS,
           beside="ci95"),
    Column("p (Holm)", "p_holm", "t test of it over personas, adjusted by Holm", format_p),
)  # fmt: skip


class ComparedRow(CorrectedPair):
    """Two chatbots under one detector: an item of `corrected_comparisons` in `report.json`."""

    detector: str


class CorrectedSection(Frozen):
    """Fields of `report.json`."""

    corrected: tuple[CorrectedRow, ...] = ()
    """The rows corrected for the detectors' mistakes, and one for all chatbots of each detector."""
    corrected_by_depth: tuple[CorrectedRow, ...] = ()
    """The same for turns with so many exchanges before them."""
    corrected_comparisons: tuple[ComparedRow, ...] = ()
    """Every two chatbots under each detector; none where a chatbot is not corrected as the others are."""
    labelled_by: tuple[LabelSource, ...] = ()
    """Who labelled turns of the run; empty without annotations."""
    drawn_turns: Count = 0
    """Labelled turns that hallulab drew."""
    left_out_labels: Count = 0
    """Labels of conversations that do not count any more."""
    other_winners: tuple[OtherWinner, ...] = ()
    """Whose labels of the same turns give another chatbot the lowest corrected HPT-1."""

    @property
    def is_corrected(self) -> bool:
        """True if any number is corrected."""
        return any(row.source is not None for row in self.corrected)


class CorrectedRates(Metric):
    """Collects the scored turns, and corrects what detectors say of them."""

    SECTION = CorrectedSection
    TABLES = (
        ("Corrected for the detectors' mistakes", CORRECTED),
        ("Corrected, by depth", BY_DEPTH),
        ("Corrected, compared", PAIRS),
    )
    ORDER = TERMINAL_ORDER = 50
    COUNTS = ("_turns", "_others")

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._turns = JudgedTurns(run.annotations)
        self._others = {name: JudgedTurns(run.annotations.by(name)) for name in run.annotations.others}

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Collect the turns of a conversation."""
        for turns in (self._turns, *self._others.values()):
            turns.add(conversation, verdicts)

    def result(self, tallied: Tallied) -> CorrectedSection:
        """Correct each chatbot's numbers, those of all together, and both by depth."""
        found = self._correct(self._turns)
        looked = self.run.annotations
        whole = [row for row in found if row.depth is None]
        others = {
            LabelSource(annotator=who, guideline=guideline, turns=len(counts)): group_by_detector(
                [row for row in self._correct(self._others[who, guideline]) if row.depth is None]
            )
            for (who, guideline), counts in looked.others.items()
        }
        return CorrectedSection(
            corrected=tuple(whole),
            corrected_by_depth=tuple(row for row in found if row.depth is not None),
            corrected_comparisons=compare(
                self._turns.sums, self.run.chatbots, self.run.detectors, self.run.mistakes
            ),
            labelled_by=looked.sources,
            drawn_turns=len(looked.drawn),
            left_out_labels=looked.left_out,
            other_winners=tuple(compare_labels(group_by_detector(whole), others)),
        )

    def _correct(self, turns: JudgedTurns) -> tuple[CorrectedRow, ...]:
        run = self.run
        return correct(turns.sums, run.chatbots, run.detectors, run.mistakes, run.why_unknown)

    @classmethod
    def lines(cls, report: RunReport) -> Sequence[str]:
        """Say what the corrected numbers rest on, and which chatbot is best."""
        return describe_section(report.of(CorrectedSection))

    @classmethod
    def section(cls, report: RunReport) -> Section | None:
        """Show the rows and those by depth; nothing where no number is corrected."""
        found = report.of(CorrectedSection)
        if not found.is_corrected:
            return None
        parts: list[Part] = [
            *map(Paragraph, describe_section(found)),
            GroupedTable(CORRECTED, group_rows(found.corrected, "detector", report.detectors)),
            GroupedTable(PAIRS, group_rows(found.corrected_comparisons, "detector", report.detectors)),
            GroupedTable(BY_DEPTH, group_rows(found.corrected_by_depth, "detector", report.detectors)),
        ]
        return Section("corrected", "Corrected for the detectors' mistakes", parts, "Corrected")

    @classmethod
    def tables(cls, report: RunReport) -> Sequence[Part]:
        """Return the rows, and those of all chatbots by depth; nothing where no number is corrected."""
        found = report.of(CorrectedSection)
        if not found.is_corrected:
            return ()
        together = [row for row in found.corrected_by_depth if row.chatbot is None]
        corrected, by_depth = (
            group_rows(rows, "detector", report.detectors) for rows in (found.corrected, together)
        )
        return (
            GroupedTable(CORRECTED, corrected, "Corrected for the detectors' mistakes", by="detector"),
            GroupedTable(BY_DEPTH, by_depth, by="detector"),
        )

    @classmethod
    def beside(cls, report: RunReport) -> CsvTable | None:
        """Return the corrected numbers; nothing where no number is corrected."""
        found = report.of(CorrectedSection)
        own = {(row.chatbot, row.detector): row for row in found.corrected}
        rows = [own[row.chatbot, row.detector] for row in report.rows] if found.is_corrected else []
        return CsvTable(CORRECTED, rows) if found.is_corrected else None


def correct(
    turns: Mapping[str, TurnSums],
    chatbots: Sequence[str],
    detectors: Sequence[str],
    known: Mapping[str, DetectorErrors],
    unknown: str = UNKNOWN,
) -> tuple[CorrectedRow, ...]:
    """Make a row for every detector and chatbot by name, then one for all; then the same at each depth.

    Args:
        turns: sums of the scored turns of each detector.
        known: each detector's mistakes, as far as they are known.
        unknown: why others are not.
    """
    return tuple(
        CorrectedRow(detector=detector, **dict(row))
        for detector in detectors
        for row in compute_corrections(
            turns.get(detector, TurnSums()), chatbots, known.get(detector), unknown
        )
    )


def compare(
    turns: Mapping[str, TurnSums],
    chatbots: Sequence[str],
    detectors: Sequence[str],
    known: Mapping[str, DetectorErrors],
) -> tuple[ComparedRow, ...]:
    """Compare each two chatbots under every detector; arguments as `correct`."""
    return tuple(
        ComparedRow(detector=detector, **dict(pair))
        for detector in detectors
        for pair in compare_chatbots(turns.get(detector, TurnSums()), chatbots, known.get(detector))
    )


def group_by_detector(rows: Sequence[CorrectedRow]) -> dict[str, list[CorrectedRow]]:
    """Return the rows of each detector."""
    found: dict[str, list[CorrectedRow]] = defaultdict(list)
    for row in rows:
        found[row.detector].append(row)
    return found


def describe_section(found: CorrectedSection) -> list[str]:
    """Say what corrected numbers rest on, by whom turns were labelled, and which chatbot is best."""
    left_out = describe_left_out(found.left_out_labels)
    if not any(row.source == "annotations" for row in found.corrected):
        return [*describe_corrections(found.corrected, found.corrected_comparisons), *left_out]
    others = sum(one.turns for one in found.labelled_by) > found.drawn_turns
    looked = [*([LOOKED] if others else []), *([DRAWN] if found.drawn_turns else [])]
    return [
        *describe_corrections(found.corrected, found.corrected_comparisons, looked),
        *describe_labels(found.labelled_by, found.other_winners),
        *left_out,
    ]


def describe_corrections(
    rows: Sequence[CorrectedRow], pairs: Sequence[ComparedRow], looked: Sequence[str] = (LOOKED,)
) -> list[str]:
    """Say what corrected numbers rest on and which chatbot is best.

    Say also why numbers and intervals are lacking, or were clipped.

    Args:
        looked: what to say of numbers corrected by annotations.
    """
    sources = {row.source for row in rows}
    detectors = dict.fromkeys(row.detector for row in rows if row.source is not None)
    return [
        *([ASSUMED] if sources - {None, "annotations"} else []),
        *([SENTENCES] if "calibration" in sources else []),
        *(looked if "annotations" in sources else []),
        *(
            line
            for name in detectors
            for line in _describe_best(
                [row for row in rows if row.detector == name],
                [pair for pair in pairs if pair.detector == name],
            )
        ),
        *_explain_rows(rows),
    ]


def _explain_rows(rows: Sequence[CorrectedRow]) -> Iterator[str]:
    """Give each reason once; without chatbots where it holds for all rows of a detector."""
    found: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for reason in _explain_row(row):
            found[reason][row.detector].append(ALL if row.chatbot is None else row.chatbot)
    number = Counter(row.detector for row in rows)
    for (lacking, why), detectors in found.items():
        whom = (
            detector if len(names) == number[detector] else f"{detector}: {', '.join(names)}"
            for detector, names in detectors.items()
        )
        yield f"{lacking} ({'; '.join(whom)}): {why}."


def _describe_best(rows: Sequence[CorrectedRow], pairs: Sequence[ComparedRow]) -> Iterator[str]:
    """Name the chatbot with the lowest corrected HPT-1 by tests, or say that none is clear."""
    [together] = [row for row in rows if row.chatbot is None]
    if together.all_labelled_ci95 is not None:
        low, high = together.all_labelled_ci95
        yield (
            f"By {rows[0].detector}, corrected: 95% interval of HPT-1 for this run's {together.turns} turns "
            f"(not for new personas): {low:.2f} to {high:.2f}."
        )
    chatbots = [row for row in rows if row.chatbot is not None and row.turns]
    if len(chatbots) < 2:
        return
    by, best = f"By {rows[0].detector}, corrected", find_best(pairs)
    if best is not None:
        yield (
            f"{by}: {best[0]} has the lowest HPT-1, by a t test against every other chatbot (Holm: p at most "
            f"{max(best[1], 0.001):.2g})."
        )
    elif pairs:
        yield f"{by}: no clear winner; by t tests (Holm), no HPT-1 is lower than every other."
    else:
        yield (
            f"{by}: no clear winner; that takes a corrected number of each chatbot, all by the same source "
            f"and from at least {LEAST_FOR_INTERVAL} personas."
        )


def _explain_row(row: CorrectedRow) -> Iterator[tuple[str, str]]:
    if row.not_corrected is not None:
        yield "Not corrected", row.not_corrected
    if row.no_interval is not None:
        yield "No interval", row.no_interval
    if row.clipped is not None:
        end = "0" if row.clipped == "below 0" else "1"
        yield f"Set to {end}", f"the corrected share of hallucinated turns was {row.clipped}"
