"""Make docs/metrics.md from the columns of the tables: `python -m benchmarks.glossary > docs/metrics.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hallulab.simulator.bench.tables import TABLES as BENCH
from hallulab.simulator.calibration.document import TABLES as CALIBRATE
from hallulab.simulator.rag_trust.document import TABLES as RAG_TRUST
from hallulab.simulator.report.build import load_metrics
from hallulab.simulator.report.realism import TABLES as REALISM
from hallulab.simulator.show.columns import Column
from hallulab.simulator.show.markdown import render_glossary

_HEAD = """# What the columns mean

Each table of a run, of `hallulab realism`, `bench`, `calibrate` and `rag-trust`: the heading on the page, the
field of the row (in JSON and CSV), the meaning. The page shows the meaning when the pointer is on a heading.
The terminal has the columns that fit, in the same order, under shorter headings.

`python -m benchmarks.glossary > docs/metrics.md` makes this page from the columns, declared in
`simulator/metrics/*.py`, `simulator/report/realism.py`, `simulator/bench/tables.py`,
`simulator/calibration/document.py` and `simulator/rag_trust/document.py`.
[published-methods.md](studies/published-methods.md), [realism.md](realism.md), [bench.md](bench.md) and
[rag-trust.md](rag-trust.md) say how the numbers are counted.
"""


def page() -> str:
    """Return the text of docs/metrics.md."""
    parts = (
        *_tables("A run", dict(table for metric in load_metrics() for table in metric.TABLES)),
        *_tables("`hallulab realism`", REALISM),
        *_tables("`hallulab bench`", BENCH),
        *_tables("`hallulab calibrate`", CALIBRATE),
        *_tables("`hallulab rag-trust`", RAG_TRUST),
    )
    return "\n".join((_HEAD, *parts))


def _tables(title: str, tables: Mapping[str, Sequence[Column]]) -> list[str]:
    return [
        f"## {title}\n",
        *(f"### {name}\n\n{render_glossary(columns)}" for name, columns in tables.items()),
    ]


if __name__ == "__main__":
    print(page(), end="")
