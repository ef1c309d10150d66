"""Messages of a run's simulated users beside people's, as numbers and as a page."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ConfigDict

from hallulab.scenarios.attacks.attack import remove_user_orders
from hallulab.scenarios.chats.formats import format_of, read_chats
from hallulab.scenarios.chats.json_rows import NAME as ROWS
from hallulab.scenarios.chats.values import read_json_values
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.data_files import check_record
from hallulab.scenarios.files.json_text import parse_lines
from hallulab.scenarios.text.wording import NOTHING
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.metrics.failures import find_failed_conversations
from hallulab.simulator.metrics.messages import Messages, MessageSample
from hallulab.simulator.metrics.realism import (
    Realism,
    Side,
    compare_messages,
    compute_distributions,
)
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.facts import get_personas
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

HUMAN_TURNS = "human_turns.jsonl.gz"
"""Name of our file, beside this module; `human_turns-license.txt` says where it is from."""
OURS = "MTRAG-UN (people who wrote to RAG assistants)"
_DOCS = "docs/realism.md"


class HumanTurns(Frozen):
    """A conversation of a person: a line of our own format. Other keys are ignored."""

    model_config = ConfigDict(extra="ignore")

    user_turns: tuple[str, ...]
    """The person's messages in order."""


def read_reference(path: Path | None) -> list[Messages]:
    """Return the messages of each conversation of a file; None: of our own.

    A file has lines with `user_turns`, or is in a format that `hallulab import` reads.

    Raises:
        UsageError: the file cannot be read, or a line is wrong; names file, line and remedy.
    """
    if path is None:
        packed = (files(__package__) / HUMAN_TURNS).read_bytes()
        lines = parse_lines(gzip.decompress(packed).splitlines(), Path(HUMAN_TURNS))
        return _build_messages((f"{HUMAN_TURNS}, line {number}", value) for number, value in lines)
    try:
        format = format_of(path)
    except UsageError:
        format = None
    if format is None or (format == ROWS and _has_user_turns(path)):
        return _build_messages((f"{path}, {place}", value) for place, _, value in read_json_values(path))
    chats = (one for _, one in read_chats(path, format))
    return [
        Messages((one.scenario, str(number), 0), tuple(turn.user for turn in one.turns))
        for number, one in enumerate(chats)
    ]


def _has_user_turns(path: Path) -> bool:
    """Return whether the first object of a file has the messages of a person alone."""
    first = next(read_json_values(path), None)
    return first is not None and isinstance(first.value, Mapping) and "user_turns" in first.value


def _build_messages(values: Iterable[tuple[str, Any]]) -> list[Messages]:
    found = (check_record(value, HumanTurns, place, _DOCS) for place, value in values)
    return [
        Messages(("", str(number), 0), tuple(text for text in one.user_turns if text.strip()))
        for number, one in enumerate(found)
    ]


_log = logging.getLogger(__name__)


def _format_quartiles(found: tuple[float, float] | None) -> str:
    return NOTHING if found is None else f"{found[0]:g}, {found[1]:g}"


REALISM = (
    Column("Measure", "label", "what is measured (docs/realism.md)", kind="name", short="Measure"),
    Column("Simulated", "run.value", "of the simulated users: the median of a length, the mean of a number, "
           "or a share", TWO_DECIMALS, beside="run.ci95", short="Simulated"),
    Column("Quartiles", "run.quartiles", "quartiles of a length", _format_quartiles, kind="text"),
    Column("n", "run.messages", "simulated messages that were measured", short="n"),
    Column("Users", "run.users", "simulated users (a persona and seed) who wrote them", short="Users",
           wide=True),
    Column("People", "reference.value", "the same of people", TWO_DECIMALS,
           beside="reference.ci95", short="People"),
    Column("Quartiles", "reference.quartiles", "quartiles of a length, of people", _format_quartiles,
           kind="text"),
    Column("n", "reference.messages", "people's messages that were measured", short="n"),
    Column("Distance", "distance",
           "Wasserstein-1, in the measure's unit; Jensen–Shannon to base 2, in [0, 1]; or the absolute "
           "difference", TWO_DECIMALS, beside="distance_ci95", short="Distance"),
    Column("By", "by", "which distance", kind="text", short="By", wide=True),
    Column("Noise floor", "floor",
           "95th percentile of the distance when personas are exchanged between the sides", TWO_DECIMALS,
           short="Floor"),
    Column("p", "p_value", "share of exchanges with a distance as large", format_p, short="p", wide=True),
)  # fmt: skip
"""For `rows`: a measure of simulated users' and of people's messages."""
TABLES = {"Simulated and people's messages": REALISM}
"""Title → columns."""


