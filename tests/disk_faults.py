"""A disk that takes nothing more from a chosen step on: in the process that calls `DiskFault.meet`.

Steps are what a program asks a disk for: to make or open a file for writing, to write, to make a folder, to
rename, to cut a file off, and to have what was written on the disk. Files that libraries in other languages
write are not among them.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

Step = Callable[..., None]
"""What is called before each step."""


@dataclass(frozen=True)
class DiskFault:
    """What happens at a step below a folder, and at all steps after it."""

    step: int
    """Its number, from 0."""
    below: Path
    """Other places have no faults, and their steps do not count."""
    seen: Path
    """File, elsewhere, that gets the name of each step."""
    number: int = errno.ENOSPC
    """The error, as the system names it."""
    short: bool = False
    """Whether half of the data of a write is taken before it; the half can be cut off again."""
    killed: bool = False
    """Whether the process is killed there instead; after half of the data, if `short`."""
    once: bool = False
    """Whether later steps succeed."""

    def meet(self) -> None:
        """Have this process meet the fault, until it ends."""
        self._replace_calls(os.open(self.seen, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))

    @contextmanager
    def met(self) -> Iterator[None]:
        """Have this process meet the fault while the block runs."""
        log = os.open(self.seen, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            with self._replace_calls(log):
                yield
        finally:
            os.close(log)

    def _make_step(self, log: int) -> Step:
        """Return what is called before each step: with its name, its path, and what writes half of its data.

        Args:
            log: descriptor of the file that gets the name.
        """
        write_plainly, count = os.write, 0

        def take_step(name: str, path: Any, write_half: Callable[[], object] = tuple) -> None:
            nonlocal count
            place = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.path.abspath(path)
            if not place.startswith(f"{self.below}/"):
                return
            count += 1
            write_plainly(log, f"{name} {place[len(str(self.below)) + 1 :]}\n".encode())
            if count <= self.step or (self.once and count > self.step + 1):
                return
            if self.short and count == self.step + 1:
                write_half()
            if self.short and name == "ftruncate":
                return
            if self.killed:
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(self.number, os.strerror(self.number), None if name == "write" else place)

        return take_step

    def _replace_calls(self, log: int) -> ExitStack:
        """Have Python's calls that change a disk take a step first; return what puts them back."""
        take_step, replaced = self._make_step(log), ExitStack()
        open_file, open_descriptor, write = make_opening(take_step)
        replaced.enter_context(patch.object(builtins, "open", open_file))
        replaced.enter_context(patch.object(io, "open", open_file))
        replaced.enter_context(patch.object(os, "open", open_descriptor))
        replaced.enter_context(patch.object(os, "write", write))
        for name in ("mkdir", "rename", "replace", "truncate", "ftruncate", "fsync", "link", "symlink"):
            replaced.enter_context(patch.object(os, name, _step_before(getattr(os, name), name, take_step)))
        return replaced


def make_opening(take_step: Step) -> tuple[Callable[..., Any], Callable[..., int], Callable[..., int]]:
    """Return what stands for `open`, `os.open` and `os.write`."""
    true_open, raw_open, write_plainly = io.open, os.open, os.write

    class Raw(io.FileIO):
        def write(self, data: Any) -> int:
            half = bytes(data)[: len(data) // 2]
            take_step("write", self.fileno(), lambda: write_plainly(self.fileno(), half))
            return super().write(data)

    def open_file(
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        if isinstance(file, int) or not set("wax+") & set(mode):
            return true_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        take_step("open", file)
        raw = Raw(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        if "b" in mode and buffering == 0:
            return raw
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)

    def open_descriptor(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & _WRITING and named.get("dir_fd") is None:
            take_step("open", path)
        return raw_open(path, flags, *more, **named)

    def write(descriptor: int, data: bytes) -> int:
        take_step("write", descriptor, lambda: write_plainly(descriptor, data[: len(data) // 2]))
        return write_plainly(descriptor, data)

    return open_file, open_descriptor, write


def _step_before(true_call: Callable[..., Any], name: str, take_step: Step) -> Callable[..., Any]:
    def call(path: Any, *arguments: Any, **named: Any) -> Any:
        take_step(name, path)
        return true_call(path, *arguments, **named)

    return call
