"""A recording: what the outside world answered, by key, so that a run repeats without it.

One JSON-lines file holds entries of several kinds (model answers, knowledge-base searches). The first
answer to a key wins, so equal questions have equal answers.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from scenarios.errors import OperationalError, UsageError
from scenarios.json_text import parse_json
from scenarios.jsonl import LineWriter, parsed_lines, read_lines

_BEGINNING = b'{"kind":"'


def digest(value: Any) -> str:
    """sha256 of a JSON value in canonical form (sorted keys, no white space), as 32 hex digits."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


class Recording:
    """Answers by (kind, key). In memory only, unless opened on a file by `record` or `replay`."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], Any] = {}
        self._writer: LineWriter | None = None
        self.replaying = False
        """True when an answer that is not here must not be fetched from outside."""
        self.source: Path | None = None
        """The file behind it, or None."""

    @classmethod
    def record(cls, path: Path) -> Recording:
        """Record into `path`; answers that it already holds are reused.

        Raises:
            UsageError: `path` is a packed file, or holds something else.
            OperationalError: it cannot be written.
        """
        if path.suffix == ".gz":
            raise UsageError(f"--record {path}: a packed file cannot grow. Record into .jsonl and pack it.")
        recording = cls()
        if path.is_file():
            _refuse_what_is_no_recording(path)
        recording._load(path)
        recording._writer = LineWriter(path)
        recording.source = path
        return recording

    @classmethod
    def replay(cls, path: Path) -> Recording:
        """Replay from `path` (`.jsonl` or `.jsonl.gz`); nothing is fetched or written.

        Raises:
            UsageError: the file does not exist, is no recording, or holds no answer.
        """
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

    def _load(self, path: Path) -> None:
        for number, entry in _read(path):
            if not _is_entry(entry):
                raise UsageError(f"{path}, line {number}: not an entry of a recording (kind, key, answer).")
            self._answers.setdefault((entry["kind"], entry["key"]), entry["answer"])

    def get(self, kind: str, key: str) -> Any | None:
        """The recorded answer, or None."""
        return self._answers.get((kind, key))

    def put(self, kind: str, key: str, answer: Any) -> Any:
        """Keep `answer` unless the key has one already; returns the one that counts."""
        known = self._answers.get((kind, key))
        if known is not None:
            return known
        self._answers[(kind, key)] = answer
        if self._writer is not None:
            entry = {"kind": kind, "key": key, "answer": answer}
            self._writer.append(json.dumps(entry, ensure_ascii=False, separators=(",", ":")))
        return answer

    def __len__(self) -> int:
        return len(self._answers)

    def __bool__(self) -> bool:
        """True, even when empty: `given or Recording()` must not drop a recording that just began."""
        return True

    def close(self) -> None:
        """Close the file, if any."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _is_entry(value: Any) -> bool:
    return isinstance(value, dict) and {"kind", "key", "answer"} <= value.keys()


def _refuse_what_is_no_recording(path: Path) -> None:
    """Raise UsageError where the first line is neither an entry nor the beginning of one.

    Writing would remove an unfinished last line, which a killed process of ours may have left, or somebody's
    only one.
    """
    with path.open("rb") as file:
        first = next((line.strip() for line in file if line.strip()), b"")
    beginning = first[: len(_BEGINNING)] == _BEGINNING[: len(first)]
    with suppress(ValueError):
        beginning = _is_entry(parse_json(first.decode()))
    if first and not beginning:
        raise UsageError(
            f"--record {path}: the file is there, and no recording. Give another file, or delete that one."
        )


def _read(path: Path) -> Any:
    if path.suffix != ".gz":
        return read_lines(path)
    try:
        with gzip.open(path, "rb") as file:
            return list(parsed_lines(file, path))
    except (OSError, EOFError) as error:
        raise OperationalError(f"{path}: cannot be read as a recording ({error}).") from error
