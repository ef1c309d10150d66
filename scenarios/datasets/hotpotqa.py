"""HotpotQA, distractor setting: diverse, explainable multi-hop questions (Yang et al.).

It has questions, right answers and paragraphs, and no hallucinated answers. Labelled replies are built from
it, as LogicGraph does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from hallulab.scenarios.datasets.loader import SCHEMA, LoadRequest
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import check_record, read_records, read_text
from hallulab.scenarios.files.json_text import parse_json
from hallulab.scenarios.transcript import Frozen, Passage

FILE = "distractor.jsonl"
"""The official JSON array, one element a line."""

OFFICIAL = "hotpot_dev_distractor_v1.json"
"""The official file; read if the folder has no other."""


class HotpotQuestion(Frozen):
    """A question, its answer and ten paragraphs; two of them support the answer."""

    id: str = Field(min_length=1, alias="_id")
    question: str = Field(min_length=1)
    answer: str = Field(min_length=1)
    """The right answer: a short text, or `yes` or `no`."""
    type: Literal["bridge", "comparison"]
    """Relation of the paragraphs: one leads to the other (`bridge`), or both are compared."""
    level: Literal["easy", "medium", "hard"]
    supporting_facts: tuple[tuple[str, int], ...]
    """(title, sentence position) of the sentences that are needed."""
    context: tuple[tuple[str, tuple[str, ...]], ...] = Field(min_length=1)
    """(title, sentences) of each paragraph; sentences include their leading spaces."""

    @model_validator(mode="after")
    def _facts_are_in_context(self) -> Self:
        titles = {title for title, _ in self.context}
        for title, _ in self.supporting_facts:
            if title not in titles:
                raise ValueError(f"the supporting fact {title!r} has no paragraph in context")
        return self

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The paragraphs, one passage each, under their titles."""
        return tuple(
            Passage(
                id=f"{self.id}#{position}",
                document=title,
                text=f"Title: {title}\n{''.join(sentences).strip()}",
            )
            for position, (title, sentences) in enumerate(self.context)
        )

    @property
    def supporting(self) -> frozenset[int]:
        """Positions of the paragraphs that are needed."""
        titles = {title for title, _ in self.supporting_facts}
        return frozenset(position for position, (title, _) in enumerate(self.context) if title in titles)


def read_hotpotqa(data: Path | None) -> tuple[HotpotQuestion, ...]:
    """Read the questions of a folder that holds `FILE` or `OFFICIAL`, in order.

    Raises:
        UsageError: the folder, or a question in the file, is wrong.
    """
    path = LoadRequest("hotpotqa", data).file(FILE, OFFICIAL)
    if path.name != OFFICIAL:
        return tuple(question for _, question in read_records(path, HotpotQuestion, SCHEMA))
    try:
        rows = parse_json(read_text(path))
    except ValueError as error:
        raise UsageError(f"{path}: not valid JSON ({error}). Download it again.") from error
    if not isinstance(rows, list):
        raise UsageError(f"{path}: it is no list of questions. Download it again.")
    return tuple(
        check_record(row, HotpotQuestion, f"{path}, question {number}", SCHEMA)
        for number, row in enumerate(rows, start=1)
    )
