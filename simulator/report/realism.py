"""Messages of a run's simulated users beside people's, as numbers and as a page."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hallulab.scenarios.attacks.attack import remove_user_orders
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.text.wording import NOTHING, format_count, format_number
from hallulab.simulator.metrics.failures import find_failed_conversations
from hallulab.simulator.metrics.message_sample import MessageSample
from hallulab.simulator.metrics.messages import Messages
from hallulab.simulator.metrics.realism import (
    Realism,
    Side,
    compare_messages,
    compute_distributions,
    summarize_reference,
)
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.facts import get_personas
from hallulab.simulator.report.people import read_people
from hallulab.simulator.show.columns import TWO_DECIMALS, Column, format_p
from hallulab.simulator.show.document import (
    FILES,
    PAGE,
    TERMINAL,
    Figures,
    GroupedTable,
    Paragraph,
    Section,
    ShownDocument,
)
from hallulab.simulator.show.html import render_part

if TYPE_CHECKING:
    from hallulab.agents.retrieval.embeddings import Embedder
    from hallulab.simulator.statistics.intervals import Floats

_log = logging.getLogger(__name__)


def _format_quartiles(found: tuple[float, float] | None) -> str:
    return NOTHING if found is None else f"{found[0]:g}, {found[1]:g}"


_TOGETHER = 2
"""References beside each other in a table: as many as fit into a terminal's 100 columns."""


def build_columns(names: Sequence[str], first: int = 0) -> tuple[Column, ...]:
    """Return the columns of a table of `RealismRow`: the run's, and those of each reference.

    Args:
        first: place of the first of them in `Realism.references`.
    """
    run = (
        Column("Measure", "label", "what is measured (docs/realism.md)", kind="name", short="Measure"),
        Column("Simulated", "run.value",
               "of the simulated users: the median of a length, the mean of a number, or a share",
               TWO_DECIMALS, beside="run.ci95", short="Simulated", brief=True),
        Column("Quartiles", "run.quartiles", "quartiles of a length", _format_quartiles, kind="text"),
        Column("n", "run.messages", "simulated messages that were measured; of turns, conversations",
               short="n", wide=True),
        Column("Users", "run.users", "simulated users (a persona and seed) who wrote them"),
        Column("By", "by", "which distance", kind="text"),
    )  # fmt: skip
    return run + sum((_build_block(name, f"comparisons.{first + at}") for at, name in enumerate(names)), ())


def _build_block(name: str, place: str) -> tuple[Column, ...]:
    """Return the columns of a reference, whose `PeopleCompared` is the field `place` of a row."""
    return (
        Column(name, f"{place}.people.value", "the same of people", TWO_DECIMALS,
               beside=f"{place}.people.ci95", short=name, brief=True),
        Column("Quartiles", f"{place}.people.quartiles", "quartiles of a length, of people",
               _format_quartiles, kind="text"),
        Column("n", f"{place}.people.messages", "people's messages that were measured"),
        Column("Distance", f"{place}.distance",
               "Wasserstein-1, in the measure's unit; Jensen–Shannon to base 2, in [0, 1]; or the absolute "
               "difference", TWO_DECIMALS, beside=f"{place}.distance_ci95", short="Distance", brief=True),
        Column("Noise floor", f"{place}.floor",
               "95th percentile of the distance when personas are exchanged between the sides", TWO_DECIMALS,
               short="Floor"),
        Column("p", f"{place}.p_value", "share of exchanges with a distance as large", format_p, short="p",
               wide=True),
    )  # fmt: skip


TABLES = {"Simulated and people's messages": build_columns(["People"])}
"""Title → columns."""


def measure_realism(run: RunFolder, references: Sequence[Path], embedder: Embedder) -> Realism:
    """Measure the messages of a run's users, and their distance from people's.

    Args:
        references: files of people's messages; none: those that come with the package.
        embedder: makes the vectors of first messages.

    Raises:
        UsageError: a file is wrong, or the run branches off from another one, whose messages it repeats.
    """
    simulated, people = read_run_messages(run), read_people(references)
    conversations = (simulated, *(one.conversations for one in people))
    texts = sorted({one.first_text for side in conversations for one in side if one.first_text is not None})
    vectors = _embed_texts(texts, embedder)
    own, *others = (MessageSample(side, vectors) for side in conversations)
    sample, rows = compare_messages(own, others)
    failures = find_failed_conversations(run)
    return Realism(
        run=str(run.path),
        warnings=failures.warnings,
        failed=failures.failed,
        references=tuple(
            summarize_reference(one.name, one.source, {row.measure: row.comparisons[place] for row in rows})
            for place, one in enumerate(people)
        ),
        sample=sample,
        rows=rows,
        bars=compute_distributions(own, others),
    )


def _embed_texts(texts: Sequence[str], embedder: Embedder) -> Mapping[str, Floats] | None:
    """Return unit vectors of texts; None, with a warning, where the model cannot be had."""
    if not texts:
        return {}
    try:
        vectors = embedder.passages(texts).astype(np.float64)
    except OperationalError as error:
        _log.warning("near duplicates and dispersion are not measured: %s", error)
        return None
    return dict(zip(texts, vectors, strict=True))


