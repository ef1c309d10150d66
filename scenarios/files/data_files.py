"""Read paths, texts and records of users, and say in one sentence what is wrong with them."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, BinaryIO, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from hallulab.scenarios.errors import NO_HANDLE, OperationalError, UsageError
from hallulab.scenarios.files.json_text import drop_torn_line, parse_lines
from hallulab.scenarios.files.opening import name_kind, open_file, open_given
from hallulab.scenarios.near_names import suggest_name

Model = TypeVar("Model", bound=BaseModel)


def read_text(path: Path, largest: int | None = None, *, given: bool = False) -> str:
    """Return the text of a UTF-8 file, with `\\n` as line end, without a byte order mark.

    Args:
        largest: bytes that it may have; None: any number.
        given: whether a person named it on the command line, and it may be a pipe (`open_given`).

    Raises:
        UsageError: the file cannot be read, is too large or is not UTF-8.
    """
    try:
        data = read_bytes(path, largest, given=given)
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}, line {line}: the text is not UTF-8. Save the file as UTF-8.") from error


def read_bytes(path: Path, largest: int | None = None, *, given: bool = False) -> bytes:
    """Return the content of a file.

    Args:
        largest: bytes that it may have; None: any number.
        given: as for `read_text`.

    Raises:
        UsageError: the file cannot be read or is too large.
    """
    with _translate_errors(path), (open_given if given else open_file)(path) as file:
        data = file.read() if largest is None else file.read(largest + 1)
    if largest is not None and len(data) > largest:
        raise UsageError(f"{path}: has more than {largest:,} bytes. Split it, or name another file.")
    return data


def choose_main_error(error: ValidationError) -> Any:
    """Return the first error, but an unknown key first: it may be why another key is missing."""
    errors = error.errors()
    return next((one for one in errors if one["type"] == "extra_forbidden"), errors[0])


def render_complaint(error: Any, schema: str, model: type[BaseModel]) -> str:
    """Return one sentence with a remedy for a pydantic error.

    Args:
        error: the result of `choose_main_error`.
        schema: the documentation to name.
        model: what the file is read as.
    """
    kind = error["type"]
    if kind == "missing":
        return f"this key is missing. Add it; see {schema}."
    if kind == "extra_forbidden":
        near = suggest_key(model, error["loc"])
        return f"unknown key{near}. Correct its spelling or remove it; see {schema}."
    if kind == "string_type":
        if error["input"] is None:
            return "is empty. Give a text."
        return f"must be text, not {_describe_kind(error['input'])}. Put it in quotes."
    return f"{explain_error(error)}. Correct it; see {schema}."


def suggest_key(model: type[BaseModel], location: Sequence[int | str]) -> str:
    """Return what a sentence adds behind an unknown key of a file: the near one in brackets, or nothing.

    Args:
        model: what the file is read as.
        location: the keys and numbers that lead to the unknown key, which is the last of them; as pydantic
            says, so with names of a union's choices between them.
    """
    kinds: list[Any] = [model]
    for step in location[:-1]:
        # A step that leads nowhere is the name of a choice, which pydantic adds.
        kinds = [inner for kind in kinds for inner in _list_inside(kind, step)] or kinds
    keys = [
        field.alias or name
        for kind in kinds
        if isinstance(kind, type) and issubclass(kind, BaseModel)
        for name, field in kind.model_fields.items()
    ]
    return suggest_name(str(location[-1]), keys)


def _list_inside(kind: Any, step: int | str) -> list[Any]:
    """Return the types that a value at one key or number of a type may have."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = {field.alias or name: field for name, field in kind.model_fields.items()}
        return _list_choices(fields[step].annotation) if step in fields else []
    return [choice for inner in get_args(kind) for choice in _list_choices(inner)]