def measure_realism(run: RunFolder, reference: Path | None, embedder: Embedder) -> Realism:
    """Measure the messages of a run's users, and their distance from people's.

    Args:
        run: the run.
        reference: file of people's messages; None: those that come with the package.
        embedder: makes the vectors of first messages.

    Raises:
        UsageError: a file is wrong, or the run branches off from another one, whose messages it repeats.
    """
    simulated, people = read_run_messages(run), read_reference(reference)
    texts = sorted({one.texts[0] for one in (*simulated, *people) if one.texts})
    vectors = _embed_texts(texts, embedder)
    sides = MessageSample(simulated, vectors), MessageSample(people, vectors)
    sample, rows = compare_messages(*sides)
    failures = find_failed_conversations(run)
    return Realism(
        run=str(run.path),
        warnings=failures.warnings,
        failed=failures.failed,
        reference=OURS if reference is None else str(reference),
        sample=sample,
        rows=rows,
        bars=compute_distributions(*sides),
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
            )
        )
    return found


NOISE_FLOOR = (
    "Noise floor: 95% of distances are not above it where personas are exchanged between the sides at random."
)


def describe_realism(found: Realism) -> list[str]:
    """Say what the numbers rest on, and why some are missing."""
    lines = [f"People: {found.reference}.", NOISE_FLOOR]
    if found.sample is not None:
        lines.append(f"Diversity is measured in samples of {found.sample} first messages, one a user.")
    lines += _explain_missing("simulated", {row.label: row.run for row in found.rows})
    return lines + _explain_missing("people", {row.label: row.reference for row in found.rows})


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


def place_bar(share: float, place: int, side: int, bins: int) -> tuple[float, float, float, float]:
    """Return x, y, width and height of a bar.

    Args:
        share: what it shows, in [0, 1].
        place: the bin, from 0.
        side: 0 the run's, 1 people's.
        bins: number of bins.
    """
    pitch = (WIDTH - LEFT) / bins
    height = share * (FLOOR - _TOP)
    x = LEFT + (place + 0.1 + 0.4 * side) * pitch
    return round(x, 2), round(FLOOR - height, 2), round(0.38 * pitch, 2), round(height, 2)


def build_document(found: Realism) -> ShownDocument:
    """Return the measures, the distributions behind them, and how far they can be trusted."""
    notes = describe_realism(found)
    box = {"width": WIDTH, "height": HEIGHT, "floor": FLOOR, "left": LEFT, "top": _TOP}
    charts = [
        (
            f"{bars.label}: share of the messages",
            render_part(__package__, "bars.html", bars=bars, bar=place_bar, box=box),
        )
        for bars in found.bars
    ]
    return ShownDocument(
        "realism",
        found.run,
        lead=[
            *(Paragraph(warning, "note") for warning in found.warnings),
            *(Paragraph(note, on=FILES) for note in notes),
        ],
        sections=[
            Section("distributions", "Distributions", [Figures(charts, legend=())], on=PAGE),
            Section("measures", "Measures", [GroupedTable(REALISM, [found.rows], dense=True)]),
            Section("", "", [Paragraph(note, on=TERMINAL) for note in notes]),
        ],
        names=("simulated", "people"),
    )
