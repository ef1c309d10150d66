"""Labelled replies in files of your own: JSON or a table, in our names and types or in others.

A name counts as `hallulab import` counts it (`scenarios.chats.reading`); two that could be the same are
refused. A label is a truth value, whose meaning its name says (`hallucinated`, `faithful`), or a word that
says it itself. Nothing is read from a score: where it divides, nobody knows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.cells import unpack_cell
from hallulab.scenarios.chats.csv import read_cells
from hallulab.scenarios.chats.evidence import are_names, extract_evidence
from hallulab.scenarios.chats.reading import AmbiguousNameError, Reading, fold_name, fold_names, place_in
from hallulab.scenarios.chats.values import FormatError, read_json_values
from hallulab.scenarios.datasets.jsonl import PassageInput, ReplyLine, build_labelled_reply
from hallulab.scenarios.datasets.loader import SCHEMA, locate_quotations, make_repeated_id_error
from hallulab.scenarios.datasets.offsets import LabelPlace, locate_labels
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import check_record
from hallulab.scenarios.files.json_text import replace_surrogates
from hallulab.scenarios.files.tables import read_parquet_rows
from hallulab.scenarios.labelled import LabelledData, LabelledReply
from hallulab.scenarios.text.chunking import split_into_chunks
from hallulab.scenarios.text.wording import shorten_line

_UNLABELLED, _EMPTY = "unlabelled", "empty reply"

_ASKED = {"user": "question", "reply": "reply", "passages": "passages"}
"""Field of a reading → our name."""
_REQUIRED = ("reply", "passages")

_FAULTS = ("hallucinated", "hallucination", "unsupported", "unfaithful", "ungrounded", "inconsistent")
_MERITS = ("supported", "faithful", "grounded", "consistent", "attributable")
_MEANS = {
    "label": True, "hallucinationlabel": True, "overallsupported": False, "adherencescore": False,
    **{
        f"{start}{turn}{word}": (word in _FAULTS) != bool(turn)
        for start in ("", "is", "has") for turn in ("", "not") for word in (*_FAULTS, *_MERITS)
    },
}  # fmt: skip
"""Folded name of a label → whether its truth value `true` means a hallucination."""

_TRUTH = {
    **dict.fromkeys(("true", "yes", "y", "1", "1.0"), True),
    **dict.fromkeys(("false", "no", "n", "0", "0.0"), False),
}

_WORDS = {
    **dict.fromkeys(("contradicted", "contradiction", "contradictory", "refuted", "baseless", "fail"), True),
    **dict.fromkeys(("clean", "pass"), False),
    **{
        f"{turn}{word}": (word in _FAULTS) != bool(turn)
        for turn in ("", "not ", "not a ", "no ", "non ")
        for word in (*_FAULTS, *_MERITS, "hallucinations", "factual", "entailed", "entailment")
    },
    **{f"{part} {word}": True for part in ("partially", "partly") for word in (*_FAULTS, *_MERITS)},
    **{f"fully {word}": word in _FAULTS for word in (*_FAULTS, *_MERITS)},
}
"""Word of a label → whether it says that the reply is hallucinated."""

_SPANS = frozenset(
    fold_names(
        "spans labels annotations hallucination_spans hallucinated_spans unsupported_spans "
        "hallucination_labels"
    )
)
"""Folded names of spans; the last is that of a processed RAGTruth."""
LETTUCEDETECT = frozenset(("prompt", "answer", "labels"))
"""Keys of a sample of LettuceDetect (`HallucinationSample`, versions 1 and 2)."""


def load_rows(path: Path) -> LabelledData:
    """Load the labelled replies of a file, in our names or others (`rename_row`).

    It has JSON lines or a JSON list, or is a table: CSV or Parquet, by its ending.

    Rows with neither label nor spans, and empty replies, are left out and counted.

    Raises:
        UsageError: the file is not there, or a row of it is wrong.
    """
    replies: dict[str, LabelledReply] = {}
    left_out: Counter[str] = Counter()
    reading = Reading()
    labels: dict[tuple[str, ...], bool | None] = {}
    for place, value in _read_values(path, reading):
        row = _rename(value, reading, f"{path}, {place}")
        if isinstance(row.get("reply"), str) and not row["reply"].strip():
            left_out[_EMPTY] += 1
            continue
        line = check_record(row, ReplyLine, f"{path}, {place}", SCHEMA)
        if line.label is None and line.spans is None:
            left_out[_UNLABELLED] += 1
            continue
        number = int(place.rpartition(" ")[2])  # of the line, or of the item of a list
        reply = build_labelled_reply(number, line, replace_surrogates(path.stem))
        if reply.id in replies:
            raise make_repeated_id_error(path, number, reply.id)
        replies[reply.id] = reply
        words = (reply.question, reply.reply, *(passage.text for passage in reply.passages))
        if labels.setdefault(words, reply.label) is not reply.label:
            reading.count("Rows that repeat a reply with another label, each of which counts")
    ours = all(set(names) <= set(ReplyLine.model_fields) for names in reading.taken.values())
    described = () if ours and not reading.unread else (f"Read as: {reading.describe()}.",)
    return LabelledData(tuple(replies.values()), dict(left_out), (*described, *reading.notes))


def _read_values(path: Path, reading: Reading) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a file, each behind its place."""
    ending = Path(path.name.casefold().removesuffix(".gz")).suffix
    if ending in (".xlsx", ".xlsm", ".xls", ".ods"):
        raise UsageError(f"{path}: labels are not read from a spreadsheet. Save it as CSV UTF-8.")
    if ending == ".parquet":
        yield from ((f"row {at}", row) for at, row in enumerate(read_parquet_rows(path), start=1))
    elif ending in (".csv", ".tsv"):
        try:
            for row in read_cells(path, reading, chats=False):
                yield row.place, row.cells
        except FormatError as error:
            raise UsageError(f"{place_in(path, error.place)}: {error}") from error
    else:
        yield from ((one.place, one.value) for one in read_json_values(path))


