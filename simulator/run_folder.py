"""A run is a folder: the experiment, two journals, and what is derived from them."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from scenarios.errors import OperationalError, UsageError
from scenarios.jsonl import LineWriter, read_lines
from scenarios.transcript import Conversation, Verdict
from simulator.config import Experiment, describe

Line = TypeVar("Line", bound=BaseModel)

_TRY = re.compile(r"-try([0-9]+)$")


class RunFolder:
    """Names, reads and writes the files of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.experiment = path / "experiment.json"
        self.conversations = path / "conversations.jsonl"
        self.verdicts = path / "verdicts.jsonl"
        self.report = path / "report.json"
        self.page = path / "report.html"
        self.files = (self.report, self.page, self.verdicts, self.conversations, self.experiment)
        """The five, in the order in which they may go."""

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Be the only one who writes here; the system frees the right when its holder dies.

        A folder that is not there is made, and removed when nothing came into it. The folder itself is
        locked: a lock file would have to stay there, as removing one is a race.

        Raises:
            UsageError: somebody else writes here.
            OperationalError: the folder cannot be made.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise OperationalError(f"cannot write {self.path}: {error.strerror}.") from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    f"another run is writing to {self.path}. Wait until it ends, or give another --out."
                ) from error
            except OSError:
                pass  # some network file systems know no locks
            yield
        finally:
            os.close(handle)
            with suppress(OSError):
                self.path.rmdir()

    def clear(self) -> None:
        """Delete the run's own five files, and nothing else in the folder."""
        for file in self.files:
            file.unlink(missing_ok=True)

    def require(self) -> None:
        """Raise UsageError unless there is a journal of conversations."""
        if not self.conversations.is_file():
            raise UsageError(
                f"{self.path} is no run folder: it has no conversations.jsonl. "
                "Make one with `hallulab run --out DIR` or `hallulab simulate --out DIR`."
            )

    def page_is_current(self) -> bool:
        """Whether there is a page, and all that it is derived from is older."""
        sources = (self.experiment, self.conversations, self.verdicts)
        return self.page.exists() and all(
            path.stat().st_mtime_ns < self.page.stat().st_mtime_ns for path in sources if path.exists()
        )

    def read_experiment(self) -> dict[str, Any] | None:
        """The resolved experiment, or None when the folder has none.

        Raises:
            UsageError: the file is damaged, or none of ours.
        """
        if not self.experiment.exists():
            return None
        try:
            value = json.loads(self.experiment.read_text(encoding="utf-8"))
        except ValueError as error:
            raise UsageError(
                f"{self.experiment}: not valid JSON ({error}). Restore it or use --fresh."
            ) from error
        if not isinstance(value, dict):
            raise UsageError(f"{self.experiment}: not an object. Restore it or use --fresh.")
        for field in ("experiment", "identity", "detectors"):
            if not isinstance(value.get(field), dict):
                raise UsageError(f"{self.experiment}: no object `{field}`. Restore it or use --fresh.")
        return {**value, "experiment": self._checked(value["experiment"])}

    def _checked(self, experiment: dict[str, Any]) -> dict[str, Any]:
        """The fields that a saved experiment sets, as they are written today."""
        for field in ("scenario", "chatbots"):
            if field not in experiment:
                raise UsageError(
                    f"{self.experiment}: no `{field}` in `experiment`. Restore it or use --fresh."
                )
        try:
            return Experiment.model_validate(experiment).model_dump(mode="json", exclude_unset=True)
        except ValidationError as error:
            raise UsageError(f"{self.experiment}: {describe(error)} Restore it or use --fresh.") from error

    def write_experiment(self, value: dict[str, Any]) -> None:
        """Replace experiment.json in one step."""
        write_atomically(self.experiment, json.dumps(value, indent=2, sort_keys=True) + "\n")

    def read_conversations(self) -> list[Conversation]:
        """The journal of conversations.

        The first line of an identifier counts; in place of a failed conversation, the next try of it.
        """
        found: dict[str, Conversation] = {}
        for line in _parsed(self.conversations, Conversation):
            first = first_try(line.id)
            earlier = found.get(first)
            if first != line.id and earlier is not None and earlier.stop_reason == "error":
                found[first] = line
            else:
                found.setdefault(line.id, line)
        return list(found.values())

    def read_verdicts(self) -> list[Verdict]:
        """The journal of verdicts; the first line of a key counts, or the next one where it failed."""
        found: dict[tuple[str, int, str, str], Verdict] = {}
        for line in _parsed(self.verdicts, Verdict):
            key = verdict_key(line)
            if key not in found or found[key].outcome == "failed":
                found[key] = line
        return list(found.values())

    def open_conversations(self) -> LineWriter:
        """The journal of conversations, for appending."""
        return LineWriter(self.conversations)

    def open_verdicts(self) -> LineWriter:
        """The journal of verdicts, for appending."""
        return LineWriter(self.verdicts)


def verdict_key(verdict: Verdict) -> tuple[str, int, str, str]:
    """What a verdict is about: resuming skips keys of which the journal has a verdict that did not fail."""
    return (verdict.conversation, verdict.turn, verdict.detector, verdict.version)


def first_try(conversation: str) -> str:
    """The identifier that a conversation had when it was first held."""
    return _TRY.sub("", conversation)


def next_try(conversation: str) -> str:
    """The identifier for holding a failed conversation again.

    It is another one, so that verdicts on what was said before the failure are not taken for verdicts on what
    is said now, at whatever moment the run is killed.
    """
    found = _TRY.search(conversation)
    return f"{first_try(conversation)}-try{int(found[1]) + 1 if found else 2}"


def _parsed(path: Path, kind: type[Line]) -> Iterator[Line]:
    for number, value in read_lines(path):
        try:
            yield kind.model_validate(value)
        except ValidationError as error:
            raise UsageError(f"{path}, line {number}: {describe(error)}") from error


def write_atomically(path: Path, text: str) -> None:
    """Write beside `path` and rename, so that a reader sees the old file or the new one.

    A link is kept: what it leads to is written. What is there and no file (a pipe, a device) is written into.

    Raises:
        OperationalError: it cannot be written; the old file is intact.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            beside.write_text(text, encoding="utf-8")
            beside.replace(target)
        except OSError:
            with suppress(OSError):
                beside.unlink()
            raise
    except OSError as error:
        raise OperationalError(f"cannot write {path}: {error.strerror}.") from error


def refuse_overwriting(output: Path, inputs: Iterable[Path]) -> None:
    """Raise UsageError when `output` is one of the files that are read, by whatever name."""
    for path in inputs:
        if os.path.realpath(output) == os.path.realpath(path):
            raise UsageError(f"cannot write {output}: a file of the input would be lost. Give another file.")
