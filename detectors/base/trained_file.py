"""Files of trained models, in the skops format, which holds no code, with a format number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from zipfile import ZIP_DEFLATED

from hallulab.detectors.base.sound_classifiers import list_strange_types, require_sound
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.opening import read_file

Model = TypeVar("Model")


def write_trained(held: Mapping[str, Any], form: int, path: Path) -> None:
    """Write the content of a model: plain values, arrays, scikit-learn's estimators.

    Args:
        form: number of the format, which `read_trained` asks for.
    """
    import skops.io

    skops.io.dump({"format": form, **held}, path, compression=ZIP_DEFLATED, compresslevel=9)


def read_trained(
    path: Path, form: int, trusted: Sequence[str], remedy: str, make: Callable[[dict[str, Any]], Model]
) -> Model:
    """Read a file of `write_trained`. Nothing in it is executed.

    Args:
        form: number that the file's format must have.
        trusted: types of `KNOWN_TYPES` it may hold beyond those that skops trusts.
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
        strange = list_strange_types(data)
        if strange:
            raise UsageError(f"{path}: it holds types that are not trusted ({', '.join(strange)}). {remedy}")
        held = skops.io.loads(data, trusted=list(trusted))
        if held["format"] != form:
            raise UsageError(f"{path}: its format is {held['format']}, not {form}. {remedy}")
        return make(held)
    except UsageError:
        raise
    except Exception as error:  # one flipped bit may raise nearly any of zip, numpy, skops or scikit-learn
        raise UsageError(f"{path}: this is no trained model of this detector. {remedy}") from error


def read_classifier(found: Any, *, optional: bool = False) -> Any:
    """Return what a file holds as a classifier, or None if it is optional and absent.

    Raises:
        TypeError: it gives no probabilities.
        Exception: see `require_sound`.
    """
    if optional and found is None:
        return None
    if not hasattr(found, "predict_proba"):
        raise TypeError(f"{type(found).__name__} is no classifier")
    require_sound(found)
    return found
