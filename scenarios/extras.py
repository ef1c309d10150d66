"""Packages that only some uses need, by the extra of pyproject.toml that installs them."""

from __future__ import annotations

from importlib.util import find_spec

from hallulab.scenarios.errors import UsageError


class MissingExtra(UsageError):
    """A package of an extra is not installed."""


def require_extra(extra: str, *modules: str, use: str) -> None:
    """Raise an error unless these modules are installed. It imports none of them.

    Args:
        extra: the one that installs them: `local`, `documents`, `tables`, `plots` or `ray`.
        modules: their top-level names.
        use: subject of the sentence: `Search by vectors`.

    Raises:
        MissingExtra: one is not installed.
    """
    for module in modules:
        if find_spec(module) is None:
            distribution = module.replace("_", "-")
            raise MissingExtra(
                f"{use} needs {distribution}, which is not installed: pip install 'hallulab[{extra}]'"
            )
