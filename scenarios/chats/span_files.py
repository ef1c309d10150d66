"""Spans and records of logs in JSON, out of whatever wraps them, and their attributes.

Read are OTLP 1.9 (`resourceSpans`, `resourceLogs`, names in camel or in snake case, also with the null
members that Phoenix writes), answers of Tempo (`batches`, `trace`) and of Phoenix (`data`), objects of
Python's exporter and of Phoenix (`context`), and rows of data frames (`context.trace_id`, `attributes.*`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from hallulab.scenarios.chats.cells import is_nothing, unpack_cell
from hallulab.scenarios.chats.reading import fold_keys, fold_name, fold_names
from hallulab.scenarios.chats.values import FormatError, list_in
from hallulab.scenarios.files.json_text import MAX_DEPTH
from hallulab.scenarios.text.wording import shorten_line

Attributes = Mapping[str, Any]

_SPANS = (("resourcespans", "batches"), ("scopespans", "instrumentationlibraryspans"), ("spans",))
_LOGS = (("resourcelogs",), ("scopelogs", "instrumentationlibrarylogs"), ("logrecords",))
_WRAPPERS = ("trace", "traces", "data")
_COLUMN = "attributes."

ROW_TRACES = fold_names("trace_id root_span_id root_run_id")
ROW_PARENTS = fold_names("parent_id parent_span_id parent_run_id parent_observation_id span_parents")
ROW_GIVEN, ROW_GAVE = fold_names("input inputs"), fold_names("output outputs")
"""Names of a span's trace, of the span around it, of its input and of its output, where spans are rows."""


def is_span(value: Mapping[str, Any]) -> bool:
    """Return whether a value is a span, a record of a log, or wraps some."""
    own = fold_keys(value)
    if any(name in own for name in (*_SPANS[0], *_LOGS[0])) or "context.traceid" in own:
        return True
    if "attributes" in own and bool({"context", "traceid"} & own.keys()):
        return True
    return any(is_span(first) for key in _WRAPPERS for first in _list_first(own.get(key)))


def is_span_row(names: Iterable[str]) -> bool:
    """Return whether names are those of a span as a row: trace, span around it, input and output."""
    own = set(map(fold_name, names))
    return all(own & set(known) for known in (ROW_TRACES, ROW_PARENTS, ROW_GIVEN, ROW_GAVE))


def _list_first(wrapped: Any) -> list[Mapping[str, Any]]:
    first = wrapped[:1] if isinstance(wrapped, list) else [wrapped]
    return [one for one in first if isinstance(one, Mapping)]


def find_spans(value: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (place, span or record of a log) of a value, their names folded.

    Raises:
        FormatError: something that must be a list or an object is none.
    """
    own = fold_keys(value)
    for levels in (_SPANS, _LOGS):
        if any(name in own for name in levels[0]):
            yield from _walk_lists(value, levels, "")
            return
    for key in _WRAPPERS:
        wrapped = own.get(key)
        listed = wrapped if isinstance(wrapped, list) else [wrapped]
        if any(is_span(one) for one in _list_first(wrapped)):
            for number, one in enumerate(listed):
                if not isinstance(one, Mapping):
                    raise FormatError(f"{key}.{number}: must be an object. Correct it.")
                yield from ((f"{key}.{number}.{place}", span) for place, span in find_spans(one))
            return
    if "resourcemetrics" not in own:
        yield "", _join_columns(value) if "context.traceid" in own else own


def _walk_lists(
    value: Any, levels: tuple[tuple[str, ...], ...], place: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (place, object) of each object under keys that lead from list to list."""
    if not isinstance(value, Mapping):
        raise FormatError(f"{place.rstrip('.')}: must be an object. Correct it.")
    if not levels:
        yield place.rstrip("."), fold_keys(value)
        return
    for key, listed in value.items():
        if fold_name(key) not in levels[0] or listed is None:
            continue
        if not isinstance(listed, list):
            raise FormatError(f"{place}{key}: must be a list. Correct it.")
        for number, one in enumerate(listed):
            yield from _walk_lists(one, levels[1:], f"{place}{key}.{number}.")


def _join_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a data frame as a span: an attribute, and a part of the context, has a column."""
    span: dict[str, Any] = {"attributes": {}, "context": {}}
    for name, cell in row.items():
        if is_nothing(cell):
            continue
        head, dot, rest = name.partition(".")
        if dot and head in span:
            span[head][rest] = unpack_cell(cell)
        else:
            span[fold_name(name)] = cell
    return span


def flatten_attributes(value: Any) -> dict[str, Any]:
    """Return attributes by their full names, in whichever of the three forms they are: OTLP, flat, nested."""
    value = unpack_cell(value)
    if isinstance(value, list):
        return {
            one["key"]: _read_any_value(one.get("value"))
            for one in value
            if isinstance(one, Mapping) and isinstance(one.get("key"), str)
        }
    if not isinstance(value, Mapping):
        return {}
    flat: dict[str, Any] = {}
    waiting = deque((str(key), one) for key, one in value.items())
    while waiting:
        name, one = waiting.popleft()
        if isinstance(one, Mapping):
            flat.setdefault(name, dict(one))
            waiting += [(f"{name}.{key}", inner) for key, inner in one.items()]
        elif isinstance(one, list) and any(isinstance(inner, Mapping) for inner in one):
            flat[name] = one
            waiting += [(f"{name}.{number}", inner) for number, inner in enumerate(one)]
        else:
            flat[name] = one
    return flat


def _read_any_value(value: Any) -> Any:
    """Return the value of OTLP's `AnyValue`; Phoenix writes all its members, null but one."""
    if not isinstance(value, Mapping):
        return None
    kind, inner = next(((fold_name(key), one) for key, one in value.items() if one is not None), ("", None))
    if kind == "arrayvalue" and isinstance(inner, Mapping):
        return [_read_any_value(one) for one in list_in(inner, "values")]
    if kind == "kvlistvalue" and isinstance(inner, Mapping):
        return flatten_attributes(inner.get("values"))
    return inner


def read_body(value: Any) -> Any:
    """Return what a record of a log says, in OTLP's form or as it is."""
    if isinstance(value, Mapping) and len(value) == 1 and fold_name(next(iter(value))).endswith("value"):
        return _read_any_value(value)
    return value


def build_attribute_tree(flat: Attributes) -> Any:
    """Return attributes as objects in each other; keys from 0 on make a list. Of a clash, objects win.

    Raises:
        FormatError: a name has more parts than JSON may have levels.
    """
    root: dict[str, Any] = {}
    for name, value in flat.items():
        if isinstance(value, Mapping):
            continue
        if name.count(".") >= MAX_DEPTH:
            raise FormatError(
                f"the attribute {shorten_line(name)} has more than {MAX_DEPTH} parts. Shorten its name."
            )
        *path, last = name.split(".")
        at = root
        for key in path:
            inner = at.get(key)
            if not isinstance(inner, dict):
                inner = at[key] = {}
            at = inner
        if not isinstance(at.get(last), dict):
            at[last] = value
    return _convert_to_lists(root)


def _convert_to_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _convert_to_lists(one) for key, one in value.items()}
    if inner and all(key.isdecimal() for key in inner):
        # Any number of digits: `int` reads 4,300.
        return [inner[key] for key in sorted(inner, key=Decimal)]
    return inner
