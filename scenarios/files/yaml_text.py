"""YAML: read it within bounds, with JSON's types only and each value's line, and write it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import yaml
from pydantic import ValidationError

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import Model, choose_main_error, read_text, render_complaint

LARGEST = 1_000_000
"""Bytes of a file, and characters of a text, at most. Our largest pack has 60,000."""

MOST = 100_000
"""Values at most, keys included."""

DEEPEST = 50
"""Levels of nested lists and mappings at most."""

_TAG = "tag:yaml.org,2002:"
_PLAIN = tuple(_TAG + name for name in ("null", "bool", "int", "float", "str", "seq", "map"))
_NUMBERS = (_TAG + "int", _TAG + "float")
_NO_NUMBER = re.compile(r"[-+]?0[0-7_]+|.*:.*")
"""Times (`5:00`) and codes (`010`), which the library reads as numbers to the base of 60 or 8."""
_LONGEST_NUMBER = 40
_BITS = 64
_SHORT, _LONG = 60, 200
"""Characters shown of a key, and of a reason."""
_UNREADABLE = (ValueError, LookupError, AttributeError, ArithmeticError)
"""The library raises these for a value that does not fit its tag, such as `!!int ""`."""


def read_yaml(path: Path, schema: str, *, given: bool = False) -> YamlText:
    """Read a YAML file; see `YamlText`.

    Args:
        given: whether a person named the file on the command line, and it may be a pipe.

    Raises:
        UsageError: it cannot be read, is larger than `LARGEST`, or `YamlText` refuses it.
    """
    return YamlText(path, read_text(path, LARGEST, given=given), schema=schema)


def read_value(text: str) -> Any:
    """Read a single value in YAML, within the bounds of a file.

    Raises:
        ValueError: it is not valid; says why.
    """
    try:
        return _read(text)[1]
    except yaml.YAMLError as error:
        raise ValueError(_extract_reason(error)) from error


class PlainDumper(yaml.SafeDumper):
    """Writes a value that occurs twice twice, because aliases are not read."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return True: no value gets an anchor."""
        return True


def dump_yaml(value: Any) -> str:
    """Return a value as YAML, with keys in the order that they have."""
    return yaml.dump(value, Dumper=PlainDumper, sort_keys=False, allow_unicode=True, width=110)


