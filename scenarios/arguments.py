"""Check what a function of the front door is given, before it does anything."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from hallulab.scenarios.errors import UsageError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_MODULES = re.compile(r"\b(?:\w+\.)+(?=\w)")

_OPTIONAL = re.compile(r"^Optional\[(.*)\]$")


def check_arguments(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make a function check its arguments against its annotations when it is called.

    Annotations whose names are there for type checkers only are not checked.

    >>> @check_arguments
    ... def shout(text: str, *, times: int = 1) -> str:
    ...     return text.upper() * times
    >>> shout("no", times=2)
    'NONO'
    >>> shout(["no"])
    Traceback (most recent call last):
    hallulab.scenarios.errors.UsageError: shout: `text` is a list; it takes str.
    """
    signature = inspect.signature(function)
    name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    name = name.removeprefix("a") if inspect.iscoroutinefunction(function) else name

    @cache
    def find_hints() -> Mapping[str, Any]:
        return dict(_evaluate_hints(function))

    def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        check_given(name, find_hints(), signature.bind(*args, **kwargs).arguments)

    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def awaited(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Any:
            check(args, kwargs)
            return await function(*args, **kwargs)

        return cast(Callable[Parameters, Result], awaited)

    @wraps(function)
    def plain(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        check(args, kwargs)
        return function(*args, **kwargs)

    return plain


def _evaluate_hints(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    """Return name and type of each parameter whose annotation can be evaluated."""
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD and parameter.annotation is not parameter.empty:
            try:
                hint = eval(parameter.annotation, inspect.unwrap(function).__globals__)  # noqa: S307 - our own source
            except NameError:
                continue
            found.append((name, hint))
    return found


def check_given(name: str, hints: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Check values against types.

    Args:
        name: of the function that they are given to.
        hints: parameter → type; others are not checked.
        given: parameter → value.

    Raises:
        UsageError: one is of another type; says which, and what the parameter takes.
    """
    from pydantic import ValidationError

    for parameter, value in given.items():
        if parameter not in hints:
            continue
        try:
            _make_adapter(hints[parameter]).validate_python(_convert(value), strict=True)
        except ValidationError as error:
            if isinstance(value, str) and any(one["type"] == "literal_error" for one in error.errors()):
                continue  # a wrong word: the function itself says which ones there are
            found = _describe(value, error)
            takes = _MODULES.sub("", inspect.formatannotation(hints[parameter]))
            takes = _OPTIONAL.sub(r"\1 | None", takes)
            listed = (
                f" Give a list: [{value!r}]." if isinstance(value, str) and "Sequence[str" in takes else ""
            )
            raise UsageError(f"{name}: `{parameter}` {found}; it takes {takes}.{listed}") from error


@cache
def _make_adapter(hint: Any) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True))


def _convert(value: Any) -> Any:
    """Return a number of NumPy as Python's, and another kind of path as a `Path`."""
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return value.item()
    return Path(value) if isinstance(value, os.PathLike) else value


def _describe(value: Any, error: Any) -> str:
    """Say what a value is, or what stands in it at the wrong place."""
    for part in min((one["loc"] for one in error.errors()), key=len):
        if isinstance(part, int) and isinstance(value, list | tuple) and part < len(value):
            return f"has a {type(value[part]).__name__} at place {part}"
    if value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) < 60):
        return f"is {value!r}"
    return f"is a {type(value).__name__}"
