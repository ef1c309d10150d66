"""A sweep on the terminal, at most 80 columns wide: the columns of MetaRAG's tables 2 and 3."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scenarios.text.wording import number, one_line
from simulator.report.terminal import standard_output

_FRONTS = {"tokens": "T", "latency": "L", "precision_recall": "P"}


def print_sweep(report: Mapping[str, Any], console: Console | None = None) -> None:
    """Print the configurations, highest F1 first."""
    console = console or standard_output()
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    table.add_column("ID", no_wrap=True)
    table.add_column("Config", overflow="fold", max_width=26)
    for heading in ("F1 ± sd", "CV %", "P", "R", "Acc", "Tokens\n/reply", "p50\nms", "Front"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in best_first(report):
        spread = "" if row["f1_sd"] is None else f" ± {row['f1_sd']:.3f}"
        table.add_row(
            Text(one_line(row["name"].rsplit("-", 1)[-1])),
            Text(one_line("/".join(map(option_value, row["config"].values())))),
            f"{number(row['f1'], 3)}{spread}",
            number(row["f1_cv"], 2, 100),
            number(row["precision"], 3),
            number(row["recall"], 3),
            number(row["accuracy"], 3),
            number(row["tokens_per_reply"], 0),
            number(row["p50_ms"], 1),
            "".join(_FRONTS[name] for name in row["pareto"]),
        )
    options, repeats = " / ".join(report["rows"][0]["config"]), report["file"]["repeats"]
    heading = f"Sweep of {report['file']['detector']}, {repeats} seeds each. Config: {options}"
    console.print(Text(one_line(heading)))
    console.print(table)
    console.print(
        Text("Front: none is as good, as cheap, and covers as much; F1 and T tokens, L latency; P: P and R.")
    )
    console.print(
        Text("p50: of what the requests of a reply took, added up; without requests, by the clock.")
    )


def best_first(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The configurations of a sweep, highest F1 first; those without one last."""
    return sorted(report["rows"], key=lambda row: -1.0 if row["f1"] is None else row["f1"], reverse=True)


def option_value(value: Any) -> str:
    """A configuration's option as people read it: lists joined by `+`, an empty one `own`."""
    if isinstance(value, list):
        return "+".join(map(option_value, value)) or "own"
    return value if isinstance(value, str) else json.dumps(value)
