"""Labelled data sets, each a module with `INFO`, or an entry point of the group `hallulab.datasets`.

The module's name is the data set's, with an underscore for each hyphen. Modules without `INFO` are none:
`jsonl` reads files of any path, and HotpotQA (`hotpotqa`) has right answers only, to build replies from.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hallulab.scenarios.components import find_info, import_constants, list_component_names
from hallulab.scenarios.datasets.loader import DatasetInfo, LoadRequest
from hallulab.scenarios.datasets.rows import load_rows
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import expand_home, is_file
from hallulab.scenarios.labelled import LabelledData
from hallulab.scenarios.near_names import suggest_name

GROUP = "hallulab.datasets"
"""Group of the entry points; each gives a `DatasetInfo`."""


@cache
def _import_own() -> Mapping[str, DatasetInfo]:
    return import_constants(__name__, "INFO")


def list_datasets() -> list[str]:
    """Return the names of all data sets, ours first."""
    return list_component_names(_import_own(), GROUP)


def find_dataset(name: str) -> DatasetInfo:
    """Return the description of a data set.

    Raises:
        UsageError: there is none of that name, or its distribution cannot be used.
    """
    return find_info("data set", name, _import_own(), GROUP, DatasetInfo)


def load_labelled(
    dataset: str,
    data: Path | None = None,
    source: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> LabelledData:
    """Load the labelled replies of a data set.

    Args:
        dataset: a name of `list_datasets()`, or the path of a JSON-lines file (docs/labelled-data.md).
        data: folder of a named data set's files.
        source: part of a named data set; None: all, or as docs/labelled-data.md says.
        options: the data set's own options: name → value.

    Raises:
        UsageError: there is no such data set, or something in it is wrong; names file, line and remedy.
    """
    names = list_datasets()
    if dataset in names:
        info = find_dataset(dataset)
        if options and info.options is None:
            raise UsageError(f"data set {dataset}: it has no options. Leave {', '.join(options)} out.")
        return info.load(LoadRequest(dataset, data, source, options or {}))
    path = expand_home(dataset)
    if not is_file(path):
        raise UsageError(
            f"{dataset}: no such labelled data{suggest_name(dataset, names)}. Give the path of a JSONL file, "
            f"or one of: {', '.join(names)}."
        )
    for flag, value in (("--data", data), ("--source", source)):
        if value is not None:
            raise UsageError(f"{flag} {value}: a JSONL file is read whole. Leave {flag} out.")
    if options:
        raise UsageError(f"{dataset}: a JSONL file has no options. Leave {', '.join(options)} out.")
    return load_rows(path)
