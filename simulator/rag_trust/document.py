"""The report as a document: tables 2, 3 and 4 of the paper, with the effect of refusals, and its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from hallulab.scenarios.text.wording import choose_noun
from hallulab.simulator.rag_trust.config import DIMENSIONS, Dimension
from hallulab.simulator.rag_trust.report import RagTrustReport
from hallulab.simulator.show.columns import (
    GROUPED,
    PERCENT,
    TWO_DECIMALS,
    Column,
    Format,
    build_decimal_format,
    is_lacking,
)
from hallulab.simulator.show.document import (
    FILES,
    GAP,
    PAGE,
    TERMINAL,
    Figures,
    GroupedTable,
    Paragraph,
    Part,
    Section,
    ShownDocument,
)
from hallulab.simulator.show.plot import (
    CurveLine,
    CurvePoint,
    Plot,
    build_plot,
    draw_plots,
    format_path,
    scale_x,
    scale_y,
)

_SCORE = build_decimal_format(1, 100)
_MODEL = Column("Model", "model", "name of the model that answers", kind="text")
_WHO = (
    Column("Strategy", "strategy", "prompt strategy of its drafts", kind="text", short="Strategy"),
    Column("Chatbot", "chatbot", "name of the chatbot", kind="name", short="Chatbot", wide=True),
    _MODEL,
)
_POISON = Column("Poison %", "poison", "share of the relevant documents that are false", PERCENT,
                 short="Po.\n%")  # fmt: skip
_DISTRACTORS = Column("Distractors", "distractors", "true documents beside the point", GROUPED, short="Di.")
_JUDGE = Column("Judge %", "judge", "share that the judge takes for correct, without refusals", PERCENT,
                short="Judge\n%")  # fmt: skip
_ENDS = (
    Column("Answered", "answered", "scored answers that are no refusals"),
    Column("Scored", "scored", "answers for which neither chatbot nor judge failed"),
    Column("of", "answers", "answers wanted, one a question"),
    Column("Coverage %", "coverage", "scored over wanted", PERCENT, short="Cov.\n%", warns=is_lacking),
)


def _build_score_columns(
    what: str, change: str, form: Format = _SCORE, unit: str = " %"
) -> tuple[Column, ...]:
    return (
        Column(f"Score{unit}", "score", f"{what}; a refusal counts as 1", form,
               beside="score_ci95", short=f"Score{unit}"),
        Column("Change", "change", f"score minus that {change}, on the same questions", form,
               beside="change_ci95", short="Change", brief=True),
        Column("Refused %", "refused", "share of the scored answers that are refusals", PERCENT,
               short="Ref.\n%"),
        Column(f"Answers alone{unit}", "score_answered", "the same without refusals", form,
               beside="score_answered_ci95", short=f"Answers\nalone{unit}"),
        Column(f"Refusals as 0{unit}", "score_refusals_0", "the same, a refusal counts as 0", form,
               beside="score_refusals_0_ci95", short="Ref.\nas 0", brief=True),
    )  # fmt: skip


COLUMNS: dict[Dimension, Sequence[Column]] = {
    "factuality": (
        _POISON,
        _DISTRACTORS,
        *_WHO,
        *_build_score_columns("weighted sum of judge, fake answer's absence and METEOR",
                              "at the lowest poison ratio"),
        _JUDGE,
        Column("No fake %", "fake_overlap", "share that lack the fake answer, without refusals", PERCENT,
               short="No\nfake %"),
        Column("METEOR", "meteor", "mean METEOR of the answers without refusals", TWO_DECIMALS, short="MET."),
        *_ENDS,
    ),
    "robustness": (
        _DISTRACTORS,
        _POISON,
        *_WHO,
        *_build_score_columns("weighted sum of judge, similarity and token F1",
                              "with the fewest distractors"),
        _JUDGE,
        Column("Similarity", "similarity",
               "mean cosine of answer and right answer, at least 0, without refusals", TWO_DECIMALS,
               short="Sim."),
        Column("Token F1", "f1", "mean token F1 of the answers without refusals", TWO_DECIMALS, short="F1"),
        *_ENDS,
    ),
    "accountability": (
        _DISTRACTORS,
        _POISON,
        *_WHO,
        *_build_score_columns("F1 of the cited documents; 0 without citations",
                              "with the fewest distractors", build_decimal_format(3), ""),
        Column("Precision", "precision",
               "mean share of the cited documents that are relevant, without refusals", TWO_DECIMALS,
               short="Prec."),
        Column("Recall", "recall", "mean share of the relevant documents that are cited, without refusals",
               TWO_DECIMALS, short="Rec."),
        *_ENDS,
    ),
}  # fmt: skip

HEADINGS: dict[Dimension, str] = {
    "factuality": "Factuality by poison (the paper's Table 2)",
    "robustness": "Robustness by distractors (the paper's Table 3)",
    "accountability": "Accountability by distractors (the paper's Table 4)",
}

TABLES = {heading: COLUMNS[dimension] for dimension, heading in HEADINGS.items()}

_HOW_MEASURED = (
    "Intervals: 95%, over questions. Judge, METEOR and the other parts are means over the answers "
    "that are no refusals."
)


def build_document(report: RagTrustReport) -> ShownDocument:
    """Return the tables with a section for each attack, the paper's figures, and the notes."""
    chatbots = report.models.chatbots
    notes = [Paragraph(note, "note", FILES) for note in report.notes]
    return ShownDocument(
        "rag-trust",
        "Prompt strategies against wrong documents",
        [
            *((model, "model" if len(chatbots) == 1 else name) for name, model in chatbots.items()),
            (report.models.judge, "judge"),
            (report.questions, choose_noun(report.questions, "question")),
            (len(report.config.chatbots), choose_noun(len(report.config.chatbots), "chatbot")),
        ],
        [*(Paragraph(warning, "note") for warning in report.warnings), *notes],
        [
            *(_build_section(report, dimension) for dimension in DIMENSIONS),
            Section("", "", [Paragraph(_HOW_MEASURED, on=PAGE)]),
            Section("", "", [replace(note, on=TERMINAL) for note in notes]),
        ],
        report.config.strategies,
        ("strategy",),
    )


