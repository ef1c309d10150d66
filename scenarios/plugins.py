"""Components by name: ours, and those that installed distributions offer by entry points."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar, cast

from scenarios.errors import UsageError

Factory = TypeVar("Factory")


def offered(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name."""
    return {point.name: point for point in entry_points(group=group)}


def component_names(own: Mapping[str, object], group: str) -> list[str]:
    """All names, ours first. A name of ours cannot be taken by an entry point."""
    return list(dict.fromkeys([*own, *sorted(offered(group))]))


def find_component(what: str, name: str, own: Mapping[str, Factory], group: str) -> Factory:
    """The factory of that name: ours, else what an entry point of the group leads to, which is not checked.

    Args:
        what: what it makes, as the error names it: `detector`.

    Raises:
        UsageError: there is none, or the distribution that offers it cannot be imported.
    """
    if name in own:
        return own[name]
    point = offered(group).get(name)
    if point is None:
        raise UsageError(f"there is no {what} {name!r}; there are: {', '.join(component_names(own, group))}.")
    try:
        return cast(Factory, point.load())
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"{what} {name!r}: cannot load its entry point {point.value} ({reason}).") from error
