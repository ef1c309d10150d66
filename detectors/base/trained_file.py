"""Files of trained models, in the skops format, which holds no code, with a format number."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from zipfile import ZIP_DEFLATED, BadZipFile

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.opening import read_file

Model = TypeVar("Model")

DAMAGED = (BadZipFile, zlib.error, EOFError, OSError, RuntimeError)
"""Errors that a damaged zip file raises. One flipped bit may ask for a password or another compression
(RuntimeError), or for a place before the file's beginning (OSError)."""


def write_trained(held: Mapping[str, Any], form: int, path: Path) -> None:
    """Write the content of a model: plain values, arrays, scikit-learn's estimators.

    Args:
        form: number of the format, which `read_trained` asks for.
    """
    import skops.io

    skops.io.dump({"format": form, **held}, path, compression=ZIP_DEFLATED, compresslevel=9)


def read_trained(
    path: Path,
    form: int,
    trusted: Sequence[str],
    remedy: str,
    make: Callable[[dict[str, Any]], Model],
) -> Model:
    """Read a file of `write_trained`. Nothing in it is executed.

    Args:
        form: number that the file's format must have.
        trusted: types it may hold beyond those that skops trusts.
        remedy: last sentence of the error message, for the user.
        make: makes the model from the content. A field that is missing or of a wrong type counts as an error
            of the file.

    Raises:
        UsageError: there is no such file, it cannot be read, it holds other types, or is no such model.
    """
    import skops.io

    if not path.is_file():
        raise UsageError(f"{path}: no such trained model. Train one, or leave the option `model` out.")
    try:
        data = read_file(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}.") from error
    try:
        strange = skops.io.get_untrusted_types(data=data)
        if set(strange) - set(trusted):
            raise UsageError(f"{path}: it holds types that are not trusted ({', '.join(strange)}). {remedy}")
        held = skops.io.loads(data, trusted=list(trusted))
        if held["format"] != form:
            raise UsageError(f"{path}: its format is {held['format']}, not {form}. {remedy}")
        return make(held)
    except (*DAMAGED, KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{path}: this is no trained model of this detector. {remedy}") from error


def read_classifier(found: Any, *, optional: bool = False) -> Any:
    """Return what a file holds as a classifier, or None if it is optional and absent.

    Raises:
        TypeError: it gives no probabilities.
    """
    if not (optional and found is None) and not hasattr(found, "predict_proba"):
        raise TypeError(f"{type(found).__name__} is no classifier")
    return found
