"""The table of all detectors on all data sets, as Markdown and as a page of the docs.

The page of the docs has the table, and in a comment at its end digests of all that decides the table.
Measuring takes a minute, and comparing digests a second: a daily test does the latter, a slow one the
former.

Measure all detectors on all data sets, in several processes.
This is not in the command's module, which started processes must not import.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import yaml

from benchmarks.command import format_row, format_signed
from benchmarks.detectors_table.measure import (
    DetectorNumbers,
    Line,
    TableArguments,
    Unmeasured,
    asks,
    made_by,
    measure_one,
    variant_of,
)
from benchmarks.detectors_table.samples import Described, described
from hallulab.agents.progress import bars
from hallulab.agents.versions import digest_code
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.text.wording import choose_noun, format_number, shorten_line
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.bench.notes import format_bound, render_raters_line
from hallulab.simulator.records.choices import ensure_model
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.show.columns import Column, build_decimal_format

_LONGEST = "combined"
"""Begun first, because it learns longest."""


class TableReport(Frozen):
    """All numbers: the content of `--json`."""

    model: str | None
    data: tuple[Described, ...]
    lines: tuple[Line, ...]
    variants: dict[str, str]
    """Detector → the variant of its method that was run, if there are several."""


def table(
    asked: TableArguments,
    datasets: Sequence[str],
    detectors: Sequence[str],
    workers: int,
    quiet: bool = False,
) -> TableReport:
    """Measure every detector on every data set.

    Args:
        workers: processes that measure; 1: this process does.

    Raises:
        UsageError: see `measure_one`; or a model must be asked, and there is no address.
        OperationalError: likewise.
    """
    if asked.record and asked.base_url is None:
        for name in detectors:
            if asyncio.run(asks(name, asked)):
                raise UsageError(f"--record: {name} asks a model. Say where it is served with --base-url.")
    data = tuple(described(name, asked.data, asked.limit) for name in datasets)
    jobs = [(dataset, detector) for dataset in datasets for detector in detectors]
    found = {}
    with bars(quiet) as shown:
        task = shown.add_task("measuring", total=len(jobs))
        for line in _measured(sorted(jobs, key=lambda job: job[1] != _LONGEST), asked, workers):
            found[line.dataset, line.detector] = line
            shown.advance(task)
    model = ensure_model(Experiment(model=asked.model)).model
    variants = {name: asyncio.run(variant_of(name, asked)) for name in detectors}
    return TableReport(
        model=model,
        data=data,
        lines=tuple(found[job] for job in jobs),
        variants={name: variant for name, variant in variants.items() if variant},
    )


def _measured(jobs: Sequence[tuple[str, str]], asked: TableArguments, workers: int) -> Iterator[Line]:
    """Yield the lines as they get ready."""
    if workers == 1:
        yield from (measure_one(dataset, detector, asked) for dataset, detector in jobs)
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=_one_thread) as pool:
        try:
            for done in as_completed(pool.submit(measure_one, *job, asked) for job in jobs):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _one_thread() -> None:
    """Keep OpenMP from starting a thread for each core in each process: they would wait for each other."""
    os.environ["OMP_NUM_THREADS"] = "1"


MARK = "†"
"""Stands beside numbers whose detector was tuned on the same data set."""


_THREE = build_decimal_format(3)
_COLUMNS = (
    Column("AUROC [95%]", "rows.response.auroc", format=_THREE, beside="rows.response.auroc_ci95"),
    Column("F1", "rows.response.f1", format=_THREE),
    Column("balanced accuracy", "rows.response.balanced_accuracy", format=_THREE),
    Column("coverage", "rows.response.coverage", format=lambda share: f"{format_number(share, 0, 100)}%"),
    Column("calls a reply", "rows.response.calls_per_reply", format=build_decimal_format(1)),
    Column(
        "computed tokens a reply", "rows.response.computed_tokens_per_reply", format=build_decimal_format(0)
    ),
)
_SENTENCES = Column(
    "AUROC of sentences [95%]", "rows.sentence.auroc", format=_THREE, beside="rows.sentence.auroc_ci95"
)
_CHATBOTS = Column("HPT-1, error", "hpt_error", format=format_signed)


def render(report: TableReport) -> str:
    """Return the whole table."""
    parts = []
    for data in report.data:
        lines = [line for line in report.lines if line.dataset == data.dataset]
        parts.append(
            "\n".join((f"**{data.title}**: {_size(data)}", "", *_table(lines), *_remarks(data, lines)))
        )
    return "\n\n".join((*_variants(report), *parts, _legend(report))) + "\n"


def _variants(report: TableReport) -> list[str]:
    """Say which variant stands behind the names of papers' methods."""
    if not report.variants:
        return []
    said = "; ".join(f"`{name}`: {variant}" for name, variant in report.variants.items())
    return [
        f"The names are those of the papers' methods; variants as run here, by `{report.model}`: {said}. "
        "[published-methods.md](published-methods.md) tells how they differ."
    ]


