"""HaluBench (Ravi et al., "Lynx: An Open Source Hallucination Evaluation Model").

Questions with a passage and an answer that passes or fails, from several data sets. It is published as one
Parquet file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import Literal

from pydantic import Field

from hallulab.scenarios.datasets.loader import SCHEMA, DatasetInfo, LoadRequest, cut_into_passages
from hallulab.scenarios.files.data_files import check_record, read_records
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.files.tables import read_parquet_rows
from hallulab.scenarios.labelled import LabelledData, LabelledReply
from hallulab.scenarios.transcript import Frozen

FILE = "test-00000-of-00001.parquet"

LINES = "halubench.jsonl"
"""The same rows as JSON lines; read instead if the folder has it."""

_EMPTY = "empty answer"


class _HaluBenchLine(Frozen):
    """A row."""

    id: str = Field(min_length=1)
    """Identifier, perhaps not unique."""
    passage: str = Field(min_length=1)
    question: str
    answer: str
    label: Literal["PASS", "FAIL"]
    source_ds: str
    score: int | None = None
    """The label as a number, in some editions."""


def load_halubench(request: LoadRequest) -> LabelledData:
    """Load the answers of HaluBench; FAIL means hallucinated. Empty answers are left out and counted.

    The passage is cut into pieces of about 120 words, 159 at most. Answers from the same passage form a
    group. Of rows with the same identifier `a`, the second is called `a-2`, and so on.

    Args:
        request: its folder holds one of the two files; its source is a `source_ds`; None: all.

    Raises:
        UsageError: the request or a row is wrong, or Parquet is to be read without the extra `tables`.
    """
    if request.data is not None and (request.data / LINES).is_file():
        read = [row for _, row in read_records(request.data / LINES, _HaluBenchLine, SCHEMA)]
    else:
        path = request.file(FILE)
        read = [
            check_record(row, _HaluBenchLine, f"{path}, row {number}", SCHEMA)
            for number, row in enumerate(read_parquet_rows(path), start=1)
        ]
    rows = _rename_repeated(read)
    part = request.part(tuple(dict.fromkeys(row.source_ds for row in rows)))
    chosen = [row for row in rows if part in (None, row.source_ds)]
    left_out = Counter(_EMPTY for row in chosen if not row.answer.strip())
    return LabelledData(tuple(_label_row(row) for row in chosen if row.answer.strip()), dict(left_out))


def _rename_repeated(rows: Sequence[_HaluBenchLine]) -> list[_HaluBenchLine]:
    """Return the rows with unique identifiers; identifiers that are unique do not change."""
    taken = {row.id for row in rows}  # all of them: `a-2` may be somebody's own identifier
    times: Counter[str] = Counter()
    apart = []
    for row in rows:
        times[row.id] += 1
        name = row.id
        if times[row.id] > 1:
            names = (f"{row.id}-{number}" for number in count(times[row.id]))
            name = next(free for free in names if free not in taken)
            taken.add(name)
        apart.append(row.model_copy(update={"id": name}))
    return apart


def _label_row(row: _HaluBenchLine) -> LabelledReply:
    group = digest(row.passage)[:16]
    return LabelledReply(
        id=row.id,
        dataset="halubench",
        task="qa",
        question=row.question,
        passages=cut_into_passages(row.passage, group),
        reply=row.answer,
        label=row.label == "FAIL",
        group=group,
        meta={"source": row.source_ds},
    )


INFO = DatasetInfo(
    load=load_halubench,
    levels=("reply",),
    licence="CC-BY-NC-2.0",
    url="https://huggingface.co/datasets/PatronusAI/HaluBench",
)
