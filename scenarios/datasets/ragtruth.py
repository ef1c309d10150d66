"""RAGTruth (Niu et al.): the two files of its official release.

`source_info.jsonl` holds the sources. `response.jsonl` holds six replies to each by different models, with
the hallucinated character spans. The sources of Data2txt are records of local businesses (of Yelp). A record
is flattened as EvidenceChain does ("Method"): profile, hours, attributes and review chunks. Field names and
values become words that a text would use, because detectors compare words: `RestaurantsTakeOut: true` becomes
`restaurants take out: yes`. (Niu et al., "RAGTruth: A Hallucination Corpus for Developing Trustworthy
Retrieval-Augmented Language Models".)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, RootModel, model_validator

from hallulab.scenarios.chats.cells import unpack_cell
from hallulab.scenarios.components import read_options
from hallulab.scenarios.datasets.loader import SCHEMA, DatasetInfo, LoadRequest, make_repeated_id_error
from hallulab.scenarios.datasets.offsets import LabelPlace, LocatedLabels, locate_labels
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import read_records
from hallulab.scenarios.labelled import GoldSpan, LabelledData, LabelledReply
from hallulab.scenarios.text.chunking import split_into_chunks
from hallulab.scenarios.transcript import Frozen, Passage

_CLOCK = re.compile(r"(\d{1,2}):(\d{1,2})")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WORDS = {True: "yes", False: "no", None: "not stated"}


class Review(Frozen):
    """A customer's review."""

    review_stars: float | None
    """Stars given, 1 to 5."""
    review_date: str | None
    review_text: str


class Business(Frozen):
    """A record; None: not stated."""

    name: str | None
    address: str | None
    city: str | None
    state: str | None
    categories: str | None
    """Kinds of business, separated by commas."""
    hours: dict[str, str | None] | None
    """Weekday → opening hours, such as `17:30-23:0`."""
    attributes: dict[str, Any] | None
    """Features: booleans, texts, or mappings of these."""
    business_stars: float | None
    """Mean rating, 1 to 5."""
    review_info: tuple[Review, ...] = Field(default=())


def render_business_chunks(business: Business) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of each non-empty chunk: `profile`, `hours`, `attributes`, `review-1` and so on."""
    yield "profile", _render_lines(business.model_dump(include=set(_PROFILE)), _PROFILE)
    if business.hours:
        yield "hours", "\n".join(f"{day}: {_format_hours(hours)}" for day, hours in business.hours.items())
    if business.attributes:
        yield "attributes", _render_lines(business.attributes)
    for number, review in enumerate(business.review_info, start=1):
        about = {"review stars": review.review_stars, "review date": review.review_date}
        yield f"review-{number}", f"{_render_lines(about)}\n{review.review_text}".strip()


_PROFILE = {
    "name": "name",
    "address": "address",
    "city": "city",
    "state": "state",
    "categories": "categories",
    "business_stars": "stars",
}


def _render_lines(values: Mapping[str, Any], names: Mapping[str, str] | None = None) -> str:
    said = names or {key: _name(key) for key in values}
    return "\n".join(f"{name}: {_render_value(values[key])}" for key, name in said.items())


def _name(key: str) -> str:
    return key if key == "WiFi" else _HUMP.sub(" ", key).lower()


def _render_value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return _WORDS[value]
    if isinstance(value, Mapping):
        return ", ".join(f"{_name(str(key))} {_render_value(item)}" for key, item in value.items())
    if isinstance(value, float) and value.is_integer():
        return f"{value:.1f} ({value:.0f})"
    return str(value)


def _format_hours(hours: str | None) -> str:
    """Format `17:30-23:0` as `17:30-23:00 (5:30 PM - 11 PM)`, because texts write both."""
    if hours is None:
        return _WORDS[None]
    twelve = _CLOCK.sub(_format_twelve_hours, hours).replace("-", " - ")
    padded = _CLOCK.sub(lambda clock: f"{clock[1]}:{int(clock[2]):02}", hours)
    return padded if twelve == hours else f"{padded} ({twelve})"


def _format_twelve_hours(clock: re.Match[str]) -> str:
    hour, minute = int(clock[1]) % 24, int(clock[2])
    half = "PM" if hour >= 12 else "AM"
    return f"{hour % 12 or 12}{f':{minute:02}' if minute else ''} {half}"


RESPONSES = "response.jsonl"

SOURCES = "source_info.jsonl"

PARTS = ("qa", "summary", "data2txt", "train", "test")
"""Values of `--source`: a task, or a split of the official release."""

_GOOD = "good"
_EMPTY = "empty reply"
_PASSAGE = re.compile(r"^passage (\d+):", re.MULTILINE)


class RagTruthOptions(Frozen):
    """Which spans count as hallucinations; in the official evaluation all do."""

    implicit_true: bool = True
    """True if spans count that are true but not in the source."""
    due_to_null: bool = True
    """True if spans count that read a null field of the source as "no"."""


def _write_number(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


_Identifier = Annotated[str, Field(min_length=1), BeforeValidator(_write_number)]
"""An identifier; a number in files that a table has gone through."""


class _QaEvidence(Frozen):
    """The evidence of a QA task."""

    question: str = Field(min_length=1)
    passages: str = Field(min_length=1)
    """`passage 1:…`, `passage 2:…` …, in one text."""


class _SharedFields(Frozen):
    """The shared fields of the three kinds of lines in `source_info.jsonl`."""

    source_id: _Identifier
    source: str
    prompt: str
    """The models' prompt, which repeats the evidence."""


class _QaSource(_SharedFields):
    task_type: Literal["QA"]
    source_info: _QaEvidence