class YamlText:
    """A YAML mapping that can be checked against a model, with each value's line for errors.

    Its values are text, finite numbers of 64 bits, booleans, null, lists and mappings. Dates, times and codes
    that begin with 0 are text.

    Args:
        path: the file named in errors.
        first_line: line of the file on which the YAML begins.
        schema: the documentation named in errors.

    Raises:
        UsageError: it is no YAML mapping, has an alias, repeats a key, or exceeds a bound.
    """

    def __init__(self, path: Path, text: str, *, first_line: int = 1, schema: str) -> None:
        self._path = path
        self._first_line = first_line
        self._schema = schema
        try:
            self._root, data = _read(text)
        except yaml.YAMLError as error:
            line = first_line + _locate_line(error, text)
            raise UsageError(
                f"{path}, line {line}: not valid YAML ({_extract_reason(error)}). Correct it."
            ) from error
        data = {} if data is None else data
        if not isinstance(data, dict):
            raise UsageError(
                f"{path}, line {first_line}: a list of `key: value` lines is expected here; see {schema}."
            )
        self.data: dict[Any, Any] = data

    def check(self, model: type[Model]) -> Model:
        """Validate the mapping as an instance of `model`.

        Raises:
            UsageError: a key is unknown or missing, or a value is wrong; names the first one.
        """
        try:
            return model.model_validate(self.data)
        except ValidationError as error:
            first = choose_main_error(error)
            raise self.error(first["loc"], render_complaint(first, self._schema, model)) from error

    def error(self, location: Sequence[int | str], sentence: str) -> UsageError:
        """Make an error about the value at `location`, or the nearest one around it."""
        where = ".".join(_shorten_line(str(step), _SHORT) for step in location)
        return UsageError(f"{self.place(location)}: {f'{where}: ' if where else ''}{sentence}")

    def place(self, location: Sequence[int | str]) -> str:
        """Return file and line of the value at `location`, or of the nearest one around it."""
        return f"{self._path}, line {self._line(location)}"

    def _line(self, location: Sequence[int | str]) -> int:
        node, line = self._root, 0
        for step in location:
            if isinstance(node, yaml.MappingNode):
                found = next((pair for pair in node.value if pair[0].value == str(step)), None)
                if found is None:
                    break
                line, node = found[0].start_mark.line, found[1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
                line = node.start_mark.line
            else:
                break
        return self._first_line + line


class _Loader(yaml.CSafeLoader):
    """A safe loader of one document, with the types of JSON only."""

    yaml_constructors: ClassVar = {tag: yaml.SafeLoader.yaml_constructors[tag] for tag in (*_PLAIN, None)}
    yaml_implicit_resolvers: Any = {  # noqa: RUF012 - so the stubs have it
        letter: [(tag, pattern) for tag, pattern in resolvers if tag in _PLAIN]
        for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node; refuse numbers and texts that our fields cannot hold."""
        if node.tag in _NUMBERS and _NO_NUMBER.fullmatch(node.value):
            node.tag = _TAG + "str"
        # The library's time grows with the square of a number's length.
        if node.tag in _NUMBERS and len(node.value) > _LONGEST_NUMBER:
            raise _refuse(f"a number of more than {_LONGEST_NUMBER} characters", node)
        try:
            value = super().construct_object(node, deep)
        except _UNREADABLE as error:
            found = _shorten_line(str(node.value), _SHORT)
            raise _refuse(f"{found!r} is no {node.tag.removeprefix(_TAG)}", node) from error
        if isinstance(value, str) and "\0" in value:
            raise _refuse("a text holds the character NUL", node)
        if isinstance(value, float) and not math.isfinite(value):
            raise _refuse(f"{node.value} is no finite number", node)
        if isinstance(value, int) and value.bit_length() > _BITS:
            raise _refuse(f"{node.value} has more than {_BITS} bits", node)
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; refuse repeated keys, of which the library would silently keep the last."""
        found = super().construct_mapping(node, deep)
        if len(found) < len(node.value):
            seen = set()
            for key, _ in node.value:
                if (name := self.construct_object(key)) in seen:
                    raise _refuse(f"the key {key.value} occurs twice", key)
                seen.add(name)
        return found


def _read(text: str) -> tuple[yaml.Node | None, Any]:
    """Return the only document of a text, as node and as value.

    Raises:
        yaml.YAMLError: it is not valid, holds several documents, or `YamlText` refuses it.
    """
    if len(text) > LARGEST:
        raise yaml.MarkedYAMLError(problem=f"more than {LARGEST:,} characters")
    try:
        _require_bounds(text)
        loader = _Loader(text)
        root = loader.get_single_node()
    except UnicodeEncodeError as error:
        raise yaml.MarkedYAMLError(problem="a text holds half a character (a lone surrogate)") from error
    return root, None if root is None else loader.construct_document(root)


def _require_bounds(text: str) -> None:
    """Refuse an alias, or the event that exceeds a bound.

    This comes before any node is made: the library makes nested ones in a recursion without a bound.
    """
    values = level = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionEndEvent):
            level -= 1
        elif isinstance(event, yaml.AliasEvent):
            raise _refuse(f"the alias *{event.anchor}: aliases are not read, repeat the value", event)
        elif isinstance(event, yaml.NodeEvent):
            values += 1
            if values > MOST:
                raise _refuse(f"more than {MOST:,} values", event)
            if level >= DEEPEST:
                raise _refuse(f"more than {DEEPEST} lists and mappings in one another", event)
            level += isinstance(event, yaml.CollectionStartEvent)


def _refuse(problem: str, at: yaml.Node | yaml.Event) -> yaml.MarkedYAMLError:
    mark: Any = at.start_mark  # one of the library in C, which the stubs keep apart
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _locate_line(error: yaml.YAMLError, text: str) -> int:
    """Return the line of an error, from 0."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        return mark.line if mark else 0
    # The library in C counts the bytes.
    return text.encode().count(b"\n", 0, error.position) if isinstance(error, yaml.reader.ReaderError) else 0


def _extract_reason(error: yaml.YAMLError) -> str:
    """Return the library's or our reason on one line."""
    reason = (isinstance(error, yaml.MarkedYAMLError) and error.problem) or str(error).partition("\n")[0]
    return _shorten_line(reason, _LONG)


def _shorten_line(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
