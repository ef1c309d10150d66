"""Components by name: ours, and those that installed distributions offer by entry points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar, cast

from scenarios.errors import HallulabError, UsageError

Factory = TypeVar("Factory")
Made = TypeVar("Made")


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
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise UsageError(
            f"{what} {name!r}: cannot load its entry point {point.value} ({reason_of(error)})."
        ) from error


def make_component(
    what: str, name: str, own: Mapping[str, object], parts: Sequence[str], make: Callable[[], Made]
) -> Made:
    """What `make` gives; of somebody else's component it is checked that it was made and is whole.

    Args:
        what: what is made, as the error names it: `detector`.
        name: the name it is registered under.
        own: ours, which are trusted.
        parts: attributes that it must have.

    Raises:
        UsageError: its constructor raised something, or made something that lacks a part.
        HallulabError: its constructor raised one.
    """
    if name in own:
        return make()
    try:
        made = make()
    except (HallulabError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise UsageError(f"{what} {name!r}: its constructor raised {reason_of(error)}.") from error
    lacking = next((part for part in parts if not hasattr(made, part)), None)
    if lacking is not None:
        raise UsageError(
            f"{what} {name!r}: its constructor gave a {type(made).__name__}, which has no `{lacking}`."
        )
    return made


def reason_of(error: BaseException) -> str:
    """An exception of somebody else's code on one line, without a full stop."""
    try:
        message = " ".join(str(error).split()).rstrip(".")
    except Exception as unsayable:  # noqa: BLE001 - it is theirs, too
        message = f"its message raised {type(unsayable).__name__}"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
