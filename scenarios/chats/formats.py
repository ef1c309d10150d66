"""The formats of chats: which one a file is in, and what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from hallulab.scenarios.chats import opentelemetry as spans
from hallulab.scenarios.chats import platforms as langfuse
from hallulab.scenarios.chats import platforms as mlflow
from hallulab.scenarios.chats.csv_file import is_csv, read_csv
from hallulab.scenarios.chats.messages import DATA, read_openai, read_own, read_sharegpt, read_tables
from hallulab.scenarios.chats.ragtruth import read_ragtruth
from hallulab.scenarios.chats.traces import SpanRef, TraceSpan, build_conversations
from hallulab.scenarios.chats.values import FormatError, read_json_values
from hallulab.scenarios.datasets.ragtruth import RESPONSES
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import open_to_read
from hallulab.scenarios.transcript import Conversation

Format = Literal[
    "openai", "sharegpt", "otel", "openinference", "langfuse", "mlflow", "csv", "jsonl", "parquet", "hf",
    "ragtruth",
]  # fmt: skip
FORMATS: tuple[Format, ...] = get_args(Format)
"""Names of the formats that are read."""

_DOCS = "docs/own-chats.md"
_START = 65_536


class Read(NamedTuple):
    """A conversation, and its place in the file."""

    place: str
    """The file and the line, for errors."""
    conversation: Conversation
    """It."""


_LINES: dict[Format, Callable[[Mapping[str, Any], str], Conversation]] = {
    "openai": read_openai,
    "sharegpt": read_sharegpt,
    "jsonl": read_own,
}
_TRACES: dict[Format, Callable[[Mapping[str, Any]], Iterator[TraceSpan]]] = {
    "otel": spans.read_otel_spans,
    "openinference": spans.read_otel_spans,
    "langfuse": langfuse.read_langfuse_spans,
    "mlflow": mlflow.read_mlflow_spans,
}


def read_chats(path: Path, format: Format) -> Iterator[Read]:
    """Yield the conversations of a file, in the order of the file; those without a reply, too.

    Raises:
        UsageError: something in it is wrong; names file, line and remedy.
    """
    try:
        if format in _LINES:
            yield from _read_lines(path, _LINES[format])
        elif format in _TRACES:
            for line, one in build_conversations(_read_located_spans(path, _TRACES[format])):
                yield Read(f"{path}, line {line}", one)
        elif format in ("parquet", "hf"):
            for row, file, one in read_tables(_find_tables(path)):
                yield Read(f"{file}, row {row}", one)
        else:
            for line, one in (read_csv if format == "csv" else read_ragtruth)(path):
                yield Read(f"{path}, line {line}", one)
    except FormatError as error:
        raise UsageError(", ".join(filter(None, (str(path), error.place))) + f": {error}") from error


def _read_lines(path: Path, read: Callable[[Mapping[str, Any], str], Conversation]) -> Iterator[Read]:
    for number, (place, _, value) in enumerate(read_json_values(path), start=1):
        try:
            yield Read(f"{path}, {place}", read(_check_object(value), f"chat-{number}"))
        except FormatError as error:
            raise FormatError(str(error), place) from error


def _read_located_spans(
    path: Path, read: Callable[[Mapping[str, Any]], Iterator[TraceSpan]]
) -> Iterator[SpanRef]:
    for place, line, value in read_json_values(path):
        try:
            for span in read(_check_object(value)):
                yield SpanRef(line, span)
        except FormatError as error:
            raise FormatError(str(error), place) from error


def _check_object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise FormatError("must be an object. Correct or delete it.")
    return value


def _find_tables(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(path.glob(f"{DATA}/*.parquet")) or sorted(path.glob("*.parquet"))
    if not found:
        raise UsageError(f"{path}: no Parquet file in it or in {DATA}/. Name the folder of a data set.")
    return found


def format_of(path: Path) -> Format:
    """Find out the format of a file or folder by its content.

    Raises:
        UsageError: it cannot be read, or is in no known format.
    """
    if path.is_dir():
        return "ragtruth" if (path / RESPONSES).is_file() else "hf"
    with open_to_read(path) as file:
        start = file.read(_START)
    if start.startswith(b"PAR1"):
        return "parquet"
    text = start.decode("utf-8-sig", "replace").lstrip()
    if text[:1] not in ("{", "["):
        if is_csv(text.partition("\n")[0]):
            return "csv"
        raise _make_unknown_error(path)
    first = next(read_json_values(path), None)
    found = _format_of(first.value) if first is not None and isinstance(first.value, Mapping) else None
    if found is None:
        raise _make_unknown_error(path, 1 if first is None else first.line)
    return found


def _format_of(value: Mapping[str, Any]) -> Format | None:
    if {"stop_reason", "turns"} <= value.keys():
        return "jsonl"
    if "messages" in value:
        return "openai"
    if "conversations" in value:
        return "sharegpt"
    if spans.is_span(value):
        return "otel"
    if mlflow.is_mlflow(value):
        return "mlflow"
    return "langfuse" if langfuse.is_langfuse(value) else None


def _make_unknown_error(path: Path, line: int = 1) -> UsageError:
    return UsageError(
        f"{path}, line {line}: in no format that is known by its content. `hallulab import --format` "
        f"names it ({', '.join(FORMATS)}); see {_DOCS}."
    )
