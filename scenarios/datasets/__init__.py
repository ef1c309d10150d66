"""Labelled data sets. Each of `LOADERS` reads one into `hallulab.scenarios.labelled.LabelledReply`.

HotpotQA (`hotpotqa`) has no loader, because it has right answers only: replies are built from its questions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hallulab.scenarios.datasets.audit_corpus import load_audit_corpus
from hallulab.scenarios.datasets.begin import load_begin
from hallulab.scenarios.datasets.gold import load_gold
from hallulab.scenarios.datasets.halubench import load_halubench
from hallulab.scenarios.datasets.halueval import load_halueval
from hallulab.scenarios.datasets.jsonl import load_chats, load_jsonl
from hallulab.scenarios.datasets.loader import LoadRequest
from hallulab.scenarios.datasets.mtrag import load_mtrag
from hallulab.scenarios.datasets.ragtruth import RagTruthOptions, load_ragtruth
from hallulab.scenarios.datasets.wice import load_wice
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import expand_home, is_file
from hallulab.scenarios.labelled import LabelledData
from hallulab.scenarios.transcript import Frozen

Loader = Callable[[LoadRequest], LabelledData]
"""Reads the requested replies of a data set."""

LOADERS: dict[str, Loader] = {
    "audit-corpus": load_audit_corpus,
    "begin": load_begin,
    "detector-eval": load_chats,
    "gold": load_gold,
    "halubench": load_halubench,
    "halueval": load_halueval,
    "mtrag": load_mtrag,
    "ragtruth": load_ragtruth,
    "wice": load_wice,
}
"""Name of a data set → its loader."""

OPTIONS: dict[str, type[Frozen]] = {"ragtruth": RagTruthOptions}
"""Name of a data set → the class of its options, which its loader checks."""


def load_labelled(
    dataset: str,
    data: Path | None = None,
    source: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> LabelledData:
    """Load the labelled replies of a data set.

    Args:
        dataset: a name of `LOADERS`, or the path of a JSON-lines file (docs/labelled-data.md).
        data: folder of a named data set's files.
        source: part of a named data set; None: all, or as docs/labelled-data.md says.
        options: the data set's own options (`OPTIONS`): name → value.

    Raises:
        UsageError: there is no such data set, or something in it is wrong; names file, line and remedy.
    """
    if dataset in LOADERS:
        if options and dataset not in OPTIONS:
            raise UsageError(f"data set {dataset}: it has no options. Leave {', '.join(options)} out.")
        return LOADERS[dataset](LoadRequest(dataset, data, source, options or {}))
    path = expand_home(dataset)
    if not is_file(path):
        raise UsageError(
            f"{dataset}: no such labelled data. Give the path of a JSONL file, or one of: "
            f"{', '.join(LOADERS)}."
        )
    for flag, value in (("--data", data), ("--source", source)):
        if value is not None:
            raise UsageError(f"{flag} {value}: a JSONL file is read whole. Leave {flag} out.")
    if options:
        raise UsageError(f"{dataset}: a JSONL file has no options. Leave {', '.join(options)} out.")
    return load_jsonl(path)
