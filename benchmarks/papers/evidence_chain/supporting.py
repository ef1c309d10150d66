"""Table 9 on real data: which sentence of the evidence each score takes for the support of a statement.

The paper measures attribution on its made corpus. WiCE's annotators marked the sentences of a page that
support a claim; HotpotQA's questions come with the sentences that are needed for the answer. Here each
sentence of the evidence is a passage, and a statement is attributed rightly if its best passage is one of
those that people named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.evidence_chain.analysis import attribute_places
from hallulab.detectors.features.batch import make_batch, make_case
from hallulab.detectors.features.features import Attribution, measure
from hallulab.detectors.features.learning import count_forms
from hallulab.scenarios.datasets.hotpotqa import HotpotQuestion
from hallulab.scenarios.datasets.request import SCHEMA
from hallulab.scenarios.datasets.wice import WiceClaim
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import read_records
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Passage


@dataclass(frozen=True)
class Supported:
    """A statement that its evidence supports."""

    reply: LabelledReply
    """The statement, with a passage for each sentence of the evidence."""
    sentences: frozenset[int]
    """Positions of the passages that people named."""


def read_claims(path: Path) -> Iterator[Supported]:
    """Yield WiCE's claims that are supported, at least in part.

    Raises:
        UsageError: a line of the file is wrong.
    """
    for _, claim in read_records(path, WiceClaim, SCHEMA):
        named = frozenset(place for chosen in claim.supporting_sentences for place in chosen)
        if named:
            yield Supported(_statement(claim.meta.id, claim.claim, claim.evidence), named)


def read_answers(path: Path) -> Iterator[Supported]:
    """Yield HotpotQA's questions, each with its answer behind it as the statement.

    Raises:
        UsageError: a line of the file is wrong.
    """
    for _, one in read_records(path, HotpotQuestion, SCHEMA):
        places = [(title, place) for title, sentences in one.context for place in range(len(sentences))]
        texts = [f"{title}: {text}" for title, sentences in one.context for text in sentences]
        named = frozenset(place for place, key in enumerate(places) if key in set(one.supporting_facts))
        yield Supported(_statement(one.id, f"{one.question.rstrip(' ?')} {one.answer}", texts), named)


READERS: dict[str, tuple[str, Callable[[Path], Iterator[Supported]]]] = {
    "WiCE": ("wice/claims.jsonl", read_claims),
    "HotpotQA": ("hotpotqa/distractor.jsonl", read_answers),
}
"""Data set → its file under the folder of data sets, and the function that reads it."""


def attribution_rows(data: Path, names: dict[Attribution, str]) -> list[dict[str, Any]]:
    """Return the rows of each data set that the folder has, by score.

    Args:
        data: folder of the data sets' folders.
        names: score → its name in the table.

    Raises:
        UsageError: the folder has none of the files, or a line of one is wrong.
    """
    found = {name: (data / file, read) for name, (file, read) in READERS.items() if (data / file).is_file()}
    if not found:
        raise UsageError(f"{data}: there is none of {', '.join(file for file, _ in READERS.values())}.")
    return [
        {
            "Data": name,
            "Attribution method": names[method],
            "Supported statements": len(right),
            "Sentences of evidence, mean": float(np.mean(sizes)),
            "Top-1 evidence accuracy": float(np.mean(right)),
        }
        for name, (path, read) in found.items()
        for method, right, sizes in _by_method(tuple(read(path)), names)
    ]


def _by_method(
    supported: tuple[Supported, ...], methods: Iterable[Attribution]
) -> Iterator[tuple[Attribution, list[bool], list[int]]]:
    batch = make_batch([make_case(one.reply) for one in supported])
    matches = measure(batch, count_forms(batch), "paper").matches
    replies = np.arange(len(supported))
    for method in methods:
        passages = attribute_places(batch, matches[method], replies, np.zeros_like(replies)).tolist()
        right = [passage in one.sentences for passage, one in zip(passages, supported, strict=True)]
        yield method, right, [len(one.reply.passages) for one in supported]


def _statement(name: str, text: str, evidence: Iterable[str]) -> LabelledReply:
    passages = tuple(
        # A sentence without a word is no text; it keeps its place.
        Passage(id=f"{name}#{place}", document=name, text=sentence if sentence.strip() else "-")
        for place, sentence in enumerate(evidence)
    )
    return LabelledReply(
        id=name, dataset="", task="claim", passages=passages, reply=text, label=False, group=name
    )