def read_run_messages(run: RunFolder) -> list[Messages]:
    """Return the users' messages of each conversation of a run, without what an attack put into them.

    Raises:
        UsageError: a file of the run is wrong, or it branches off from another run.
    """
    run.require()
    saved = run.read_experiment()
    if saved is not None and saved.branched_from is not None:
        raise UsageError(
            f"{run.path}: its users' messages are those of {saved.branched_from.run}. Measure that run."
        )
    personas = get_personas(saved, None)
    imported = saved is not None and saved.lacks_simulated_user
    orders = saved.planted.orders if saved is not None and saved.planted is not None else ()
    found = []
    for one in run.read_journals().conversations:
        persona = personas.get(one.persona)
        said = remove_user_orders(one, orders)
        found.append(
            Messages(
                # An imported file may name one person in many conversations, each with its own beginning.
                (one.scenario, one.id if imported else one.persona, one.seed),
                tuple(turn.user for turn in said.turns),
                () if persona is None else persona.facts,
                failed=one.stop_reason == "error",
            )
        )
    return found


NOISE_FLOOR = (
    "Noise floor: 95% of distances where personas are exchanged between the sides; few users make it wide. "
    "By chance, up to one measure in twenty is above it."
)


def count_agreements(found: Realism) -> list[str]:
    """Say for each reference how many measures show no difference, and which ones do, the worst first."""
    rows = {row.measure: row for row in found.rows}
    lines = []
    for place, reference in enumerate(found.references):
        others = [
            f"{rows[field].label} {format_number(rows[field].comparisons[place].distance, 2)} "
            f"(floor {format_number(rows[field].comparisons[place].floor, 2)})"
            for field in reference.above
        ]
        said = f"{reference.within} of {format_count(reference.tested, 'measure')} within the noise floor"
        if not reference.tested:
            said = "no measure has a noise floor"
        lines.append(f"{reference.name}: {said}{'; the others: ' if others else ''}{', '.join(others)}.")
    return lines


def describe_realism(found: Realism) -> list[str]:
    """Say what the numbers rest on, and why some are missing."""
    lines = [f"People: {'; '.join(one.source for one in found.references)}.", NOISE_FLOOR]
    if found.sample is not None:
        lines.append(f"Diversity is measured in samples of {found.sample} first messages, one a user.")
    lines += _explain_missing("simulated", {row.label: row.run for row in found.rows})
    for place, reference in enumerate(found.references):
        lines += _explain_missing(
            reference.name, {row.label: row.comparisons[place].people for row in found.rows}
        )
    return lines


def _explain_missing(who: str, sides: Mapping[str, Side]) -> list[str]:
    """Say why numbers or intervals are missing, the measures with one reason together."""
    labels: dict[str, list[str]] = {}
    for label, side in sides.items():
        if side.reason is not None:
            labels.setdefault(side.reason, []).append(label)
    return [
        f"{who}: {reason}." if len(named) == len(sides) else f"{who}: {reason} ({'; '.join(named)})."
        for reason, named in labels.items()
    ]


WIDTH, HEIGHT, FLOOR, LEFT = 560.0, 220.0, 180.0, 40.0
"""Size of a chart of bars in the SVG's units, the height of its axis, and the margin for its labels."""
_TOP = 10.0


def place_bar(
    share: float, place: int, side: int, bins: int, sides: int
) -> tuple[float, float, float, float]:
    """Return x, y, width and height of a bar.

    Args:
        share: what it shows, in [0, 1].
        place: the bin, from 0.
        side: 0 the run's, then those of the references.
        sides: number of bars in a bin.
    """
    pitch = (WIDTH - LEFT) / bins
    height = share * (FLOOR - _TOP)
    x = LEFT + (place + 0.1 + 0.8 * side / sides) * pitch
    return round(x, 2), round(FLOOR - height, 2), round(0.76 / sides * pitch, 2), round(height, 2)


def build_document(found: Realism) -> ShownDocument:
    """Return the measures, the distributions behind them, and how far they can be trusted."""
    agreements, notes = count_agreements(found), describe_realism(found)
    names = [one.name for one in found.references]
    box = {"width": WIDTH, "height": HEIGHT, "floor": FLOOR, "left": LEFT, "top": _TOP}
    charts = [
        (
            f"{bars.label}: share",
            render_part(
                __package__,
                "bars.html",
                bars=bars,
                sides=list(zip(("simulated", *names), (bars.run, *bars.people), strict=True)),
                bar=place_bar,
                box=box,
            ),
        )
        for bars in found.bars
    ]
    beside = [
        GroupedTable(build_columns(names[first : first + _TOGETHER], first), [found.rows], on=TERMINAL)
        for first in range(0, len(names), _TOGETHER)
    ]
    alone = [
        GroupedTable(build_columns([name], place), [found.rows], dense=True, on=FILES)
        for place, name in enumerate(names)
    ]
    return ShownDocument(
        "realism",
        found.run,
        lead=[
            *(Paragraph(warning, "note") for warning in found.warnings),
            *(Paragraph(line, "finding", on=FILES) for line in agreements),
            *(Paragraph(note, on=FILES) for note in notes),
        ],
        sections=[
            Section("distributions", "Distributions", [Figures(charts, legend=())], on=PAGE),
            Section("measures", "Measures", [*beside, *alone]),
            Section("", "", [Paragraph(line, on=TERMINAL) for line in (*agreements, *notes)]),
        ],
        names=("simulated", *names),
    )