def _size(data: Described) -> str:
    replies, groups = data.replies, data.groups
    return (
        f"{replies} {choose_noun(replies, 'reply', 'replies')} in {groups} {choose_noun(groups, 'group')}, "
        f"{format_number(data.hallucinated, 0, 100)}% hallucinated; flagging all has F1 "
        f"{format_number(data.flag_all_f1, 3)}."
    )


def _table(lines: Sequence[Line]) -> list[str]:
    measured = [line for line in lines if isinstance(line, DetectorNumbers)]
    columns = list(_COLUMNS)
    if measured and all("sentence" in line.rows for line in measured):
        columns.append(_SENTENCES)
    if measured and all(line.chatbots for line in measured):
        columns.append(_CHATBOTS)
    heading = ("detector", *(column.label for column in columns), "learnt")
    rule = ("---", *("---:" for _ in columns), "---")
    found = [format_row(heading), format_row(rule)]
    for line in lines:
        name = f"`{line.detector}`"
        if isinstance(line, Unmeasured):
            found.append(format_row((name, "not measured", *("" for _ in columns))))
            continue
        name += "" if line.part is None else f" ({line.part} replies)"
        how = "5 folds" if line.learnt == "folds" else f"as shipped{f' {MARK}' if line.chosen_here else ''}"
        cells = [f"{column.text(line)} {column.aside(line, format_bound)}".rstrip() for column in columns]
        found.append(format_row((name, *cells, how)))
    return found


def _remarks(data: Described, lines: Sequence[Line]) -> list[str]:
    """Write the lines under a part: agreement of raters, and why detectors are missing."""
    found = [] if data.raters is None else ["", render_raters_line(data.raters)]
    reasons: dict[str, list[str]] = {}
    for line in lines:
        if line.missing is not None:
            reasons.setdefault(line.missing, []).append(f"`{line.detector}`")
    for reason, names in reasons.items():
        found += ["", f"Not measured: {', '.join(names)} ({shorten_line(reason).rstrip('.')})."]
    return found


def _legend(report: TableReport) -> str:
    return (
        f"Detectors that ask a model asked `{report.model}`. F1, balanced accuracy and HPT-1 are of the "
        "flags at the shipped threshold, or at that learnt with the other folds. 5 folds: each fifth of the "
        "groups is judged as learnt from the other four fifths of these very replies; as shipped: nothing is "
        f"learnt, or these replies cannot teach it; {MARK}: what is shipped was chosen on replies of this "
        "data set, which flatters. HPT-1, error: how far hallucinations per turn are above those of the "
        "labels, mean over chatbots. Intervals: 95%, over groups. Computed tokens: read and not out "
        "of the server's cache, or written; a dash where the server does not tell. A number of replies after "
        "a name: it was measured on so many of them, drawn by the seed."
    )


ROOT = Path(__file__).resolve().parents[2]

LIBRARIES = ("numpy", "scikit-learn", "scipy")
"""What numbers are computed with, at the versions of `constraints.txt`."""

CONSTRAINTS = Path("constraints.txt")
"""The file of all libraries' versions, relative to the repository."""

