"""BEGIN v2 (Dziri et al., "Evaluating Attribution in Dialogue Systems: The BEGIN Benchmark").

Replies of knowledge-grounded dialogue systems, each judged against one piece of knowledge; one line of
`turns.jsonl` a reply.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal, get_args

from pydantic import Field

from scenarios.data_files import read_records
from scenarios.labelled import LabelledData, LabelledReply
from scenarios.loaders.request import SCHEMA, LoadRequest
from scenarios.recording import digest
from scenarios.transcript import Frozen, Passage

FILE = "turns.jsonl"
"""The file in the data set's folder."""

Source = Literal["wow", "cmu", "tc"]
"""Wizard of Wikipedia, CMU-DoG, TopicalChat."""

_LEFT_OUT = "Generic"


class _Turn(Frozen):
    """A line of the file."""

    model_name: str
    """The system that replied."""
    data_source: Source
    """The dialogues that the turn comes from."""
    knowledge: str = Field(min_length=1)
    """The evidence."""
    message: str
    """The turn before the reply; it can be empty."""
    response: str = Field(min_length=1)
    """The reply."""
    begin_label: Literal["Fully attributable", "Not fully attributable", "Generic"]
    """What the annotators say."""


def load_begin(request: LoadRequest) -> LabelledData:
    """The replies of BEGIN; "Not fully attributable" is the positive class.

    "Generic" replies ("haha") say nothing that knowledge could bear out or contradict. They are left out, and
    counted. Replies to the same knowledge form a group.

    Args:
        request: its folder holds `turns.jsonl`, its source is `wow`, `cmu` or `tc`; None: all.

    Raises:
        UsageError: the request or a line of the file is wrong.
    """
    path = request.file(FILE)
    source = request.part(get_args(Source))
    replies = []
    left_out: Counter[str] = Counter()
    for number, turn in read_records(path, _Turn, SCHEMA):
        if source not in (None, turn.data_source):
            continue
        if turn.begin_label == _LEFT_OUT:
            left_out[_LEFT_OUT] += 1
        else:
            replies.append(_labelled(number, turn))
    return LabelledData(tuple(replies), dict(left_out))


def _labelled(number: int, turn: _Turn) -> LabelledReply:
    group = digest(turn.knowledge)[:16]
    return LabelledReply(
        id=f"{turn.data_source}-{number}",
        dataset="begin",
        task="dialogue",
        question=turn.message,
        passages=(Passage(id=f"{group}#0", document=group, text=turn.knowledge),),
        reply=turn.response,
        label=turn.begin_label == "Not fully attributable",
        group=group,
        meta={"model": turn.model_name, "source": turn.data_source},
    )