class _SummarySource(_SharedFields):
    task_type: Literal["Summary"]
    source_info: str = Field(min_length=1)


class _Data2txtSource(_SharedFields):
    task_type: Literal["Data2txt"]
    source_info: Business


_AnySource = _QaSource | _SummarySource | _Data2txtSource


class _SourceLine(RootModel[_AnySource]):
    """A line of `source_info.jsonl`."""

    root: _AnySource = Field(discriminator="task_type")


class _Label(Frozen):
    """An annotated hallucination."""

    start: int
    end: int
    """One past the last character."""
    text: str
    label_type: str = Field(min_length=1)
    """Evident or subtle, conflict or baseless."""
    meta: str | None = None
    implicit_true: bool = False
    due_to_null: bool = False
    """Caused by a field that is null."""


class _ResponseLine(Frozen):
    """A line of `response.jsonl`."""

    id: _Identifier
    source_id: _Identifier
    model: str
    temperature: float | None
    """Sampling temperature; None: not known."""
    labels: Annotated[tuple[_Label, ...], BeforeValidator(unpack_cell)]
    """The hallucinations; as JSON text in copies of the release that are tables."""
    split: str
    quality: str
    """`good`, `incorrect_refusal`, `truncated`."""
    response: str

    @model_validator(mode="after")
    def _labels_fit(self) -> Self:
        self.locate()
        return self

    def locate(self) -> LocatedLabels:
        """Return the places of the labels in code points.

        Raises:
            ValueError: their words stand nowhere there.
        """
        return locate_labels(
            self.response, [LabelPlace(label.start, label.end, label.text) for label in self.labels]
        )


def load_ragtruth(request: LoadRequest) -> LabelledData:
    """Load the replies of RAGTruth of good quality; others are left out and counted.

    A reply is hallucinated if it has a span that counts by the options. Replies to the same source form a
    group. The evidence is, by task:

    - QA: the retrieved passages;
    - Summary: the article in pieces of about 120 words, 159 at most; paragraphs and sentences of up to 120
      words stay whole;
    - Data2txt: the record as in `hallulab.scenarios.datasets.ragtruth`.

    Args:
        request: its folder holds the two files, its source is one of `PARTS`, its options are
            `RagTruthOptions`.

    Raises:
        UsageError: the request or a line of the files is wrong.
    """
    options = read_options("data set ragtruth", RagTruthOptions, request.options)
    path, part = request.file(RESPONSES), request.part(PARTS)
    sources = _read_sources(request.file(SOURCES))
    passages = {
        id: tuple(Passage(id=f"{id}#{name}", document=id, text=text) for name, text in _build_chunks(source))
        for id, source in sources.items()
    }
    replies: dict[str, LabelledReply] = {}
    left_out: Counter[str] = Counter()
    for number, response in read_records(path, _ResponseLine, SCHEMA):
        source = sources.get(response.source_id)
        if source is None:
            raise UsageError(
                f"{path}, line {number}: source_id: {response.source_id} is not in {SOURCES}. "
                "Add the source, or delete the line."
            )
        if part not in (None, response.split, source.task_type.lower()):
            continue
        if response.id in replies:
            raise make_repeated_id_error(path, number, response.id)
        unfit = _EMPTY if not response.response.strip() else response.quality
        if unfit != _GOOD:
            left_out[unfit] += 1
        else:
            replies[response.id] = _label_response(response, source, passages[response.source_id], options)
    return LabelledData(tuple(replies.values()), dict(left_out))


def _read_sources(path: Path) -> dict[str, _AnySource]:
    sources: dict[str, _AnySource] = {}
    for number, line in read_records(path, _SourceLine, SCHEMA):
        source = line.root
        if source.source_id in sources:
            raise UsageError(
                f"{path}, line {number}: source_id: {source.source_id} occurs before. "
                "Delete one of the two lines."
            )
        sources[source.source_id] = source
    return sources


def _build_chunks(source: _AnySource) -> Iterator[tuple[str, str]]:
    if isinstance(source, _Data2txtSource):
        yield from render_business_chunks(source.source_info)
    elif isinstance(source, _SummarySource):
        for position, text in enumerate(split_into_chunks(source.source_info)):
            yield str(position), text
    else:
        # `before` is the text before the first heading: usually nothing, or everything without headings.
        before, *numbered = _PASSAGE.split(source.source_info.passages)
        if before.strip():
            yield "passage-0", before.strip()
        for number, text in zip(numbered[::2], numbered[1::2], strict=True):
            if text.strip():
                yield f"passage-{number}", text.strip()


def _label_response(
    response: _ResponseLine, source: _AnySource, passages: tuple[Passage, ...], options: RagTruthOptions
) -> LabelledReply:
    spans = tuple(
        GoldSpan(start=start, end=end, label=label.label_type)
        for label, (start, end) in zip(response.labels, response.locate().places, strict=True)
        if (options.implicit_true or not label.implicit_true)
        and (options.due_to_null or not label.due_to_null)
    )
    return LabelledReply(
        id=response.id,
        dataset="ragtruth",
        task=source.task_type.lower(),
        question=source.source_info.question if isinstance(source, _QaSource) else "",
        passages=passages,
        reply=response.response,
        label=bool(spans),
        spans=spans,
        group=response.source_id,
        meta={
            "model": response.model,
            "temperature": response.temperature,
            "split": response.split,
            "source": source.source,
        },
    )


INFO = DatasetInfo(
    load=load_ragtruth,
    levels=("reply", "span"),
    licence="MIT",
    url="https://github.com/ParticleMedia/RAGTruth",
    options=RagTruthOptions,
)
