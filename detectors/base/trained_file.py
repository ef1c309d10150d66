"""Files of trained models: arrays of numpy and plain values of JSON, with a format number, without code."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hallulab.detectors.base.classifiers import KINDS, Classifier
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.opening import read_file

Model = TypeVar("Model")

LARGEST_UNPACKED = 500_000_000
"""Bytes of a file at most, unpacked; ours have 3 million."""


def write_trained(held: Mapping[str, Any], form: int, path: Path) -> None:
    """Write the content of a model: plain values, arrays, classifiers.

    Args:
        form: number of the format, which `read_trained` asks for.
    """
    arrays: dict[str, Any] = {}
    plain: dict[str, Any] = {"format": form}
    for name, value in held.items():
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif isinstance(value, Classifier):
            plain[name] = type(value).__name__
            arrays |= {f"{name}.{one.name}": getattr(value, one.name) for one in fields(value)}
        else:
            plain[name] = value
    arrays["plain"] = np.frombuffer(json.dumps(plain).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)


def read_trained(path: Path, form: int, remedy: str, make: Callable[[dict[str, Any]], Model]) -> Model:
    """Read a file of `write_trained`. Nothing in it is executed.

    Args:
        form: number that the file's format must have.
        remedy: last sentence of the error message, for the user.
        make: makes the model from the content, its classifiers by `read_classifier`. A field that is missing
            or of a wrong type counts as an error of the file.

    Raises:
        UsageError: there is no such file, it cannot be read, or is no such model.
    """
    if not path.is_file():
        raise UsageError(f"{path}: no such trained model. Train one, or leave the option `model` out.")
    try:
        data = read_file(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}.") from error
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > LARGEST_UNPACKED:
                raise ValueError("too large")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            held = dict(arrays)
        held |= json.loads(held.pop("plain").tobytes())
        if held["format"] != form:
            raise UsageError(f"{path}: its format is {held['format']}, not {form}. {remedy}")
        return make(held)
    except UsageError:
        raise
    except Exception as error:  # one flipped bit may raise nearly any error of zip, JSON or numpy
        raise UsageError(f"{path}: this is no trained model of this detector. {remedy}") from error


def read_classifier(held: Mapping[str, Any], name: str) -> Any:
    """Return a file's classifier of this name, or None if it says that there is none.

    Raises:
        ValueError, TypeError, AttributeError, KeyError: it holds something else.
    """
    if held[name] is None:
        return None
    kind = KINDS[held[name]]
    return kind(**{one.name: held[f"{name}.{one.name}"] for one in fields(kind)})
