"""HaluEval, a large-scale hallucination evaluation benchmark (Li et al.).

Three parts pair a right and a hallucinated text for the same evidence. The fourth has responses to users'
requests, judged without evidence. The files are called `.json` and hold one object a line.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple, Self

from pydantic import Field, model_validator

from hallulab.scenarios.datasets.loader import (
    SCHEMA,
    DatasetInfo,
    LoadRequest,
    cut_into_passages,
    locate_quotations,
)
from hallulab.scenarios.files.data_files import read_records
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.labelled import GoldSpan, LabelledData, LabelledReply
from hallulab.scenarios.transcript import Frozen, Message

WITH_EVIDENCE = ("qa", "dialogue", "summarization")
"""The parts that are loaded if none is named."""

PARTS = (*WITH_EVIDENCE, "general")
"""Values of `--source`; the file is `<part>_data.json`."""

_EMPTY = "empty reply"
_SPEAKER = re.compile(r"\s*\[(Human|Assistant)\]:\s*")


class _JudgedText(NamedTuple):
    """One text to judge."""

    kind: str
    reply: str
    label: bool
    spans: tuple[GoldSpan, ...] | None = None


class _FileLine(Frozen):
    """A line of any of the files."""

    @abstractmethod
    def evidence(self) -> str:
        """Return the evidence; empty if there is none."""

    def dialogue(self) -> tuple[Message, ...]:
        """Return the dialogue before the reply; a closing message of the user is the question."""
        return ()

    @abstractmethod
    def cases(self) -> tuple[_JudgedText, ...]:
        """Return the texts to judge."""


class _Grounded(_FileLine):
    knowledge: str = Field(min_length=1)

    def evidence(self) -> str:
        return self.knowledge


class _Qa(_Grounded):
    question: str
    right_answer: str
    hallucinated_answer: str

    def dialogue(self) -> tuple[Message, ...]:
        return (Message(role="user", text=self.question),)

    def cases(self) -> tuple[_JudgedText, ...]:
        return _pair(self.right_answer, self.hallucinated_answer)


class _Dialogue(_Grounded):
    dialogue_history: str
    right_response: str
    hallucinated_response: str

    def dialogue(self) -> tuple[Message, ...]:
        before, *rest = _SPEAKER.split(self.dialogue_history)
        said = [("Human", before), *zip(rest[::2], rest[1::2], strict=True)]
        return tuple(
            Message(role="user" if speaker == "Human" else "assistant", text=text.strip())
            for speaker, text in said
            if text.strip()
        )

    def cases(self) -> tuple[_JudgedText, ...]:
        return _pair(self.right_response, self.hallucinated_response)


class _Summarization(_FileLine):
    document: str = Field(min_length=1)
    right_summary: str
    hallucinated_summary: str

    def evidence(self) -> str:
        return self.document

    def cases(self) -> tuple[_JudgedText, ...]:
        return _pair(self.right_summary, self.hallucinated_summary)


class _General(_FileLine):
    """There are two editions: the first has `hallucination_label`, the second `hallucination` with spans."""

    ID: str
    user_query: str
    chatgpt_response: str
    hallucination: Literal["yes", "no"] | None = None
    hallucination_label: Literal["yes", "no"] | None = None
    hallucination_spans: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _has_one_label(self) -> Self:
        if (self.hallucination is None) == (self.hallucination_label is None):
            raise ValueError("either hallucination or hallucination_label must be given")
        return self

    def evidence(self) -> str:
        return ""

    def dialogue(self) -> tuple[Message, ...]:
        return (Message(role="user", text=self.user_query),)

    def cases(self) -> tuple[_JudgedText, ...]:
        label = (self.hallucination or self.hallucination_label) == "yes"
        return (_JudgedText("response", self.chatgpt_response, label, self._spans(label)),)

    def _spans(self, label: bool) -> tuple[GoldSpan, ...] | None:
        """Return the places of the annotators' quotations; None if one has no place, or there are none."""
        if not label:
            return ()
        found = locate_quotations(self.chatgpt_response, self.hallucination_spans or ())
        spans = tuple(GoldSpan(start=place[0], end=place[1]) for place in found if place is not None)
        return spans if spans and len(spans) == len(found) else None


_MODELS: dict[str, type[_FileLine]] = {
    "qa": _Qa,
    "dialogue": _Dialogue,
    "summarization": _Summarization,
    "general": _General,
}
_TASKS = {"qa": "qa", "dialogue": "dialogue", "summarization": "summary", "general": "dialogue"}


def load_halueval(request: LoadRequest) -> LabelledData:
    """Load the texts of HaluEval: two of each line, one in `general`. Empty ones are left out and counted.

    Long evidence is cut into pieces of about 120 words, 159 at most. Texts with the same evidence (`general`:
    to the same request) form a group.

    Args:
        request: its folder holds the files; its source is one of `PARTS`; None: those with evidence.

    Raises:
        UsageError: the request or a line of a file is wrong.
    """
    part = request.part(PARTS)
    replies: list[LabelledReply] = []
    left_out: Counter[str] = Counter()
    for name in (part,) if part else WITH_EVIDENCE:
        path = request.file(f"{name}_data.json")
        for number, line in read_records(path, _MODELS[name], SCHEMA):
            made = list(_label_cases(name, number, line))
            replies += made
            if missing := len(line.cases()) - len(made):
                left_out[_EMPTY] += missing
    return LabelledData(tuple(replies), dict(left_out))


def _label_cases(part: str, number: int, line: _FileLine) -> Iterator[LabelledReply]:
    dialogue = line.dialogue()
    asked = bool(dialogue) and dialogue[-1].role == "user"
    question = dialogue[-1].text if asked else ""
    evidence = line.evidence()
    group = digest(evidence or question)[:16]
    passages = cut_into_passages(evidence, group)
    for case in line.cases():
        if case.reply.strip():
            yield LabelledReply(
                id=f"{part}-{number}-{case.kind}",
                dataset="halueval",
                task=_TASKS[part],
                question=question,
                history=dialogue[:-1] if asked else dialogue,
                passages=passages,
                reply=case.reply,
                label=case.label,
                spans=case.spans,
                group=group,
                meta={"source": part},
            )


def _pair(right: str, hallucinated: str) -> tuple[_JudgedText, ...]:
    return _JudgedText("right", right, False), _JudgedText("hallucinated", hallucinated, True)


INFO = DatasetInfo(
    load=load_halueval, levels=("reply", "span"), licence="MIT", url="https://github.com/RUCAIBox/HaluEval"
)