def _build_section(report: RagTrustReport, dimension: Dimension) -> Section:
    columns = COLUMNS[dimension]
    if len(report.config.answering) > 1:  # else the terminal saves the column of models
        columns = [replace(_MODEL, short="Model") if one is _MODEL else one for one in columns]
    parts: list[Part] = []
    plots = list(_plot_scores(report, dimension))
    if plots:
        parts.append(Figures(draw_plots(plots), legend=()))
    parts.append(GroupedTable(columns, report.group_rows(dimension), HEADINGS[dimension], dense=True))
    parts.append(GAP)
    return Section(dimension, HEADINGS[dimension], parts, dimension.capitalize())


def _plot_scores(report: RagTrustReport, dimension: Dimension) -> Iterator[Plot]:
    """Yield a chart for each chatbot, model and level of the other attack: scores over levels of the one.

    These are the paper's figures 1 and 2. A grid with a single level has no chart.
    """
    grid = report.config.get_grid(dimension)
    over, other = ("poison", "distractors") if dimension == "factuality" else ("distractors", "poison")
    levels, others = getattr(grid, over), getattr(grid, other)
    if len(levels) < 2:
        return
    scores = {
        (row.chatbot, row.model, row.strategy, getattr(row, over), getattr(row, other)): row.score
        for row in report.get_rows(dimension)
    }
    models = list(dict.fromkeys(row.model for row in report.get_rows(dimension)))
    for bot, model, fixed in product(report.config.chatbots, models, others):
        series: dict[str, list[float | None]] = {
            strategy: [scores[bot.name, model, strategy, level, fixed] for level in levels]
            for strategy in report.config.strategies
        }
        named = f"{bot.name} with {model}" if len(models) > 1 else bot.name
        besides = f", {other} {fixed:g}" if len(others) > 1 else ""
        yield _plot_degradation(f"{named}: {dimension} over {over}{besides}", over, levels, series)


def _plot_degradation(
    title: str, over: str, levels: Sequence[float], series: Mapping[str, Sequence[float | None]]
) -> Plot:
    """Plot scores over the levels of an attack, a line for each strategy in order; None is no score."""
    places = [(level - levels[0]) / (levels[-1] - levels[0]) for level in levels]
    lines, marks = [], []
    for number, (name, values) in enumerate(series.items()):
        points = [
            (place, value, level)
            for place, value, level in zip(places, values, levels, strict=True)
            if value is not None
        ]
        lines.append(CurveLine(format_path([(x, y) for x, y, _ in points]), number, name))
        marks += [
            CurvePoint(scale_x(x), scale_y(y), number, f"{name}, {over} {level:g}: {y:.3f}")
            for x, y, level in points
        ]
    ticks = list(zip(places, levels, strict=True))
    return build_plot(title, over.capitalize(), "Score", lines, marks, ticks)
