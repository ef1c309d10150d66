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

Headings and meanings, as pages show them. The field in JSON and CSV is the heading in small letters, with `_`
between words, `per` for `/` and no `%`, or else the name behind it. Columns of several tables come first; a
table with another meaning has its own.
[published-methods.md](studies/published-methods.md) defines the measures.
"""


def page() -> str:
    """Return the text of docs/metrics.md; installed metrics of other people are in it, too."""
    groups: Mapping[str, Mapping[str, Sequence[Column]]] = {
        "A run": dict(table for metric in load_metrics() for table in metric.TABLES),
        "`hallulab realism`": REALISM,
        "`hallulab bench`": BENCH,
        "`hallulab calibrate`": CALIBRATE,
        "`hallulab rag-trust`": RAG_TRUST,
    }
    blocks = [_HEAD]
    for title, tables in groups.items():
        lines = {name: _describe(columns) for name, columns in tables.items()}
        shared = _find_shared(lines.values())
        blocks += [f"## {title}\n", *(f"{line}\n" for line in shared)]
        for name, own in lines.items():
            blocks += [f"### {name}\n", *(f"{line}\n" for line in own if line not in shared)]
    return "\n".join(blocks)


def _find_shared(tables: Iterable[Sequence[str]]) -> list[str]:
    """Return of each heading the line that most tables have, if several have it."""
    by_heading: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for lines in tables:
        for line in lines:
            by_heading[line.split("**")[1]][line] += 1
    most = (found.most_common(1)[0] for found in by_heading.values())
    return [line for line, count in most if count > 1]


def _describe(columns: Sequence[Column]) -> list[str]:
    """Return a line for each column: heading, field if the heading does not give it, and meaning."""
    found: dict[str, None] = {}
    for column in columns:
        heading = (column.label or column.short or "").replace("\n", " ")
        plain = heading.lower().removesuffix(" %").replace(" / ", "_per_").replace("-", "_").replace(" ", "_")
        field = "" if plain == column.value else f" `{column.value}`"
        found[f"**{heading}**{field}: {column.hint}".replace("\n", " ")] = None
    return list(found)


if __name__ == "__main__":
    print(page(), end="")
