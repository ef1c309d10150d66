"""Make docs/metrics.md from the columns of the tables: `python -m benchmarks.glossary > docs/metrics.md`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from hallulab.simulator.bench.tables import TABLES as BENCH
from hallulab.simulator.calibration.document import TABLES as CALIBRATE
from hallulab.simulator.rag_trust.document import TABLES as RAG_TRUST
from hallulab.simulator.report.build import load_metrics
from hallulab.simulator.report.realism import TABLES as REALISM
from hallulab.simulator.show.columns import Column

_HEAD = """# Columns

Each heading on the page and its meaning, which the page shows at the pointer. The field in JSON and CSV is
the heading in small letters, with `_` between words, `per` for `/` and without `%`, or else the name behind
it. Columns of several tables come first; a table with another meaning has its own.
[published-methods.md](studies/published-methods.md) defines the measures.
"""
_GROUPS: Mapping[str, Mapping[str, Sequence[Column]]] = {
    "A run": dict(table for metric in load_metrics() for table in metric.TABLES),
    "`hallulab realism`": REALISM,
    "`hallulab bench`": BENCH,
    "`hallulab calibrate`": CALIBRATE,
    "`hallulab rag-trust`": RAG_TRUST,
}


def page() -> str:
    """Return the text of docs/metrics.md."""
    blocks = [_HEAD]
    for title, tables in _GROUPS.items():
        shared = _find_shared(tables.values())
        blocks += [f"## {title}\n", *(f"{line}\n" for line in shared)]
        for name, columns in tables.items():
            own = dict.fromkeys(line for line in map(_describe, columns) if line not in shared)
            blocks += [f"### {name}\n", *(f"{line}\n" for line in own)]
    return "\n".join(blocks)


def _find_shared(tables: Iterable[Sequence[Column]]) -> list[str]:
    """Return of each heading the line that most tables have, if several have it."""
    lines: defaultdict[str | None, Counter[str]] = defaultdict(Counter)
    for columns in tables:
        for column in columns:
            lines[column.label or column.short][_describe(column)] += 1
    most = (found.most_common(1)[0] for found in lines.values())
    return [line for line, count in most if count > 1]


def _describe(column: Column) -> str:
    """Return a column's heading, its field if the heading does not give it, and its meaning."""
    heading = column.label or column.short or ""
    plain = heading.lower().removesuffix(" %").replace(" / ", "_per_").replace("-", "_").replace(" ", "_")
    field = "" if plain == column.value else f" `{column.value}`"
    return " ".join(f"**{heading}**{field}: {column.hint}".split())


if __name__ == "__main__":
    print(page(), end="")
