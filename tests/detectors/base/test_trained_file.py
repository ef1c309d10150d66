"""Files of trained models that are damaged, or that hold something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hallulab.detectors.base import trained_file
from hallulab.detectors.base.trained_file import read_trained, write_trained
from hallulab.detectors.combined import model as combined
from hallulab.detectors.evidence_chain import model as evidence_chain
from hallulab.scenarios.errors import UsageError
from tests.detectors.base.damaged_models import make_model

DIRECTORY = b"PK\x01\x02"
"""What the first entry of a zip file's table of contents begins with."""


def read(path: Path) -> dict[str, Any]:
    return read_trained(path, 1, "Train it anew.", dict)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "kept.npz"
    write_trained({"words": list(range(200))}, 1, path)
    assert read(path)["words"][199] == 199
    return path


@pytest.mark.parametrize(
    ("marker", "offset", "length"),
    [(b"plain.npy", 40, 20), (DIRECTORY, 8, 1), (DIRECTORY, 10, 1), (DIRECTORY, 42, 4)],
    ids=["data", "encrypted", "compression", "place"],
)
def test_a_damaged_file_is_refused(kept: Path, marker: bytes, offset: int, length: int) -> None:
    data = bytearray(kept.read_bytes())
    start = data.index(marker) + offset
    data[start : start + length] = bytes(byte ^ 0xFF for byte in data[start : start + length])
    kept.write_bytes(data)
    with pytest.raises(UsageError, match=r"kept\.npz: this is no trained model of this detector\. Train"):
        read(kept)


def test_a_file_that_cannot_be_read_is_named(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(trained_file, "read_file", refuse)
    with pytest.raises(UsageError, match=r"^cannot read .*kept\.npz: Permission denied\.$"):
        read(kept)


def test_a_file_that_unpacks_to_far_more_is_refused(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained_file, "LARGEST_UNPACKED", 1000)
    with pytest.raises(UsageError, match="this is no trained model"):
        read(kept)


@pytest.mark.parametrize(
    "held",
    [
        *({"words": "x"}, {"sentences": 3}, {"linear": [1]}, {"trees": "Regression"}, {"trees": None}),
        *({"texts": -1}, {"texts": 1.5}, {"identity": 3}),
    ],
)
def test_a_combined_model_without_a_classifier_is_refused(held: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "whole.npz"
    model = make_model()
    combined.save_model(model, path)
    assert combined.load_model(path).frequency == model.frequency
    refused(path, combined, held, tmp_path)


@pytest.mark.parametrize("held", [{"sentence_classifier": "x"}, {"word_classifier": [1]}])
def test_an_evidence_chain_without_a_classifier_is_refused(held: dict[str, Any], tmp_path: Path) -> None:
    path = Path(evidence_chain.__file__).with_name("trained") / "lr-paper.npz"
    refused(path, evidence_chain, held, tmp_path)


def refused(good: Path, module: Any, held: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "edited.npz"
    whole = read_trained(good, module.FORMAT, "Train it anew.", dict)
    write_trained({**whole, **held}, module.FORMAT, path)
    with pytest.raises(UsageError, match=r"edited\.npz: this is no trained model of this detector"):
        module.load_model(path)
