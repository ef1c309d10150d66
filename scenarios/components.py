"""Components by name: ours, those of installed distributions, and their options."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, invalidate_caches
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Any, Literal, TypeVar, cast

from pydantic import ValidationError

from hallulab.scenarios.errors import HallulabError, UsageError
from hallulab.scenarios.files.data_files import explain_error, suggest_key
from hallulab.scenarios.near_names import suggest_name
from hallulab.scenarios.transcript import Frozen

Target = Literal[
    "served", "embedding", "weights", "file", "policy", "pack", "code", "address", "variable", "header"
]
"""Where a text of an experiment leads to: a model to serve, one that makes vectors, other weights (each a
name or a folder), a file, a policy or a pack (built in, or a path), code of the user's, an endpoint, a
variable of the environment, or a header, which may name variables."""


@dataclass(frozen=True)
class LeadsTo:
    """Marks a text of a schema that leads out of the experiment. One without it is text, or a name in it."""

    target: Target


Factory = TypeVar("Factory")
Made = TypeVar("Made")


def list_entry_points(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name."""
    return dict(_read_entry_points(entry_points, group, tuple(sys.path)))


@lru_cache(maxsize=16)
def _read_entry_points(
    read: Callable[..., Iterable[EntryPoint]], group: str, path: tuple[str, ...]
) -> dict[str, EntryPoint]:
    # Reading those of all distributions takes 10 ms, and a chatbot is made for each conversation.
    return {point.name: point for point in read(group=group)}


def import_constants(package: str, constant: str) -> dict[str, Any]:
    """Return the constant of each module of a package that has it, by the module's name with hyphens."""
    found = {}
    for one in iter_modules(import_module(package).__path__):
        module = import_module(f"{package}.{one.name}")
        if hasattr(module, constant):
            found[one.name.replace("_", "-")] = getattr(module, constant)
    return dict(sorted(found.items()))


def list_component_names(own: Mapping[str, object], group: str) -> list[str]:
    """Return all names, ours first. An entry point cannot take one of our names."""
    return list(dict.fromkeys([*own, *sorted(list_entry_points(group))]))


def find_component(what: str, name: str, own: Mapping[str, Factory], group: str) -> Factory:
    """Return the factory of that name: ours, else the target of an entry point, which is not checked.

    Args:
        what: the kind of component in the error: `detector`.

    Raises:
        UsageError: there is none, or its distribution cannot be imported.
    """
    if name in own:
        return own[name]
    point = list_entry_points(group).get(name)
    if point is None:
        names = list_component_names(own, group)
        raise UsageError(
            f"there is no {what} {name!r}{suggest_name(name, names)}; there are: {', '.join(names)}."
        )
    try:
        return cast(Factory, point.load())
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # other people's code may also raise SystemExit
        raise UsageError(
            f"{what} {name!r}: cannot load its entry point {point.value} ({describe_exception(error)})."
        ) from error


_TARGET = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*(\.\w+)*", re.ASCII)


def is_code(kind: str) -> bool:
    """Return whether a component's kind names code to import, such as `my_detector:Mine`."""
    return ":" in kind


def import_code(what: str, target: str) -> Any:
    """Import what `module:name` names, from an installed package or the working directory.

    The working directory comes last, so that no file in it stands for a module of ours or of a library.

    Args:
        what: the kind of component in the error: `detector`.
        target: `my_detector:Mine`.

    Raises:
        UsageError: it is not of this form, cannot be imported, or the module has no such name.
    """
    if not _TARGET.fullmatch(target):
        raise UsageError(f"{what} {target!r}: write module:Class, such as my_detector:Mine.")
    module, _, path = target.partition(":")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)
    invalidate_caches()
    try:
        found: Any = import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # other people's code may also raise SystemExit
        raise UsageError(
            f"{what} {target!r}: cannot import {module} from {here} ({describe_exception(error)})."
        ) from error
    for name in path.split("."):
        if not hasattr(found, name):
            raise UsageError(f"{what} {target!r}: the module {module} has no {path!r}.")
        found = getattr(found, name)
    return found


def find_info(what: str, name: str, own: Mapping[str, Made], group: str, kind: type[Made]) -> Made:
    """Return the description of that name: ours, else the target of an entry point.

    Args:
        what: the kind of component in the error: `data set`.

    Raises:
        UsageError: there is none, its distribution cannot be imported, or the target is something else.
    """
    found = find_component(what, name, own, group)
    if not isinstance(found, kind):
        raise UsageError(
            f"{what} {name!r}: its entry point gives a {type(found).__name__}. Let it give a {kind.__name__}."
        )
    return found


def make_component(
    what: str, name: str, own: Mapping[str, object], parts: Sequence[str], make: Callable[[], Made]
) -> Made:
    """Call `make`; if the component is not ours, check that it was made and has all parts.

    Args:
        what: the kind of component in the error: `detector`.
        own: our components, which are trusted.
        parts: attributes that it must have.

    Raises:
        UsageError: its constructor raised an error, or its result lacks a part.
        HallulabError: its constructor raised one.
    """
    if name in own:
        return make()
    try:
        made = make()
    except (HallulabError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise UsageError(f"{what} {name!r}: its constructor raised {describe_exception(error)}.") from error
    lacking = next((part for part in parts if not hasattr(made, part)), None)
    if lacking is not None:
        raise UsageError(
            f"{what} {name!r}: its constructor gave a {type(made).__name__}, which has no `{lacking}`."
        )
    return made


def describe_exception(error: BaseException) -> str:
    """Return an exception of other people's code as one line, without a full stop."""
    try:
        message = " ".join(str(error).split()).rstrip(".")
    except Exception as unsayable:  # noqa: BLE001 - the message is their code, too
        message = f"its message raised {type(unsayable).__name__}"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


_CALLERS = (
    "hallulab.agents.concurrency",
    "hallulab.detectors.base.protocol",
    "hallulab.simulator.engine.conversation",
)
"""Modules that call other people's code; where these are the last of ours, the error is not ours."""


def describe_failure(error: BaseException) -> str:
    """Return the same; of a bug of ours also the place, so that it is not taken for a failure of the world.

    An error is no bug of ours where other people's code raised it, where ours did on purpose, and where the
    system or the network failed.
    """
    if isinstance(error, OSError) or type(error).__module__.startswith("hallulab."):
        return describe_exception(error)
    modules = [
        (str(frame.f_globals.get("__name__", "")), line)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    own = [(module, line) for module, line in modules if module.startswith("hallulab.")]
    if not own or own[-1][0] in _CALLERS:
        return describe_exception(error)
    module, line = own[-1]
    return f"{describe_exception(error)} (in {module}, line {line})"


Options = TypeVar("Options", bound=Frozen)


def read_options(owner: str, schema: type[Options], options: Mapping[str, Any]) -> Options:
    """Validate `options` as an instance of `schema`.

    Args:
        owner: the component's name in the error: `detector metarag`.

    Raises:
        UsageError: an option is unknown, missing or has a wrong value.
    """
    try:
        return schema.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            near = suggest_key(schema, first["loc"])
            reason = f"there is no option `{name}`{near}; there are: {', '.join(schema.model_fields)}."
        elif first["type"] == "missing":
            reason = f"the option `{name}` is required."
        else:
            message = f"{explain_error(first)}."
            reason = f"option `{name}`: {message}" if name else message
        raise UsageError(f"{owner}: {reason}") from error
