"""Shared parts of the data sets: their description, the request, and the search for quoted words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.labelled import LabelledData
from hallulab.scenarios.near_names import suggest_name
from hallulab.scenarios.text.chunking import split_into_chunks
from hallulab.scenarios.transcript import Frozen, Passage

SCHEMA = "docs/labelled-data.md"
"""Describes the files of the data sets."""


@dataclass(frozen=True)
class LoadRequest:
    """A data set, the place of its files, and the requested part."""

    dataset: str
    data: Path | None = None
    source: str | None = None
    """Part of the data set; None: the loader's default."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """How to read labels, for data sets that leave a choice; checked by the loader."""

    def file(self, *names: str) -> Path:
        """Return the first of these files that the data set's folder holds.

        Raises:
            UsageError: no folder was named, or it holds none of them.
        """
        return self.files(*names)[0]

    def files(self, *names: str) -> tuple[Path, ...]:
        """Return those of these files that the data set's folder holds, at least one.

        Raises:
            UsageError: no folder was named, or it holds none of them.
        """
        wanted = " or ".join(names)
        if self.data is None:
            raise UsageError(f"{self.dataset}: name the folder that holds {wanted} with --data DIR.")
        found = tuple(path for name in names if (path := self.data / name).is_file())
        if not found:
            raise UsageError(
                f"{self.data / names[0]}: there is no such file. "
                f"Give the folder that holds {wanted} with --data DIR."
            )
        return found

    def part(self, parts: Sequence[str]) -> str | None:
        """Return the requested part.

        Raises:
            UsageError: it is not among `parts`.
        """
        if self.source is not None and self.source not in parts:
            raise UsageError(
                f"--source {self.source}: {self.dataset} has no such part{suggest_name(self.source, parts)}. "
                f"Give one of: {', '.join(parts)}."
            )
        return self.source

    def without_parts(self) -> None:
        """Check that no part is requested, for a data set without parts.

        Raises:
            UsageError: one is requested.
        """
        if self.source is not None:
            raise UsageError(f"--source {self.source}: {self.dataset} has no parts. Leave it out.")


Level = Literal["reply", "sentence", "span"]
"""Unit of labels: a whole reply, each of its sentences, or places in it."""


@dataclass(frozen=True)
class DatasetInfo:
    """A labelled data set: the constant `INFO` of its module, or the target of an entry point."""

    load: Callable[[LoadRequest], LabelledData]
    levels: tuple[Level, ...]
    licence: str | None = None
    """SPDX identifier, or how the parts are licensed; None: the files are your own."""
    url: str | None = None
    """Where it is published; None: nowhere."""
    options: type[Frozen] | None = None
    """Class of its own options, which the loader checks; None: it has none."""


def make_repeated_id_error(path: Path, line: int, identifier: str) -> UsageError:
    """Make the error for an identifier that an earlier line of the file has, too."""
    return UsageError(f"{path}, line {line}: id: {identifier} occurs before. Give each line its own id.")


def cut_into_passages(text: str, document: str) -> tuple[Passage, ...]:
    """Return a text as passages of about 120 words, 159 at most; none of an empty text.

    Args:
        document: their document, and with their position their identifier.
    """
    return tuple(
        Passage(id=f"{document}#{position}", document=document, text=piece)
        for position, piece in enumerate(split_into_chunks(text))
    )


def locate_quotations(reply: str, quotations: Sequence[str]) -> tuple[tuple[int, int] | None, ...]:
    """Return [start, end) of each quotation in characters of the reply.

    The n-th of equal quotations has the n-th place with these words; places do not overlap. None if there is
    no such place, and for an empty quotation.
    """
    ends: dict[str, int] = {}
    found: list[tuple[int, int] | None] = []
    for quotation in quotations:
        at = reply.find(quotation, ends.get(quotation, 0)) if quotation else -1
        if at < 0:
            found.append(None)
        else:
            ends[quotation] = at + len(quotation)
            found.append((at, ends[quotation]))
    return tuple(found)