def _list_choices(hint: Any) -> list[Any]:
    """Return the types that a type hint allows, without its remarks."""
    if get_origin(hint) is Annotated:
        return _list_choices(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return [choice for one in get_args(hint) for choice in _list_choices(one)]
    return [hint]


_PATTERNS = {
    r"^[A-Za-z0-9][A-Za-z0-9._-]*$": (
        "may hold only letters (A to Z), digits, `.`, `_` and `-`, and begins with a letter or digit"
    ),
    r"^[a-z0-9][a-z0-9-]*$": (
        "may hold only small letters (a to z), digits and `-`, and begins with a letter or digit"
    ),
    r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$": "must be `module:attribute`, such as `my_bot:answer`",
}
"""Patterns of fields that users write → what fits them."""


_SHORT = 40
"""Longer values are not repeated in an error."""

_LONG = 300
"""Longer reasons, which contain a value, are cut off."""


def explain_error(error: Any) -> str:
    """Return what is wrong with a value, from a pydantic error, in words of the file and not of Python.

    The text has no place, no remedy and no full stop.
    """
    kind, found = error["type"], error["input"]
    if kind in ("model_type", "dict_type"):
        return f"must be keys with values, `{{key: value}}`, not {_describe_found(found)}"
    if kind in ("list_type", "tuple_type"):
        if isinstance(found, str) and 0 < len(found) <= _SHORT:
            return f"must be a list, such as [{json.dumps(found, ensure_ascii=False)}]"
        return f"must be a list, not {_describe_found(found)}"
    if kind == "too_short":
        has = error["ctx"]["actual_length"]
        return f"{f'has {has}' if has else 'is empty'}; give at least {error['ctx']['min_length']}"
    pattern = error["ctx"]["pattern"] if kind == "string_pattern_mismatch" else None
    if pattern in _PATTERNS:
        return _PATTERNS[pattern]
    message: str = " ".join(error["msg"].removeprefix("Value error, ").rstrip(".").split())
    message = message if len(message) <= _LONG else f"{message[: _LONG - 1]}…"
    return (message[0].lower() + message[1:]).replace("tuple", "list")


def _describe_found(value: object) -> str:
    if value is None:
        return "nothing (null)"
    if isinstance(value, dict):
        return "keys with values"
    if isinstance(value, str):
        return f"the text {value!r}" if len(value) <= _SHORT else "a text"
    return _describe_kind(value)


def _describe_kind(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping (a colon followed by a space makes one)"
    if isinstance(value, list | tuple):
        return "a list"
    text = " ".join(str(value).split())
    return f"the {type(value).__name__} {text}" if len(text) <= _SHORT else f"a {type(value).__name__}"


def read_records(path: Path, model: type[Model], schema: str) -> Iterator[tuple[int, Model]]:
    """Yield (line number from 1, record) of a JSON-lines file; blank lines are skipped.

    Raises:
        UsageError: the file cannot be read, a line is not JSON, or does not fit `model`; names the line.
    """
    with open_to_read(path) as file:
        yield from _check_lines(file, path, model, schema)


def read_appended_records(path: Path, model: type[Model], schema: str) -> Iterator[tuple[int, Model]]:
    """Yield the same of a file that hallulab appends to: a torn last line is left out with a warning."""
    with open_to_read(path) as file:
        yield from _check_lines(drop_torn_line(file, path), path, model, schema)


def _check_lines(
    lines: Iterable[bytes], path: Path, model: type[Model], schema: str
) -> Iterator[tuple[int, Model]]:
    for number, value in parse_lines(lines, path):
        yield number, check_record(value, model, f"{path}, line {number}", schema)


@contextmanager
def open_to_read(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read its bytes; raise UsageError where it cannot be read."""
    with _translate_errors(path), open_file(path) as file:
        yield file


def check_record(value: Any, model: type[Model], place: str, schema: str) -> Model:
    """Validate `value` as an instance of `model`.

    Args:
        place: where it was read, for errors.
        schema: the documentation named in errors.

    Raises:
        UsageError: it does not fit.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = choose_main_error(error)
        path: list[
            int | str
        ] = []  # the keys that lead to it, without pydantic's names for choices of a union
        for step in first["loc"]:
            is_key = isinstance(value, dict) and step in value
            if is_key or (isinstance(value, list) and isinstance(step, int)):
                value = value[step]
                path.append(step)
        where = ".".join(map(str, [*path, *first["loc"][-1:]] if first["type"] == "missing" else path))
        is_no_text = first["type"] == "string_type"
        sentence = _explain_no_text(first, model) if is_no_text else render_complaint(first, schema, model)
        raise UsageError(f"{place}: {f'{where}: ' if where else ''}{sentence}") from error


def _explain_no_text(error: Any, model: type[BaseModel]) -> str:
    """Return the remedy for a value that is no text, in the words of JSON."""
    found, location = error["input"], error["loc"]
    if found is None:
        field = model.model_fields.get(str(location[0])) if len(location) == 1 else None
        optional = field is not None and not field.is_required()
        return "is null. Give a text, or leave the key out." if optional else "is null. Give a text."
    if isinstance(found, dict | list):
        return f"must be text, not {'an object' if isinstance(found, dict) else 'a list'}. Give a text."
    return f"must be text, not {_describe_kind(found)}. Put it in quotes."


def expand_home(path: str | Path) -> Path:
    """Replace `~` or `~user` at the beginning of a path by the home folder.

    Raises:
        UsageError: there is no such user.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{path}: there is no user with such a home folder. Correct the path.") from error


def is_there(path: Path) -> bool:
    """Return whether a path exists.

    Raises:
        UsageError: the path is too long, or a folder in it cannot be read.
    """
    with _translate_errors(path):
        return path.exists()


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder; raises as `is_there`."""
    with _translate_errors(path):
        return path.is_dir()


def is_file(path: Path) -> bool:
    """Return whether a path is a file; raises as `is_there`."""
    with _translate_errors(path):
        return path.is_file()


def require_files_only(folder: Path) -> None:
    """Raise UsageError where a folder holds a pipe, a socket or a device, at any depth.

    Of a model's folder, libraries open what they want, and would wait for a pipe.
    """
    for place, _, names in os.walk(folder):
        for path in (Path(place) / name for name in names):
            if not path.exists():  # a link to nothing holds up nobody
                continue
            with _translate_errors(path):
                mode = path.stat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise UsageError(
                    f"{path}: it is {name_kind(mode)}, no file. Delete it, or name another folder."
                )


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise OperationalError(f"{path} was not read: {NO_HANDLE}") from error
        raise UsageError(f"{path}: cannot be read ({error.strerror}). Correct the path.") from error
