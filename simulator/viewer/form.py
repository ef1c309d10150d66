"""The fields of a form, made from the schema of an experiment, and the values of one that is filled in."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.yaml_text import read_value
from hallulab.simulator.records.experiment import Component

FieldKind = Literal["text", "number", "switch", "choice", "lines", "yaml", "components"]
"""How a field is filled in: `lines` is a list of texts, one a line; `yaml` is all that has parts."""

MAIN = ("scenario", "chatbots", "detectors", "personas", "limit", "model", "base_url", "api_key_env")
"""Fields that stand on top, in this order; all others are folded."""

MORE = ".more"
"""Ends the name of the text field with further components, as YAML."""

NOTHING_LISTED = "[]"
"""What stands for a list without entries, because an empty field means the default."""

_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
"""How a schema bounds a number, in words."""

_FAR = 1e9
"""Bounds beyond are not worth a word."""

_OUR_NAMES = re.compile(r"\s*\(`hallulab\.[\w.]+`\)")
"""Where a docstring leads a reader of the code."""


class FormError(UsageError):
    """A field of a form is wrong.

    Args:
        field: its name.
        sentence: what is wrong, with the remedy.
    """

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


@dataclass(frozen=True)
class HelpPiece:
    """A piece of a field's help."""

    text: str
    is_code: bool
    """Whether it is a name or a value."""


@dataclass(frozen=True)
class FormField:
    """A field of the form."""

    name: str
    """Its name in an experiment file."""
    kind: FieldKind
    """How it is filled in."""
    help: tuple[HelpPiece, ...]
    default: str
    """What an empty field means, as text; empty: nothing."""
    bounds: str
    """Bounds of a number, in words; empty: there are none."""
    choices: tuple[str, ...]
    """What can be chosen."""

    @property
    def is_main(self) -> bool:
        """Whether it stands on top."""
        return self.name in MAIN


def list_fields(schema: type[BaseModel]) -> list[FormField]:
    """Return the fields of a form for a schema, those on top first."""
    found = [_describe_field(name, field) for name, field in schema.model_fields.items()]
    place = {name: number for number, name in enumerate(MAIN)}
    return sorted(found, key=lambda field: place.get(field.name, len(MAIN)))


def split_code(text: str) -> tuple[HelpPiece, ...]:
    """Return the pieces of a docstring, in the words of a form.

    >>> [piece.text for piece in split_code("At most `limit`\\n(`hallulab.a.b`).")]
    ['At most ', 'limit', '.']
    """
    said = _OUR_NAMES.sub("", text).replace("; None:", "; empty:").replace("None:", "Empty:")
    pieces = " ".join(said.split()).split("`")
    return tuple(HelpPiece(piece, number % 2 == 1) for number, piece in enumerate(pieces) if piece)


def show_value(kind: FieldKind, value: Any) -> str:
    """Return a value as the text of its field.

    >>> show_value("lines", ["a", "b"]), show_value("number", 2), show_value("text", None)
    ('a\\nb', '2', '')
    """
    if value is None:
        return ""
    if kind == "lines":
        return "\n".join(value) if value else NOTHING_LISTED
    if kind == "yaml":
        return dump_yaml(value)
    return str(value)


def dump_yaml(value: Any) -> str:
    """Return a value as YAML in the order that it has."""
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110)


def read_form(fields: Sequence[FormField], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a form says, as an experiment file would: without the fields that are empty.

    A list of components holds names and what `MORE` has. A name that is no field stays, for the schema to
    refuse.

    Args:
        fields: those of the form.
        given: what the page sent.

    Raises:
        FormError: a value is not of the kind of its field.
    """
    kinds = {field.name: field.kind for field in fields}
    lists = {name for name, kind in kinds.items() if kind == "components"}
    read = {name: _read(name, kinds.get(name.removesuffix(MORE)), value) for name, value in given.items()}
    for name in lists:
        more = read.pop(f"{name}{MORE}", None) or []
        read[name] = [*(read.get(name) or []), *more]
    return {name: value for name, value in read.items() if value is not None}


def _read(name: str, kind: FieldKind | None, value: Any) -> Any:
    """Return the value of a field; None: it is empty."""
    if isinstance(value, list):
        if not all(isinstance(one, str) for one in value):
            raise FormError(name, "must be a list of names.")
        return value or None
    if isinstance(value, bool) and kind == "switch":
        return value
    if not isinstance(value, str):
        raise FormError(name, "must be a text.")
    text = value.strip()
    if not text:
        return None
    if kind == "lines":
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return [] if lines == [NOTHING_LISTED] else lines
    if kind == "yaml" or name.endswith(MORE):
        return _read_yaml(name, text)
    return text


def _read_yaml(name: str, text: str) -> Any:
    field = name.removesuffix(MORE)
    try:
        value = read_value(text)
    except ValueError as error:
        raise FormError(field, f"this is no valid YAML ({error}). Correct it.") from error
    if name != field and not isinstance(value, list):
        raise FormError(field, "further ones must be a list: begin each with `- `.")
    return value


def _describe_field(name: str, field: FieldInfo) -> FormField:
    kind, choices = _choose_kind(field.annotation)
    bounds = {key: getattr(one, key) for key in _BOUNDS for one in field.metadata if hasattr(one, key)}
    default = field.get_default(call_default_factory=True, validated_data={})
    shown = kind in ("text", "number", "choice", "lines") and default is not None
    return FormField(
        name=name,
        kind=kind,
        help=split_code(field.description or ""),
        default=", ".join(default) if kind == "lines" and shown else str(default) if shown else "",
        bounds=", ".join(f"{_BOUNDS[key]} {bound}" for key, bound in bounds.items() if abs(bound) < _FAR),
        choices=choices,
    )


def _choose_kind(annotation: Any) -> tuple[FieldKind, tuple[str, ...]]:
    """Return how values of a type are filled in, and what can be chosen."""
    kinds = _strip(annotation)
    texts = all(get_origin(one) is Literal for one in kinds)
    if texts:
        return "choice", tuple(str(value) for one in kinds for value in get_args(one))
    if kinds == [bool]:
        return "switch", ()
    if all(one in (int, float) for one in kinds):
        return "number", ()
    if all(one in (str, int, float) or get_origin(one) is Literal for one in kinds):
        return "text", ()
    if len(kinds) == 1 and get_origin(kinds[0]) is tuple:
        [held] = _strip(get_args(kinds[0])[0])
        if held is Component:
            return "components", ()
        if held is str:
            return "lines", ()
    return "yaml", ()


def _strip(annotation: Any) -> list[Any]:
    """Return the types that a value can have, besides None, without what is said about them."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _strip(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [kind for part in get_args(annotation) for kind in _strip(part) if kind is not type(None)]
    return [annotation]
