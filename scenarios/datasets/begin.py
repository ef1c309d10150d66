"""BEGIN v2 (Dziri et al., "Evaluating Attribution in Dialogue Systems: The BEGIN Benchmark").

Replies of knowledge-grounded dialogue systems, each judged against one piece of knowledge. Each line of
`turns.jsonl`, or of a table of the official release, is one reply.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field

from hallulab.scenarios.datasets.loader import SCHEMA, DatasetInfo, LoadRequest
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import check_record, read_records, read_text
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.labelled import LabelledData, LabelledReply
from hallulab.scenarios.transcript import Frozen, Passage

FILE = "turns.jsonl"

Source = Literal["wow", "cmu", "tc"]
"""Wizard of Wikipedia, CMU-DoG, TopicalChat."""

OFFICIAL = {
    split: (
        f"wow/begin_{split}_wow.tsv",
        f"cmu-dog/begin_{split}_cmu.tsv",
        f"topicalchat/begin_{split}_tc.tsv",
    )
    for split in ("dev", "test")
}
"""Split → its files in the official release, one for each source."""

_SPELLING = re.compile(r"[\W_]+")
"""Names that the release spells in several ways in the same knowledge, for different systems; so is case."""

_LEFT_OUT = "Generic"
_EMPTY = "empty reply"


class _BeginLine(Frozen):
    """A line of the file."""

    model_name: str
    data_source: Source
    knowledge: str = Field(min_length=1)
    message: str
    """The turn before the reply; it can be empty."""
    response: str
    begin_label: Literal["Fully attributable", "Not fully attributable", "Generic"]


def load_begin(request: LoadRequest) -> LabelledData:
    """Load the replies of BEGIN; "Not fully attributable" is the positive class.

    "Generic" replies ("haha") hold nothing that knowledge could support or contradict. They and empty ones
    are left out and counted. Replies to the same knowledge form a group, also where it differs in case, white
    space and punctuation.

    Args:
        request: its folder holds `turns.jsonl` or files of `OFFICIAL`. Its source is `wow`, `cmu` or `tc`, or
            a split of the official files; None: all.

    Raises:
        UsageError: the request or a line of a file is wrong.
    """
    paths = request.files(FILE, *(name for names in OFFICIAL.values() for name in names))
    official = paths[0].name != FILE
    part = request.part((*get_args(Source), *(OFFICIAL if official else ())))
    replies = []
    left_out: Counter[str] = Counter()
    lines = () if official else read_records(paths[0], _BeginLine, SCHEMA)
    numbered = ((f"{turn.data_source}-{number}", None, turn) for number, turn in lines)  # it says no split
    for identifier, split, turn in _read_official_turns(paths) if official else numbered:
        if part not in (None, turn.data_source, split):
            continue
        if turn.begin_label == _LEFT_OUT:
            left_out[_LEFT_OUT] += 1
        elif not turn.response.strip():
            left_out[_EMPTY] += 1
        else:
            replies.append(_label_turn(identifier, turn))
    return LabelledData(tuple(replies), dict(left_out))


def _read_official_turns(paths: tuple[Path, ...]) -> Iterator[tuple[str, str | None, _BeginLine]]:
    """Yield identifier, split and turn of each row.

    The development split keeps its identifiers of the one file.
    """
    for split, names in OFFICIAL.items():
        number = count(1)
        infix = "" if split == "dev" else f"{split}-"
        for path in paths:
            if path.as_posix().endswith(names):
                for turn in _read_rows(path):
                    yield f"{turn.data_source}-{infix}{next(number)}", split, turn


def _read_rows(path: Path) -> Iterator[_BeginLine]:
    """Yield the rows of a table; its values are separated by tabs and never quoted."""
    header, *lines = (line.split("\t") for line in read_text(path).split("\n"))
    for number, values in enumerate(lines, start=2):
        if not "".join(values).strip():
            continue
        if len(values) != len(header):
            raise UsageError(
                f"{path}, line {number}: there are {len(values)} values for {len(header)} columns. "
                "Download the file again."
            )
        yield check_record(
            dict(zip(header, values, strict=True)), _BeginLine, f"{path}, line {number}", SCHEMA
        )


def _label_turn(identifier: str, turn: _BeginLine) -> LabelledReply:
    document = digest(turn.knowledge)[:16]
    return LabelledReply(
        id=identifier,
        dataset="begin",
        task="dialogue",
        question=turn.message,
        passages=(Passage(id=f"{document}#0", document=document, text=turn.knowledge),),
        reply=turn.response,
        label=turn.begin_label == "Not fully attributable",
        group=digest(_SPELLING.sub("", turn.knowledge).casefold())[:16],
        meta={"model": turn.model_name, "source": turn.data_source},
    )


INFO = DatasetInfo(
    load=load_begin,
    levels=("reply",),
    licence="one for each source",
    url="https://github.com/google/BEGIN-dataset",
)
