"""Labels of documents: a pack's defaults, and the front matter of a Markdown or text file."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, field_validator

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.yaml_text import LARGEST as LARGEST_MATTER
from hallulab.scenarios.files.yaml_text import YamlText
from hallulab.scenarios.near_names import find_near_name
from hallulab.scenarios.transcript import Frozen

SCHEMA = "docs/scenario-packs.md"
"""Describes the files of a pack."""

_YAML, _TOML = "---", "+++"
_KEY = re.compile(r"[\"']?\w[^:\n]{0,99}:(?:\s|$)|#|\{")
"""How the first line of front matter begins; another line after `---` says that it is a rule."""
_ALIKE = 0.8


class DocumentDefaults(Frozen):
    """A pack's labels for documents without their own."""

    source: str | None = Field(default=None, min_length=1)
    """Where the facts come from; None: the pack's default, else the file's name."""
    topic: str | None = Field(default=None, min_length=1)
    sector: str | None = Field(default=None, min_length=1)


class DocumentLabels(DocumentDefaults):
    """The front matter of a document."""

    title: str | None = Field(default=None, min_length=1)
    """Title; None: the first heading, else the file's name."""

    @field_validator("*", mode="before")
    @classmethod
    def _a_number_is_a_text(cls, value: Any) -> Any:
        """Keep `title: 2026` as `2026`."""
        return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


class LabelledText(NamedTuple):
    """A text file without its front matter."""

    labels: DocumentLabels
    body: str
    notes: tuple[str, ...] = ()
    """Keys that look like misspelt labels."""


def split_front_matter(path: Path, text: str) -> LabelledText:
    """Return labels and body.

    Front matter is the text between a first line `---` (YAML) or `+++` (TOML) and the next such line. As
    pandoc has it, a `---` before an empty line is a rule. Other programs' keys are ignored.

    Raises:
        UsageError: the front matter has no end, is not valid, or a label is no text.
    """
    lines = text.split("\n")
    fence = lines[0].rstrip()
    begins = len(lines) > 1 and (fence == _TOML or (fence == _YAML and _KEY.match(lines[1])))
    if not begins and not (fence == _YAML and len(lines) > 1 and lines[1].rstrip() == _YAML):
        return LabelledText(DocumentLabels(), text)
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == fence:
            matter = "\n".join(lines[1:number])
            body = "\n".join(lines[number + 1 :])
            if fence == _TOML:
                return LabelledText(_read_toml(path, matter), body)
            read = YamlText(path, matter, first_line=2, schema=SCHEMA)
            notes = _choose_labels(read)
            return LabelledText(read.check(DocumentLabels), body, notes)
    raise UsageError(
        f"{path}, line 1: the front matter that begins here has no end. Close it with a line `{fence}`, "
        "or put an empty line before it."
    )


def _choose_labels(read: YamlText) -> tuple[str, ...]:
    """Leave only our labels in a mapping; return a note for each key that is nearly one."""
    known = list(DocumentLabels.model_fields)
    others = [key for key in read.data if key not in known]
    notes = []
    for key in others:
        del read.data[key]
        if isinstance(key, str) and (meant := find_near_name(key, known, _ALIKE)):
            notes.append(f"{read.place([key])}: the label {key} is not read; {meant} would be")
    return tuple(notes)


def _read_toml(path: Path, matter: str) -> DocumentLabels:
    if len(matter) > LARGEST_MATTER:
        raise UsageError(f"{path}: the front matter has more than {LARGEST_MATTER:,} characters. Shorten it.")
    try:
        values = tomllib.loads(matter)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: the front matter is not valid TOML ({error}). Correct it.") from error
    known = {key: value for key, value in values.items() if key in DocumentLabels.model_fields}
    for key, value in known.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise UsageError(f"{path}, front matter: {key}: must be text. Put it in quotes.")
    return DocumentLabels(**{key: str(value) for key, value in known.items() if value != ""})
