"""Read and check a component's own options from the experiment file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import explain_error
from hallulab.scenarios.transcript import Frozen

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
            reason = f"there is no option `{name}`; there are: {', '.join(schema.model_fields)}."
        elif first["type"] == "missing":
            reason = f"the option `{name}` is required."
        else:
            message = f"{explain_error(first)}."
            reason = f"option `{name}`: {message}" if name else message
        raise UsageError(f"{owner}: {reason}") from error
