"""MTRAG (Katsis et al., "MTRAG: A Multi-Turn Conversational Benchmark for Evaluating RAG Systems").

Replies of systems in multi-turn dialogues. People rated each for faithfulness to its passages. The file has
hallulab's own format, with the ratings in `meta`.
"""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from hallulab.scenarios.datasets.jsonl import ReplyLine, build_labelled_reply
from hallulab.scenarios.datasets.loader import SCHEMA, DatasetInfo, LoadRequest, make_repeated_id_error
from hallulab.scenarios.files.data_files import read_records
from hallulab.scenarios.labelled import LabelledData, LabelledReply, Ratings, require_fitting_spans

FILE = "replies.jsonl"

BEST = 4
"""The highest rating: faithful. The lowest is 1."""

_RATINGS = "ratings"
"""The key of `meta` that holds the ratings."""


class _RatedLine(ReplyLine):
    """A line of the file."""

    @model_validator(mode="after")
    def _ratings_give_the_label(self) -> Self:
        found = self.rated()
        if self.label not in (None, found.hallucinated):
            raise ValueError(
                f"the label is {str(self.label).lower()}, yet the median of the ratings "
                f"{self.meta[_RATINGS]!r} is {'under' if found.hallucinated else 'not under'} {BEST}"
            )
        require_fitting_spans(self.reply, found.hallucinated, self.spans)
        return self

    def rated(self) -> Ratings:
        """Read the ratings.

        Raises:
            ValueError: there are none, or one is no whole number from 1 to `BEST`.
        """
        told = self.meta.get(_RATINGS)
        values = told.split() if isinstance(told, str) else []
        if not values or any(value not in map(str, range(1, BEST + 1)) for value in values):
            raise ValueError(
                f"meta.{_RATINGS} is {told!r}, and must be the raters' numbers from 1 to {BEST}, "
                "such as '3 4 4'"
            )
        return Ratings(values=tuple(map(float, values)), clean_from=BEST)


def load_mtrag(request: LoadRequest) -> LabelledData:
    """Load the replies of MTRAG. A reply with a median rating under `BEST` is hallucinated.

    Args:
        request: its folder holds `replies.jsonl`; there are no parts.

    Raises:
        UsageError: the request or a line of the file is wrong.
    """
    path = request.file(FILE)
    request.without_parts()
    replies: dict[str, LabelledReply] = {}
    for number, line in read_records(path, _RatedLine, SCHEMA):
        ratings = line.rated()
        reply = build_labelled_reply(number, line, request.dataset)
        if reply.id in replies:
            raise make_repeated_id_error(path, number, reply.id)
        found = {"ratings": ratings, "label": ratings.hallucinated}
        replies[reply.id] = reply.model_copy(update=found)
    return LabelledData(tuple(replies.values()))


INFO = DatasetInfo(
    load=load_mtrag, levels=("reply",), licence="Apache-2.0", url="https://github.com/IBM/mt-rag-benchmark"
)
