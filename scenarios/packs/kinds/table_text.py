"""Tables as text: columns parted by commas, semicolons, tabs or bars."""

from __future__ import annotations

import csv
import io
from itertools import islice

from hallulab.scenarios.packs.kinds import Extracted, encodings
from hallulab.scenarios.packs.kinds.tables import write_table

_SEPARATORS = ",;\t|"
_ROWS_TRIED = 100


def read(content: bytes) -> Extracted:
    """Return the rows as a Markdown table; its head is the first row."""
    text, encoding = encodings.decode(content)
    notes = () if encoding == "utf-8" else (f"is not UTF-8, and was read as {encoding}",)
    first, _, rest = text.partition("\n")
    if first.lower().startswith("sep=") and len(first.rstrip("\r")) == 5:  # Excel's own mark
        separator, text = first[4], rest
    else:
        separator = _find_separator(text)
    return Extracted(
        write_table(list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))), notes=notes
    )


def _find_separator(text: str) -> str:
    """Return what parts the first rows into as many columns as the head has; if several do, into most."""

    def score(separator: str) -> tuple[float, int]:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        widths = [len(row) for row in islice(rows, _ROWS_TRIED) if row]
        if not widths or widths[0] == 1:
            return 0.0, 0
        return widths.count(widths[0]) / len(widths), widths[0]

    return max(_SEPARATORS, key=score)
