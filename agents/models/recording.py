"""A recording: answers from outside by key, so that a run can be repeated without the outside.

One JSON-lines file holds entries of several kinds (model answers, knowledge-base searches). The first answer
to a key wins, so equal questions have equal answers.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from hallulab.agents.models.abilities import Capabilities
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.data_files import choose_main_error, explain_error
from hallulab.scenarios.files.json_text import (
    LineWriter,
    parse_json,
    parse_lines,
    read_lines,
    repair_value,
    require_writable,
)
from hallulab.scenarios.files.opening import open_file
from hallulab.scenarios.transcript import Number, Seconds

_BEGINNING = b'{"kind":"'

_LARGEST = 1 << 30
"""Unpacked bytes of a packed recording at most: a hostile file could fill the memory."""

_LONGEST_LINE = 64 << 20
"""Bytes of a line in a packed recording at most: four times the limit of an answer."""


class _ModelAnswer(BaseModel):
    """The required fields of an answer that `hallulab.agents.models.transport` records."""

    status: Annotated[int, Field(ge=100, le=599)]
    latency_s: Seconds
    body: dict[str, Any]


_SHAPES: dict[str, TypeAdapter[Any]] = {
    "model": TypeAdapter(_ModelAnswer),
    "search": TypeAdapter(list[tuple[str, Number]]),
    "root": TypeAdapter(str),
    "abilities": TypeAdapter(Capabilities),
    "found": TypeAdapter(bool),
}
"""The form of answers by kind; answers of other kinds are not checked."""


@dataclass(frozen=True)
class CacheSnapshot:
    """Content of a recording, for another process."""

    answers: Mapping[tuple[str, str], Any]
    """Answers by (kind, key)."""
    replaying: bool
    source: Path | None


class Recording:
    """Answers by (kind, key). In memory only, unless opened with a file by `record` or `replay`."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], Any] = {}
        self._used: dict[tuple[str, str], int] = {}
        """The last stretch that had begun when an answer was last used; answers in the order of last use."""
        self._begun = 0
        self._under_way: dict[int, None] = {}
        """Stretches under way, in the order in which they began."""
        self._file: Path | None = None
        self._writer: LineWriter | None = None
        self._keep: Callable[[str, str, Any], Any] | None = None
        """Keeps an answer elsewhere, and returns the one that counts."""
        self.replaying = False
        """True if a missing answer must not be fetched from outside."""
        self.source: Path | None = None
        """The file behind it, or None."""

    @classmethod
    def record(cls, path: Path) -> Recording:
        """Record into `path`, and reuse the answers that it already holds.

        Nothing is written before the first new answer: a command may still be refused.

        Raises:
            UsageError: `path` is a packed file, is no recording, or has a damaged entry.
        """
        if path.suffix == ".gz":
            raise UsageError(f"--record {path}: a packed file cannot grow. Record into .jsonl and pack it.")
        recording = cls()
        if path.is_file():
            # An unfinished last line is removed, which our killed process may have left. In somebody else's
            # file of one line, that would remove everything.
            with open_file(path) as file:
                first = next((line.strip() for line in file if line.strip()), b"")
            beginning = first[: len(_BEGINNING)] == _BEGINNING[: len(first)]
            with suppress(ValueError):
                beginning = _is_entry(parse_json(first.decode()))
            if first and not beginning:
                raise UsageError(
                    f"--record {path}: the file is there, and no recording. Give another file, or delete "
                    "that one."
                )
        recording._load(path)
        require_writable(path)
        recording._file = path
        recording.source = path
        return recording

    @classmethod
    def replay(cls, path: Path) -> Recording:
        """Replay from `path` (`.jsonl` or `.jsonl.gz`); nothing is fetched or written.

        Raises:
            UsageError: the file does not exist, is no recording, or holds no answer.
            OperationalError: a packed file is damaged.
        """
        if path.is_dir():
            raise UsageError(f"--replay {path}: this is a folder. Name a recording in it.")
        if not path.is_file():
            raise UsageError(f"--replay {path}: no such recording. Make one with --record {path}.")
        recording = cls()
        recording._load(path)
        if not recording._answers:
            raise UsageError(
                f"--replay {path}: the file holds no recorded answer. Name a recording that does, or make "
                "one with --record."
            )
        recording.replaying = True
        recording.source = path
        return recording

    @classmethod
    def knowing(cls, known: CacheSnapshot, keep: Callable[[str, str, Any], Any] | None = None) -> Recording:
        """Return a recording in memory that begins with what another one holds.

        Args:
            keep: keeps further answers there: called with kind, key and answer, it returns the answer that
                counts, which is the first one to a key. None: they are kept here alone.
        """
        recording = cls()
        recording._answers.update(known.answers)
        recording.replaying, recording.source, recording._keep = known.replaying, known.source, keep
        return recording

    def known(self) -> CacheSnapshot:
        """Return what it holds."""
        return CacheSnapshot(dict(self._answers), self.replaying, self.source)

    def _load(self, path: Path) -> None:
        for number, entry in _read(path):
            if not _is_entry(entry):
                raise UsageError(f"{path}, line {number}: not an entry of a recording (kind, key, answer).")
            kind, answer, place = entry["kind"], entry["answer"], f"{path}, line {number}"
            remedy = "Restore the recording, or make a new one."
            try:
                if kind in _SHAPES:
                    _SHAPES[kind].validate_python(answer)
                if repair_value(answer) != answer:
                    raise ValueError("half a character, or a number that is not finite")
            except ValidationError as error:
                first = choose_main_error(error)
                where = ".".join(map(str, ("answer", *first["loc"])))
                raise UsageError(f"{place}: {where}: {explain_error(first)}. {remedy}") from error
            except ValueError as error:
                raise UsageError(f"{place}: answer: {error}. {remedy}") from error
            self._answers.setdefault((kind, entry["key"]), answer)

    @contextmanager
    def stretch(self) -> Iterator[None]:
        """Keep the answers that are used until this ends, and all stretches that have begun by then.

        Answers outside any stretch are kept for ever, and so are those of a file: forgotten and asked again,
        they could be others than the recorded ones.
        """
        self._begun += 1
        own = self._begun
        self._under_way[own] = None
        try:
            yield
        finally:
            del self._under_way[own]
            oldest = next(iter(self._under_way), self._begun + 1)
            while self._used:
                answer = next(iter(self._used))
                if self._used[answer] >= oldest:
                    break
                del self._used[answer], self._answers[answer]

    def _note_use(self, answer: tuple[str, str]) -> None:
        if self._under_way and self.source is None:
            self._used.pop(answer, None)
            self._used[answer] = self._begun

    def get(self, kind: str, key: str) -> Any | None:
        """Return the recorded answer, or None."""
        answer = self._answers.get((kind, key))
        if answer is not None:
            self._note_use((kind, key))
        return answer

    def put(self, kind: str, key: str, answer: Any) -> Any:
        """Keep `answer` unless the key has one already; return the one that is kept."""
        known = self.get(kind, key)
        if known is not None:
            return known
        if self._keep is not None:
            answer = self._keep(kind, key, answer)
        self._answers[(kind, key)] = answer
        self._note_use((kind, key))
        if self._file is not None:
            self._writer = self._writer or LineWriter(self._file)
            entry = {"kind": kind, "key": key, "answer": answer}
            self._writer.append(json.dumps(entry, ensure_ascii=False, separators=(",", ":")))
        return answer

    def __len__(self) -> int:
        return len(self._answers)

    def __bool__(self) -> bool:
        """Return True even when empty, so that `given or Recording()` keeps an empty recording."""
        return True

    def close(self) -> None:
        """Close the file, if any; further answers are kept in memory alone."""
        if self._writer is not None:
            self._writer.close()
        self._file = self._writer = None


def _is_entry(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and {"kind", "key", "answer"} <= value.keys()
        and isinstance(value["kind"], str)
        and isinstance(value["key"], str)
    )


def _read(path: Path) -> Iterator[tuple[int, Any]]:
    if path.suffix != ".gz":
        yield from read_lines(path)
        return
    with open_file(path) as packed:
        if packed.read(1) == b"{":
            raise UsageError(f"{path}: not packed with gzip. Name it .jsonl, or pack it.")
    try:
        # Unpack everything before reading the first line: only the end of the file shows damage.
        with open_file(path) as packed, gzip.open(packed, "rb") as file:
            lines, size = list[bytes](), 0
            while line := file.readline(_LONGEST_LINE):
                size += len(line)
                if size > _LARGEST:
                    raise UsageError(f"{path}: unpacks to more than {_LARGEST:,} bytes. Split the recording.")
                lines.append(line)
    except (OSError, EOFError, zlib.error) as error:
        raise OperationalError(
            f"{path}: cannot be read as a recording ({error}). Restore it, or record again and pack that."
        ) from error
    yield from parse_lines(lines, path)