CODE = (
    "agents/models",
    "agents/retrieval/embeddings.py",
    "agents/served_model.py",
    "benchmarks/detectors_table",
    "detectors",
    "scenarios/components.py",
    "scenarios/files",
    "scenarios/labelled.py",
    "scenarios/text",
    "scenarios/transcript.py",
    "simulator/bench",
    "simulator/engine/participants.py",
    "simulator/statistics",
    "simulator/metrics",
    "simulator/show/columns.py",
)
"""Files, and folders of files, with the code that decides the table, relative to the repository."""

READ = ("detectors", "agents/prompts", "agents/retrieval/prompts")
"""Folders, relative to the repository, with what this code reads: prompts, tuned numbers, learnt models."""

_DIGESTS, _END = "\n<!-- Decided by:\n", "-->\n"
_READ_FILES = ("*.npz", "*.txt", "*.yaml")
_RECORDS = ("*.jsonl", "*.jsonl.gz")


def table_in(page: Path) -> str:
    """Return the table in a page: all but its title, its introduction and the digests at its end.

    Raises:
        UsageError: there is no such page.
    """
    return _parts(page)[1]


def write_page(page: Path, table: str, decided_by: Mapping[str, str]) -> None:
    """Put a table into a page, and the digests at its end.

    Args:
        decided_by: `deciding` of the table, from before it was made.

    Raises:
        UsageError: there is no such page.
        OperationalError: it cannot be written.
    """
    write_atomically(page, f"{_parts(page)[0]}{table}{_DIGESTS}{_lines(table, decided_by)}{_END}")


def what_changed(page: Path, decided_by: Mapping[str, str]) -> str | None:
    """Say what has changed since a page was written; None if nothing has."""
    _, table, then = _parts(page)
    now = _lines(table, decided_by)
    names = sorted({line.partition(" ")[0] for line in {*now.splitlines()} ^ {*then.splitlines()}})
    if not names:
        return None
    return (
        f"{page} may not be what the command prints, for these have changed since: {', '.join(names)}. Run "
        f"`python -m benchmarks.detectors_table --docs {page}`."
    )


def deciding(asked: TableArguments, detectors: Sequence[str]) -> dict[str, str]:
    """Return digests of all that decides a table, by name."""
    found = {
        "code": deciding_code(),
        "options": [made_by(name, asked) for name in detectors],
        "libraries": _pinned(),
        "prompts-and-learnt-models": {folder: _hashed(Path(folder), _READ_FILES) for folder in READ},
        "recordings": _hashed(asked.recordings, _RECORDS),
        "samples": _hashed(asked.data, _RECORDS),
    }
    return {name: digest(value) for name, value in found.items()}


def _lines(table: str, decided_by: Mapping[str, str]) -> str:
    """Return the digests, one a line."""
    return "".join(f"{name} {value}\n" for name, value in {**decided_by, "table": digest(table)}.items())


def deciding_code() -> dict[str, str]:
    """Return the files of code that decide the table: path → hash of the code."""
    files = (ROOT / name for name in CODE)
    each = (one for path in files for one in ([path] if path.is_file() else path.rglob("*.py")))
    return {path.relative_to(ROOT).as_posix(): digest_code(path) for path in each}


def _hashed(folder: Path, patterns: Sequence[str]) -> dict[str, str]:
    """Return the hashes of the files below a folder, by their place in it."""
    files = (path for pattern in patterns for path in folder.rglob(pattern))
    return {path.relative_to(folder).as_posix(): _hash(path) for path in files}


def _hash(path: Path) -> str:
    """Hash a file; of YAML the values, without comments."""
    if path.suffix == ".yaml":
        return digest(yaml.safe_load(path.read_text(encoding="utf-8")))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _pinned() -> list[str]:
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.partition("==")[0] in LIBRARIES]


def _parts(page: Path) -> tuple[str, str, str]:
    """Return a page's title and introduction, its table, and its digests, one a line."""
    try:
        title, introduction, rest = page.read_text(encoding="utf-8").split("\n\n", 2)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--docs {page}: this is no page with a title, an introduction and a table."
        ) from error
    table, _, digests = rest.partition(_DIGESTS)
    return f"{title}\n\n{introduction}\n\n", table, digests.removesuffix(_END)
