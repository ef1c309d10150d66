"""Read YAML of users and strangers: bounded, with JSON's types only, with each value's line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import yaml
from pydantic import ValidationError

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import Model, choose_main_error, read_text, render_complaint

LARGEST = 1_000_000
"""Bytes of a file at most, and characters with its aliases unfolded. Our largest pack has 60,000."""

MOST = 100_000
"""Values at most, with those that aliases repeat."""

DEEPEST = 50
"""Levels of nested lists and mappings at most."""

_TAG = "tag:yaml.org,2002:"
_PLAIN = tuple(_TAG + name for name in ("null", "bool", "int", "float", "str", "seq", "map"))
_MERGE = _TAG + "merge"
_NUMBERS = (_TAG + "int", _TAG + "float")
_LONGEST_NUMBER = 40
"""Characters of a number at most; the library's time grows with their square."""
_BITS = 64
_SHORT, _LONG = 60, 200
"""Characters shown of a key, and of a reason."""
_UNREADABLE = (ValueError, LookupError, AttributeError, ArithmeticError)
"""The library raises these for a value that does not fit its tag, such as `!!int ""`."""


def read_yaml(path: Path, schema: str, *, given: bool = False) -> YamlText:
    """Read a YAML file; see `YamlText`.

    Args:
        path: the file.
        schema: as for `YamlText`.
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


class YamlText:
    """A YAML mapping that can be checked against a model, with each value's line for errors.

    Its values are text, finite numbers of 64 bits, booleans, null, lists and mappings. Dates are text.
    Aliases and merge keys (`<<`) are unfolded.

    Args:
        path: the file named in errors.
        text: the YAML.
        first_line: line of the file on which the YAML begins.
        schema: the documentation named in errors.

    Raises:
        UsageError: it is no YAML mapping, repeats a key, or exceeds `LARGEST`, `MOST` or `DEEPEST`.
    """

    def __init__(self, path: Path, text: str, *, first_line: int = 1, schema: str) -> None:
        self._path = path
        self._first_line = first_line
        self._schema = schema
        try:
            self._root, data = _read(text)
        except yaml.YAMLError as error:
            place = f"{path}, line {first_line + _locate_line(error, text)}"
            if isinstance(error, _TooMuch):
                raise UsageError(f"{place}: {_extract_reason(error)}. Make the file simpler.") from error
            raise UsageError(f"{place}: not valid YAML ({_extract_reason(error)}). Correct it.") from error
        data = {} if data is None else data
        if not isinstance(data, dict):
            raise UsageError(
                f"{path}, line {first_line}: a list of `key: value` lines is expected here; see {schema}."
            )
        self.data: dict[Any, Any] = data
        """The mapping as it was read."""

    def check(self, model: type[Model]) -> Model:
        """Validate the mapping as an instance of `model`.

        Raises:
            UsageError: a key is unknown or missing, or a value is wrong; names the first one.
        """
        try:
            return model.model_validate(self.data)
        except ValidationError as error:
            first = choose_main_error(error)
            raise self.error(first["loc"], render_complaint(first, self._schema)) from error

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
                # Values from a merge key come first, and the ones that follow override them.
                found = [(key, value) for key, value in node.value if key.value == str(step)]
                if not found:
                    break
                line, node = found[-1][0].start_mark.line, found[-1][1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
                line = node.start_mark.line
            else:
                break
        return self._first_line + line


class _Refused(yaml.MarkedYAMLError):
    """It is YAML, but our fields cannot hold it."""


class _TooMuch(_Refused):
    """It is YAML, but exceeds a bound."""


class _Bounded(yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
    """A safe loader with bounds, without types that JSON lacks; the other base is one of the library's."""

    _library: ClassVar[Any]

    yaml_constructors: ClassVar = {tag: yaml.SafeLoader.yaml_constructors[tag] for tag in (*_PLAIN, None)}
    yaml_implicit_resolvers: Any = {  # noqa: RUF012 - so the stubs have it
        letter: [(tag, pattern) for tag, pattern in resolvers if tag in (*_PLAIN, _MERGE)]
        for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        if len(text) > LARGEST:
            raise _TooMuch(problem=f"more than {LARGEST:,} characters")
        super().__init__(text)  # type: ignore[call-arg] # the other base takes the text
        self._text = text
        self._measured: dict[int, _Size] = {}
        self._open: set[int] = set()

    def read(self) -> tuple[yaml.Node | None, Any]:
        """Return the only document, as node and as value.

        Raises:
            yaml.YAMLError: there are several documents, or `YamlText` refuses it.
        """
        _require_bounds(yaml.parse(self._text, Loader=self._library))
        root: yaml.Node | None = self.get_single_node()  # type: ignore[attr-defined]
        if root is None:
            return None, None
        self._measure(root)
        return root, self.construct_document(root)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """See `BaseConstructor`; refuses values that our fields cannot hold."""
        if node.tag in _NUMBERS and len(node.value) > _LONGEST_NUMBER:
            raise _make_refusal(f"a number of more than {_LONGEST_NUMBER} characters", node)
        try:
            value = super().construct_object(node, deep)
        except _UNREADABLE as error:
            found = _shorten_line(str(node.value), _SHORT)
            raise _make_refusal(f"{found!r} is no {node.tag.removeprefix(_TAG)}", node) from error
        if isinstance(value, str):
            return _join_surrogates(value, node)
        if isinstance(value, float) and not math.isfinite(value):
            raise _make_refusal(f"{node.value} is no finite number", node)
        if isinstance(value, int) and not -(2 ** (_BITS - 1)) <= value < 2**_BITS:
            raise _make_refusal(f"{node.value} has more than {_BITS} bits", node)
        return value

    def _measure(self, node: yaml.Node) -> _Size:
        """Return the size of an unfolded node; each node is measured once, however often aliases name it.

        Raises:
            yaml.MarkedYAMLError: a bound is exceeded, an alias is inside its own node, or a key occurs twice.
        """
        known = self._measured.get(id(node))
        if known is not None:
            return known
        if id(node) in self._open:
            raise _make_refusal("an alias stands inside of what it names", node)
        if isinstance(node, yaml.ScalarNode):
            size = _Size(1, len(node.value), 1)
        else:
            self._open.add(id(node))
            parts = node.value
            if isinstance(node, yaml.MappingNode):
                self._refuse_repeated_keys(node)
                parts = [part for pair in node.value for part in pair]
            sizes = [self._measure(part) for part in parts]
            size = _Size(
                1 + sum(size.values for size in sizes),
                sum(size.characters for size in sizes),
                1 + max((size.levels for size in sizes), default=0),
            )
            self._open.remove(id(node))
        if size.values > MOST or size.characters > LARGEST:
            reason = f"its aliases repeat more than {MOST:,} values or {LARGEST:,} characters"
            raise _TooMuch(problem=reason, problem_mark=node.start_mark)
        if size.levels > DEEPEST:
            raise _TooMuch(problem=_NESTED, problem_mark=node.start_mark)
        self._measured[id(node)] = size
        return size

    def _refuse_repeated_keys(self, node: yaml.MappingNode) -> None:
        """Refuse repeated keys. YAML forbids them, but the library would silently keep the last one."""
        seen: set[object] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue  # refused when the mapping is made
            name = key.value if key.tag == _MERGE else self.construct_object(key)
            if name in seen:
                raise _make_refusal(f"the key {key.value} occurs twice", key)
            seen.add(name)


class _Loader(_Bounded, yaml.SafeLoader):
    """Written in Python: it reads all that JSON can say, and says clearly what is wrong."""

    _library = yaml.SafeLoader


class _FastLoader(_Bounded, yaml.CSafeLoader):
    """Written in C: it reads a pack in a third of the time."""

    _library = yaml.CSafeLoader


def _read(text: str) -> tuple[yaml.Node | None, Any]:
    """Return the only document of a text, as node and as value.

    Raises:
        yaml.YAMLError: it is not valid, holds several documents, or `YamlText` refuses it.
    """
    try:
        return _FastLoader(text).read()
    except _Refused:
        raise
    except (yaml.YAMLError, UnicodeEncodeError):
        # It may still be fine: the library in C knows no emoji in halves, as JSON writes them.
        return _Loader(text).read()


def _require_bounds(events: Iterable[Any]) -> None:
    """Refuse a text as soon as its events exceed a bound, before a value of it is made."""
    values = level = 0
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            level -= 1
        elif isinstance(event, yaml.NodeEvent):
            values += 1
            if values > MOST or level >= DEEPEST:
                problem = f"more than {MOST:,} values" if values > MOST else _NESTED
                mark: Any = event.start_mark
                raise _TooMuch(problem=problem, problem_mark=mark)
            level += isinstance(event, yaml.CollectionStartEvent)


class _Size(NamedTuple):
    values: int
    characters: int
    levels: int


_NESTED = f"more than {DEEPEST} lists and mappings in one another"


def _make_refusal(problem: str, node: yaml.Node) -> _Refused:
    return _Refused(problem=problem, problem_mark=node.start_mark)


def _join_surrogates(text: str, node: yaml.Node) -> str:
    """Join halves of characters, as JSON writes emoji: `\\ud83d\\ude00`."""
    if "\0" in text:
        raise _make_refusal("a text holds the character NUL", node)
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        raise _make_refusal("a text holds half a character (a lone surrogate)", node) from error


def _locate_line(error: yaml.YAMLError, text: str) -> int:
    """Return the line of an error, from 0."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        return mark.line if mark else 0
    return text.count("\n", 0, error.position) if isinstance(error, yaml.reader.ReaderError) else 0


def _extract_reason(error: yaml.YAMLError) -> str:
    """Return the library's or our reason on one line."""
    told = (isinstance(error, yaml.MarkedYAMLError) and error.problem) or str(error).partition("\n")[0]
    return _shorten_line(told, _LONG)


def _shorten_line(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