def _rename(value: Any, reading: Reading, place: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{place}: must be an object. Correct it; see {SCHEMA}.")
    try:
        return rename_row(value, reading)
    except AmbiguousNameError as error:
        told = error.describe(error.names, _ASKED[error.field])
        raise UsageError(f"{place}: {told} Delete or rename one.") from error
    except FormatError as error:
        raise UsageError(f"{place}: {error}") from error


def rename_row(row: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    """Return a row by the names of `ReplyLine`; it is checked there.

    Args:
        reading: notes what is taken for what, and how labels and offsets were read.

    Raises:
        FormatError: two names could be the same, or a label or an offset cannot be read.
    """
    if row.keys() >= LETTUCEDETECT:
        row = _rename_lettucedetect(row)
    ours = {name: value for name, value in row.items() if name in ReplyLine.model_fields}
    others = [name for name in row if name not in ours or name in _ASKED.values()]
    for field, name in reading.choose(others, *_ASKED).items():
        ours[_ASKED[field]] = row[name]
        if name != _ASKED[field]:
            ours.pop(name, None)
    if "passages" in ours:
        ours["passages"] = _read_passages(ours["passages"])
        _require_words(ours["passages"])
    if (label := _find(row, _MEANS, "label")) is not None:
        ours["label"] = _read_label(label, row[label], reading)
    if (spans := _find(row, _SPANS, "spans")) is not None:
        ours["spans"] = _read_spans(ours.get("reply"), spans, row[spans], reading)
    for field, taken in (("label", label), ("spans", spans)):
        if taken is not None and taken != field:
            reading.take(field, taken)
        elif taken is None:
            ours.pop(field, None)
    return {
        name: _read_cell(name, value)
        for name, value in ours.items()
        if name in _REQUIRED or value not in (None, "")
    }


def _read_cell(name: str, value: Any) -> Any:
    """Return a number as the name that it is, and what a table has of a list or an object."""
    if name in ("id", "group") and type(value) is int:  # `True` is an int, too
        return str(value)
    return unpack_cell(value) if name in ("history", "meta") else value


def _rename_lettucedetect(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a sample of LettuceDetect; one of before version 2 has its evidence in the prompt only."""
    evidence = row.get("context") or row["prompt"]
    meta = {"split": row.get("split"), "source": row.get("dataset"), "language": row.get("language")}
    return {
        "question": row.get("question") or "",
        "reply": row["answer"],
        "passages": list(split_into_chunks(evidence)) if isinstance(evidence, str) else evidence,
        "spans": row["labels"],
        "task": row.get("task_type") or "qa",
        "meta": {name: value for name, value in meta.items() if value is not None},
    }


def _read_passages(value: Any) -> Any:
    """Return passages as our lines have them: texts, or objects with a text; a text alone is one."""
    found = unpack_cell(value)
    listed = [found] if isinstance(found, str | Mapping) else found
    ours = set(PassageInput.model_fields)
    if not isinstance(listed, list) or all(
        isinstance(one, str) or ours >= one.keys() for one in listed if isinstance(one, str | Mapping)
    ):
        return listed
    return [
        {"text": one.text, "document": one.document, "id": one.id}
        for one in extract_evidence(listed, "passage")
    ]


def _require_words(passages: Any) -> None:
    """Raise FormatError if passages are only named; what is no list of passages is left to the check."""
    listed = passages if isinstance(passages, list) else []
    texts = [one.get("text") if isinstance(one, Mapping) else one for one in listed]
    if all(isinstance(text, str) for text in texts) and are_names(map(str, texts)):
        raise FormatError(
            f"passages: {str(texts[0])[:60]!r} is the name of a passage, and not its words. Put its words "
            "there."
        )


def _fold_question(name: str) -> str:
    """Return a folded name without its question mark: `Hallucinated?`."""
    return fold_name(name).rstrip("?")


def _find(row: Mapping[str, Any], names: Collection[str], what: str) -> str | None:
    """Return the name in a row that is one of `names` and has a value; None: there is none.

    Args:
        names: folded.

    Raises:
        FormatError: there are several.
    """
    there = [name for name in row if _fold_question(name) in names and row[name] is not None]
    found = [name for name in there if str(row[name]).strip() not in ("", "nan")]
    if len(found) > 1:
        raise FormatError(
            f"{' and '.join(f'`{name}`' for name in found)} could both be the {what}. Delete or rename one."
        )
    return found[0] if found else None


def _read_label(name: str, value: Any, reading: Reading) -> bool:
    text = _fold_word(value)
    if (said := _WORDS.get(text)) is not None:
        return said
    if isinstance(value, list | Mapping):
        raise FormatError(
            f"{name}: is a list or an object. Give places as `spans`: objects with `start` and `end`; and as "
            "`label`: true for a hallucinated reply, else false."
        )
    if (truth := _TRUTH.get(text)) is None:
        raise FormatError(
            f"{name}: {json.dumps(value, ensure_ascii=False)[:60]} is no label. Give `label`: true for a "
            "hallucinated reply, else false."
        )
    means = _MEANS[_fold_question(name)]
    if not isinstance(value, bool):
        reading.note(f"`{name}`: true (1, yes) was read as {'' if means else 'not '}hallucinated.")
    return truth == means


def _fold_word(value: Any) -> str:
    return str(value).strip().casefold().replace("_", " ").replace("-", " ")


def _read_spans(reply: Any, name: str, value: Any, reading: Reading) -> Any:
    """Return spans with places in code points; what is no list of objects is left to the check."""
    listed = unpack_cell(value)
    if not isinstance(listed, list):
        return listed
    if any(isinstance(one, Mapping) and isinstance(one.get("result"), list) for one in listed):
        raise FormatError(
            f"{name}: is written as by Label Studio. Give the `value` of each of its results: an object with "
            "`start`, `end` and `text`."
        )
    if not isinstance(reply, str):
        return listed
    places = [_read_place(name, one) for one in listed]
    _require_hallucinations(name, places)
    for key in ("annotator", "annotator_id", "worker_id", "rater"):
        if len({str(one[key]) for one in places if key in one}) > 1:
            reading.note(f"`{name}`: a place counts if one `{key}` marked it.")
    given = _locate_quotations(reply, name, places) or [
        LabelPlace(one["start"], one["end"], _get_text(one)) for one in places
    ]
    try:
        located = locate_labels(reply, given)
    except ValueError as error:
        raise FormatError(f"{name}: {error}. Correct the offsets.") from error
    if located.unit != "characters":
        reading.note(f"`{name}`: offsets count {located.unit} where their words say so; they were converted.")
    elif not any(place.text for place in given) and max(reply, default="") > "\uffff":
        reading.note(
            f"`{name}`: offsets were read as characters; some tools count an emoji twice. With the "
            "`text` of each span they can be checked."
        )
    kinds = (next((one[key] for key in _KINDS if isinstance(one.get(key), str)), None) for one in places)
    return [
        {"start": start, "end": end, **({"label": kind} if kind else {})}
        for (start, end), kind in zip(located.places, kinds, strict=True)
    ]


def _read_place(name: str, value: Any) -> dict[str, Any]:
    """Return a span as an object with `start` and `end`, or with `text` alone: words of the reply.

    Raises:
        FormatError: it is neither, nor a pair of offsets, perhaps with a kind behind it.
    """
    match value:
        case Mapping():
            place = dict(value)
        case [start, end, *kind] if len(kind) < 2:
            place = {"start": start, "end": end} | dict(zip(("label",), kind, strict=False))
        case str() if fold_name(name).endswith("spans"):  # of `labels`, it may be a word's tag
            place = {"text": value}
        case _:
            place = {}
    offsets = {key: _read_offset(place[key]) for key in ("start", "end") if key in place}
    quoted = not offsets and fold_name(name).endswith("spans") and _get_text(place)
    if not quoted and [type(one) for one in offsets.values()] != [int, int]:  # `True` is an int, too
        written = json.dumps(value, ensure_ascii=False)
        raise FormatError(
            f"{name}: {shorten_line(written)} is no place in the reply. Give whole numbers `start` and `end` "
            "of its characters, from 0."
        )
    return place | offsets


def _locate_quotations(reply: str, name: str, spans: Sequence[Mapping[str, Any]]) -> list[LabelPlace]:
    """Return the places of spans that only quote the reply; empty if they have offsets.

    Raises:
        FormatError: some have, or nobody knows which words a quotation is.
    """
    quoted = [str(_get_text(one)) for one in spans if "start" not in one]
    for text, times in Counter(quoted).items():
        if len(quoted) < len(spans) or reply.count(text) != times:
            raise FormatError(
                f"{name}: {text!r} stands {reply.count(text)} times in the reply, and is marked {times} "
                "times without `start` and `end`. Give them."
            )
    found = locate_quotations(reply, quoted)
    return [LabelPlace(*place, text) for place, text in zip(found, quoted, strict=True) if place]


def _require_hallucinations(name: str, spans: Sequence[Mapping[str, Any]]) -> None:
    """Raise FormatError if a span says that its words are right, or how many thought that they are not."""
    for key, value in [item for one in spans for item in one.items() if item[0] not in _TEXTS]:
        said = _fold_word(value)
        is_right = _WORDS.get(said) is False or said in _RIGHT
        if key in _KINDS:
            is_right = is_right or _TRUTH.get(said) is False
        elif (means := _MEANS.get(fold_name(key))) is not None:
            is_right = _TRUTH.get(said) is not means
        if is_right or key in _SHARES:
            raise FormatError(
                f"{name}: a span has `{key}` {json.dumps(value, ensure_ascii=False)[:40]}, so its words may "
                "be right. Give only the places that are hallucinated, without it."
            )


_SHARES = ("prob", "probability", "votes", "agreement")
"""Keys of a span with the share of annotators who marked it (Mu-SHROOM)."""
_KINDS = ("label", "label_type", "type", "category")
_TEXTS = ("text", "quote")
_RIGHT = frozenset(("o", "ok", "correct", "accurate", "right", "verified", "benign", "none"))
"""Words of a span that is right, which say nothing as a label of a reply."""


def _get_text(span: Mapping[str, Any]) -> str | None:
    return next((span[key] for key in _TEXTS if isinstance(span.get(key), str)), None)


def _read_offset(value: Any) -> Any:
    """Return a whole number that a table has made a float of; another value as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
