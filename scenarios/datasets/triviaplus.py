"""Trivia+ (Chen et al. 2026, arXiv:2605.11330): long evidence, sentence labels by up to six people.

The release is one Parquet file. A reply is unfaithful if a sentence contradicts the evidence or is not in it,
by majority, ties to the stricter label. Beside these labels it has four noisy ones, to train on.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

from pydantic import Field

from hallulab.scenarios.components import read_options
from hallulab.scenarios.datasets.loader import (
    SCHEMA,
    DatasetInfo,
    LoadRequest,
    cut_into_passages,
    locate_quotations,
)
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import check_record
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.files.tables import read_parquet_rows
from hallulab.scenarios.labelled import GoldSpan, LabelledData, LabelledReply
from hallulab.scenarios.transcript import Frozen

SPLITS = ("train", "valid", "test")
COLLECTIONS = ("drop", "msmarco", "nq", "trivia", "covid")
PARTS = (*SPLITS, *COLLECTIONS)
"""Values of `--source`: a split, or where the question is from."""

_LABEL = "response_level_label_binary"
_WRONG = ("contradicts", "not-mentioned")
_EMPTY = "empty reply"


class TriviaPlusOptions(Frozen):
    """Which labels count."""

    labels: Literal[
        "clean",
        "ws_llm_aaj",
        "15pct_noise_dissenting_label",
        "15pct_noise_dissenting_workers",
        "15pct_noise_random_flipping",
    ] = "clean"
    """Source of the labels: people, or one of the four noisy sets, which have no places."""


class _TableRow(Frozen):
    """A row of the table."""

    source: str
    split: str
    model: str
    article: str = Field(min_length=1)
    question: str
    answer: str
    answer_sentence_list: tuple[str, ...]
    sentence_level_majority_vote: tuple[str, ...]
    label: Literal[0, 1]


def load_triviaplus(request: LoadRequest) -> LabelledData:
    """Load the replies of Trivia+. Replies to one article form a group. Empty ones are left out and counted.

    Articles are cut into pieces of about 120 words, 159 at most. Sentences that contradict the article or are
    not in it are the spans; a reply in which one of them stands nowhere has none.

    Args:
        request: its folder holds the release's Parquet file; its source is one of `PARTS`, its options are
            `TriviaPlusOptions`.

    Raises:
        UsageError: the request or a row is wrong.
    """
    options = read_options("data set triviaplus", TriviaPlusOptions, request.options)
    part = request.part(PARTS)
    column = _LABEL if options.labels == "clean" else f"{_LABEL}_{options.labels}"
    replies: list[LabelledReply] = []
    left_out: Counter[str] = Counter()
    path = _find_table(request)
    wanted = {name: name for name in _TableRow.model_fields} | {"label": column}
    for number, row in enumerate(read_parquet_rows(path, tuple(wanted.values())), start=1):
        named = {name: row[there] for name, there in wanted.items()}
        line = check_record(named, _TableRow, f"{path}, row {number}", SCHEMA)
        collection = line.source.replace("_", "")
        if part not in (None, line.split, collection):
            continue
        if not line.answer.strip():
            left_out[_EMPTY] += 1
            continue
        spans = _locate_spans(line) if options.labels == "clean" else None
        group = digest(line.article)[:16]
        replies.append(
            LabelledReply(
                id=f"row-{number}",
                dataset=request.dataset,
                task="qa",
                question=line.question,
                passages=cut_into_passages(line.article, group),
                reply=line.answer,
                label=bool(line.label),
                spans=spans if bool(spans) == bool(line.label) else None,
                group=group,
                meta={"split": line.split, "source": collection, "model": line.model},
            )
        )
    return LabelledData(tuple(replies), dict(left_out))


def _find_table(request: LoadRequest) -> Path:
    """Return the release's file: it has the day of its making in its name."""
    if request.data is None:
        raise UsageError(f"{request.dataset}: name the folder that holds the Parquet file with --data DIR.")
    found = sorted(path for path in request.data.glob("*.parquet") if path.name.lower().startswith("trivia"))
    if not found:
        raise UsageError(
            f"{request.data}: no file Triviaplus….parquet in it. Give its folder with --data DIR."
        )
    return found[-1]


def _locate_spans(row: _TableRow) -> tuple[GoldSpan, ...] | None:
    """Return the places of the wrong sentences; None where one stands nowhere in the reply."""
    sentences = [sentence.strip() for sentence in row.answer_sentence_list]
    places = locate_quotations(row.answer, sentences)
    if len(places) != len(row.sentence_level_majority_vote):
        return None
    voted = zip(places, row.sentence_level_majority_vote, strict=True)
    wrong = [(place, vote) for place, vote in voted if vote in _WRONG]
    if any(place is None for place, _ in wrong):
        return None
    return tuple(GoldSpan(start=place[0], end=place[1], label=vote) for place, vote in wrong if place)


INFO = DatasetInfo(
    load=load_triviaplus,
    levels=("reply", "span"),
    licence="MIT",
    url="https://github.com/Wenbo11/TriviaPlus",
    options=TriviaPlusOptions,
)
