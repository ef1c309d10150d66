"""Tables: rows of Parquet files as JSON values, and cells of CSV that a spreadsheet computes."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.extras import require_extra
from hallulab.scenarios.files.opening import open_file
from hallulab.scenarios.near_names import suggest_name

_BATCH = 500
_SIGNS = frozenset("=+-@\u2212")
"""First signs of a formula; the last is the minus sign of print."""
_BREAKS = ("\t", "\r", "\n")
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")
"""Letters of Korean that show nothing."""


def read_parquet_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table.

    Args:
        columns: those that are needed; None: all.

    Raises:
        UsageError: it cannot be read, is no Parquet, or lacks a column, or the extra `tables` is not
            installed.
    """
    require_extra("tables", "pyarrow", use=f"{path}: Parquet")
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with open_file(path) as opened, parquet.ParquetFile(opened) as file:
            there = file.schema_arrow.names
            if missing := [column for column in columns or () if column not in there]:
                near = suggest_name(missing[0], there)
                raise UsageError(
                    f"{path}: no column `{missing[0]}`{near} among {', '.join(there)}. Name the column so."
                )
            for batch in file.iter_batches(batch_size=_BATCH, columns=columns):
                yield from map(_convert_to_json, batch.to_pylist())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error}). Correct the path, or write it again.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: a text in it is not UTF-8. Write it again in UTF-8.") from error
    except pa.ArrowException as error:
        raise UsageError(f"{path}: no Parquet ({error}). Write or download it again.") from error


def _convert_to_json(value: Any) -> Any:
    """Return a value of a table as JSON knows it: texts in place of times, decimals and bytes."""
    if isinstance(value, Mapping):
        return {key: _convert_to_json(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_convert_to_json(one) for one in value]
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return value.hex()  # an identifier, of which replaced bytes could make two equal
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def is_formula(text: str) -> bool:
    """Return whether a spreadsheet may compute a cell of CSV with this text (OWASP, CSV Injection).

    Programs differ: some drop white space, invisible and combining characters before a sign, some read the
    sign's full-width and small forms, and to some a tab or the end of a line begins a cell.
    """
    if text.startswith(_BREAKS):
        return True
    seen = (one for one in text if unicodedata.category(one)[0] not in "CZM" and one not in _FILLERS)
    return unicodedata.normalize("NFKC", next(seen, "")).lstrip()[:1] in _SIGNS
