"""Labelled data sets, each mapped to `scenarios.labelled.LabelledReply`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from scenarios.errors import UsageError
from scenarios.labelled import LabelledData
from scenarios.loaders.begin import load_begin
from scenarios.loaders.jsonl import load_jsonl

Loader = Callable[[Path | None, str | None], LabelledData]
"""From the folder of a data set's files and the part of it to load, to its replies."""

LOADERS: dict[str, Loader] = {"begin": load_begin}
"""Data sets by name."""


def load_labelled(dataset: str, data: Path | None = None, source: str | None = None) -> LabelledData:
    """The labelled replies of a data set.

    Args:
        dataset: a name of `LOADERS`, or the path of a JSON-lines file (docs/labelled-data.md).
        data: folder of a named data set's files.
        source: part of a named data set; None: all.

    Raises:
        UsageError: there is no such data set, or something in it is wrong; names file, line and remedy.
    """
    if dataset in LOADERS:
        return LOADERS[dataset](data, source)
    path = Path(dataset).expanduser()
    if not path.is_file():
        raise UsageError(
            f"{dataset}: no such labelled data. Give the path of a JSONL file, or one of: "
            f"{', '.join(LOADERS)}."
        )
    for flag, value in (("--data", data), ("--source", source)):
        if value is not None:
            raise UsageError(f"{flag} {value}: a JSONL file is read whole. Leave {flag} out.")
    return load_jsonl(path)
